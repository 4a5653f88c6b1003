"""Text to words, and words to numbers: what the features of a page are made of.

A word is a run of letters and digits in lower case, with the signs for vowels and the like that belong to them. Scripts
that put no spaces between words (Chinese, Japanese, Thai, ...) give a word for every character. What readers do not see
makes no other word: soft hyphens and the like are passed over, and an accent that is written apart from its letter is
put together with it (NFC). Each word becomes a 64-bit number by a hash of our own, eight bytes at a step, so that the
native scanner computes the same one in a few cycles.

What must stay true: the numbers are kept in databases, so what is a word changes only where the changelog says so; the
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

SIGNS = (
    (0x0591, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2), (0x05C4, 0x05C5), (0x05C7, 0x05C7), (0x0610, 0x061A),
    (0x064B, 0x065F), (0x0670, 0x0670), (0x06D6, 0x06DC), (0x06DF, 0x06E4), (0x06E7, 0x06E8), (0x06EA, 0x06ED),
    (0x0711, 0x0711), (0x0730, 0x074A), (0x07A6, 0x07B0), (0x0900, 0x0903), (0x093A, 0x093C), (0x093E, 0x094F),
    (0x0951, 0x0957), (0x0962, 0x0963), (0x0981, 0x0983), (0x09BC, 0x09BC), (0x09BE, 0x09CD), (0x09D7, 0x09D7),
    (0x09E2, 0x09E3), (0x0A01, 0x0A03), (0x0A3C, 0x0A51), (0x0A70, 0x0A71), (0x0A75, 0x0A75), (0x0A81, 0x0A83),
    (0x0ABC, 0x0ABC), (0x0ABE, 0x0ACD), (0x0AE2, 0x0AE3), (0x0AFA, 0x0AFF), (0x0B01, 0x0B03), (0x0B3C, 0x0B3C),
    (0x0B3E, 0x0B57), (0x0B62, 0x0B63), (0x0B82, 0x0B82), (0x0BBE, 0x0BCD), (0x0BD7, 0x0BD7), (0x0C00, 0x0C04),
    (0x0C3C, 0x0C3C), (0x0C3E, 0x0C56), (0x0C62, 0x0C63), (0x0C81, 0x0C83), (0x0CBC, 0x0CBC), (0x0CBE, 0x0CD6),
    (0x0CE2, 0x0CE3), (0x0D00, 0x0D03), (0x0D3B, 0x0D3C), (0x0D3E, 0x0D4D), (0x0D57, 0x0D57), (0x0D62, 0x0D63),
    (0x0D81, 0x0D83), (0x0DCA, 0x0DDF), (0x0DF2, 0x0DF3), (0x0F71, 0x0F84), (0x0F86, 0x0F87), (0x0F8D, 0x0FBC),
)  # fmt: skip
"""Signs that belong to the letters before them, in scripts with spaces between words: vowels of Devanagari, Bengali,
Tamil and their like, points of Hebrew and Arabic. To Unicode they are marks, neither letters nor digits."""

UNSEEN = (0x00AD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF)
"""Characters that only say where a line may break or letters join: soft hyphen, zero-width ones, byte order mark."""
JOINING = ((0x0300, 0x036F), (0x1160, 0x11FF))
"""Characters that are written apart from the letter before them and shown as one with it: accents, parts of Korean
syllables."""
LONGEST_JOINED = 64
"""Characters of a run that is put together: bringing very many accents in their order takes quadratic time."""

_UNSEEN = dict.fromkeys(UNSEEN)
_ALONE = "".join(f"{chr(first)}-{chr(last)}" for first, last in ALONE)
_SIGNS = "".join(f"{chr(first)}-{chr(last)}" for first, last in SIGNS)
_WORD = re.compile(rf"[{_ALONE}]|(?:[^\W_{_ALONE}]++|[{_SIGNS}]++)++")
_MARKS = "".join(f"{chr(first)}-{chr(last)}" for first, last in JOINING)
_MARK = re.compile(rf"[{_MARKS}]")
_MARKED = re.compile(rf"(?:[^\W_{_ALONE}]|[{_SIGNS}])(?:[^\W_{_ALONE}]|[{_SIGNS}{_MARKS}])*+")
_ALONE_ONE = re.compile(f"[{_ALONE}]")

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
        if word.isalnum() or not _ALONE_ONE.match(word):  # marks and signs of the scripts without spaces are none
            yield _lowered(word)
