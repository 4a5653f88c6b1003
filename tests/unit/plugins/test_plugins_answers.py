"""What plugins return is checked, bounded and made plain."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_plugins import Favours, Hook, KeepsOut, Lengths, Seeds

from nephila.model.errors import UsageError
from nephila.model.page import Link
from nephila.model.plugin import Extract, RequestAdvice
from nephila.plugins.answers import (
    BadAnswerError,
    Plain,
    advice_of,
    extract_of,
    plain,
    points_given,
    seeds_of,
    verdicts_of,
)
from nephila.plugins.headers import objection
from nephila.plugins.loading import load_plugins, read_options
from nephila.plugins.points import Point, name_of, points_of

LINK = Link("https://a.test/x", "pdf", "", "text")


def crossed(values: Plain) -> Plain:
    """Plain values as they come out of another process."""
    found: Plain = msgspec.msgpack.decode(msgspec.msgpack.encode(values))
    return found


def test_what_is_well_returned_crosses_as_it_was() -> None:
    """E1: extracts, advice, verdicts, points and seeds come back as they were given."""
    extract = Extract((LINK,), "title", "en", (("a", "b"),), (("links", 1),), "repaired")
    assert extract_of(crossed(plain(Point.EXTRACT, extract, 0))) == extract
    assert extract_of(crossed(plain(Point.EXTRACT, None, 0))) == Extract()
    advice = RequestAdvice((("X-One", "1"),), "no")
    assert advice_of(crossed(plain(Point.BEFORE, advice, 0))) == advice
    assert verdicts_of(crossed(plain(Point.FILTER, (True, False, "why"), 3)), 3) == [True, False, "why"]
    assert points_given(crossed(plain(Point.SCORE, [5, -500], 2)), 2) == [5, -100]
    assert seeds_of(crossed(plain(Point.SEEDS, ["a.test"], 0))) == ["a.test"]


@pytest.mark.parametrize(
    ("point", "answer"),
    [
        (Point.FILTER, [True]),
        (Point.FILTER, [True, True, True]),
        (Point.FILTER, [True, 3]),
        (Point.FILTER, None),
        (Point.FILTER, "ab"),
        (Point.SCORE, [1.5, 2]),
        (Point.SCORE, [True, 2]),
        (Point.EXTRACT, {"links": []}),
        (Point.EXTRACT, Extract(links=("https://a.test/",))),  # type: ignore[arg-type]
        (Point.EXTRACT, Extract(title=3)),  # type: ignore[arg-type]
        (Point.EXTRACT, Extract(fields=(("a",),))),  # type: ignore[arg-type]
        (Point.SEEDS, "https://a.test/"),
        (Point.SEEDS, [1]),
        (Point.BEFORE, RequestAdvice((("a", 1),))),  # type: ignore[arg-type]
        (Point.BEFORE, "veto"),
    ],
)
def test_nonsense_is_told_as_such(point: Point, answer: object) -> None:
    """E1: an answer of another shape is a failure of the plugin, with a sentence."""
    with pytest.raises(BadAnswerError, match=r"."):
        plain(point, answer, 2)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
        lambda inner: st.lists(inner, max_size=7),
    )
)
def test_whatever_a_process_says_is_read_or_refused(values: Plain) -> None:
    """E1, Q5: a process that was taken over cannot make the crawl raise anything else."""
    for read in (extract_of, advice_of, seeds_of, lambda one: verdicts_of(one, 2), lambda one: points_given(one, 2)):
        try:
            read(values)
        except BadAnswerError:
            continue


def test_texts_that_no_file_can_hold_are_mended() -> None:
    """E1: a lone surrogate would break the archive's writer."""
    assert extract_of(plain(Point.EXTRACT, Extract(title="a\ud800b"), 0)).title == "a?b"


def test_a_plugin_is_known_by_its_methods() -> None:
    """E1: one object may stand at several points; one that stands nowhere, or a class, is refused in a sentence."""
    assert points_of(KeepsOut()) == {Point.FILTER}
    assert points_of(Hook()) == {Point.BEFORE, Point.AFTER}
    assert name_of(Favours("x")) == "favours"
    assert name_of(object()) == "object"
    for wrong in (object(), KeepsOut, 3):
        with pytest.raises(UsageError) as told:
            points_of(wrong)
        assert told.value.hint
    lengths = Lengths()
    lengths.media_types = ()  # type: ignore[assignment]
    with pytest.raises(UsageError, match="does not say what it reads"):
        points_of(lengths)
    assert points_of(Seeds()) == {Point.SEEDS}


def test_options_are_json_where_they_can_be() -> None:
    """E1: numbers, lists and texts; what is no option gets a sentence."""
    found = read_options(["a.b=3", "a.c=/news/", "a.b.d=[1]", 'x-y.e="3"'])
    assert found == {"a": {"b": 3, "c": "/news/"}, "a.b": {"d": [1]}, "x-y": {"e": "3"}}
    for wrong in ("a", "a=3", ".b=1", "a.=1", "a.b c=1"):
        with pytest.raises(UsageError, match="is no option of a plugin"):
            read_options([wrong])


def test_unknown_plugins_are_refused_in_a_sentence() -> None:
    """E1: an entry point that is not installed, and options for a plugin that is not switched on."""
    with pytest.raises(UsageError, match="there is no plugin nothing-like-it"):
        load_plugins(["nothing-like-it"], [])
    with pytest.raises(UsageError, match="options for the plugin a, which is not switched on"):
        load_plugins([], ["a.b=1"])


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("X-Purpose", "research", True),
        ("Accept-Language", "de", True),
        ("Authorization", "Basic x", False),
        ("authorization", "Basic x", False),
        ("Proxy-Authorization", "x", False),
        ("Cookie", "a=b", False),
        ("X-Api-Key", "x", False),
        ("X-Auth-Token", "x", False),
        ("User-Agent", "Other", False),
        ("Host", "other.test", False),
        ("If-None-Match", "x", False),
        ("Range", "bytes=0-1", False),
        ("X-Forwarded-For", "1.2.3.4", False),
        ("Transfer-Encoding", "chunked", False),
        ("X-Two\r\nCookie", "x", False),
        ("X-Three", "a\r\nCookie: b", False),
        ("", "x", False),
    ],
)
def test_hooks_add_no_credentials_and_nothing_of_ours(name: str, value: str, *, allowed: bool) -> None:
    """E1, K4, P6: what a fetch hook may add."""
    assert (objection(name, value, credentials=False) == "") is allowed


def test_credentials_only_where_a_setting_allows_them() -> None:
    """E1, K4: allowed ones are still no way to say who we are."""
    assert objection("Authorization", "Basic x", credentials=True) == ""
    assert objection("Proxy-Authorization", "Basic x", credentials=True)
    assert objection("User-Agent", "Other", credentials=True)
