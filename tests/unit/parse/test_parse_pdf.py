"""Links out of PDFs: exactly those that the writer put in, whatever the file is made of and however it is damaged."""

from __future__ import annotations

import itertools

import pytest
from pdf_writer import (
    PdfPage,
    PdfShape,
    Security,
    cut,
    literal,
    make_pdf,
    with_garbage_in_front,
    with_wrong_lengths,
    with_wrong_offsets,
    without_references,
)

from nephila.model.plugin import Document, Extract
from nephila.parse.pdf import ANNOTATION, TEXT, PdfBounds, PdfLinks
from nephila.parse.pdf_salvage import repairs, uris_lying_about

URL = "https://docs.example.org/papers/one.pdf"
DRAWN = ("https://example.org/a?q=(1)&r=2", "http://example.org/b%20c", "https://example.org/back\\slash")
DRAWN_SPELLED = ("https://example.org/a?q=(1)&r=2", "http://example.org/b%20c", "https://example.org/back/slash")
LINES = ("See http://text.example.org/page1.html for more,", "or https://text.example.org/p2?x=1&y=2.")
WRITTEN = ("http://text.example.org/page1.html", "https://text.example.org/p2?x=1&y=2")
PAGES = (PdfPage(DRAWN, LINES, remote=("http://other.example.org/file.pdf", "other.pdf")), PdfPage(("next.html",)))
EXPECTED = (
    *((url, ANNOTATION) for url in DRAWN_SPELLED),
    ("https://docs.example.org/papers/next.html", ANNOTATION),
    *((url, TEXT) for url in WRITTEN),
)
SHAPES = [
    PdfShape(compressed, packed, security)
    for compressed, packed, security in itertools.product((False, True), (False, True), Security)
]


def read(pdf: bytes, bounds: PdfBounds = PdfBounds(time_s=60)) -> Extract:  # noqa: B008 - frozen
    return PdfLinks(bounds).extract(Document(URL, "application/pdf", (), pdf))


def links(extract: Extract) -> tuple[tuple[str, str], ...]:
    return tuple((link.url, link.tag) for link in extract.links)


@pytest.mark.parametrize(
    "shape", SHAPES, ids=lambda one: f"{one.compressed:d}{one.object_streams:d}-{one.security.value}"
)
def test_every_structure_gives_exactly_its_links(shape: PdfShape) -> None:
    """X4: plain and compressed, with object streams and without, and encrypted under an empty password in three ways.

    GoToR actions lead to no web page; relative URIs are relative to the PDF's own address.
    """
    found = read(make_pdf(PAGES, shape))
    assert links(found) == EXPECTED
    assert dict(found.counts) == {"links": 6, "annotations": 4, "in_text": 2, "pages": 2}
    assert not found.detail


@pytest.mark.parametrize("packed", [False, True], ids=["table", "streams"])
@pytest.mark.parametrize(
    "damage",
    [without_references, with_wrong_offsets, with_garbage_in_front, with_wrong_lengths],
    ids=lambda one: one.__name__,
)
def test_a_broken_pdf_gives_all_its_links(damage: object, *, packed: bool) -> None:
    """X4: no table, a wrong one, something in front of it all, stream lengths that lie."""
    assert callable(damage)
    assert links(read(damage(make_pdf(PAGES, PdfShape(compressed=True, object_streams=packed))))) == EXPECTED


def test_a_pdf_that_was_cut_gives_what_arrived() -> None:
    """X4, H2: the end is missing, and with it the table of where everything is."""
    found = read(cut(make_pdf(PAGES, PdfShape(compressed=True)), 0.8))
    assert links(found) == EXPECTED
    assert found.detail == "repaired"


def test_a_cut_pdf_of_object_streams_gives_its_annotations() -> None:
    """X4: those are unpacked and searched; text needs the objects that are gone."""
    whole = make_pdf(PAGES, PdfShape(compressed=True, object_streams=True))
    found = read(whole[: whole.index(b"/XRef") - 30])
    assert {url for url, _ in links(found)} >= {"https://docs.example.org/papers/next.html", *DRAWN_SPELLED}
    packed = read(cut(whole, 0.85))
    assert packed.detail == "broken"
    assert {url for url, _ in links(packed)} >= set(DRAWN_SPELLED)


def test_pages_without_a_catalogue_are_given_one() -> None:
    """X4: what is left of a file whose first objects are gone."""
    pdf = make_pdf([PdfPage(("https://example.org/x",))])
    headless = b"%PDF-1.4\n" + pdf[pdf.index(b"3 0 obj") : pdf.rindex(b"xref\n0 ")]
    assert links(read(headless)) == (("https://example.org/x", ANNOTATION),)


def test_kerned_text_is_read_as_it_is_seen() -> None:
    """X4: typesetters write a URL in pieces with gaps between them."""
    assert links(read(make_pdf([PdfPage(text=LINES, kerned=True)]))) == tuple((url, TEXT) for url in WRITTEN)


def test_a_base_for_relative_uris_counts() -> None:
    """X4, U1: that of the catalogue, else the address of the PDF."""
    based = make_pdf([PdfPage(("x.html",))], PdfShape(base="http://base.example.org/d/"))
    assert links(read(based)) == (("http://base.example.org/d/x.html", ANNOTATION),)


def test_bookmarks_and_the_title_are_read() -> None:
    """X4, X5: an outline may lead to the web as well; one that is tied in a circle ends."""
    outline = b"/Outlines << /First 90 0 R /Last 90 0 R >>"
    item = b"<< /Title (x) /A << /S /URI /URI (https://example.org/marked) >> /Next 90 0 R >>"
    shape = PdfShape(extra_catalogue=outline, info_title="A title\n of two lines")
    pdf = make_pdf([PdfPage()], shape)
    # One object more, behind the others: the table does not know it, so that the file is rebuilt.
    start = pdf.rindex(b"xref\n0 ")
    found = read(pdf[:start] + b"90 0 obj\n" + item + b"\nendobj\n" + pdf[start:].replace(b"startxref", b"startxref 9"))
    assert links(found) == (("https://example.org/marked", ANNOTATION),)
    assert found.title == "A title of two lines"


def test_strings_are_read_in_all_their_spellings() -> None:
    """X4: escapes, octal codes, nested parentheses, hexadecimal digits; in order and in what lies about."""
    spellings = (
        rb"(https://example.org/\141\(x\)\\)",
        b"<68747470733A2F2F6578616D706C652E6F72672F68>",
        b"(https://example.org/(n))",
    )
    actions = [
        b"<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /URI /URI " + one + b" >> >>" for one in spellings
    ]
    pdf = make_pdf([PdfPage(raw_annotations=actions)])
    expected = ["https://example.org/a(x)/", "https://example.org/h", "https://example.org/(n)"]
    assert [url for url, _ in links(read(pdf))] == expected
    lying = list(uris_lying_about(pdf, lambda: False))
    assert lying == ["https://example.org/a(x)\\", "https://example.org/h", "https://example.org/(n)"]
    assert literal(b"a(b)\\") == rb"(a\(b\)\\)"


def test_only_links_of_the_web_come_out_each_once() -> None:
    """X4, U4: no mail, no scripts, no files; fragments are cut off."""
    uris = ("mailto:a@example.org", "javascript:void(0)", "file:///etc/passwd", "ftp://example.org/x", "")
    uris += ("https://example.org/x#one", "https://example.org/x#two", "HTTPS://EXAMPLE.ORG/x", "https://[bad/")
    assert links(read(make_pdf([PdfPage(uris)]))) == (("https://example.org/x", ANNOTATION),)


def test_a_password_that_we_do_not_have_is_told() -> None:
    """X4: nothing is guessed."""
    pdf = make_pdf(PAGES, PdfShape(security=Security.RC4_128))
    start = pdf.index(b"/U <") + 4
    other = pdf[:start] + b"00" * 32 + pdf[start + 64 :]
    found = read(other)
    assert (found.links, found.detail) == ((), "needs a password")


def test_what_is_no_pdf_is_told_as_such() -> None:
    """X4, Q5: whatever the server calls it."""
    for body in (b"", b"<html>", b"%PDF", bytes(5000) + b"%PDF-1.4"):
        assert read(body).detail == "no PDF"
    assert read(b"%PDF-1.7").detail == "broken"


def test_pages_time_and_text_are_bounded() -> None:
    """X4: what was found by then counts, and that it is not all is told."""
    pdf = make_pdf([PdfPage((f"https://example.org/{number}",), LINES) for number in range(9)])
    few = read(pdf, PdfBounds(time_s=60, max_pages=3))
    assert [dict(few.counts)[name] for name in ("annotations", "pages")] == [3, 3]
    assert few.detail == "not all of it was looked at"
    assert not any(tag == TEXT for _, tag in links(read(pdf, PdfBounds(time_s=60, text=False))))
    ticks = itertools.count()
    late = PdfLinks(PdfBounds(time_s=4), clock=lambda: float(next(ticks)))
    found = late.extract(Document(URL, "application/pdf", (), pdf))
    assert dict(found.counts)["pages"] == 3
    assert found.detail == "not all of it was looked at"


def test_repairs_are_linear_in_what_they_look_at() -> None:
    """X4, Q5: a file of nothing but beginnings takes no longer than its size asks for."""
    hostile = b"%PDF-1.4\n" + b"1 0 obj << /Type /Catalog " * 20_000 + b"/Type /Page " * 50_000 + b"/URI (" * 50_000
    assert len(list(repairs(hostile))) == 2
    assert list(uris_lying_about(hostile, lambda: False)) == []


def test_escapes_that_mean_nothing_stand_for_themselves() -> None:
    """X4, Q5: of a broken file every byte is possible, digits that are not octal among them."""
    broken = b"/URI (http://a.test/\\9\\101\\x\\)\\777)"
    assert list(uris_lying_about(broken, lambda: False)) == ["http://a.test/9Ax)\ufffd"]
