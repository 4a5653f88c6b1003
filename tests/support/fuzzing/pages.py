"""What a page holds: tags, text, charset, type, and the small languages of attributes and headers."""

from __future__ import annotations

from office_writer import odf, package, rels

from nephila.model.page import Page
from nephila.model.plugin import Document
from nephila.native import AVAILABLE, native
from nephila.parse import (
    OfficeBounds,
    OfficeLinks,
    decide_charset,
    decode,
    links_that_matter,
    main_text,
    media_type,
    page_requisites,
    parse_html,
    readable_markdown,
    readable_text,
    sheet_requisites,
)
from nephila.parse.attributes import header_links, refresh_url, srcset_urls
from nephila.parse.directives import directives_of
from nephila.parse.html import plainly_resolved
from nephila.parse.labels import NAMES
from nephila.parse.media import media_type_in, parse_media_type
from nephila.parse.package import Package
from nephila.parse.prescan import declared_encoding
from nephila.parse.scan import Scan, native_read, native_scan, plain_scan
from nephila.parse.signs import plainly_visible_characters, visible_characters
from nephila.parse.tree import elements
from nephila.parse.walk import DOCUMENT_TAGS, IMAGE_TAGS, MAX_TEXT, MAX_TITLE, walk
from nephila.pipeline.outlinks import outlinks
from nephila.urls.parse import Base

from .target import Choices, Target, text_of

ENOUGH = 200
"""Characters of text, up to which they are counted."""


def check_scan(data: bytes) -> None:
    """The scanner in C says what its twin says, and where neither doubts, what the tree says."""
    choices = Choices(data)
    images = bool(choices.number(2))
    body = choices.rest()
    plain = plain_scan(body, images=images)
    if AVAILABLE:
        fast = native_scan(body, images=images)
        assert fast == plain
        assert list(fast.findings.references) == list(plain.findings.references)
        _check_links(body, fast, images=images)
        assert visible_characters(body, ENOUGH) == plainly_visible_characters(body, ENOUGH)
    if not plain.doubtful:
        text = body.decode("utf-8", "replace")
        found = walk(elements(text, DOCUMENT_TAGS + IMAGE_TAGS if images else DOCUMENT_TAGS))
        assert plain.findings == found


def check_readable(data: bytes) -> None:
    """What a page says is its own: no script is in it, no link that a browser would run; and not much longer than it."""
    text = text_of(data)
    plain, marked = readable_text(text), readable_markdown(text, "http://example.com/dir/page?x#y")
    assert plain == plain.strip()
    assert marked == marked.strip()
    assert "](javascript:" not in marked.lower()
    for found in (plain, marked):
        assert "\ud800" not in found
        assert len(found) <= 1_000 + 300 * len(text)
    assert readable_text(text) == plain


def _check_links(body: bytes, fast: Scan, *, images: bool) -> None:
    """Links that were packed while the page was read are those that its references resolve to."""
    base = Base.parse("http://example.com/dir/page?x#y")
    assert base is not None
    again, links = native_read(body, base.url, base.join, images=images)
    assert (links is None) == (fast.doubtful or fast.findings.base is not None)
    if links is not None:
        assert links == plainly_resolved(fast.findings, base)
        assert not again.findings.references
        lines = native.outlink_lines(outlinks(links))
        assert lines is None or lines.count(b"\n") == len(links)


def check_office(data: bytes) -> None:
    """Any bytes give an extract of http(s) links, each once, and no more is unpacked than may be."""
    found = OfficeLinks(OfficeBounds(60.0, 1_000_000)).extract(Document("https://a.test/x/y.docx", "", (), data))
    urls = [link.url for link in found.links]
    assert len(urls) == len(set(urls))
    assert all(url.startswith(("http://", "https://")) and "#" not in url for url in urls)
    assert len(found.title) <= 500
    package = Package(data, 10_000)
    unpacked = sum(len(piece) for entry in package.entries(lambda _: True) for piece in package.pieces(entry))
    assert unpacked <= 10_000


def check_sheet(data: bytes) -> None:
    """Any bytes give http(s) URLs, each once, as a sheet of its own and within a page; bytes of comments give none."""
    page = parse_html(b"<style>" + data, "https://a.test/x/", "text/html; charset=utf-8", agent="Nephila/1.0")
    alone = sheet_requisites(data, "https://a.test/x/s.css", "text/css; charset=utf-8")
    for found in (alone, page_requisites(b"<style>" + data, page)):
        urls = [link.url for link in found]
        assert len(urls) == len(set(urls)) <= 5_000
        assert all(url.startswith(("http://", "https://")) and "#" not in url for url in urls)
    if b"*/" not in data and b"/*" not in data:
        assert sheet_requisites(b"/*" + data, "https://a.test/x/s.css", "text/css; charset=utf-8") == ()


def check_page(data: bytes) -> None:
    """Any bytes give a page with http(s) links, each once, of bounded texts."""
    choices = Choices(data)
    content_type = ("", "text/html", "text/html; charset=utf-8", "text/html; charset=shift_jis")[choices.number(4)]
    images = bool(choices.number(2))
    body = choices.rest()
    head = text_of(body[:200])
    page = parse_html(
        body,
        "http://example.com/dir/page?x#y" if choices.number(8) else head,
        content_type,
        agent="Nephila/1.0",
        robots_tags=[head],
        link_headers=[head],
        content_language=head,
        refresh=[head],
        images=images,
    )
    assert isinstance(page, Page)
    urls = [link.url for link in page.links]
    assert len(urls) == len(set(urls))
    assert all(url.startswith(("http://", "https://")) and "#" not in url for url in urls)
    assert all(len(link.text) <= MAX_TEXT for link in page.links)
    assert len(page.title) <= MAX_TITLE
    assert page.charset in NAMES
    assert len(links_that_matter(page.links, 20)) <= 20
    main_text(body.decode("utf-8", "replace"))


def check_charset(data: bytes) -> None:
    """Every page has an encoding of the standard's, and every encoding reads any bytes."""
    choices = Choices(data)
    name = NAMES[choices.number(len(NAMES))]
    size = choices.number(64)
    rest = choices.rest()
    header, body = rest[:size].decode("latin-1"), rest[size:]
    found = decide_charset(body, header)
    assert found in NAMES
    for one in (found, name):
        text = decode(body, one)
        assert len(text) <= 3 * len(body) + 1
        assert not any(0xD800 <= ord(character) < 0xE000 for character in text)
    declared_encoding(body)


def check_type(data: bytes) -> None:
    """Every body has a type; a header that is read is read the same again."""
    choices = Choices(data)
    size = choices.number(128)
    rest = choices.rest()
    header, body = rest[:size].decode("latin-1"), rest[size:]
    essence = media_type(header, body)
    assert essence == essence.lower()
    assert essence.count("/") == 1
    assert media_type(header, body[:1445]) == essence
    found = media_type_in(header)
    if found is not None:
        again = parse_media_type(found.essence)
        assert again is not None
        assert again.essence == found.essence


def check_attributes(data: bytes) -> None:
    """srcset, refresh and Link headers give no more than they hold."""
    text = text_of(data)
    urls = srcset_urls(text)
    assert sum(map(len, urls)) <= len(text)
    assert all(url in text for url in urls)
    target = refresh_url(text)
    assert target is None or (target and target in text)
    links = list(header_links(text))
    assert sum(len(link.href) for link in links) <= len(text)
    assert all("<" not in link.href and ">" not in link.href for link in links)


def check_directives(data: bytes) -> None:
    """Any words are read; case and repetition change nothing, and more words never allow more."""
    text = text_of(data)
    found = directives_of([("robots", text)], [], "Nephila/1.0")
    assert directives_of([("ROBOTS", text), ("robots", text)], [], "nephila") == found
    both = directives_of([("robots", text)], [text], "Nephila/1.0")
    headers = directives_of([], [text], "Nephila/1.0")
    for name in ("nofollow", "noindex", "noarchive"):
        assert getattr(both, name) == (getattr(found, name) or getattr(headers, name))


_OFFICE = (
    package(
        {"_rels/a.rels": rels("http://b.test/x"), "content.xml": '<text:a xlink:href="http://c.test/y"/>'}, stored=True
    ),
    package({"word/document.xml": '<w:instrText>HYPERLINK "http://d.test/z"</w:instrText>'}, stored=True),
    odf("../a", "http://e.test/"),
    package({"_rels/a.rels": rels("http://b.test/x")}, stored=True)[:300],
)


_TAG_WORDS = (
    *(
        b"<a href='",
        b"</a>",
        b"<p>",
        b"<b>",
        b"</b>",
        b"<table>",
        b"<td>",
        b"<svg>",
        b"</svg>",
        b"<template>",
        b"<select>",
    ),
    *(
        b"<option>",
        b"<title>",
        b"</title>",
        b"<script>",
        b"</script>",
        b"<!--",
        b"-->",
        b"<![CDATA[",
        b"]]>",
        b"<math>",
    ),
    *(
        b"<base href=",
        b"<meta name=robots content=",
        b"<meta http-equiv=refresh content='0;url=",
        b"<img srcset='",
        b"&amp;",
    ),
    *(b"&#x", b"<form action=", b"<iframe src=", b"<noscript>", b"<nobr>", b"<object>", b"<li>", b"<plaintext>", b"/>"),
    *(
        b"<html lang=",
        b"<link rel=canonical href=",
        b"<foreignObject>",
        b"\xe6\x97\xa5",
        b"\xf0\x9f\x98\x80",
        b"\xff",
        b"\0",
    ),
    *(
        b"<textarea>",
        b"<style>",
        b"<frameset>",
        b"rel=nofollow ",
        b"\r\n",
        b"<button>",
        b"<dd>",
        b"<ruby><rt>",
        b"<wbr>",
        b"\xcc\x81",
        b"\xc2\xad",
        b"\xe1\x85\xa1",
        b"<h1>",
    ),
)
_PAGES = (
    (
        b"<!doctype html><html lang=en><head><title>A page &amp; more</title><base href=/b/><link rel=canonical href=x>"
        b"<meta name=robots content='noindex, nofollow'></head><body><nav><a href=1>one</a></nav><p>Some words here "
        b"<a href='http://other.example/?a=1&amp;b=2' rel='nofollow ugc'>two <b>bold</b></a><img srcset='a 1x, b 2x'>"
    ),
    b"<meta http-equiv=refresh content='0;url=/next'><svg><a href=1 /><title>x</title></svg><table><tr><td><a href=2>x",
    b"<b><i><p></b></i><template><a href=1></template><script><!--<script></script>--></script><a href=3>y</a>",
    "<p>\u65e5\u672c\u8a9e\u306e\u30da\u30fc\u30b8 <a href=\u00fc>\u00fc</a>".encode(),
)
_TYPES = (
    b"\x18text/html; charset=utf-8<html>",
    b"\x0atext/plain\x00\x01",
    b"\x00%PDF-1.4",
    b"\x09text/html<?xml version='1.0'?><rss>",
)
TARGETS = (
    Target(
        "scan",
        check_scan,
        tuple(bytes([images]) + page for images in (0, 1) for page in _PAGES),
        _TAG_WORDS,
    ),
    Target(
        "page",
        check_page,
        tuple(bytes([kind, 1, 1]) + page for kind in (0, 2) for page in _PAGES),
        _TAG_WORDS,
    ),
    Target("readable", check_readable, _PAGES, _TAG_WORDS),
    Target(
        "charset",
        check_charset,
        (
            b"\x00\x00<meta charset=utf-8>\xc3\xa4", b"\x07\x18text/html; charset=latin1<p>\xe4",
            b"\x10\x00<?xml version='1.0' encoding='euc-jp'?>\xa4\xa2", b"\x20\x00\xff\xfea\x00", b'\x25\x00\x1b$B$"',
            b"\x00\x00<meta http-equiv=content-type content='text/html; charset=gbk'>\xc4\xe3",
        ),
        (b"<meta charset=", b"charset=", b"<?xml encoding='", b"\xef\xbb\xbf", b"\xfe\xff", b"http-equiv=", b"content=", b"<!--"),
        2048,
    ),
    Target(
        "office",
        check_office,
        _OFFICE,
        (
            b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"_rels/a.rels", b"content.xml", b"<Relationship ", b'TargetMode="External"',
            b'Type="/hyperlink"', b'Target="http://b.test/"', b'<text:a xlink:href="http://c.test/">', b"<w:instrText>",
            b'HYPERLINK "http://d.test/"', b"</w:instrText>", b"<dc:title>",
        ),
        4096,
    ),
    Target(
        "sheet",
        check_sheet,
        (
            b"@import 'a.css'; b{c:url(d.png)}", b'/* url(x) */ e{f:url( "g\\"h.png" )}', b"@import url(i.css) screen; j{k:url('\\66 l')}",
            b"</style><img src=a srcset='b 1x, c 2x'><link rel=icon href=d><p style='e:url(f)'>",
        ),
        (b"url(", b"@import", b"image-set(", b")", b'"', b"'", b"\\", b"/*", b"*/", b"data:", b"https://b.test/", b"</style>", b"<img src=",
         b" style="),
        1024,
    ),
    Target(
        "type",
        check_type,
        _TYPES,
        (b"text/html", b"; charset=", b'"', b"\\", b", ", b"<!--", b"<feed", b"<rss", b"<rdf:RDF", b"<?xml"),
        2048,
    ),
    Target(
        "attributes",
        check_attributes,
        (b"a.png 1x, b.png 2x, c(,) 3w", b"0; url='/x y'", b'</a>; rel="next canonical"; hreflang=de, <b>; rel=x'),
        (b"url=", b"; ", b", ", b"<", b">", b"rel=", b'"', b"'", b"\\", b"(", b")", b"0;"),
        1024,
    ),
    Target(
        "directives",
        check_directives,
        (b"noindex, nofollow", b"nephila: none, otherbot: noarchive", b"unavailable_after: 1 Jan 2030, max-snippet:-1"),
        (b"noindex", b"nofollow", b"none", b"noarchive", b"nephila:", b"*:", b"max-snippet:", b", "),
        512,
    ),
)  # fmt: skip
