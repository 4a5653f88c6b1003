"""Nouns that are made in C are those that Python makes."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pytest

from nephila.model.exchange import Fetched
from nephila.model.noun import noun, quick
from nephila.model.page import Link
from nephila.parse import parse_html


def _failing() -> str:
    raise ValueError("no default today")


@noun
class Made:
    """In C, where the extension is there."""

    first: int
    second: str = "b"
    third: list[int] = field(default_factory=list)
    memo: dict[str, str] = field(default_factory=dict, init=False, compare=False)


@dataclass(slots=True, unsafe_hash=True)
class Written:
    """In Python."""

    first: int
    second: str = "b"
    third: list[int] = field(default_factory=list)
    memo: dict[str, str] = field(default_factory=dict, init=False, compare=False)


@quick
class Pair(NamedTuple):
    """In C, where the extension is there."""

    left: int
    right: int = 2


class PlainPair(NamedTuple):
    """In Python."""

    left: int
    right: int = 2


def told(make: Callable[..., Any], *given: Any, **named: Any) -> str:
    """What comes of a call, its class's name apart."""
    try:
        return repr(make(*given, **named)).partition("(")[2]
    except TypeError as error:
        return str(error).partition("(")[2]


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1,), {}),
    ((1, "x"), {}),
    ((1, "x", [3]), {}),
    ((1, "x", [3], {}), {}),
    ((), {"first": 1}),
    ((), {"third": [1], "first": 2}),
    ((1,), {"third": [1], "second": "y"}),
    ((1,), {"first": 1}),
    ((1,), {"memo": {}}),
    ((1,), {"other": 1}),
    ((), {"left": 4}),
    ((), {"right": 4}),
    ((5,), {"right": 4}),
    ((5,), {"left": 4}),
]


@pytest.mark.parametrize(("given", "named"), CALLS)
@pytest.mark.parametrize(("quickened", "plain"), [(Made, Written), (Pair, PlainPair)])
def test_a_noun_is_made_and_refused_as_python_does(
    quickened: Callable[..., Any], plain: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """Q1: the same arguments give the same fields, or the same complaint."""
    assert told(quickened, *given, **named) == told(plain, *given, **named)


def test_names_that_are_not_the_very_same_text_are_understood() -> None:
    """Q1: a name that was put together is another object than the one in the source."""
    assert told(Made, **{"first ".strip(): 7}) == told(Written, first=7)
    assert told(Pair, **{"left ".strip(): 7}) == told(PlainPair, left=7)


def test_defaults_are_made_anew_for_each() -> None:
    """Q1: what one has written into its list is not in another's."""
    one, other = Made(1), Made(1)
    one.third.append(1)
    one.memo["a"] = "b"
    assert (other.third, other.memo) == ([], {})
    assert one != other


def test_a_derived_class_is_its_own() -> None:
    """Q1: what is derived from a noun is made by its own constructor."""

    class Derived(Made):
        def __init__(self, first: int) -> None:
            super().__init__(first * 2)
            self.more = first

    assert (Derived(2).first, Derived(2).more) == (4, 2)


def test_what_a_default_raises_is_raised() -> None:
    """Q1: no half of a noun is left behind."""

    @noun
    class Fragile:
        first: int
        second: str = field(default_factory=_failing)

    with pytest.raises(ValueError, match="no default today"):
        Fragile(1)
    assert Fragile(1, "x").second == "x"


def test_a_noun_that_does_more_when_it_is_made_does_so() -> None:
    """Q1: a constructor with something of its own to do is left as it is."""

    @noun
    class Sum:
        first: int
        total: int = field(init=False)

        def __post_init__(self) -> None:
            self.total = self.first + 1  # type: ignore[misc]  # frozen to others

    assert Sum(1).total == 2


def test_nouns_are_copied_and_sent() -> None:
    """Q1: copies, changed copies and those that went through a pipe are equal."""
    answer = Fetched("http://a.test/", b"", b"", b"", 200, (("etag", "x"),), b"", "127.0.0.1", 1, 2, 3)
    assert answer.header("etag") == "x"
    for other in (copy.copy(answer), replace(answer), pickle.loads(pickle.dumps(answer))):  # noqa: S301 - our own
        assert other == answer
    assert replace(answer, status=404).status == 404
    assert Pair(1)._replace(left=3) == Pair._make((3, 2)) == (3, 2)


def test_equal_nouns_have_equal_hashes_whoever_made_them() -> None:
    """Q1: tuples keep their hash since Python 3.14; one that is filled in C must not keep that of an empty place."""
    made = [Pair(1, 5), Pair._make((1, 5)), Pair(left=1, right=5), PlainPair(1, 5)]
    assert {hash(one) for one in made} == {hash((1, 5))}
    page = parse_html(b"<a href=/a>a</a><a href=/b>b</a>", "http://a.test/", "text/html", agent="x")
    assert len(page.links) == 2
    for link in page.links:
        assert (type(link), hash(link)) == (Link, hash(tuple(link)))


def test_nothing_is_left_behind() -> None:
    """Q3: nouns that are made and refused hold on to nothing."""
    given = object()
    before = sys.getrefcount(given)
    for _ in range(100):
        Made(given, third=[])  # type: ignore[arg-type]
        Pair(left=given)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            Made(given, first=given)  # type: ignore[misc, arg-type]
        with pytest.raises(TypeError):
            Pair(given, given, given)  # type: ignore[call-arg, arg-type]
    gc.collect()
    assert sys.getrefcount(given) == before
