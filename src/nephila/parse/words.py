"""Text to words, and words to numbers: what the features of a page are made of.

A word is a run of letters and digits in lower case. Scripts that put no spaces between words (Chinese, Japanese, Thai,
...) give a word for every character. Each word becomes a 64-bit number by a hash of our own, eight bytes at a step, so
that the native scanner computes the same one in a few cycles.

What must stay true: the numbers are kept in databases, so they change only with a new version of the features; the
native scanner gives the same for every text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from struct import iter_unpack

ALONE = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9D), (0x20000, 0x3FFFF),
)  # fmt: skip
"""First and last characters of scripts without spaces: Thai, Lao, Burmese, Khmer, kana, Han."""

_ALONE = "".join(f"{chr(first)}-{chr(last)}" for first, last in ALONE)
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")

MASK = (1 << 64) - 1
SEED = 0x9E3779B97F4A7C15
FACTOR = 0xD6E8FEB86659FD93
LAST_FACTOR = 0xC2B2AE3D27D4EB4F


def word_hash(word: bytes) -> int:
    """64 bits for the UTF-8 bytes of a word."""
    number = SEED
    for (eight,) in iter_unpack("<Q", word + bytes(-len(word) % 8)):
        number = ((number ^ eight) * FACTOR) & MASK
        number ^= number >> 32
    number = ((number ^ len(word)) * LAST_FACTOR) & MASK
    return number ^ number >> 29


def _lowered(word: str) -> str:
    """Each character's own lower case: no character becomes two, none depends on its neighbours."""
    return word.lower() if word.isascii() else "".join([character.lower()[0] for character in word])


def words_of(text: str) -> Iterator[str]:
    """The words of a text, in lower case."""
    for word in _WORD.findall(text):
        if word.isalnum():  # marks and signs of the scripts without spaces are none
            yield _lowered(word)
