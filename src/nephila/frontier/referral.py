"""Who speaks for a host's domain, as one small number that the score of a URL depends on (R1, R3).

Online, every host counts the registrable domains that link to it (`budget`), which costs a bit a domain and knows
nothing of who they are. Where PageRank was computed over the link graph, the grade of the domain tells more: eight
steps to a doubling above what a domain has that nobody links to. As many referring domains, each speaking to nobody
else, would have brought it that far: so both are doublings on one scale, with the same share of the points
(`rank.authority`). A domain that the last computation did not know is judged by the count.

What must stay true: numbers of the two kinds are never the same, and where grades are at hand none is the count of
bits itself: `native/queueing.c` looks scores up by that, and must find none then.
"""

from __future__ import annotations

from math import log2
from typing import Final

from nephila.interfaces.repute import Repute

from .budget import BITS, ESTIMATES

HIGHEST_GRADE: Final = 64
_PER_DOUBLING = 8
_COUNTED_BESIDE = BITS + 1
"""Added to the count of bits of a domain that has no grade, where others have."""
_OF_COUNT: tuple[float, ...] = tuple(log2(1.0 + estimate) for estimate in ESTIMATES)


def heard(repute: Repute | None, host: str, referrers: int) -> int:
    """What is known of who links to a host: a grade below zero, a count of bits, or one beside grades."""
    counted = referrers.bit_count()
    if repute is None or not repute.look():
        return counted
    grade = repute.grade_of(host)
    return counted + _COUNTED_BESIDE if grade is None else ~grade


def doublings(number: int) -> float:
    """How many doublings of referring domains that is: what the score goes by."""
    if number < 0:
        return ~number / _PER_DOUBLING
    return _OF_COUNT[number % _COUNTED_BESIDE]
