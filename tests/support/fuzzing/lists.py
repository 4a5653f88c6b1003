"""Documents that list addresses: sitemaps, feeds, outlines, lines; the dates in them; PDFs that cannot be opened."""

from __future__ import annotations

import gzip
import zlib
from itertools import chain

from nephila.model.listing import Listed, ListKind
from nephila.parse.lists import ListReader, list_kind
from nephila.parse.moments import moment_s
from nephila.parse.pdf_salvage import LONGEST_URI, repairs, uris_lying_about

from .target import Choices, Target, pieces_of, text_of

_HOME = "https://www.example.org/list/"
_MOST = 100_000


def _read(data: bytes, content_type: str, step: int, most: int) -> tuple[ListReader, list[Listed]]:
    reader = ListReader(_HOME, content_type, most)
    found = list(chain.from_iterable(chain.from_iterable(reader.feed(piece) for piece in pieces_of(data, step))))
    return reader, found + reader.close()


def _hold(entries: list[Listed]) -> None:
    for entry in entries:
        assert entry.url.startswith(("http://", "https://"))
        assert "#" not in entry.url
        assert 0 <= entry.lastmod_s < 2**33
        assert 0 <= entry.published_s < 2**33
        assert entry.priority == -1 or 0 <= entry.priority <= 1


def check_list(data: bytes) -> None:
    """Any bytes are read, in whatever pieces they come; packed they say the same; what is found are addresses of the web."""
    choices = Choices(data)
    step, packed, most = choices.number(9), choices.number(2), (_MOST, 64, 700)[choices.number(3)]
    content_type = ("", "text/xml; charset=iso-8859-1", "application/xml", "text/plain; charset=utf-16")[
        choices.number(4)
    ]
    body = choices.rest()
    reader, found = _read(body, content_type, 0, most)
    again, same = _read(body, content_type, step, most)
    assert again.kind == reader.kind
    assert reader.counts["damaged"] <= 1
    assert again.counts["damaged"] <= 1
    for entries in (found, same):  # they may differ where a tag is broken: what ends it is looked for in a piece
        _hold(entries)
    assert reader.over
    assert not found or reader.kind is not None
    if packed and not body.startswith(b"\x1f\x8b"):
        unpacked, inside = _read(gzip.compress(body, 1), content_type, 0, most)
        assert (inside, unpacked.kind) == (found, reader.kind)
    kind = list_kind(body, content_type, "application/xml")
    assert kind is None or kind in ListKind


def check_moment(data: bytes) -> None:
    """Any text is a moment of our time or none; room around it changes nothing."""
    text = text_of(data)
    found = moment_s(text)
    assert found == 0 or 631_152_000 <= found < 4_102_444_800
    if len(text) < 90:
        assert moment_s(f" {text}\n") == found


def check_salvage(data: bytes) -> None:
    """Any bytes are looked through: what is added comes behind them, and no address is longer than allowed."""
    choices = Choices(data)
    packed, body = choices.number(2), choices.rest()
    if packed:
        body = b"%PDF-1.5\n1 0 obj\n<< /Type /ObjStm >>\nstream\n" + zlib.compress(body, 1) + b"\nendstream\nendobj\n"
    for mended in repairs(body):
        assert mended.startswith(body)
        assert mended.endswith(b"%%EOF\n")
        assert b"/Root " in mended[len(body) :]
    uris = list(uris_lying_about(body, lambda: False))
    assert all(uri and len(uri) <= LONGEST_URI for uri in uris)
    assert not uris or b"/Encrypt" not in body
    assert not list(uris_lying_about(body + b"/Encrypt", lambda: False))


_SITEMAP = (
    b"<?xml version='1.0' encoding='UTF-8'?>\n<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"
    b"<url><loc>https://www.example.org/a?x=1&amp;y=2</loc><lastmod>2026-03-04T05:06:07+01:00</lastmod>"
    b"<changefreq>daily</changefreq><priority>0.8</priority><image:image><image:loc>/i.png</image:loc></image:image>"
    b"<news:news><news:publication_date>2026-01-01</news:publication_date></news:news></url>"
    b"<url><loc><![CDATA[/b#part]]></loc><xhtml:link rel='alternate' href='/c'/></url></urlset>"
)
_LISTS = (
    _SITEMAP,
    b"<sitemapindex><sitemap><loc>/one.xml.gz</loc><lastmod>2026</lastmod></sitemap></sitemapindex>",
    (
        b"<rss version='2.0'><channel><link>/</link><item><link>http://a.test/1</link><guid isPermaLink='true'>/g</guid>"
        b"<pubDate>Wed, 02 Oct 2025 13:00:00 GMT</pubDate><content:encoded>&lt;a href='x'&gt;</content:encoded></item></channel></rss>"
    ),
    b"<feed xml:base='/f/'><entry><link rel='alternate' href='e'/><updated>2026-01-02</updated></entry></feed>",
    b"<rdf:RDF><item rdf:about='/r'><link>/r</link><dc:date>2026-01-02</dc:date></item></rdf:RDF>",
    b"<opml><body><outline text='x' xmlUrl='/feed' htmlUrl='/'/></body></opml>",
    b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1", "url": "/j", "date_published": "2026-01-02"}]}',
    b"# lines\nhttp://a.test/1\r\nwww.b.test/2\n\nnot an address\n",
    gzip.compress(_SITEMAP, mtime=0),
    "<urlset><url><loc>/ü</loc></url></urlset>".encode("utf-16"),
)
_PDF = (
    b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n"
    b"3 0 obj\n<< /Type /Page /Annots [<< /A << /S /URI /URI (http://a.test/\\(x\\)\\101) >> >>] >>\nendobj\n"
    b"4 0 obj\n<< /URI <687474703A2F2F62> >>\nendobj\n"
)
TARGETS = (
    Target(
        "lists",
        check_list,
        tuple(bytes([step, 1, 0, 0]) + body for step, body in enumerate(_LISTS)),
        (
            *(
                b"<url>",
                b"</url>",
                b"<loc>",
                b"</loc>",
                b"<lastmod>",
                b"</lastmod>",
                b"<urlset>",
                b"<sitemapindex>",
                b"<sitemap>",
            ),
            *(
                b"<rss>",
                b"<channel>",
                b"<item>",
                b"</item>",
                b"<link>",
                b"</link>",
                b"<feed>",
                b"<entry>",
                b"<link href='",
                b"'/>",
            ),
            *(
                b"<guid>",
                b"<pubDate>",
                b"<updated>",
                b"<opml>",
                b"<outline xmlUrl='",
                b"<![CDATA[",
                b"]]>",
                b"<!--",
                b"-->",
            ),
            *(
                b"<?xml",
                b"?>",
                b"<!DOCTYPE",
                b"<!ENTITY",
                b"&amp;",
                b"&#x41;",
                b"&lt;",
                b"xml:base='",
                b"http://a.test/",
                b"www.b.test/",
            ),
            *(
                b'{"items": [',
                b'"url": "',
                b"\x1f\x8b\x08",
                b"\xff\xfe",
                b"\xef\xbb\xbf",
                b"\n",
                b"priority>",
                b"changefreq>",
            ),
        ),
        2048,
    ),
    Target(
        "moment",
        check_moment,
        (
            *(
                b"2026-03-04T05:06:07.89+01:00",
                b"20260304",
                b"2026-03",
                b"Wed, 02 Oct 2025 13:00:00 GMT",
                b"2 Oct 25 13:00 EST",
            ),
            *(b"2026-02-30", b"Monday, 02-Oct-25 13:00:00 +0230", b"1989-12-31"),
        ),
        (b"T", b"Z", b"+00:00", b"-1200", b"Jan", b"Mon, ", b"GMT", b"2026", b":", b"99"),
        128,
    ),
    Target(
        "salvage",
        check_salvage,
        (b"\0" + _PDF, b"\1/URI (http://c.test/)", b"\0" + _PDF[:200]),
        (
            *(
                b"obj",
                b" 0 obj\n",
                b"endobj",
                b"/Type /Catalog",
                b"/Type /Page",
                b"/URI (",
                b"/URI <",
                b"stream\n",
                b"endstream",
            ),
            *(b"\\(", b"\\)", b"\\777", b"(", b")", b">", b"/Encrypt", b"trailer", b"x\x9c"),
        ),
    ),
)
