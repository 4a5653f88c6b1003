"""Lines of the index."""

import json
from dataclasses import replace

from nephila.store.cdxj import cdxj_line
from nephila.store.rotation import index_name
from nephila.testing.contracts.archive import assorted_captures, page_capture, row_of
from nephila.testing.contracts.catalogue import sample_row

from .conftest import ArchiveWorld


def test_a_line_is_key_time_and_json() -> None:
    """W1: the fields that replay needs, in the order of cdxj-indexer."""
    key, timestamp, fields = cdxj_line(sample_row(3)).rstrip("\n").split(" ", 2)
    assert (key, timestamp) == ("example,spiders)/3", "20260101000000")
    assert list(json.loads(fields).items()) == [
        ("url", "https://spiders.example/3"),
        ("mime", "text/html"),
        ("status", "200"),
        ("digest", "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
        ("length", "700"),
        ("offset", "3000"),
        ("filename", "nephila-20260101000000-00000-w0.warc.gz"),
    ]


def test_revisits_and_missing_types_are_told_as_others_tell_them() -> None:
    """W1, D2: a revisit has a mime of its own; no type, no mime."""
    assert '"mime": "warc/revisit"' in cdxj_line(replace(sample_row(1), kind="revisit"))
    assert "mime" not in cdxj_line(replace(sample_row(1), content_type=""))


def test_of_a_type_that_was_sent_twice_the_first_is_told_alone() -> None:
    """W1: as cdxj-indexer does; a comma is in no type, and tools that look for one would not find it."""
    assert '"mime": "text/html", ' in cdxj_line(replace(sample_row(1), content_type="text/html, text/plain"))


def test_lines_are_sorted_and_only_of_settled_captures(world: ArchiveWorld) -> None:
    """W1, F3: a capture whose settle was refused stays out; the rules of a robots.txt have a line of their own."""
    archive = world.open()
    captures = [page_capture(9), page_capture(10), assorted_captures()[-1], page_capture(2)]
    stored = [archive.append(capture) for capture in captures]
    segment = stored[0].ref.segment
    rows = [row_of(*one) for one in archive.tail(segment, 0)]
    del rows[1]
    archive.write_index(segment, rows)
    lines = world.disk.contents(world.path(index_name(segment))).decode().splitlines()
    assert lines == sorted(lines)
    assert [line.split(" ")[0] for line in lines] == [
        "example,spiders)/robots.txt",
        "example,spiders)/web/2?q=%20b",
        "example,spiders)/web/9?q=%20b",
        "example,spiders:8443)/robots.txt",
    ]


def test_a_304_has_no_line_even_where_it_could_not_become_a_revisit(world: ArchiveWorld) -> None:
    """H3, W1: what it refers to is not known any more, and a reader still finds the page and not a bare 304."""
    archive = world.open()
    page = page_capture(1)
    head = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
    answer = replace(page.fetched, head=head, payload=b"", body=b"", status=304, headers=(("etag", "x"),))
    unchanged = replace(page_capture(2, answer), not_modified=True, outlinks=(), notes=())
    segment = archive.append(page).ref.segment
    assert archive.append(unchanged).kind == "response"
    archive.write_index(segment, [row_of(*one) for one in archive.tail(segment, 0)])
    (line,) = world.disk.contents(world.path(index_name(segment))).decode().splitlines()
    assert '"status": "200"' in line
