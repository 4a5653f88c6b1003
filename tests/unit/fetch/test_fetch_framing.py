"""Bodies on their way in."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.fetch.framing import Chunked, Counted, UntilClose


def feed(body: Chunked, data: bytes, step: int = 0) -> int:
    if not step:
        return body.take(data)
    return sum(body.take(data[at : at + step]) for at in range(0, len(data), step) if not body.complete)


@pytest.mark.parametrize("step", [0, 1, 2, 3])
def test_chunks_are_joined_and_the_end_is_exact(step: int) -> None:
    """H1: extensions, trailers and bare line feeds, however the bytes are cut."""
    wire = b"5;name=value\r\nhello\r\n1 \n \n5\r\nworld\r\n0\r\nTrailer: x\r\n\r\n"
    body = Chunked()
    taken = feed(body, wire + (b"HTTP/1.1" if not step else b""), step)
    assert (taken, body.complete, body.fault) == (len(wire), True, "")
    assert bytes(body.content or b"") == b"hello world"


@pytest.mark.parametrize(
    "wire",
    [
        b"g\r\n",
        b"\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhelloX",
        b"-1\r\n",
        b"f" * 17 + b"\r\n",
        b"8000000000000000\r\n",
        b"0\r\nno colon\r\n",
        b"0\r\n\rX",
        b"0\r\nA: b\r\n folded\r\n\r\n",
    ],
)
@pytest.mark.parametrize("step", [0, 1])
def test_broken_chunks_are_a_fault_at_once(wire: bytes, step: int) -> None:
    """H5, Q5: no waiting for a line feed that never comes."""
    body = Chunked()
    feed(body, wire, step)
    assert body.fault
    assert not body.complete


def test_leading_zeros_of_a_size_do_not_matter() -> None:
    """H1: as libcurl reads them."""
    body = Chunked()
    feed(body, b"0" * 30 + b"2\r\nok\r\n000\r\n\r\n")
    assert body.complete
    assert body.content == b"ok"


def test_counted_bodies_end_after_their_length() -> None:
    """H1: not a byte more."""
    body = Counted(5)
    assert body.take(b"abc") == 3
    assert not body.complete
    assert body.take(b"defgh") == 2
    assert body.complete
    assert Counted(0).complete


def test_a_body_until_close_takes_everything() -> None:
    """H1: HTTP/1.0 and careless servers."""
    body = UntilClose()
    assert body.take(b"abc") == 3
    assert not body.complete


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.lists(st.integers(1, 9), min_size=1, max_size=60))
def test_cutting_the_wire_differently_changes_nothing(chunks: list[bytes], cuts: list[int]) -> None:
    """H1: chunked bodies come out the same for every way of arriving."""
    wire = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    body, at, turn = Chunked(), 0, 0
    while at < len(wire):
        step = cuts[turn % len(cuts)]
        body.take(wire[at : at + step])
        at, turn = at + step, turn + 1
    assert body.complete
    assert bytes(body.content or b"") == b"".join(chunks)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_end_or_fault_or_wait(wire: bytes) -> None:
    """Q5: nothing is taken twice, nothing raises."""
    body = Chunked()
    taken = body.take(wire)
    assert taken <= len(wire)
    assert body.fault or body.complete or taken == len(wire)


@pytest.mark.parametrize("wire", [b"1\r\nx\r\n" * 100_001, b"0\r\n" + b"T: x\r\n" * 100_001])
def test_chunks_and_trailers_come_to_an_end(wire: bytes) -> None:
    """Q5: taking one apart costs the same however small it is, so their number is bounded."""
    body = Chunked()
    feed(body, wire)
    assert body.fault == "more than 100000 chunks and trailers"
