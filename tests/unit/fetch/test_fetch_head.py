"""Reading header blocks, and what they say about the body."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.fetch.head import (
    Framing,
    Head,
    Malformed,
    begins_like_http,
    find_end,
    framing_of,
    keeps_alive,
    promised_idle_s,
    read_broken_head,
    read_head,
)


def read(lines: str) -> Head:
    head = read_head(f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode("latin-1"))
    assert isinstance(head, Head)
    return head


def test_names_are_lowered_values_stripped_order_and_repeats_kept() -> None:
    """H1: as `Fetched.headers` promises."""
    head = read("Set-Cookie: a=1\r\nX-Two:\t two \t\r\nset-cookie:b=2\r\nEmpty:\r\n")
    assert head.headers == (("set-cookie", "a=1"), ("x-two", "two"), ("set-cookie", "b=2"), ("empty", ""))


def test_values_are_latin_1() -> None:
    """H1: bytes over 127 are kept one to one."""
    assert read("X: caf\xe9\xa0\r\n").headers == (("x", "caf\xe9\xa0"),)


def test_a_folded_line_belongs_to_the_one_before() -> None:
    """H1: obsolete, and still sent."""
    assert read("Link: <a>,\r\n <b>,\r\n\t<c>\r\nX: y\r\n").headers == (("link", "<a>, <b>, <c>"), ("x", "y"))


@pytest.mark.parametrize(
    "block",
    [
        b"HTTP/1.1 200 OK\nX: y\n\n",
        b"HTTP/1.1 200\r\nX: y\r\n\r\n",
        b"HTTP/1.0 200 \r\nX: y\r\n\r\n",
        b"http/1.1 200 fine\r\nX : y\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ],
)
def test_untidy_blocks_are_read(block: bytes) -> None:
    """H1: tolerance of bad servers."""
    head = read_head(block)
    assert isinstance(head, Head)
    assert head.status == 200


@pytest.mark.parametrize(
    "block",
    [
        b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: y\r\nno colon\r\nA: b\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/3 200 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
    ],
)
def test_what_could_smuggle_or_is_no_http_is_malformed(block: bytes) -> None:
    """H5: a protocol failure, as with libcurl."""
    assert isinstance(read_head(block), Malformed)


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody\r\n\r\n", 25),
        (b"HTTP/1.1 200 OK\nA: b\n\nbody", 22),
        (b"HTTP/1.1 200 OK\nA: b\n\r\nbody", 23),
        (b"HTTP/1.1 200 OK\r\n\r\n", 19),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n\r", -1),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n", -1),
    ],
)
def test_the_block_ends_with_its_empty_line(data: bytes, end: int) -> None:
    """H1: whatever line ends a server uses."""
    assert find_end(data) == end


def test_rubbish_is_told_by_its_first_bytes() -> None:
    """H5: HTTP/0.9 and other protocols need not be waited out."""
    assert begins_like_http(b"")
    assert begins_like_http(b"HT")
    assert begins_like_http(b"http/1.1 200")
    assert not begins_like_http(b"<html>")
    assert not begins_like_http(b"SSH-2.0")
    assert not begins_like_http(b"\r\nHTTP/1.1")


def test_a_block_that_was_cut_is_read_as_far_as_it_goes() -> None:
    """H1: as libcurl does; without a whole status line there is nothing."""
    head = read_broken_head(b"HTTP/1.1 301 Moved\r\nLocation: /x\r\nServ")
    assert isinstance(head, Head)
    assert (head.status, head.headers) == (301, (("location", "/x"),))
    assert read_broken_head(b"HTTP/1.1 301 Mov") is None
    tail = read_broken_head(b"HTTP/1.1 200 OK\r\nA: b\r\nrubbish\r\n")
    assert isinstance(tail, Head)
    assert isinstance(read_broken_head(b"HTTP/1.1 200 OK\r\nrubbish\r\nA: b\r\n"), Malformed)


@pytest.mark.parametrize("line", [b"a" * 65_000, b"a " * 32_000, b"\t" * 65_000, b"a:" * 32_000])
def test_a_header_block_is_read_in_a_moment_whatever_stands_in_it(line: bytes) -> None:
    """H1, Q5: it is read on the loop, while all others wait; a line without a colon has one beginning."""
    block = b"HTTP/1.1 200 OK\r\nA: b\r\n" + line + b"\r\n\r\n"
    started = time.process_time()
    read_head(block)
    read_broken_head(block[:-2])
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    ("lines", "framing"),
    [
        ("Content-Length: 5\r\n", Framing(length=5)),
        ("Content-Length: 5, 5\r\nContent-Length: 05\r\n", Framing(length=5)),
        ("Transfer-Encoding: chunked\r\n", Framing(chunked=True)),
        ("Transfer-Encoding: Identity, CHUNKED\r\nContent-Length: 5\r\n", Framing(chunked=True)),
        ("Transfer-Encoding: identity\r\nContent-Length: 5\r\n", Framing(length=5)),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", Framing(chunked=True)),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity, chunked\r\n", Framing(chunked=True)),
        ("Content-Length: 99999999999999999999\r\n", Framing()),
        (f"Content-Length: {'9' * 5000}\r\n", Framing()),
        ("", Framing()),
        ("Content-Length : 5\r\n", Framing()),
    ],
)
def test_the_framing_follows_the_headers(lines: str, framing: Framing) -> None:
    """H1: chunked wins over a length; equal lengths are one; neither means until close."""
    assert framing_of(read(lines)) == framing


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: 5,\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: \xb2\r\n",
        "Content-Length:\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\n ,x\r\n",
    ],
)
def test_a_framing_that_can_be_read_in_two_ways_is_malformed(lines: str) -> None:
    """H5: no request smuggling through us."""
    assert isinstance(framing_of(read(lines)), Malformed)


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("said", ["10", "", "-1", "10 b", "10\r\nContent-Length: 20", "0\r\nTransfer-Encoding: gzip"])
def test_answers_without_a_body_have_none_whatever_they_say(status: int, said: str) -> None:
    """H3: a 304 costs no body, and is one however its server counts what it did not send."""
    head = read_head(f"HTTP/1.1 {status} X\r\nContent-Length: {said}\r\n\r\n".encode())
    assert isinstance(head, Head)
    assert framing_of(head) == Framing(length=0)


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: Close\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: x, close\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nProxy-Connection: close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\n\r\n", False),
    ],
)
def test_the_connection_is_kept_only_where_the_server_promises_it(block: bytes, kept: bool) -> None:
    """H1: keep-alive."""
    head = read_head(block)
    assert isinstance(head, Head)
    framing = framing_of(head)
    assert isinstance(framing, Framing)
    assert keeps_alive(head, framing) is kept


def test_the_servers_own_idle_limit_is_read() -> None:
    """H1: Keep-Alive: timeout=N."""
    assert promised_idle_s(read("Keep-Alive: max=9, Timeout=5\r\n")) == 5.0
    assert promised_idle_s(read("")) is None


TEXT = st.text(st.characters(codec="latin-1", exclude_characters="\r\n\0"), max_size=12)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT), max_size=6), st.sampled_from(["\r\n", "\n"]))
def test_any_well_formed_block_is_read_back(fields: list[tuple[str, str]], newline: str) -> None:
    """H1: the quick way and the careful way of reading agree, whatever blanks and colons the fields hold."""
    fields = [(name.replace(":", "").strip(" \t") or "x", value) for name, value in fields]
    lines = [f"{name}:{value}" for name, value in fields]
    head = read_head((newline.join(["HTTP/1.1 200 OK", *lines]) + newline * 2).encode("latin-1"))
    assert isinstance(head, Head)
    assert list(head.headers) == [(name.lower(), value.strip(" \t")) for name, value in fields]
