"""The links of a page in their packed form against the same as a tuple of nouns."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.model.page import Link
from nephila.native import native
from nephila.parse import parse_html
from nephila.parse.html import plainly_resolved
from nephila.parse.scan import native_read, native_scan
from nephila.pipeline.outlinks import outlinks, plain_outlinks
from nephila.store.metadata import _outlink_lines
from nephila.urls.parse import Base

URL = "https://www.example.org/a/b/c.html?q=1#top"
HREFS = (
    *("", "/", "#x", "?y=1", "d.html", "./d.html", "../b/d.html", "/a/b/d.html#e", "//cdn.test", "//cdn.test/x"),
    *("https://www.example.org/a/b/d.html", "http://b.test", "mailto:x", "http://[", "é/ü", "/a b", "HTTP://B.test/"),
    *("/a/b/c.html?q=1", "^", "%2e%2e/x", "javascript:void(0)", "https://user@b.test/", "/\u65e5\u672c#\u65e5"),
)
elements = st.lists(
    st.tuples(
        st.sampled_from(HREFS),
        st.sampled_from(("a", "area", "link", "iframe")),
        st.sampled_from(("", "nofollow", "next", "NoFollow\tugc", "x\u00a0", "\u00a0", "alternate")),
        st.sampled_from(("", "text", "über  uns", "\u65e5\u672c")),
    ),
    max_size=12,
)


def page_of(found: list[tuple[str, str, str, str]]) -> bytes:
    """A page that refers to these."""
    pieces = ["<!doctype html><meta charset=utf-8><title>x</title>"]
    for href, tag, rel, text in found:
        name = "src" if tag == "iframe" else "href"
        closing = f"{text}</{tag}>" if tag in {"a", "iframe"} else ""
        pieces.append(f'<{tag} {name}="{escape(href)}" rel="{escape(rel)}" alt="{escape(text)}">{closing}')
    return "".join(pieces).encode()


def read(body: bytes) -> tuple[Sequence[Link] | None, tuple[Link, ...]]:
    """Packed, and by way of the references."""
    base = Base.parse(URL)
    assert base is not None
    return native_read(body, base.url, base.join)[1], plainly_resolved(native_scan(body).findings, base)


@given(elements)
def test_links_that_are_packed_are_those_that_are_not(found: list[tuple[str, str, str, str]]) -> None:
    """U1, X1: in the same order, with the same rel and text, each URL once."""
    packed, plain = read(page_of(found))
    assert packed is not None
    assert len(packed) == len(plain)
    assert packed == plain
    assert tuple(packed) == plain
    assert all(type(link) is Link for link in packed)


@given(elements)
def test_outlinks_of_packed_links_are_those_of_others(found: list[tuple[str, str, str, str]]) -> None:
    """W1: the lines of the metadata record are the same bytes, whether strings were made of them before or not."""
    body = page_of(found)
    packed, plain = read(body)
    again, _ = read(body)
    assert packed is not None
    assert again is not None
    assert _outlink_lines(outlinks(packed)) == _outlink_lines(plain_outlinks(plain))
    assert outlinks(again) == plain_outlinks(plain)


def test_packed_links_are_like_a_tuple() -> None:
    """X1: whoever is handed them need not know."""
    packed, plain = read(page_of([("1", "a", "", "one"), ("2", "a", "nofollow", "two"), ("3", "area", "", "three")]))
    assert packed is not None
    assert isinstance(packed, Sequence) or hasattr(packed, "__getitem__")
    for part in (slice(1, None), slice(-2, None), slice(None, None, -1), slice(5, 9), slice(None, None, 2)):
        assert packed[part] == plain[part]
    assert (packed[0], packed[-1], packed[True]) == (plain[0], plain[-1], plain[1])
    for wrong in (3, -4, 2**70):
        with pytest.raises(IndexError):
            packed[wrong]
    with pytest.raises(TypeError):
        packed["1"]  # type: ignore[call-overload]  # on purpose
    assert hash(packed) == hash(plain)
    assert repr(packed) == repr(plain)
    assert packed != plain[1:]
    assert packed == copy.deepcopy(packed)
    assert plain[1] in packed
    assert bool(packed)
    assert pickle.loads(pickle.dumps(packed)) == plain  # noqa: S301 - our own bytes
    with pytest.raises(IndexError):
        packed[3]
    nothing, _ = read(b"")
    assert nothing is not None
    assert not nothing
    assert nothing == ()
    assert not list(nothing)


@pytest.mark.parametrize("body", [b"<base href=/x/><a href=1>", b"<a href=1><div></a>x\0", b"<frameset><frame src=x>"])
def test_what_is_not_relative_to_the_page_itself_is_resolved_later(body: bytes) -> None:
    """X1: with a base element, or where tags leave a doubt, references are told as they were written."""
    assert read(body)[0] is None
    assert type(parse_html(body, URL, "text/html", agent="x").links) is tuple


def test_reading_a_page_wants_all_that_it_calls() -> None:
    """X1: a wrong call is refused, and what a reader raises goes on."""
    with pytest.raises(TypeError, match="read_page"):
        native.read_page(b"", False, str, list, "", str, bool, str)  # type: ignore[arg-type]  # on purpose

    def broken(_: str) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        native_read("<a href=é>".encode(), "http://a.test/", broken)
    assert native.outlink_lines(("http://a.test/ a",)) is None
