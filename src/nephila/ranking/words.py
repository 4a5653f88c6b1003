"""Names as numbers of 64 bits, in flat arrays: sorted, each once, found again (R3).

A page is named by the first half of its fingerprint, a domain by a hash of its spelling. Ten million of them make an
array of 80 MB, where a dictionary would take a gigabyte. Two names among ten million pages are the same once in some
four hundred thousand crawls; then the two pages count as one.

The twins of `native/ranking.c`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Final, TypeAlias

from xxhash import xxh3_64_intdigest

from nephila.native import AVAILABLE, native

Words: TypeAlias = "array[int] | memoryview[int]"
"""An array of numbers, or a part of a mapped file."""

NOWHERE: Final = 0xFFFF_FFFF
"""The number of what is not there."""


def page_name(fingerprint: bytes) -> int:
    """What a page is called in the graph."""
    return int.from_bytes(fingerprint[:8], "little")


def rest_of(fingerprint: bytes) -> int:
    """The half of a fingerprint that the name leaves out."""
    return int.from_bytes(fingerprint[8:16], "little")


def fingerprint_of(name: int, rest: int) -> bytes:
    """The fingerprint of a page by both halves."""
    return name.to_bytes(8, "little") + rest.to_bytes(8, "little")


def text_name(text: str) -> int:
    """What a domain, or a file of the archive, is called."""
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


def plain_sort_unique(words: array[int]) -> int:
    """Sort in place; those that are different stand in front. How many they are."""
    once = sorted(set(words))
    words[: len(once)] = array("Q", once)
    return len(once)


def plain_find_words(names: Words, wanted: Words, places: array[int]) -> None:
    """Write to `places` where each wanted name stands among sorted ones, or `NOWHERE`."""
    count = len(names)
    for at, name in enumerate(wanted):
        place = bisect_left(names, name)
        places[at] = place if place < count and names[place] == name else NOWHERE


_sort_unique = native.sort_unique if AVAILABLE else plain_sort_unique
_find_words = native.find_words if AVAILABLE else plain_find_words


def make_unique(words: array[int]) -> None:
    """Sort an array and leave each word in it once."""
    del words[_sort_unique(words) :]


def places_of(names: Words, wanted: Words) -> array[int]:
    """Where each wanted name stands among sorted ones, or `NOWHERE`."""
    places = array("I", bytes(4 * len(wanted)))
    _find_words(names, wanted, places)
    return places
