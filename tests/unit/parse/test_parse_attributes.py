from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.parse.attributes import HeaderLink, header_links, refresh_url, srcset_urls


@pytest.mark.parametrize(
    ("value", "urls"),
    [
        ("a.png", ["a.png"]),
        ("a.png 1x, b.png 2x", ["a.png", "b.png"]),
        ("a.png, b.png", ["a.png", "b.png"]),
        ("a,b.png 100w,c.png", ["a,b.png", "c.png"]),
        (" , a.png (1x, 2x) , b.png", ["a.png", "b.png"]),
        ("data:image/png;base64,AAAA 1x, b.png 2x", ["data:image/png;base64,AAAA", "b.png"]),
        ("a\xa0b.png\u2003 1x,\tc.png", ["a\xa0b.png\u2003", "c.png"]),
        ("", []),
        (" , ", []),
    ],
)
def test_srcset(value: str, urls: list[str]) -> None:
    """X1: images of srcset, as the HTML standard splits it."""
    assert srcset_urls(value) == urls


@pytest.mark.parametrize(
    ("content", "url"),
    [
        ("0;url=/next", "/next"),
        ("5; URL = '/next' x", "/next"),
        ('0, "a b"', "a b"),
        ("0 /next", "/next"),
        (".5; next", "next"),
        ("0;url=\"/un'ended", "/un'ended"),
        ("900", None),
        ("900;", None),
        ("5;urls.html", "urls.html"),
        ("5; url", "url"),
        ("5; url =", None),
        ("5url=/x", None),
        ("0;\t\n\f\rurl\t=\n'/next'", "/next"),
        ("0;\xa0url=/x", "\xa0url=/x"),
        ("0; url=\u2003/x\xa0", "\u2003/x\xa0"),
        ("0;url= /x\x1f ", "/x"),
        ("0;\x0burl=/x", "url=/x"),
        ("\xa00;url=/x", None),
        ("0\x0b/x", None),
        ("\u0661;url=/x", None),
        ("url=/x", None),
        ("", None),
    ],
)
def test_meta_refresh(content: str, url: str | None) -> None:
    """X1: where a refresh leads."""
    assert refresh_url(content) == url


def test_link_header() -> None:
    """X2: canonical and hreflang may stand in a header."""
    value = '</a>; rel="Canonical", <b,c?d>; title="x, <y>"; rel=alternate; hreflang="de", <e>; rel="next", <f>'
    assert list(header_links(value)) == [
        HeaderLink("/a", "canonical", ""),
        HeaderLink("b,c?d", "alternate", "de"),
        HeaderLink("e", "next", ""),
        HeaderLink("f", "", ""),
    ]


@given(st.text(alphabet="<>\"';,=\\ urlrel01x.()\n"))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(value: str) -> None:
    """X1, Q5: never an exception, and what comes out was in there."""
    assert all(url in value for url in srcset_urls(value))
    assert (refresh_url(value) or "") in value
    assert all(link.href in value for link in header_links(value))


@pytest.mark.parametrize("piece", ["<", "<a>;", '<a>"', "a ", "(", ",", "a,(", "0", " ", '<a>; b="\\'])
def test_long_values_take_no_more_than_linear_time(piece: str) -> None:
    """X1, Q5: sixty thousand hostile characters are read at once (a quadratic reader would need minutes)."""
    value = piece * (60_000 // len(piece))
    srcset_urls(value)
    refresh_url(value)
    list(header_links(value))
