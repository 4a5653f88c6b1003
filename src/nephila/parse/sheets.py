"""What a style sheet loads: other sheets, fonts, pictures.

A scanner and no parser: whatever stands in a `url(...)` or behind an `@import` is asked for by some browser in some
moment, and rules, media and selectors decide only when. Comments hold nothing; data URLs are where they stand.

What must stay true: time is linear in the length of the text, whatever stands in it (the closing quote that is not
there is looked for once).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_SHEET = 4_000_000
"""Characters of a sheet that are looked at; our own choice, the largest of real sites have one million."""

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_BEGINS = re.compile(r"url\(\s*|@import\s+", re.IGNORECASE)
_BARE = re.compile(r"""(?:\\.|[^\s()"'\\])+""")
_ESCAPED = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|\r?\n|(.))", re.IGNORECASE | re.DOTALL)
_LAST_CHARACTER = 0x10FFFF


def sheet_references(text: str) -> Iterator[str]:
    """What a style sheet names, as written; what is no URL among it, too."""
    text = _COMMENT.sub(" ", text[:MAX_SHEET]) if "/*" in text else text[:MAX_SHEET]
    position, unclosed = 0, set[str]()
    while (begin := _BEGINS.search(text, position)) is not None:
        position = begin.end()
        quote = text[position : position + 1]
        if quote not in {'"', "'"}:
            bare = _BARE.match(text, position) if begin[0][0] != "@" else None  # an @import names url(...) or a string
            if bare is not None:
                position = bare.end()
                yield from _named(bare[0])
        elif quote not in unclosed:
            end = _closed(text, position + 1, quote)
            if end < 0:
                unclosed.add(quote)
            else:
                yield from _named(text[position + 1 : end])
                position = end + 1


def _closed(text: str, position: int, quote: str) -> int:
    """Where the string that begins there ends; -1 where it does not."""
    end = text.find(quote, position)
    while end > 0 and text[end - 1] == "\\":
        end = text.find(quote, end + 1)
    return end


def _named(written: str) -> Iterator[str]:
    reference = _ESCAPED.sub(_character, written).strip() if "\\" in written else written.strip()
    if reference and reference[:5].lower() != "data:":
        yield reference


def _character(escaped: re.Match[str]) -> str:
    if escaped[1] is None:
        return escaped[2] or ""
    code = int(escaped[1], 16)
    return chr(code) if 0 < code <= _LAST_CHARACTER and not 0xD800 <= code < 0xE000 else "\ufffd"
