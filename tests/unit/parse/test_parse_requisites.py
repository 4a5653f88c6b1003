"""What pages and style sheets are shown with."""

from __future__ import annotations

import time

import pytest

from nephila.model.page import Page
from nephila.parse import page_requisites, parse_html, sheet_requisites
from nephila.parse.requisites import MAX_REQUISITES
from nephila.parse.sheets import sheet_references

URL = "https://a.test/dir/page.html"


def page(body: bytes) -> Page:
    return parse_html(body, URL, "text/html; charset=utf-8", agent="Nephila/0.1")


def of_page(html: str) -> list[tuple[str, str]]:
    body = html.encode()
    return [(link.tag, link.url) for link in page_requisites(body, page(body))]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<link rel=stylesheet href=s.css>", [("link", "https://a.test/dir/s.css")]),
        ("<link rel='alternate stylesheet' href=s.css>", [("link", "https://a.test/dir/s.css")]),
        ("<link rel='shortcut icon' href=/i.ico>", [("link", "https://a.test/i.ico")]),
        ("<link rel=next href=2.html><a href=x>x</a><form action=y></form>", []),
        ("<script src=//b.test/s.js></script><script>var x</script>", [("script", "https://b.test/s.js")]),
        ("<img src=a.png srcset='b.png 1x, c.png 2x'>", [("img", f"https://a.test/dir/{n}.png") for n in "abc"]),
        ("<picture><source srcset='a.webp 1x'><img src=b.png></picture>",
         [("source", "https://a.test/dir/a.webp"), ("img", "https://a.test/dir/b.png")]),
        ("<video src=v.mp4 poster=p.jpg><track src=t.vtt></video>",
         [("video", "https://a.test/dir/v.mp4"), ("video", "https://a.test/dir/p.jpg"), ("track", "https://a.test/dir/t.vtt")]),
        ("<object data=o.svg></object><embed src=e.swf>", [("object", "https://a.test/dir/o.svg"), ("embed", "https://a.test/dir/e.swf")]),
        ("<input type=IMAGE src=i.png><input src=no.png>", [("input", "https://a.test/dir/i.png")]),
        ("<svg><image xlink:href=x.png></image><use href='sprite.svg#icon'/></svg>",
         [("image", "https://a.test/dir/x.png"), ("use", "https://a.test/dir/sprite.svg")]),
        ("<iframe src=f.html></iframe>", [("iframe", "https://a.test/dir/f.html")]),
        ("<style>@import 'i.css'; b{background:url(b.png)}</style>", [("style", "https://a.test/dir/i.css"), ("style", "https://a.test/dir/b.png")]),
        ("<style>@import'i.css'</style>", [("style", "https://a.test/dir/i.css")]),
        ("<p style='background:image-set(\"q.png\" 2x)'>x", [("style", "https://a.test/dir/q.png")]),
        ("<p style=\"background: url('q.png')\">x", [("style", "https://a.test/dir/q.png")]),
        ("<body background=bg.gif>", [("body", "https://a.test/dir/bg.gif")]),
        ("<base href=https://c.test/x/><img src=a.png>", [("img", "https://c.test/x/a.png")]),
        ("<img src=a.png><img src=a.png#b>", [("img", "https://a.test/dir/a.png")]),
        ("<img src='data:image/png;base64,xx'><img src=''><img src='javascript:x'><script src='blob:x'></script>", []),
        ("<template><img src=t.png></template><!-- <img src=c.png> --><noscript><img src=n.png></noscript>",
         [("img", "https://a.test/dir/n.png")]),
    ],
)  # fmt: skip
def test_a_page_is_shown_with_what_it_names(html: str, found: list[tuple[str, str]]) -> None:
    """X1: each URL once, against the document's base; links to other documents are none of it."""
    assert of_page(html) == found


@pytest.mark.parametrize(
    ("sheet", "found"),
    [
        ("a{background:url(b.png)}", ["b.png"]),
        ("a{background:URL( 'b c.png' )}", ["b c.png"]),
        ('@import "x.css";@import url(y.css) screen;@IMPORT url("z.css");', ["x.css", "y.css", "z.css"]),
        ("@font-face{src:url(f.woff2) format('woff2'),url(\"f.woff\")}", ["f.woff2", "f.woff"]),
        ("/* url(no.png) */a{b:url(yes.png)}/* @import 'no.css'", ["yes.png"]),
        (r"a{b:url(a\ b.png);c:url('it\'s.png');d:url('\66 oo.png')}", ["a b.png", "it's.png", "foo.png"]),
        ("a{b:url(data:image/png;base64,xx);c:url( DATA:x );d:url();e:url(   )}", []),
        ("a{b:url('never closed.png) c:url(d.png)", ["d.png"]),
        ("a{b:url(", []),
        ("", []),
        ("@import\"a.css\";@import'b.css';@import/* c */\"d.css\";@imported \"no.css\";", ["a.css", "b.css", "d.css"]),
        ('a{b:image-set("a.png" 1x, url(b.png) 2x, url( "c.png" ) 3x, "d.avif" type("image/avif") 4x);c:"no"}',
         ["a.png", "b.png", "c.png", "d.avif"]),
        ("a{b:-webkit-image-set('a.png' 1x);c:image-set(linear-gradient('no') 1x,'b.png' 2x)}", ["a.png", "b.png"]),
        ('a{b:image-set("a.png" 1x;c:"no"}d{e:"no"}', ["a.png"]),
        ('a::before{content:"/*"} b{background:url(/x.png)} c{d:"*/"}', ["/x.png"]),
        ('a{b:url("http://x/*y*/z.png");c:url(http://x/*y*/w.png)}', ["http://x/*y*/z.png", "http://x/*y*/w.png"]),
        ("/* it's \" url(no.png) */a{b:'/* \\' url(no.png)';c:url(yes.png)}", ["yes.png"]),
        (r"a{b:url(/bg\32 .png);c:url('/bg\32 .png');d:url(\62\67.png)}", ["/bg2.png", "/bg2.png", "bg.png"]),
        ("a{b:'never closed\n;c:url(d.png)}/* don't */e{f:url('g.png')}", ["d.png", "g.png"]),
        ("a{b:url(c d'.png);e:url(f.png)}", ["c", "f.png"]),
    ],
)  # fmt: skip
def test_a_sheet_loads_what_it_names(sheet: str, found: list[str]) -> None:
    """X1: in strings and without, comments and data aside."""
    assert list(sheet_references(sheet)) == found


def test_what_a_sheet_loads_is_relative_to_itself() -> None:
    """X1: not to the page that it belongs to; in its own encoding."""
    body = '@charset "utf-8";a{b:url(../i/ä.png)}b{c:url(#inside)}'.encode()
    found = sheet_requisites(body, "https://cdn.test/css/s.css", "text/css; charset=utf-8")
    assert [link.url for link in found] == ["https://cdn.test/i/%C3%A4.png"]


def test_what_one_page_may_name_is_bounded() -> None:
    """Q5: a million pictures are no more work for others than some thousand."""
    assert len(of_page("".join(f"<img src={n}.png>" for n in range(MAX_REQUISITES + 100)))) == MAX_REQUISITES


@pytest.mark.parametrize(
    "shape",
    ["url('", "url(", '@import "', "/*", "url(\\", 'url("\\', "url( " * 3, "@import ", "@import/*", "url(a", "url(\\(",
     '"\\"', "\"'", '"/*\\*/\\"', "'\n", "image-set(", 'image-set("a"(', "image-set(url("],
)  # fmt: skip
def test_no_shape_of_sheet_takes_more_than_its_size(shape: str) -> None:
    """Q5: ten times the sheet takes some ten times the time, not a hundred."""

    def taken(count: int) -> float:
        began = time.process_time()
        for _ in sheet_references(shape * count + ")"):
            pass
        return time.process_time() - began

    taken(2_000)
    assert min(taken(100_000) for _ in range(3)) < 40 * max(min(taken(10_000) for _ in range(3)), 0.0005)
