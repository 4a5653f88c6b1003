"""Chance without state: every draw is a function of the web's seed and of what is drawn for.

Nothing is remembered between draws, so that page 1,999,999 of a host can be made without making the others first, and
comes out the same whoever asks, whenever. Each kind of draw has its own salt: two properties of one page are
independent of each other.
"""

from __future__ import annotations

from enum import IntEnum

from xxhash import xxh3_64_intdigest


class Salt(IntEnum):
    """What is drawn."""

    SUBHOST = 1
    ADDRESS = 2
    SIZE = 3
    MANNER = 4
    PATH = 5
    LINK = 6
    SPELLING = 7
    TEXT = 8
    WIRE = 9
    FAMILY = 10
    TARGET = 11
    WORDS = 12
    VERSION = 13
    NEAR = 14


def draw(seed: int, salt: int, first: int, second: int = 0) -> int:
    """64 well-mixed bits."""
    return xxh3_64_intdigest(b"%d %d %d" % (salt, first, second), seed)


def fraction(bits: int) -> float:
    """The same as a number in [0, 1)."""
    return (bits >> 11) / 9007199254740992.0  # 2^53: as many bits as a float holds
