"""One answer read without I/O: where it ends, what is kept."""

from __future__ import annotations

import gzip
import time
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.fetch.answer import AnswerReader, Limits, Wanted
from nephila.fetch.replay import decode_payload
from nephila.model.exchange import FailureKind, Truncation
from nephila.parse import document_type

LIMITS = Limits(header_bytes=65_536, body_bytes=10_000_000)


def declared(content_type: str, first: bytes) -> str:
    if content_type:
        return content_type.partition(";")[0]
    return "text/html" if b"<html" in first else "application/octet-stream"


WANTED = Wanted(("text/html",), declared)


def read(wire: bytes, step: int = 0, limits: Limits = LIMITS, wanted: Wanted | None = None) -> AnswerReader:
    """Feed the wire in steps, then end the connection."""
    reader = AnswerReader(limits, wanted)
    for at in range(0, len(wire), step or len(wire) or 1):
        if reader.feed(wire[at : at + (step or len(wire))]):
            return reader
    reader.end()
    return reader


CASES = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"hello"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
    (b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\n", b"hello"),
    (b"HTTP/1.1 200 OK\nContent-Length: 5\n\n", b"hello"),
]


@pytest.mark.parametrize(("head", "payload"), CASES)
@pytest.mark.parametrize("step", [0, 1, 7])
def test_head_and_payload_are_the_wires_own_bytes(head: bytes, payload: bytes, step: int) -> None:
    """H1, W1: kept byte for byte, chunk framing included, however they came."""
    reader = read(head + payload, step)
    assert reader.kind is None
    assert (reader.head_bytes, reader.payload(), reader.content()) == (head, payload, b"hello")
    assert reader.truncated is None


@pytest.mark.parametrize("step", [0, 1])
def test_provisional_answers_are_read_over(step: int) -> None:
    """H1: only the final header block is kept."""
    final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    wire = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + final + b"ok"
    reader = read(wire, step)
    assert (reader.head_bytes, reader.payload()) == (final, b"ok")


def test_bytes_after_the_answer_are_not_part_of_it() -> None:
    """H1: and the connection is not trusted with another request."""
    reader = read(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n")
    assert reader.payload() == b"ok"
    assert not reader.reusable
    assert read(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").reusable


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ],
)
def test_an_answer_that_ends_early_is_kept_and_marked(wire: bytes) -> None:
    """H2: truncated by disconnection."""
    reader = read(wire)
    assert reader.truncated is Truncation.DISCONNECT
    assert wire.endswith(reader.payload())


def test_a_reset_in_a_body_without_length_is_a_cut() -> None:
    """H2: only an orderly end completes such a body."""
    reader = AnswerReader(LIMITS)
    reader.feed(b"HTTP/1.1 200 OK\r\n\r\nhel")
    reader.end(ConnectionResetError())
    assert reader.truncated is Truncation.DISCONNECT


@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        (b"", FailureKind.RESET),
        (b"HTTP/1.1 2", FailureKind.RESET),
        (b"HTTP/1.1 100 Continue\r\n\r\n", FailureKind.RESET),
        (b"<html>HTTP/0.9</html>", FailureKind.PROTOCOL),
        (b"\x16\x03\x01\x00", FailureKind.PROTOCOL),
        (b"HTTP/1.1 200 OK\r\nbroken\r\n\r\n", FailureKind.PROTOCOL),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", FailureKind.PROTOCOL),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", FailureKind.PROTOCOL),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000, FailureKind.TOO_LARGE),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000 + b"\r\n", FailureKind.TOO_LARGE),
        (b"HTTP/1.1 102 Wait\r\n\r\n" * 5000, FailureKind.TOO_LARGE),
    ],
)
@pytest.mark.parametrize("step", [0, 1000])
def test_what_is_no_answer_is_a_typed_failure(wire: bytes, kind: FailureKind, step: int) -> None:
    """H5, Q5: reset, protocol, too large; endless header blocks and provisional answers end too."""
    assert read(wire, step).kind is kind


def test_a_header_block_cut_by_the_server_is_an_answer_all_the_same() -> None:
    """H1: as with libcurl; marked as cut, and never reused."""
    reader = read(b"HTTP/1.1 404 Not Found\r\nServer: x\r\n")
    assert reader.kind is None
    assert reader.head is not None
    assert (reader.head.status, reader.truncated, reader.reusable) == (404, Truncation.DISCONNECT, False)


@pytest.mark.parametrize("step", [0, 3])
def test_a_body_over_the_limit_is_cut_exactly_there(step: int) -> None:
    """H2: the wire bytes count; the limit itself is within the limit."""
    wire = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n" + b"x" * 20
    cut = read(wire, step, Limits(65_536, 19))
    assert (cut.payload(), cut.truncated, cut.reusable) == (b"x" * 19, Truncation.LENGTH, False)
    whole = read(wire, step, Limits(65_536, 20))
    assert (whole.payload(), whole.truncated) == (b"x" * 20, None)


def test_time_running_out_keeps_what_there_is_of_a_body() -> None:
    """H2: truncated by time; without a header block there is nothing to keep."""
    reader = AnswerReader(LIMITS)
    reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nabc")
    reader.expire()
    assert (reader.payload(), reader.truncated) == (b"abc", Truncation.TIME)
    for start in (b"", b"HTTP/1.1 200 OK\r\nServer"):
        early = AnswerReader(LIMITS)
        if start:
            early.feed(start)
        early.expire()
        assert early.kind is FailureKind.TIMEOUT


def test_an_unwanted_type_is_dropped_at_the_header_block() -> None:
    """H7: decided early, nothing of the body is kept or waited for."""
    reader = AnswerReader(LIMITS, WANTED)
    assert reader.feed(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 99999999\r\n\r\nabc")
    assert (reader.unwanted, reader.truncated, reader.payload()) == (True, Truncation.UNSPECIFIED, b"")
    assert not reader.reusable


def test_a_short_unwanted_body_is_read_out_to_keep_the_connection() -> None:
    """H7: a new connection costs more than a few bytes."""
    reader = AnswerReader(LIMITS, WANTED)
    assert not reader.feed(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 6\r\n\r\nabc")
    assert reader.feed(b"def")
    assert (reader.unwanted, reader.truncated, reader.payload()) == (True, Truncation.UNSPECIFIED, b"")
    assert reader.reusable


def test_a_missing_type_is_sniffed_from_the_first_bytes() -> None:
    """H7: through the codings; what is not wanted is dropped then."""
    page = gzip.compress(b"<html>" + b"hello" * 1000)
    coded = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(page)
    assert not read(coded + page, wanted=WANTED).unwanted
    reader = AnswerReader(LIMITS, WANTED)
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(5000))
    assert (reader.unwanted, reader.payload()) == (True, b"")
    assert read(b"HTTP/1.1 200 OK\r\n\r\nshort", wanted=WANTED).unwanted


@pytest.mark.parametrize("header", ["html", "text/html charset=utf-8", "*/*", "unknown/unknown"])
def test_a_type_that_says_nothing_is_sniffed_like_a_missing_one(header: str) -> None:
    """H7: as the crawl has its types told, a page is read and an image dropped."""
    wanted = Wanted(("text/html",), partial(document_type, "https://e.example/"))
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {header}\r\nContent-Length: 5000\r\n\r\n".encode()
    page = b"<!doctype html>".ljust(5000, b"x")
    reader = read(head + page, wanted=wanted)
    assert (reader.unwanted, reader.payload()) == (False, page)
    assert read(head + b"\x89PNG\r\n\x1a\n".ljust(5000, b"x"), wanted=wanted).unwanted


def test_of_several_types_the_last_that_is_usable_counts() -> None:
    """H7: in several headers and in one, as browsers have it."""
    wanted = Wanted(("text/html",), partial(document_type, "https://e.example/"))

    def is_read(*types: str) -> bool:
        headers = "".join(f"Content-Type: {one}\r\n" for one in types)
        head = f"HTTP/1.1 200 OK\r\n{headers}Content-Length: 5000\r\n\r\n".encode()
        return not read(head + b"words".ljust(5000, b"x"), wanted=wanted).unwanted

    assert is_read("text/plain", "text/html")
    assert is_read("text/html", "*/*", "nonsense")
    assert is_read("image/png, text/html")
    assert not is_read("text/html", "text/plain")
    assert not is_read("text/html, image/png")


def test_other_answers_than_2xx_are_read_whatever_their_type() -> None:
    """H7: an error page is evidence."""
    wire = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    reader = read(wire, wanted=WANTED)
    assert (reader.unwanted, reader.payload()) == (False, b"{}")


def test_wanted_types_may_be_families() -> None:
    """H7: text/* and */* are lists of types too."""
    assert Wanted(("text/*",), declared).accepts("text/css")
    assert not Wanted(("text/*",), declared).accepts("image/png")
    assert Wanted(("*/*",), declared).accepts("image/png")


def test_a_stored_answer_is_decoded_as_it_was_on_the_wire() -> None:
    """W1, F10: recovery reads archives with the same code."""
    page = gzip.compress(b"hello world")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    payload = b"%x\r\n%s\r\n0\r\n\r\n" % (len(page), page)
    assert decode_payload(head, payload, 1000) == b"hello world"
    assert decode_payload(head, payload, 5) == b"hello"
    assert decode_payload(b"nonsense", payload, 5) == b""


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([b"", *(head for head, _ in CASES)]),
    st.binary(max_size=120),
    st.integers(1, 40),
    st.sampled_from([None, WANTED]),
)
def test_no_bytes_whatsoever_break_the_reader(head: bytes, noise: bytes, step: int, wanted: Wanted | None) -> None:
    """Q5: any bytes, cut anyhow, end as an answer or as a failure; what is kept is what came."""
    reader = read(head + noise, step, Limits(4096, 50), wanted)
    assert reader.finished
    assert reader.kind is not None or reader.head is not None
    assert reader.head_bytes + reader.payload() in head + noise


def test_a_body_that_drips_in_takes_no_more_room_than_its_bytes() -> None:
    """Q5: a million pieces of one byte are not a million objects."""
    reader = AnswerReader(LIMITS)
    reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n")
    for _ in range(50_000):
        reader.feed(b"x")
    assert len(reader._parts) <= 2
    assert reader.payload() == b"x" * 50_000


def test_a_header_that_drips_in_is_not_searched_again_for_every_byte() -> None:
    """Q5: the time for each byte does not grow with what came before."""

    def seconds(size: int) -> float:
        reader = AnswerReader(Limits(10_000_000, 1000))
        reader.feed(b"HTTP/1.1 200 OK\r\nX: ")
        begun = time.process_time()
        for _ in range(size):
            reader.feed(b"x")
        return time.process_time() - begun

    assert min(seconds(160_000) for _ in range(2)) < 40 * min(seconds(10_000) for _ in range(2))


def test_provisional_answers_come_to_an_end() -> None:
    """Q5: a hundred of them are enough, long before they fill the header limit."""
    reader = AnswerReader(Limits(10_000_000, 1000))
    reader.feed(b"HTTP/1.1 100 Continue\r\n\r\n" * 101)
    assert (reader.kind, reader.detail) == (FailureKind.TOO_LARGE, "provisional answers without end")
