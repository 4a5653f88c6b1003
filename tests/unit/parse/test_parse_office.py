"""Links out of office documents, whole and broken, bombs and all."""

from __future__ import annotations

import time
import tracemalloc
import zlib

import pytest
from office_writer import docx, odf, package, pptx, rels, xlsx

from nephila.model.plugin import Document, Extract
from nephila.parse import OFFICE_TYPES, OfficeBounds, OfficeLinks, document_type
from nephila.parse.package import MOST_ENTRIES, Package

BASE = "https://a.test/files/letter.docx"


def extract(body: bytes, *, bounds: OfficeBounds | None = None, url: str = BASE) -> Extract:
    return OfficeLinks(bounds or OfficeBounds()).extract(Document(url, OFFICE_TYPES["docx"], (), body))


def links(body: bytes) -> list[str]:
    return [link.url for link in extract(body).links]


A, B, C = "https://b.test/one?x=1&y=2", "http://c.test/two", "https://d.test/three"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (docx(A, B), [A, B]),
        (docx(A, stored=True), [A]),
        (docx(fields=(B, C)), [B, C]),
        (docx(A, "../up.html", "#here", "mailto:x@y.test", "file:///etc/passwd", A), [A, "https://a.test/up.html"]),
        (docx(A + "#part", A), [A]),
        (xlsx(A, formulas=(B,)), [B, A]),
        (pptx(A, B, C), [A, B, C]),
        (odf(A, B), [A, B]),
        (odf("../beside.html", "#here", cell=C), ["https://a.test/files/beside.html", C]),
        (package({"word/_rels/document.xml.rels": rels(A, mode="")}), []),
    ],
)
def test_links_are_exactly_those_that_lead_out(body: bytes, expected: list[str]) -> None:
    """X4: relationships, fields, formulas, references; no pictures, no text, nothing within."""
    assert links(body) == expected


def test_the_title_and_the_parts_are_told() -> None:
    """X4, X5: a document is a page with a title of its own."""
    found = extract(docx(A, title="  A   letter to\nall "))
    assert found.title == "A letter to all"
    assert dict(found.counts) == {"links": 1, "parts": 4}
    assert extract(odf(A)).title == "An open text"
    assert {link.tag for link in found.links} == {"office"}


def test_a_document_that_was_cut_gives_what_is_left_of_it() -> None:
    """X4, Q5: its table of contents stands at its end."""
    parts = {"word/_rels/document.xml.rels": rels(A), "word/document.xml": "<w:document/>" * 50, "z": bytes(3000)}
    whole = package(parts)
    found = extract(whole[: whole.find(b"PK\x01\x02") - 5])
    assert [link.url for link in found.links] == [A]
    assert found.detail


@pytest.mark.parametrize("body", [b"", b"hello", b"%PDF-1.4", b"PK\x03\x04", b"PK\x03\x04" * 2000, b"\0" * 50_000])
def test_what_is_no_document_has_no_links(body: bytes) -> None:
    """X4, Q5: and says so."""
    found = extract(body)
    assert not found.links
    assert found.detail


def bomb(unpacked: int) -> bytes:
    """A part of zeros that unpacks to a thousand times its size."""
    return package({"word/document.xml": bytes(unpacked), "xl/worksheets/_rels/z.rels": rels(A)})


def test_a_bomb_is_unpacked_to_the_limit_and_no_further() -> None:
    """X4, Q5: in bounded memory, whatever it claims to be."""
    body = bomb(300_000_000)
    assert len(body) < 400_000
    tracemalloc.start()
    began = time.process_time()
    found = extract(body, bounds=OfficeBounds(30.0, 16_000_000))
    spent, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.detail == "more than is unpacked, or broken"
    assert peak < 10_000_000
    assert spent < 10


def test_entities_are_not_expanded() -> None:
    """X4, Q5: a document type may declare what it likes."""
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 30))
    text = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "https://lol.test/">{laughs}]>' + rels("&l29;", A)[38:]
    assert [one for one in links(package({"word/_rels/document.xml.rels": text})) if "lol" in one] == []


def test_time_is_bounded_from_piece_to_piece() -> None:
    """X4, Q5: what was found by then counts."""
    moments = iter(range(1000))
    reader = OfficeLinks(OfficeBounds(time_s=3), clock=lambda: float(next(moments)))
    parts = {"_rels/a.rels": rels(A)} | {f"word/header{n}.xml": "<a/>" * 40_000 for n in range(50)}
    found = reader.extract(Document(BASE, "x", (), package(parts)))
    assert found.detail == "takes too long"
    assert [link.url for link in found.links] == [A]


def test_a_table_of_contents_without_end_is_not_believed() -> None:
    """Q5: nor is a file that is named a thousand times read a thousand times."""
    many = package({f"word/header{n}.xml": "" for n in range(MOST_ENTRIES + 5)})
    assert len(list(Package(many, 1).entries(lambda _: True))) == MOST_ENTRIES
    once = package({"content.xml": "<a/>"})
    begin = once.find(b"PK\x01\x02")
    end = once.find(b"PK\x05\x06")
    twice = once[:begin] + once[begin:end] * 100 + once[end:]
    assert len(list(Package(twice, 1000).entries(lambda _: True))) == 1


def test_what_is_encrypted_or_packed_in_another_way_is_passed_over() -> None:
    """Q5: LZMA and the like are not opened."""
    body = bytearray(docx(A))
    at = body.find(b"word/_rels/document.xml.rels", body.find(b"PK\x01\x02"))
    body[at - 46 + 10 : at - 46 + 12] = (14).to_bytes(2, "little")
    found = extract(bytes(body))
    assert not found.links
    assert found.detail
    body[at - 46 + 8] |= 1
    assert not extract(bytes(body)).links


ENDED = zlib.compress(b"")


@pytest.mark.parametrize(
    ("url", "header", "body", "expected"),
    [
        ("https://a.test/x.pdf", "application/octet-stream", b"%PDF-1.4 ...", "application/pdf"),
        ("https://a.test/x.PDF?a=b.html", "text/html", b"\n\n%PDF-1.4 ...", "application/pdf"),
        ("https://a.test/x.pdf", "text/plain", b"%PDF-1.4", "application/pdf"),
        ("https://a.test/x.pdf", "", b"%PDF-1.4", "application/pdf"),
        ("https://a.test/x.pdf", "text/html", b"<html>not found", "text/html"),
        ("https://a.test/x.pdf", "text/html", b"", ""),
        ("https://a.test/x.pdf", "application/pdf", b"", "application/pdf"),
        ("https://a.test/x", "application/octet-stream", b"%PDF-1.4", "application/octet-stream"),
        ("https://a.test/x", "", b"%PDF-1.4", "application/pdf"),
        ("https://a.test/x.docx", "application/zip", b"PK\x03\x04", OFFICE_TYPES["docx"]),
        ("https://a.test/x.ods", "application/octet-stream", b"PK\x03\x04", OFFICE_TYPES["ods"]),
        ("https://a.test/x.zip", "application/zip", b"PK\x03\x04", "application/zip"),
    ],
)
def test_a_document_under_a_wrong_type_is_known_by_its_name_and_its_bytes(
    url: str, header: str, body: bytes, expected: str
) -> None:
    """H7, X4: both must say so; without bytes nothing is decided that the header does not say."""
    assert document_type(url, header, body) == expected


def test_a_field_of_blanks_costs_a_moment() -> None:
    """X4, Q5: a document that takes too long is lost as a whole."""
    field = f'<w:fldSimple w:instr="HYPERLINK{" " * 60_000}"/>'
    body = package({"word/document.xml": f"<w:document>{field}</w:document>", "word/_rels/document.xml.rels": rels(A)})
    started = time.process_time()
    assert links(body) == [A]
    assert time.process_time() - started < 2
