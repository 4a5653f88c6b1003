"""Text to URL as browsers do it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.urls import Base, resolve, resolve_location
from nephila.urls.parse import ARBITRATED

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


@pytest.mark.parametrize(
    ("href", "whole"),
    [
        ("/files/.cache/../private/x", "https://www.example.com/files/private/x"),
        ("https://www.example.com/a/.b/./c", "https://www.example.com/a/.b/c"),
        ("//other.example/a/.b/..", "https://other.example/a/"),
        ("/a/.b/../c?d=/../e#/./f", "https://www.example.com/a/c?d=/../e#/./f"),
        ("/a/\t.b/.\n./c", "https://www.example.com/a/c"),
        ("/a/.b/c?d=/../e", "https://www.example.com/a/.b/c?d=/../e"),
    ],
)
def test_no_dot_segment_is_left_behind_a_name_that_begins_with_a_dot(href: str, whole: str) -> None:
    """U1, U2, P1: a path is what the server takes it for, or a rule of robots.txt could be walked around."""
    base = Base.parse(PAGE)
    assert base is not None
    assert (base.join(href), base.join_all([href]), resolve(PAGE, href)) == (whole, [whole], whole)
    assert resolve(None, whole) == whole


def test_a_base_has_no_dot_segments_either() -> None:
    """U1: a page's own URL is read as its links are."""
    base = Base.parse("https://h.example/a/.b/../c")
    assert base is not None
    assert base.url == "https://h.example/a/c"


def test_no_number_of_links_brings_dot_segments_through() -> None:
    """U1, Q5: a page may have more of them than the exact parser is asked for; those are no addresses then."""
    base = Base.parse(PAGE)
    assert base is not None
    answers = base.join_all([f"/{number}/.a/../b" for number in range(ARBITRATED + 10)])
    assert answers[0] == "https://www.example.com/0/b"
    assert answers[-10:] == [None] * 10


@pytest.mark.parametrize("host", ["a\u0660.example", "\u03a3\u075a.example", "1\u06ef\u06ef.example"])
def test_a_name_that_breaks_the_rule_for_directions_is_no_host(host: str) -> None:
    """U1: letters of both directions in one label (RFC 5893), which the faster parser lets pass."""
    base = Base.parse(PAGE)
    assert base is not None
    assert (resolve(None, f"http://{host}/"), base.join_all([f"//{host}/x"])) == (None, [None])


def test_links_within_a_site_of_another_script_are_joined_by_the_faster_parser() -> None:
    """U1: its host was judged with the base; links to others are judged one by one."""
    base = Base.parse("https://b\u00fccher.example/a/")
    assert base is not None
    answers = base.join_all([f"{number}" for number in range(ARBITRATED + 10)])
    assert answers[-1] == f"https://xn--bcher-kva.example/a/{ARBITRATED + 9}"
    assert base.join("//m\u00fcnchen.example/x") == "https://xn--mnchen-3ya.example/x"


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
