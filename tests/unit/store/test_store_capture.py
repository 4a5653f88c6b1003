"""A capture as bytes, and its fields back."""

import gzip
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.exchange import Truncation
from nephila.model.record import Capture, Original
from nephila.store.capture import coding_of, encode_capture, written_as
from nephila.store.metadata import MetadataFields, metadata_block
from nephila.store.readback import parse_head
from nephila.store.warc import CrawlIdentity
from nephila.testing.contracts.archive import assorted_captures, fetched_sample, gzipped, page_capture

IDENTITY = CrawlIdentity(secret=3)
_LINE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)), max_size=40)


def _kinds(capture: Capture) -> list[str]:
    plain = gzip.decompress(encode_capture(capture, IDENTITY).data)
    return [line.removeprefix(b"WARC-Type: ").decode() for line in plain.split(b"\r\n") if line[:11] == b"WARC-Type: "]


def test_the_answer_comes_first_and_metadata_closes() -> None:
    """W1: the order that recovery relies on."""
    assert _kinds(page_capture(1)) == ["response", "request", "metadata"]
    assert _kinds(replace(page_capture(1), rules=b"x")) == ["response", "resource", "request", "metadata"]


def test_what_came_compressed_is_stored_as_it_came() -> None:
    """W1, Q1: the server's compressed bytes lie in the file verbatim; plain ones are compressed."""
    body = b"golden silk " * 1_000
    packed = gzipped(body)
    coded = encode_capture(
        page_capture(1, fetched_sample("http://a.example/", packed, body, Content_Encoding="gzip")), IDENTITY
    )
    assert packed in coded.data
    plain = encode_capture(page_capture(1, fetched_sample("http://a.example/", body)), IDENTITY)
    assert len(plain.data) < len(body) / 4


@pytest.mark.parametrize(
    ("headers", "coding"),
    [
        ({}, ""),
        ({"Content_Encoding": "GZip"}, "gzip"),
        ({"Transfer_Encoding": "chunked"}, "chunked"),
        ({"Transfer_Encoding": "Chunked", "Content_Encoding": "br"}, "chunked;br"),
        ({"Content_Encoding": "gzip, br"}, "gzip,br"),
    ],
)
def test_the_coding_names_transfer_and_content(headers: dict[str, str], coding: str) -> None:
    """D2: a revisit needs the same coding as its original."""
    assert coding_of(fetched_sample("http://a.example/", b"", **headers)) == coding


def test_a_revisit_is_written_only_where_it_is_true() -> None:
    """D2: same payload digest, same coding, nothing cut; or a 304."""
    original = Original("http://a.example/", "urn:uuid:x", 1, "sha1:AAAA", "gzip")
    capture = replace(page_capture(1), revisit_of=original)
    assert written_as(page_capture(1), "sha1:AAAA", "gzip") == "response"
    assert written_as(capture, "sha1:AAAA", "gzip") == "revisit"
    assert written_as(capture, "sha1:BBBB", "gzip") == "response"
    assert written_as(capture, "sha1:AAAA", "br") == "response"
    cut = replace(capture, fetched=replace(capture.fetched, truncated=Truncation.LENGTH))
    assert written_as(cut, "sha1:AAAA", "gzip") == "response"
    assert written_as(replace(capture, not_modified=True), "sha1:CCCC", "") == "revisit"


def test_robots_txt_belongs_to_the_origin_that_asked() -> None:
    """P1, W1: the rules in force are a resource of the origin, though redirected to another host."""
    robots = assorted_captures()[-1]
    plain = gzip.decompress(encode_capture(robots, IDENTITY).data)
    assert b"WARC-Target-URI: https://spiders.example:8443/robots.txt\r\n" in plain
    assert b"WARC-Target-URI: https://www.spiders.example/robots.txt\r\n" in plain


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.text("abcdefg-", min_size=1, max_size=8), _LINE), max_size=5),
    st.lists(_LINE, max_size=5),
    _LINE.filter(bool),
)
def test_notes_and_links_come_back(notes: list[tuple[str, str]], outlinks: list[str], etag: str) -> None:
    """K1, W4: notes, links and validators are read as they were written."""
    base = page_capture(1)
    task = replace(base.task, validators=replace(base.task.validators, etag=etag))
    capture = replace(base, task=task, notes=tuple(notes), outlinks=tuple(outlinks))
    fields = MetadataFields.parse(metadata_block(capture, ""))
    assert fields.notes == capture.notes
    assert fields.outlinks == capture.outlinks
    assert fields.task(capture.fetched.url) == task


def test_a_note_is_never_taken_for_a_field_of_ours() -> None:
    """Q5: a note may be called token, a link may hold a line end; neither changes the task."""
    hostile = replace(page_capture(1), notes=(("token", "666"),), outlinks=("http://a.example/\r\ntoken: 666 a", "b"))
    fields = MetadataFields.parse(metadata_block(hostile, ""))
    assert fields.token == page_capture(1).token
    assert fields.notes == (("token", "666"),)


@pytest.mark.parametrize(
    ("head", "status", "headers"),
    [
        (b"HTTP/1.1 200 OK\r\nA: b\r\na:  c \r\n\r\n", 200, (("a", "b"), ("a", "c"))),
        (b"HTTP/1.0 404\nX-Y: \xe9\n\n", 404, (("x-y", "\xe9"),)),
        (b"HTTP/1.1 301 Moved\r\nLong: one\r\n two\r\nno colon\r\n\r\n", 301, (("long", "one two"),)),
        (b"nonsense\r\n\r\n", 0, ()),
    ],
)
def test_heads_are_read_as_the_fetcher_reads_them(
    head: bytes, status: int, headers: tuple[tuple[str, str], ...]
) -> None:
    """F10: status and headers are made again from the wire bytes."""
    assert parse_head(head) == (status, headers)
