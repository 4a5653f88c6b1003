"""What two texts are compared by without having them at hand: a SimHash, a sketch, a number of words (D3).

The SimHash finds candidates: it can be looked up by parts. The sketch decides: it tells what share of the three-word
runs of two texts is common. Both are needed, because a SimHash of 64 bits alone takes texts with the same frame of
words for the same text.
"""

from __future__ import annotations

from operator import eq, or_
from typing import NamedTuple

from .noun import quick

MAX_DISTANCE = 6
"""Bits in which the SimHashes of near duplicates differ at most (D3)."""
LEAST_RESEMBLANCE = 0.6
"""Of near duplicates. In the labelled pairs of the test material all but one have 0.70 and more, other pairs at most
0.41; among honest short pages of the simulated web a few come close to 0.55."""


@quick
class Likeness(NamedTuple):
    """What a text is compared by."""

    simhash: int = 0
    sketch: bytes = b""
    """For each of 64 parts of all three-word runs, which one of the text's is the least; empty for a text that is too
    short to be compared."""
    words: int = 0
    """Words of the main text."""


def distance(one: Likeness, other: Likeness) -> int:
    """Bits in which two SimHashes differ."""
    return (one.simhash ^ other.simhash).bit_count()


def resemblance(one: bytes, other: bytes) -> float:
    """The share of three-word runs that two texts have in common, estimated; 0.0 for texts too short to be compared."""
    equal = list(map(eq, one, other))
    neither = bytes(map(or_, one, other)).count(0)
    parts = len(equal) - neither
    return (equal.count(True) - neither) / parts if parts else 0.0


def is_near_duplicate(one: Likeness, other: Likeness) -> bool:
    """Whether two texts say the same, but for a few words; never true of texts that are too short to be compared."""
    return distance(one, other) <= MAX_DISTANCE and resemblance(one.sketch, other.sketch) >= LEAST_RESEMBLANCE
