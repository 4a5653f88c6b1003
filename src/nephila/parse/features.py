"""The words of a main text to what texts are compared by: SimHash and sketch over its three-word runs (D3).

Words that hold a digit are passed over: dates, prices and counters differ between two captures of the same page, and a
page that differs in nothing else says nothing new. Every run of three words becomes a number. The SimHash has a bit set
where most of the numbers have it set. The sketch is a MinHash by one permutation: the upper six bits of a number choose
one of 64 places, the least number of each place stays, and one byte of it is kept.

What must stay true: the native scanner gives the same; the numbers are kept in databases (see `words.py`).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from nephila.model.likeness import Likeness

from .words import FACTOR, MASK

LEAST_WORDS = 20
"""Words without digits of a text that can be compared; our own choice: two sentences."""
PLACES = 64
RUN_FACTORS = (0x9FB21C651E98DF25, 0xA24BAED4963EE407, 0x8EBC6AF09C88C6E3)

_BITS = [bytes(byte >> bit & 1 for byte in range(256)) for bit in range(8)]


def _runs(words: Sequence[int]) -> array[int]:
    first, second, third = RUN_FACTORS
    runs = array("Q")
    for one, two, three in zip(words, words[1:], words[2:], strict=False):
        number = (one * first + two * second + three * third) & MASK
        number = ((number ^ number >> 32) * FACTOR) & MASK
        runs.append(number ^ number >> 29)
    return runs


def _simhash(runs: array[int]) -> int:
    octets = runs.tobytes() if runs.itemsize == 8 else b""
    simhash = 0
    for place in range(8):
        lane = octets[place::8]
        for bit in range(8):
            if 2 * lane.translate(_BITS[bit]).count(1) > len(runs):
                simhash |= 1 << 8 * place + bit
    return simhash


def _sketch(runs: Iterable[int]) -> bytes:
    least = {run >> 58: run for run in sorted(set(runs), reverse=True)}
    return bytes(least[place] % 255 + 1 if place in least else 0 for place in range(PLACES))


def likeness_of(words: Sequence[int], count: int) -> Likeness:
    """What a text is compared by: `words` are those of its main text without digits, `count` is the number of all."""
    if len(words) < LEAST_WORDS:
        return Likeness(words=count)
    runs = _runs(words)
    return Likeness(_simhash(runs), _sketch(runs), count)
