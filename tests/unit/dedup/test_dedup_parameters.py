"""Queries taken apart, and what is found on a page whatever its parameters are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.dedup.parameters import Place, content_name, missing, names_in, places, without
from nephila.model.page import Directives, Link, Page

BASE = "http://a.example/x"
NAMES = st.sampled_from("abcdef")
QUERIES = st.lists(st.tuples(NAMES, st.text("0123456789", max_size=3)), max_size=6).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)
)


def page(*links: str, text: bytes = b"text....", words: str = "more") -> Page:
    found = tuple(Link(link, "a", "", words) for link in links)
    return Page(BASE, BASE, "utf-8", "", found, Directives(), text_hash=text)


def test_each_parameter_has_a_place() -> None:
    """T3: the URL without it."""
    assert places(f"{BASE}?a=1&b=2", ["c", "a"]) == [
        Place("a", "a=1", f"{BASE}?b=2"),
        Place("b", "b=2", f"{BASE}?a=1"),
        Place("c", None, f"{BASE}?a=1&b=2"),
    ]
    assert places(BASE, ["c"]) == [Place("c", None, BASE)]
    assert places(f"{BASE}?a=1&a=2") == [], "a repeated parameter is a list"
    assert places(f"{BASE}?a=1") == [Place("a", "a=1", BASE)]


@given(QUERIES, st.sets(NAMES))
def test_without_leaves_the_rest_as_it_was(query: str, names: set[str]) -> None:
    """T3: in order, with its values."""
    url = f"{BASE}?{query}" if query else BASE
    shorter = without(url, frozenset(names))
    assert names_in(shorter) == [name for name in names_in(url) if name not in names]
    assert without(shorter, frozenset(names)) == shorter


@pytest.mark.parametrize(
    ("shorter", "names"),
    [
        (f"{BASE}?b=2", ["a"]),
        (BASE, ["a", "b"]),
        (f"{BASE}?a=1&b=2", []),
        (f"{BASE}?b=3", []),
        (f"{BASE}?c=3", []),
        ("http://a.example/y", []),
        ("http://a.example/", []),
    ],
)
def test_what_a_shorter_url_leaves_out(shorter: str, names: list[str]) -> None:
    """D4: only where that is the whole difference."""
    assert missing(f"{BASE}?a=1&b=2", shorter) == names


def test_a_session_in_every_link_does_not_make_another_page() -> None:
    """T3: wherever in the query it stands, and where it is missing."""
    names = frozenset({"s"})
    forms = [
        page("http://a.example/1", "http://a.example/2?k=v", "http://a.example/3?k=v&l=w"),
        page("http://a.example/1?s=x", "http://a.example/2?k=v&s=x", "http://a.example/3?k=v&s=x&l=w"),
        page("http://a.example/1?s=yy", "http://a.example/2?s=yy&k=v", "http://a.example/3?s=yy&k=v&l=w"),
    ]
    assert len({content_name(form, names) for form in forms}) == 1
    assert len({content_name(form, frozenset()) for form in forms}) == 3
    assert content_name(page("http://a.example/?xs=1"), names) != content_name(page("http://a.example/?xs=2"), names)


def test_a_list_of_other_links_is_another_page() -> None:
    """T3: though its text is the same; and so is one whose links have other words."""
    first, second = page("http://a.example/1"), page("http://a.example/2")
    assert content_name(first, frozenset({"page"})) != content_name(second, frozenset({"page"}))
    assert content_name(first, frozenset()) != content_name(page("http://a.example/1", words="else"), frozenset())
    assert content_name(page(text=b""), frozenset()) == b"", "no text, no name"
