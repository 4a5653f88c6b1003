"""Text to URL as browsers do it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.urls import Base, resolve, resolve_location

PAGE = "https://www.example.com/a/b/c.html?x=1#top"


@pytest.mark.parametrize(
    ("href", "whole"),
    [
        ("d.html", "https://www.example.com/a/b/d.html"),
        ("../d", "https://www.example.com/a/d"),
        ("../../../../d", "https://www.example.com/d"),
        ("/d", "https://www.example.com/d"),
        ("//other.example/d", "https://other.example/d"),
        ("?y", "https://www.example.com/a/b/c.html?y"),
        ("", "https://www.example.com/a/b/c.html?x=1"),
        ("#f", "https://www.example.com/a/b/c.html?x=1#f"),
        (" \t/d\n ", "https://www.example.com/d"),
        ("/d\ne", "https://www.example.com/de"),
        ("\\d\\e", "https://www.example.com/d/e"),
        ("HTTP:\\\\OTHER.example", "http://other.example/"),
        ("https:d", "https://www.example.com/a/b/d"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://u:p@h:80/", "http://u:p@h/"),
        ("/a b?c d'", "https://www.example.com/a%20b?c%20d%27"),
        ("mailto:a@b.example", "mailto:a@b.example"),
    ],
)
def test_a_link_means_what_a_browser_makes_of_it(href: str, whole: str) -> None:
    """U1: relative links against the base, by the WHATWG rules."""
    assert resolve(PAGE, href) == whole


@pytest.mark.parametrize("href", ["http://", "//", "http://exa mple/", "http://h:99999/", "http://[::1"])
def test_what_cannot_be_parsed_is_none(href: str) -> None:
    """U1: failure is a value."""
    assert resolve(PAGE, href) is None


def test_without_a_base_a_link_must_be_absolute() -> None:
    """U1: no base is guessed."""
    assert resolve(None, "d.html") is None
    assert resolve("d.html", "http://h/") is None
    assert Base.parse("d.html") is None


@pytest.mark.parametrize(
    ("href", "whole"),
    [
        ("http://h/a^b", "http://h/a%5Eb"),
        ("http://h/?a^b", "http://h/?a^b"),
        ("http://FA\u1e9e.example/", "http://xn--fa-hia.example/"),
        ("http://xn--a/", "http://xn--a/"),
    ],
)
def test_where_the_fast_parser_lags_behind_the_standard_the_exact_one_decides(href: str, whole: str) -> None:
    """U1: the letter of the standard, whichever library is asked first."""
    base = Base.parse(PAGE)
    assert base is not None
    assert resolve(None, href) == whole
    assert base.join(href) == whole
    assert base.join_all(["x", href]) == ["https://www.example.com/a/b/x", whole]


def test_a_base_that_only_the_exact_parser_takes_joins_all_the_same() -> None:
    """U1: the base's own host may be the difficult one."""
    base = Base.parse("http://xn--a/dir/")
    assert base is not None
    assert base.join("x") == "http://xn--a/dir/x"
    assert base.join_all(["x", "http://"]) == ["http://xn--a/dir/x", None]


def test_lone_surrogates_become_replacement_characters() -> None:
    """U1: what the HTML parser may hand over is text for a browser too."""
    assert resolve(PAGE, "\ud800x") == "https://www.example.com/a/b/%EF%BF%BDx"
    assert resolve(None, "http://h/\udfff") == "http://h/%EF%BF%BD"


def test_a_location_header_is_read_as_utf_8_where_it_is() -> None:
    """H2: redirect targets as browsers read them."""
    assert resolve_location("http://h/", "/\xc3\xbc") == "http://h/%C3%BC"
    assert resolve_location("http://h/", "/\xfc") == "http://h/%C3%BC"
    assert resolve_location("http://h/", "/\u20ac") == "http://h/%E2%82%AC"


@given(st.lists(st.text(st.characters(), max_size=40), max_size=8))
@settings(max_examples=200, deadline=None)
def test_joining_many_is_joining_each(hrefs: list[str]) -> None:
    """U1: no text raises, and the sweep over a page gives what each link alone gives."""
    base = Base.parse(PAGE)
    assert base is not None
    assert base.join_all(hrefs) == [resolve(PAGE, href) for href in hrefs]
