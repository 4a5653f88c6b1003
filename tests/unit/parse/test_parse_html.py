from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.page import Directives, Link, Page
from nephila.parse import parse_html

Reader = Callable[..., Page]
SITE = "http://site.example"


def urls(page: Page, *tags: str) -> list[str]:
    return [link.url for link in page.links if not tags or link.tag in tags]


def test_links_of_every_kind_in_document_order(read: Reader) -> None:
    """X1: a, area, link, iframe, frame, form GET, meta refresh."""
    page = read(
        """<link rel=Next href=2><meta http-equiv=Refresh content="3; url=r">
        <a href=a>A</a><map><area href=b alt="the  b"></map><iframe src=i></iframe>
        <form action=f></form><form action=p method=POST></form><form action=d method=dialog></form><form></form>"""
    )
    assert page.links == (
        Link(f"{SITE}/dir/2", "link", "next", ""),
        Link(f"{SITE}/dir/r", "meta", "", ""),
        Link(f"{SITE}/dir/a", "a", "", "A"),
        Link(f"{SITE}/dir/b", "area", "", "the b"),
        Link(f"{SITE}/dir/i", "iframe", "", ""),
        Link(f"{SITE}/dir/f", "form", "", ""),
    )
    assert urls(read("<frameset><frame src=f></frameset>")) == [f"{SITE}/dir/f"]


def test_what_stands_in_drawings_is_no_part_of_the_page_but_for_links(read: Reader) -> None:
    """X1, X2: a base, link, frame, form or area in SVG or MathML is none; an anchor in SVG is one."""
    page = read(
        """<svg><base href=/elsewhere/><link rel=canonical href=c><link rel=alternate hreflang=de href=l>
        <iframe src=i></iframe><form action=f></form><area href=x></area>
        <title>drawing</title><a href=a>A</a></svg><math><link rel=canonical href=m></math><a href=b>B</a>""",
        images=True,
    )
    assert page.links == (Link(f"{SITE}/dir/a", "a", "", "A"), Link(f"{SITE}/dir/b", "a", "", "B"))
    assert (page.base, page.canonical, page.hreflang, page.title) == (page.url, "", (), "")


def test_what_is_empty_leads_nowhere_but_for_an_anchor(read: Reader) -> None:
    """X1, U1: a frame stays blank, a form is sent to the page itself whatever its base, an anchor leads to the base."""
    empty = """<iframe src=""></iframe><form action=""></form><form action></form><link rel="canonical next" href="">
        <link rel=alternate hreflang=de href=""><img src="" srcset=""><embed src="">"""
    page = read(f"<base href=/other/>{empty}", images=True)
    assert (page.links, page.canonical, page.hreflang) == ((), "", ())
    assert read("<base href=/other/><frameset><frame src=''></frameset>").links == ()
    assert urls(read(f"<base href=/other/>{empty}<a href=''>B</a>")) == [f"{SITE}/other/"]


def test_links_of_drawings_may_be_spelled_as_they_once_were(read: Reader) -> None:
    """X1: `xlink:href` of an anchor in SVG is followed where there is no `href`; in HTML it says nothing."""
    page = read(
        """<svg><a xlink:href=old>O</a><a XLINK:href=old href=new>N</a><a xlink:href=self />
        <a href="" xlink:href=hidden></a></svg><a xlink:href=html>H</a>"""
    )
    assert page.links == (
        Link(f"{SITE}/dir/old", "a", "", "O"),
        Link(f"{SITE}/dir/new", "a", "", "N"),
        Link(f"{SITE}/dir/self", "a", "", ""),
        Link(f"{SITE}/dir/page", "a", "", ""),
    )
    assert urls(read("<svg><foreignObject><div></div></foreignObject><a xlink:href=tree>T</a></svg>")) == [
        f"{SITE}/dir/tree"
    ]


def test_a_refresh_of_the_header_is_a_link_as_one_of_the_page_is(read: Reader) -> None:
    """X1: browsers go where a Refresh header leads, seen from the page's own URL, whatever its base."""
    html = "<base href=/other/><a href=1>One</a>"
    assert read(html, refresh=["5; url=next#x"]).links == (
        Link(f"{SITE}/other/1", "a", "", "One"),
        Link(f"{SITE}/dir/next", "meta", "", ""),
    )
    assert urls(read("", refresh=["0", "0;url=/joined"])) == [f"{SITE}/dir/0;url=/joined"]
    assert read(html, refresh=["0; url=/other/1"]).links == read(html).links
    for leads_nowhere in ("5", "soon; url=/x", "0;url=mailto:x@y.example", "0;url=http://[bad"):
        assert read(html, refresh=[leads_nowhere]).links == read(html).links


def test_a_template_in_a_drawing_is_an_element_like_others(read: Reader) -> None:
    """X1: its links are part of the document, as browsers have it; one in HTML hides them."""
    page = read("<svg><template><a href=in>I</a></template></svg><template><a href=out></a></template><a href=b>B</a>")
    assert urls(page) == [f"{SITE}/dir/in", f"{SITE}/dir/b"]
    assert urls(read("<svg><template><a href=in>I</a></svg><a href=b>B</a>")) == [f"{SITE}/dir/in", f"{SITE}/dir/b"]


@pytest.mark.parametrize("href", ["/a\tb\nc\rd", " \n/abcd\t", "ht\ntp://si\tte.example/abcd", "/a&#9;b&NewLine;cd"])
def test_tabs_and_line_ends_in_a_link_are_passed_over(read: Reader, href: str) -> None:
    """X1, U1: wherever they stand (URL standard 4.4)."""
    for base in ("", "<base href=/other/>", "<div>" * 300):
        assert urls(read(f'{base}<a href="{href}">')) == [f"{SITE}/abcd"]


def test_images_only_when_asked(read: Reader) -> None:
    """X1: img and srcset when asked."""
    html = '<img src=a.png srcset="b.png 2x" alt=A><picture><source srcset="c.png, d.png"></picture>'
    assert read(html).links == ()
    assert read(html, images=True).links == (
        Link(f"{SITE}/dir/a.png", "img", "", "A"),
        Link(f"{SITE}/dir/b.png", "srcset", "", ""),
        Link(f"{SITE}/dir/c.png", "srcset", "", ""),
        Link(f"{SITE}/dir/d.png", "srcset", "", ""),
    )


def test_only_web_urls_come_out_without_fragment_each_once(read: Reader) -> None:
    """X1, U1: what cannot be fetched is no link."""
    page = read(
        """<a href="mailto:x@y.example"><a href="javascript:void 0"><a href="http://[bad"><a href="#top">
        <a href="/x#1"><a href="/x#2"><a href=" /x\n"><a href="HTTPS://Site.Example:443/é">"""
    )
    assert urls(page) == [f"{SITE}/dir/page", f"{SITE}/x", "https://site.example/%C3%A9"]


def test_text_and_rel_are_kept_folded_and_cut(read: Reader) -> None:
    """X1: rel and anchor text kept, at most 200 characters."""
    page = read(f"<a href=1 rel=' NoFollow  UGC '> two\n <b> words</b>\t</a><a href=2>{'word ' * 100}</a>")
    assert page.links[0] == Link(f"{SITE}/dir/1", "a", "nofollow ugc", "two words")
    assert len(page.links[1].text) <= 200
    assert page.links[1].text.startswith("word word")


def test_of_several_references_the_first_anchor_that_may_be_followed_wins(read: Reader) -> None:
    """X1, X2: a URL is nofollow only where every anchor to it is."""
    page = read(
        """<link rel=canonical href=/x><a rel=nofollow href=/x>one</a><a href=/x>two</a><a href=/x>three</a>
        <a rel=nofollow href=/y>four</a><a rel=nofollow href=/y>five</a>"""
    )
    assert page.links == (Link(f"{SITE}/x", "a", "", "two"), Link(f"{SITE}/y", "a", "nofollow", "four"))


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("<base href=/other/>", f"{SITE}/other/a"),
        ("<base target=x><base href=/other/><base href=/third/>", f"{SITE}/other/a"),
        ("<base href='http://elsewhere.example/'>", "http://elsewhere.example/a"),
        ("<base href='http://[bad'>", f"{SITE}/dir/a"),
        ("<base href='data:,x'>", f"{SITE}/dir/a"),
        ("<base href='javascript:1'>", f"{SITE}/dir/a"),
        ("<base href=' DATA:,x'><base href=/second/>", f"{SITE}/dir/a"),
        ("<base href='java\nscript:1'><base href=/second/>", f"{SITE}/dir/a"),
    ],
)
def test_base_element(read: Reader, base: str, expected: str) -> None:
    """X1: the first base with href counts if it can be used, for links before it too."""
    assert urls(read(f"{base}<a href=a>"), "a") == [expected]
    assert urls(read(f"<a href=a>{base}"), "a") == [expected]


def test_what_browsers_do_not_show_is_not_read(read: Reader) -> None:
    """X1: comments, scripts, templates hide links; noscript and declarative shadow roots do not."""
    page = read(
        """<!-- <a href=comment> --><script>"<a href=script>"</script><textarea><a href=textarea></textarea>
        <template><a href=template></a><template><a href=inner></a></template></template>
        <div><template shadowrootmode=open><a href=shadow></a></template></div>
        <noscript><a href=noscript></a></noscript><svg><a href=svg></a></svg>"""
    )
    assert urls(page) == [f"{SITE}/dir/shadow", f"{SITE}/dir/noscript", f"{SITE}/dir/svg"]


def test_canonical_and_hreflang_from_page_and_header(read: Reader) -> None:
    """X2: those of the page win; a header counts where the page says nothing."""
    html = "<link rel=canonical href=/c#x><link rel=canonical href=/d><link rel=alternate hreflang=de href=/de>"
    headers = ('</h>; rel="canonical"', "</fr>; rel=alternate; hreflang=fr, </s>; rel=stylesheet")
    page = read(html, link_headers=headers)
    assert page.canonical == f"{SITE}/c"
    assert page.hreflang == (("de", f"{SITE}/de"), ("fr", f"{SITE}/fr"))
    assert read("", link_headers=headers).canonical == f"{SITE}/h"
    assert read("<link rel=canonical href='mailto:x'>").canonical == ""


def test_directives_from_page_and_header(read: Reader) -> None:
    """X2: meta robots and X-Robots-Tag together, for our agent."""
    page = read("<meta name=ROBOTS content=noindex><meta name=Nephila content=nofollow>", robots_tags=["noarchive"])
    assert page.directives == Directives(nofollow=True, noindex=True, noarchive=True)
    assert read("<meta name=robots>").directives == Directives()


def test_title_and_language(read: Reader) -> None:
    """X5: the document's own title, not that of a picture in it."""
    page = read("<html lang=de-AT><svg><title>icon</title></svg><title> The\n title </title><title>Other</title>")
    assert (page.title, page.language) == ("The title", "de-AT")
    assert read("<meta http-equiv=content-language content=fr>").language == "fr"
    assert read("<meta http-equiv=content-language content='fr, en'>").language == ""


def test_charset_is_decided_and_used() -> None:
    """X1: any charset."""
    body = "<meta charset=koi8-r><title>Привет</title><a href=/>мир</a>".encode("koi8-r")
    page = parse_html(body, f"{SITE}/", "text/html", agent="nephila")
    assert (page.charset, page.title, page.links[0].text) == ("KOI8-R", "Привет", "мир")


def test_only_the_first_bytes_are_parsed(read: Reader) -> None:
    """X1, Q5: a size cap."""
    assert urls(read("<a href=1></a><a href=2></a>", max_bytes=16)) == [f"{SITE}/dir/1"]


@pytest.mark.parametrize("url", ["", "not a url", "about:blank", "http://[", "\ud800"])
def test_page_with_a_useless_url_keeps_its_absolute_links(url: str) -> None:
    """X1, Q5: no URL is an error."""
    page = parse_html(b"<a href=relative><a href='http://x.example/'>", url, "", agent="nephila")
    assert urls(page) == ["http://x.example/"]


HTML_PIECES = st.sampled_from(
    [
        "<a", "href=x>", "</a>", "<b>", "</b>", "<p>", "<table>", "<tr>", "<td>", "</table>", "<template>",
        "</template>", "<svg>", "<math>", "<title>", "</title>", "<base", "href=", "'", '"', ">", "<", "/", "&",
        "&#xD800;", "&#0;", "<!--", "-->", "<script>", "</script>", "<select>", "<option>", "<frameset>",
        "<meta", "http-equiv=refresh",
        "content=0;url=y>", "<link", "rel=canonical", "\x00", "é", "😀", "<![CDATA[", "]]>", "<plaintext>", "<form>",
        "<body", "x=1>", "<html", "y=2>", "<textarea>", "<img", "srcset=", "<object>", "<noscript>",
    ]
)  # fmt: skip


@given(st.lists(HTML_PIECES, max_size=60).map(" ".join))
@settings(max_examples=200, deadline=None)
def test_any_heap_of_tags_gives_a_page(html: str) -> None:
    """X1, Q5: never an exception; only http(s), no fragment, each once."""
    page = parse_html(html.encode(), f"{SITE}/dir/", "text/html", agent="nephila", images=True)
    assert len(set(urls(page))) == len(page.links)
    assert all(url.startswith(("http://", "https://")) and "#" not in url for url in urls(page))


@given(st.binary(max_size=600), st.text(max_size=30), st.text(max_size=30))
@settings(max_examples=200, deadline=None)
def test_any_bytes_url_and_header_give_a_page(body: bytes, url: str, content_type: str) -> None:
    """X1, Q5: never an exception."""
    assert parse_html(body, url, content_type, agent="x", robots_tags=[url], link_headers=[url]).url == url
