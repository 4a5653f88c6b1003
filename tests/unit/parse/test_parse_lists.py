"""Lists from bytes to entries: what is read, what is not, and what nothing can be done with."""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.listing import Listed, ListKind
from nephila.parse.lists import ListReader, list_kind, read_list

HOME = "https://www.example.org/sitemap.xml"


def read(body: bytes, url: str = HOME, content_type: str = "", *, cut: bool = False) -> tuple[ListReader, list[Listed]]:
    pieces = list(read_list(body, url, content_type, cut=cut))
    return pieces[-1][0], [entry for _, entries in pieces for entry in entries]


def urls(body: bytes, url: str = HOME) -> list[str]:
    return [entry.url for entry in read(body, url)[1]]


def urlset(*entries: str) -> bytes:
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{"".join(entries)}</urlset>'.encode()


def test_the_fields_of_a_sitemap() -> None:
    """X3: location, date, frequency, priority; what makes no sense is left out."""
    body = urlset(
        "<url><loc> https://www.example.org/a?x=1&amp;y=2 </loc><lastmod>2026-03-04T05:06:07+01:00</lastmod>"
        "<changefreq>Daily</changefreq><priority>0.8</priority></url>",
        "<url><priority>9</priority><changefreq>often</changefreq><lastmod>soon</lastmod><loc>/b#part</loc></url>",
    )
    assert read(body)[1] == [
        Listed("https://www.example.org/a?x=1&y=2", 1_772_597_167, "daily", 0.8),
        Listed("https://www.example.org/b"),
    ]


@pytest.mark.parametrize(
    "written", ["2026-3-4", "2026/03/04", "2026/3/4", "2026.03.04", "2026-3-4T00:00:00Z", "2026/03/04 01:00+01:00"]
)
def test_a_date_in_another_spelling_is_not_taken_for_its_year(written: str) -> None:
    """X3: single digits and other separators, year first."""
    body = urlset(f"<url><loc>/a</loc><lastmod>{written}</lastmod></url>")
    assert [entry.lastmod_s for entry in read(body)[1]] == [1_772_582_400]


def test_extensions_are_counted_and_news_have_a_date() -> None:
    """X3: an image's location is no page; the date of news is kept."""
    body = urlset(
        "<url><loc>/a</loc><image:image><image:loc>/a.png</image:loc></image:image>"
        "<video:video><video:player_loc>/v</video:player_loc></video:video></url>",
        "<url><news:news><news:publication_date>2026-01-01</news:publication_date></news:news><loc>/n</loc></url>",
        '<url><loc>/t</loc><xhtml:link rel="alternate" hreflang="de" href="/de/t"/></url>',
        '<url><loc>/p</loc><PageMap xmlns="x"><DataObject><loc>/inside</loc></DataObject></PageMap></url>',
    )
    reader, found = read(body)
    assert [entry.url.rpartition("/")[2] for entry in found] == ["a", "n", "t", "p"]
    assert found[1].published_s == 1_767_225_600
    assert reader.counts == {"image": 1, "video": 1, "news": 1, "link": 1, "other": 1}


def test_broken_documents_give_what_is_whole() -> None:
    """X3, Q5: a raw ampersand, an open tag, an unknown entity, the end in the middle."""
    assert urls(b"<urlset><url><loc>https://a.example/?a=1&b=2</loc></url><url><loc>/x&nosuch;y</loc>") == [
        "https://a.example/?a=1&b=2",
        "https://www.example.org/x&nosuch;y",
    ]
    assert urls(b"<urlset><url><loc>/1</loc><image:image><url><loc>/2</loc></urlset>") == [
        "https://www.example.org/1",
        "https://www.example.org/2",
    ]
    assert urls(b"<urlset><url><loc>/1</loc></url><url><loc>/half-of-an-addr") == ["https://www.example.org/1"]
    assert urls(b"<urlset><url><loc>/1</loc></url><url><loc>/whole</lo") == [
        "https://www.example.org/1",
        "https://www.example.org/whole",
    ]


@pytest.mark.parametrize(
    "entries",
    [
        "<url><loc>/1</url><url><loc>/2</loc></url>",
        "<url><loc>/1<loc></url><url><loc>/2</loc></url>",
        "<url><loc>/1<url><loc>/2</url>",
        "<url><loc>/1<lastmod>2026-01-01</lastmod></url><url><loc>/2</loc></url>",
        "<url><loc>/1<loc>/2</url>",
        "<url><loc><b>/1</b></loc></url><url><loc><loc>/2</loc></loc></url>",
        "<url><loc><url>/1</url></loc></url><url><loc><url>/2</url></url>",
    ],
)
def test_a_location_that_is_not_closed_does_not_swallow_the_next(entries: str) -> None:
    """X3, Q5: what begins or ends an entry ends its location, too."""
    assert urls(urlset(entries)) == ["https://www.example.org/1", "https://www.example.org/2"]


@pytest.mark.parametrize(
    "body",
    [
        "<s:urlset xmlns:s='x'><url><loc>/1</loc></url><url><loc>/2</loc></url></s:urlset>",
        "<urlset><s:url xmlns:s='x'><s:loc>/1</s:loc></s:url><url><loc>/2</loc></url></urlset>",
        "<a:urlset><b:url><b:loc>/1</b:loc><a:loc>/x.png</a:loc></b:url><b:url><b:loc>/2</b:loc></b:url></a:urlset>",
    ],
)
def test_entries_may_be_in_another_namespace_than_the_root(body: str) -> None:
    """X3: what stands directly in the root is an entry, whatever its prefix; its fields share it."""
    assert urls(body.encode()) == ["https://www.example.org/1", "https://www.example.org/2"]


def test_a_location_that_is_none_of_the_web_is_counted() -> None:
    """X3: other schemes and empty ones."""
    reader, found = read(urlset("<url><loc>ftp://a/b</loc></url>", "<url><loc/></url>", "<url><loc>/c</loc></url>"))
    assert len(found) == 1
    assert reader.counts["malformed"] == 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1251", "shift_jis"])
def test_any_encoding(encoding: str) -> None:
    """X3: by its mark or by its declaration."""
    name = encoding.removesuffix("-sig")
    word = {"windows-1251": "\u0436", "shift_jis": "\u3042", "iso-8859-1": "\xe9"}.get(encoding, "\u4e2d")
    text = f'<?xml version="1.0" encoding="{name}"?><urlset><url><loc>/{word}</loc></url></urlset>'
    reader, found = read(text.encode(encoding))
    assert reader.kind is ListKind.SITEMAP
    assert found == read(f"<urlset><url><loc>/{word}</loc></url></urlset>".encode())[1]


@pytest.mark.parametrize("content_type", ["", "text/xml; charset=utf-16", "text/xml; charset=utf-8"])
def test_a_document_without_a_zero_byte_is_not_utf_16_whatever_it_declares(content_type: str) -> None:
    """X3, S1: as programs on .NET write it, who declare what the text was in memory."""
    body = '<?xml version="1.0" encoding="utf-16"?><urlset><url><loc>/\u4e2d</loc></url></urlset>'.encode()
    assert [entry.url for entry in read(body, HOME, content_type)[1]] == ["https://www.example.org/%E4%B8%AD"]
    assert list_kind(body, content_type, "text/xml") is ListKind.SITEMAP


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("start", ["<?xml version='1.0'?><urlset><url>", "<urlset><url>", "<sitemapindex><sitemap>"])
def test_utf_16_is_known_without_its_mark(start: str, encoding: str) -> None:
    """X3: by the zero bytes around its first bracket."""
    assert urls(f"{start}<loc>/\u4e2d</loc>".encode(encoding)) == ["https://www.example.org/%E4%B8%AD"]


def test_compressed_documents() -> None:
    """X3: once, twice, in several members, with padding, and damaged."""
    body = urlset(*(f"<url><loc>/{n}</loc></url>" for n in range(2000)))
    packed = gzip.compress(body)
    assert len(urls(packed)) == len(urls(gzip.compress(packed))) == 2000
    assert len(urls(gzip.compress(body[:900]) + gzip.compress(body[900:]) + b"\0" * 100)) == 2000
    reader, found = read(packed[: len(packed) // 2])
    assert 0 < len(found) < 2000
    reader, found = read(gzip.compress(body[:900]) + b"\x1f\x8b" + b"\xff" * 2000)
    assert 0 < len(found) < 2000
    assert reader.counts["damaged"] == 1


def test_what_comes_before_the_damage_is_read_and_nothing_behind_it() -> None:
    """X3: however large the pieces are that it comes in; the damage is counted once."""
    body = urlset(*(f"<url><loc>/{n}-{hash(n) * 7919 % 10_007}</loc></url>" for n in range(500)))
    packed = bytearray(gzip.compress(body))
    packed = packed[: len(packed) // 2] + b"\xff" * 40 + packed[len(packed) // 2 + 40 :]
    found: list[list[str]] = []
    for size in (1, 100, 65_536):
        reader, entries = ListReader(HOME), list[Listed]()
        for at in range(0, len(packed), size):
            entries += chain.from_iterable(reader.feed(bytes(packed[at : at + size])))
        found.append([entry.url for entry in entries + reader.close(cut=True)])
        assert reader.counts["damaged"] == 1
    assert len(found[0]) > 100
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("head", ["<rss><item><link>", "<feed><entry><id>", "<urlset><url><loc>"])
def test_a_field_that_does_not_end_takes_no_memory(head: str) -> None:
    """X3, Q5: text and tags by turns, in pieces of two characters, each of which would be an object of its own."""
    reader = ListReader("https://a.test/list")
    piece = b"ab<x/>" * 30_000
    tracemalloc.start()
    for data in (head.encode(), *[piece] * 8):
        assert list(reader.feed(data)) == []
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 5_000_000


def test_the_limit_holds_after_unpacking() -> None:
    """X3, Q5: a few kilobytes that unpack to fifteen megabytes, read up to a limit, in little memory."""
    body = b"<urlset>" + b"<url><loc>/a</loc></url>" * 600_000
    packed = gzip.compress(gzip.compress(body))
    tracemalloc.start()
    count = 0
    for last, entries in read_list(packed, HOME, max_bytes=5_000_000):
        count, reader = count + len(entries), last
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 5_000_000 // 24
    assert reader.counts["over_limit"] == 1
    assert peak < 16_000_000


def test_a_document_type_expands_and_loads_nothing() -> None:
    """Q5: billion laughs and external entities are text that means nothing."""
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
    body = f'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY l0 "ha">{laughs}<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    body += "<urlset><url><loc>&l9;</loc></url><url><loc>&f;</loc></url><url><loc>/ok</loc></url></urlset>"
    started = time.process_time()
    assert urls(body.encode()) == ["https://www.example.org/ok"]
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "piece",
    [
        b"<",
        b"<a",
        b'<a "',
        b"<a '\"",
        b'<a b=">',
        b"<!--",
        b"<![CDATA[",
        b"<!D [",
        b"<?x",
        b"&amp",
        b"&#",
        b"<url>",
        b"<url><loc>",
        b"<url><loc> ",
        b"<loc>",
        b"</",
        b"<url ",
        b"]]>",
        b"\x1f\x8b",
        b"{",
        b"[" * 9,
        b"http://a/\n",
        b'{"a":',
    ],
)
def test_hostile_repetition_takes_linear_time(piece: bytes) -> None:
    """Q5: half a megabyte of anything is done with in a second or two, as a list and from its beginning."""
    for start in (b"", b"<urlset>", b"<rss><channel><item>", b"<opml>"):
        body = start + piece * (500_000 // len(piece))
        started = time.process_time()
        read(body)
        assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "body",
    [
        b"<urlset><" + b"a" * 400_000,
        b"<rss><channel><item " + b"a" * 200_000 + b"/>",
        b"<opml><outline " + b"a" * 200_000 + b"/>",
    ],
    ids=("tag", "attribute of an item", "attribute of an outline"),
)
def test_a_name_that_does_not_end_takes_linear_time(body: bytes) -> None:
    """Q5: of a tag, and of an attribute."""
    started = time.process_time()
    read(body)
    assert list_kind(body, "", "text/xml") is not None
    assert time.process_time() - started < 2


NOTHING = gzip.compress(b"")


@pytest.mark.parametrize(
    "body",
    [NOTHING * 500_000, gzip.compress(NOTHING * 500_000), gzip.compress(gzip.compress(NOTHING * 500_000))],
    ids=("once", "twice", "three times"),
)
def test_packed_streams_that_hold_nothing_have_an_end(body: bytes) -> None:
    """Q5: some kilobytes are millions of members, none of which brings a byte that could be counted."""
    started = time.process_time()
    reader, found = read(body)
    assert (found, reader.over) == ([], True)
    assert list_kind(body, "", "application/gzip") is None
    assert time.process_time() - started < 2


def test_telling_what_a_body_is_takes_a_moment_whatever_it_unpacks_to() -> None:
    """Q5: it is asked on the loop, of every answer that may be a list, while all others wait."""
    body = gzip.compress(b"<urlset>" + b"<a>" * 5_000_000, 1)
    started = time.process_time()
    assert list_kind(body, "", "application/gzip") is ListKind.SITEMAP
    assert time.process_time() - started < 1


def test_what_is_packed_twice_is_bounded_where_it_is_packed_once() -> None:
    """Q5: a stream of empty blocks unpacks to nothing, however long it is."""
    blocks = NOTHING[:10] + b"\0\0\0\xff\xff" * 4_000_000
    reader, found = read(gzip.compress(blocks, 1)[:-8])
    assert (found, reader.counts["over_limit"]) == ([], 0)
    for last, _ in read_list(gzip.compress(blocks, 1), HOME, max_bytes=1_000_000):
        reader = last
    assert reader.counts["over_limit"] == 1


def test_feeds_of_all_kinds() -> None:
    """X3: RSS 2.0 with its variants, RSS 1.0, Atom with bases, JSON."""
    rss = b"""<rss version="2.0"><channel><link>https://e.example/</link><atom:link rel="self" href="/feed"/>
    <item><title><![CDATA[<link>no</link>]]></title><link>https://e.example/1</link><description>a <link>/no</link>
    </description><pubDate>Wed, 04 Mar 2026 05:06:07 GMT</pubDate></item>
    <item><guid isPermaLink="true">https://e.example/2</guid></item>
    <item><link>https://proxy.example/3</link><feedburner:origLink>https://e.example/3</feedburner:origLink></item>
    <item><title>nothing</title></item></channel></rss>"""
    reader, found = read(rss, "https://e.example/feed")
    assert [entry.url for entry in found] == [f"https://e.example/{n}" for n in (1, 2, 3)]
    assert found[0].published_s == found[0].lastmod_s == 1_772_600_767
    assert reader.counts["malformed"] == 1
    rdf = b"""<rdf:RDF xmlns="http://purl.org/rss/1.0/"><channel><items><rdf:li resource="https://e.example/9"/></items>
    </channel><item rdf:about="https://e.example/1"><title>x</title></item></rdf:RDF>"""
    assert urls(rdf) == ["https://e.example/1"]
    atom = b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://e.example/blog/">
    <link rel="alternate" href="/"/><entry xml:base="2026/"><link rel="edit" href="edit"/><link href="post.html"/>
    <updated>2026-03-04T05:06:07Z</updated><published>2026-03-01</published>
    <content type="xhtml"><div><link href="/no"/></div></content></entry>
    <entry><id>https://e.example/by-id</id></entry></feed>"""
    _, found = read(atom)
    assert [entry.url for entry in found] == ["https://e.example/blog/2026/post.html", "https://e.example/by-id"]
    assert (found[0].lastmod_s, found[0].published_s) == (1_772_600_767, 1_772_323_200)
    feed = {"version": "https://jsonfeed.org/version/1.1", "items": [{"url": "https://e.example/1"}, {"id": "7"}, 5]}
    assert urls(json.dumps(feed).encode()) == ["https://e.example/1"]
    assert urls(b'{"version": "1", "items": [{"url": "https://e.example/1"}]}') == []


def test_an_outline_names_feeds_and_their_pages() -> None:
    """S1: OPML; a quoted > does not end the tag."""
    opml = b"""<opml version="2.0"><body><outline text="a > b"><outline type="rss" text="it's" htmlUrl="https://a.example/"
    xmlUrl="https://a.example/feed?x=1&amp;y=2"/><outline type="link" url="https://b.example/"/></outline></body></opml>"""
    reader, found = read(opml)
    assert reader.kind is ListKind.OUTLINE
    assert [(entry.url, entry.is_list) for entry in found] == [
        ("https://a.example/feed?x=1&y=2", True),
        ("https://a.example/", False),
        ("https://b.example/", False),
    ]


def test_texts_are_lists_only_if_they_look_like_it() -> None:
    """X3: each of the first lines is an address; what is cut is not taken for one."""
    assert urls(b"\xef\xbb\xbfhttps://a.example/1\r\n\r\nwww.a.example/2\rhttps://a.example/3") == [
        "https://a.example/1",
        "http://www.a.example/2",
        "https://a.example/3",
    ]
    assert [entry.url for entry in read(b"https://a.example/1\nhttps://a.example/tw", cut=True)[1]] == [
        "https://a.example/1"
    ]
    assert list_kind(b"https://a.example/1\nhttps://a.example/2", "text/plain", "text/plain") is ListKind.TEXT
    assert list_kind(b"see https://a.example/1 for more", "text/plain", "text/plain") is None
    assert list_kind(b"https://a.example/1\nis a page", "text/plain", "text/plain") is None


def test_pages_are_not_taken_for_lists() -> None:
    """X3: HTML, XHTML and other XML are none; a sitemap that says it is HTML is one."""
    html = b"<!doctype html><html><body><p>about <rss> and <urlset></body></html>"
    xhtml = b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><feed/></body></html>'
    assert list_kind(html, "text/html", "text/html") is None
    assert list_kind(xhtml, "", "application/xhtml+xml") is None
    assert list_kind(b"<svg><a/></svg>", "", "image/svg+xml") is None
    assert list_kind(b"<note><to/></note>", "", "application/xml") is None
    assert list_kind(b'<?xml version="1.0"?><urlset></urlset>', "text/html", "text/html") is ListKind.SITEMAP
    assert list_kind(gzip.compress(html), "text/html", "text/html") is None
    assert list_kind(gzip.compress(b"<urlset></urlset>"), "text/html", "text/html") is ListKind.SITEMAP


ENTRY = st.sampled_from(
    [
        "<url>",
        "</url>",
        "<loc>",
        "</loc>",
        "/a",
        "/b&amp;c",
        " ",
        "\n",
        "<lastmod>2026-01-02</lastmod>",
        "<!-- <loc> -->",
        "<![CDATA[/c]]>",
        "<image:loc>",
        "</image:loc>",
        "<priority>0.5</priority>",
        "<changefreq>daily</changefreq>",
        "<url>\n<loc>https://a.example/x</loc>\n</url>\n",
        "<x a='>'>",
        "<",
        "&",
        "]]>",
    ]
)


@settings(max_examples=300, deadline=None)
@given(parts=st.lists(ENTRY, max_size=40), size=st.integers(1, 40))
def test_it_does_not_matter_how_a_document_is_cut_into_pieces(parts: list[str], size: int) -> None:
    """X3: entries that are written plainly are read at once or token by token, with the same result."""
    body = ("<urlset>" + "".join(parts) + "</urlset>").encode()
    whole = ListReader(HOME)
    at_once = list(chain.from_iterable(whole.feed(body))) + whole.close()
    reader = ListReader(HOME)
    found: list[Listed] = []
    for at in range(0, len(body), size):
        found += chain.from_iterable(reader.feed(body[at : at + size]))
    assert found + reader.close() == at_once
    assert reader.counts == whole.counts


@settings(max_examples=300, deadline=None)
@given(
    body=st.binary(max_size=300), start=st.sampled_from([b"", b"<urlset>", b"<rss><item>", b"<feed><entry>", b"<opml>"])
)
def test_any_bytes_are_read(body: bytes, start: bytes) -> None:
    """Q5: no exception, whatever it is."""
    _, found = read(start + body)
    assert all(entry.url.startswith(("http://", "https://")) for entry in found)
