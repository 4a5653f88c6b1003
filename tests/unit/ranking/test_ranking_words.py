"""Sorted names: C and Python say the same."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.native import AVAILABLE, native
from nephila.ranking.words import (
    NOWHERE,
    fingerprint_of,
    make_unique,
    page_name,
    places_of,
    plain_find_words,
    plain_sort_unique,
    rest_of,
)

WORDS = st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 300), st.just(2**64 - 1)), max_size=200)


@given(WORDS)
def test_words_are_sorted_and_there_once(words: list[int]) -> None:
    kept = array("Q", words)
    make_unique(kept)
    assert list(kept) == sorted(set(words))


@given(WORDS, WORDS)
def test_each_name_is_found_at_its_place(names: list[int], wanted: list[int]) -> None:
    known = sorted(set(names))
    expected = [known.index(name) if name in known else NOWHERE for name in wanted]
    assert list(places_of(array("Q", known), array("Q", wanted))) == expected


@pytest.mark.skipif(not AVAILABLE, reason="the extension was not built")
@given(WORDS, WORDS)
def test_c_and_python_agree(names: list[int], wanted: list[int]) -> None:
    one, two = array("Q", names), array("Q", names)
    assert native.sort_unique(one) == plain_sort_unique(two)
    known, asked = array("Q", sorted(set(names))), array("Q", wanted)
    assert one[: len(known)] == two[: len(known)] == known
    found, also = array("I", bytes(4 * len(asked))), array("I", bytes(4 * len(asked)))
    native.find_words(known, asked, found)
    plain_find_words(known, asked, also)
    assert found == also


@pytest.mark.skipif(not AVAILABLE, reason="the extension was not built")
def test_what_is_no_array_of_words_is_refused() -> None:
    with pytest.raises(ValueError, match="no numbers"):
        native.sort_unique(bytearray(7))
    with pytest.raises(ValueError, match="a place for each"):
        native.find_words(array("Q", [1]), array("Q", [1, 2]), array("I", [0]))


def test_many_names_are_sorted_as_few_are() -> None:
    words = array("Q", (number * 0x9E3779B97F4A7C15 % 2**64 for number in range(50_000)))
    words.extend(words[:1000])
    make_unique(words)
    assert len(words) == 50_000
    assert list(words) == sorted(words)
    assert list(places_of(words, words)) == list(range(50_000))


@given(st.binary(min_size=16, max_size=16))
def test_a_fingerprint_comes_back_from_its_halves(fingerprint: bytes) -> None:
    assert fingerprint_of(page_name(fingerprint), rest_of(fingerprint)) == fingerprint
