"""Gzip members."""

import gzip
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.store.member import STORED_MAX, deflated, stored


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=2_000))
def test_any_gzip_reader_takes_both_kinds_of_member(data: bytes) -> None:
    """W1: stored and compressed members hold exactly what was put in."""
    assert gzip.decompress(stored(data)) == data
    assert gzip.decompress(deflated(data)) == data
    assert gzip.decompress(deflated(data, 0) + stored(data)) == data + data


@pytest.mark.parametrize("size", [0, 1, STORED_MAX - 1, STORED_MAX, STORED_MAX + 1, 2 * STORED_MAX, 200_001])
def test_stored_members_of_every_size_around_a_block(size: int) -> None:
    """W1: a stored block ends at 65,535 bytes; the data does not."""
    data = random.Random(size).randbytes(size)
    assert gzip.decompress(stored(data)) == data


def test_the_same_record_gives_the_same_bytes() -> None:
    """W1: members carry no time, so an archive can be compared with its copy."""
    assert stored(b"silk") == stored(b"silk")
    assert deflated(b"silk") == deflated(b"silk")


def test_compressed_data_is_not_blown_up() -> None:
    """Q1: what came compressed costs 23 bytes more than itself, and no compressor."""
    data = random.Random(1).randbytes(30_000)
    assert len(stored(data)) == len(data) + 23
