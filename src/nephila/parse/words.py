"""Text to words, and words to numbers: what the features of a page are made of.

A word is a run of letters and digits in lower case. Scripts that put no spaces between words (Chinese, Japanese, Thai,
...) give a word for every character. What readers do not see makes no other word: soft hyphens and the like are passed
over, and an accent that is written apart from its letter is put together with it (NFC). Each word becomes a 64-bit
number by a hash of our own, eight bytes at a step, so that the native scanner computes the same one in a few cycles.

What must stay true: the numbers are kept in databases, so they change only with a new version of the features; the
native scanner gives the same for every text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from struct import iter_unpack
from unicodedata import normalize

ALONE = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9D), (0x20000, 0x3FFFF),
)  # fmt: skip
"""First and last characters of scripts without spaces: Thai, Lao, Burmese, Khmer, kana, Han."""

UNSEEN = (0x00AD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF)
"""Characters that only say where a line may break or letters join: soft hyphen, zero-width ones, byte order mark."""
JOINING = ((0x0300, 0x036F), (0x1160, 0x11FF))
"""Characters that are written apart from the letter before them and shown as one with it: accents, parts of Korean
syllables."""
LONGEST_JOINED = 64
"""Characters of a run that is put together: bringing very many accents in their order takes quadratic time."""

_UNSEEN = dict.fromkeys(UNSEEN)
_ALONE = "".join(f"{chr(first)}-{chr(last)}" for first, last in ALONE)
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")
_MARKS = "".join(f"{chr(first)}-{chr(last)}" for first, last in JOINING)
_MARK = re.compile(rf"[{_MARKS}]")
_MARKED = re.compile(rf"[^\W_{_ALONE}](?:[^\W_{_ALONE}]|[{_MARKS}])*+")

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


def _put_together(run: re.Match[str]) -> str:
    whole = run[0]
    return normalize("NFC", whole) if len(whole) <= LONGEST_JOINED and _MARK.search(whole) else whole


def _as_shown(text: str) -> str:
    """The text without what is not seen, letters and their accents as one."""
    text = text.translate(_UNSEEN)
    return _MARKED.sub(_put_together, text) if _MARK.search(text) else text


def words_of(text: str) -> Iterator[str]:
    """The words of a text, in lower case."""
    if not text.isascii():
        text = _as_shown(text)
    for word in _WORD.findall(text):
        if word.isalnum():  # marks and signs of the scripts without spaces are none
            yield _lowered(word)
