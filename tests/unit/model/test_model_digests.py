"""Digests by the processor's instructions against those of the library."""

from __future__ import annotations

from hashlib import sha1, sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.model.digests import content_digest, noted_digests, plain_digests, sha1_of
from nephila.model.exchange import Fetched
from nephila.native import native

SIZES = (0, 1, 55, 56, 63, 64, 65, 119, 120, 127, 128, 129, 1000)
some = st.one_of(st.binary(max_size=300), st.sampled_from(SIZES).map(lambda size: bytes(range(256)) * 4 + b"x" * size))


def fetched(body: bytes, head: bytes, payload: bytes) -> Fetched:
    headers = (("etag", '"1"'), ("etag", '"2"'))
    return Fetched("https://a.test/", b"", head, payload, 200, headers, body, "192.0.2.1", 1, 2, 1)


@given(some, some, some)
def test_digests_are_those_of_the_library(body: bytes, head: bytes, payload: bytes) -> None:
    """D2, W1: of the content, of the payload and of the whole block, wherever they end."""
    expected = (sha256(body).digest(), sha1(payload).digest(), sha1(head + payload).digest())  # noqa: S324 - as archives do
    assert plain_digests(body, head, payload) == expected
    assert native.answer_digests(body, head, payload) in {expected, None}
    assert sha1_of(payload) == expected[1]


@pytest.mark.parametrize("size", [*SIZES, 70_000, 300_000])
def test_every_length_is_padded_as_the_standard_says(size: int) -> None:
    """D2: short ends, long ones, and what is so long that others may run meanwhile."""
    data = bytes(range(251)) * (size // 251 + 1)
    assert sha1_of(data[:size]) == sha1(data[:size]).digest()  # noqa: S324 - as archives do
    data = data[:size]
    assert native.answer_digests(data, b"h", data) in {plain_digests(data, b"h", data), None}


def test_what_the_archive_asks_for_is_noted_with_the_digest_of_the_content() -> None:
    """W1: and headers are found as before."""
    answer = fetched(b"body", b"head", b"payload")
    assert noted_digests(answer) is None
    assert content_digest(answer) == content_digest(answer) == sha256(b"body").digest()
    assert noted_digests(answer) in {plain_digests(b"body", b"head", b"payload"), None}
    assert answer.header("etag") == '"1"'
    assert answer == fetched(b"body", b"head", b"payload")


def test_a_wrong_call_is_refused() -> None:
    """W1: bytes, and nothing else."""
    with pytest.raises(TypeError):
        native.sha1("text")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError):
        native.answer_digests(b"", b"")  # type: ignore[call-arg]  # on purpose
