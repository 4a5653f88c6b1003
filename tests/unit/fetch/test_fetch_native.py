"""Header blocks read in C against the same in Python."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nephila.fetch.answer import AnswerReader, Limits
from nephila.fetch.head import Head, find_end, plain_open_answer
from nephila.native import native

BEGINNINGS = ("HTTP/1.1 200 OK", "HTTP/1.0 404 No", "HTTP/1.1 304", "HTTP/1.1 204 -", "HTTP/1.1 100 Go", "http/1.1 200")
NAMES = ("Content-Length", "content-length", "Transfer-Encoding", "Connection", "Proxy-Connection", "Keep-Alive")
OTHERS = ("Content-Type", "Content-Encoding", "X", "", "caf\xe9", " folded", "no colon")
VALUES = ("5", "05", "5, 5", "-1", "9" * 19, "", "chunked", "Chunked", "gzip, chunked", "close", "Keep-Alive")
ODD = ("caf\xe9", "a\0b", "a\rb", " \t x \t ", "text/html; charset=utf-8")
LINES = st.tuples(
    st.sampled_from(NAMES + OTHERS), st.sampled_from((":", ": ", ":\t ", " : ")), st.sampled_from(VALUES + ODD)
)


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from(BEGINNINGS),
    st.lists(LINES, max_size=5),
    st.sampled_from(("\r\n", "\r\n", "\r\n", "\n")),
    st.sampled_from(("", "body", "\r\n\r\n")),
)
@example(BEGINNINGS[0], [("X", ":", "y")], "\r\n", "")
def test_blocks_are_read_alike(beginning: str, lines: list[tuple[str, str, str]], newline: str, body: str) -> None:
    """H1, H5: what C reads is what Python reads; what it leaves alone is Python's."""
    block = newline.join((beginning, *("".join(line) for line in lines))) + 2 * newline + body
    data = block.encode("latin-1")
    found = native.open_answer(data, Head)
    assert found is None or found == plain_open_answer(data, Head)
    for cut in range(find_end(data)):
        assert native.open_answer(data[:cut], Head) is None


@pytest.mark.parametrize(
    ("lines", "chunked", "length", "kept"),
    [
        ("Content-Length: 5\r\nConnection: keep-alive", False, 5, True),
        ("Content-Length: 5\r\nConnection: Close", False, 5, False),
        ("Transfer-Encoding: chunked\r\nX: caf\xe9 \r\n", True, None, True),
        ("Server: one", False, None, False),
    ],
)
def test_ordinary_blocks_are_read_in_c(lines: str, chunked: bool, length: int | None, kept: bool) -> None:
    """H1, Q1: the usual answer is not left to the careful way."""
    block = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{lines.strip()}\r\n\r\n".encode("latin-1")
    found = native.open_answer(block + b"12345", Head)
    assert found is not None
    assert (found[0], *found[2:]) == (len(block), chunked, length, kept)
    assert found[1].values("content-type") == ["text/html"]


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5, 5",
        f"Content-Length: {'9' * 19}",
        "Transfer-Encoding: identity",
        "Connection: close, x",
        "Proxy-Connection: close",
        "X: a\r\n folded",
        "X: a\0b",
        "caf\xe9: b",
        "no colon",
    ],
)
def test_what_takes_judgement_is_left_to_python(lines: str) -> None:
    """H1, H5: the rules for bad servers stand in one place."""
    assert native.open_answer(f"HTTP/1.1 200 OK\r\n{lines}\r\n\r\n".encode("latin-1"), Head) is None


def test_only_bytes_and_a_head_are_taken() -> None:
    """Q1: C refuses with an exception what it was not made for."""
    for bad in ("text", bytearray(b"HTTP/1.1 200 OK\r\n\r\n")):
        with pytest.raises(TypeError):
            native.open_answer(bad, Head)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(TypeError):
        native.open_answer(b"HTTP/1.1 200 OK\r\n\r\n", dict)  # type: ignore[arg-type]  # likewise


@pytest.mark.parametrize("size", [4, 5, 6])
def test_a_whole_answer_in_one_piece_keeps_its_limits(size: int) -> None:
    """H1, H7: a body that came at once is cut where any other is."""
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345"
    reader = AnswerReader(Limits(1000, size))
    assert reader.feed(data)
    assert reader.payload() == b"12345"[:size]
    assert (reader.truncated is None) is (size >= 5)
    assert reader.reusable is (size >= 5)
    block = len(data) - 5
    assert AnswerReader(Limits(block, 9)).feed(data)
    tight = AnswerReader(Limits(block - 1, 9))
    assert tight.feed(data)
    assert tight.detail == f"header block over {block - 1} bytes"
