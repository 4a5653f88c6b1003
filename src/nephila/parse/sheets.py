"""What a style sheet loads: other sheets, fonts, pictures.

A scanner and no parser: whatever stands in a `url(...)`, behind an `@import` or in an `image-set(...)` is asked for by
some browser in some moment, and rules, media and selectors decide only when. Comments hold nothing, and no other string
does; data URLs are where they stand.

One expression finds what begins next, so that a comment in a string is none, nor a string in a comment. A string ends
with its line at the latest (CSS Syntax 3, 4.3.5); a quote that nothing closes there is passed over.

What must stay true: time is linear in the length of the text, whatever stands in it (the closing quote that is not
there is looked for once a line).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_SHEET = 4_000_000
"""Characters of a sheet that are looked at; our own choice, the largest of real sites have one million."""

_SPACE = r"[ \t\r\n\f]"
_HEXADECIMAL = rf"[0-9a-fA-F]{{1,6}}(?:\r\n|{_SPACE})?"
_TOKEN = rf"""
    /\*.*?(?:\*/|\Z)
    | \\.
    | (?P<loads>(?i:url)\({_SPACE}*+ | @(?i:import)(?![\w-])(?:{_SPACE}|/\*.*?\*/)*+)?+(?P<quote>["'])
    | (?i:url)\({_SPACE}*+(?P<bare>(?:\\(?:{_HEXADECIMAL}|[^\r\n\f])|[^ \t\r\n\f()"'\\])++)(?:(?:[^()\\]|\\.)*+\))?+
    | (?P<pictures>(?i:image-set)\()
"""
_ANYWHERE = re.compile(_TOKEN, re.DOTALL | re.VERBOSE)
_IN_PICTURES = re.compile(rf"{_TOKEN} | (?P<other>[(){{}};])", re.DOTALL | re.VERBOSE)
_WITHIN = {
    '"': re.compile(r'[^"\\\r\n\f]*+(?:\\(?:\r\n|.)[^"\\\r\n\f]*+)*+', re.DOTALL),
    "'": re.compile(r"[^'\\\r\n\f]*+(?:\\(?:\r\n|.)[^'\\\r\n\f]*+)*+", re.DOTALL),
}
"""What may stand between two quotes."""
_ESCAPED = re.compile(rf"\\(?:({_HEXADECIMAL})|\r\n|[\r\n\f]|(.))", re.DOTALL)
_LAST_CHARACTER = 0x10FFFF


def sheet_references(text: str) -> Iterator[str]:
    """What a style sheet names, as written; what is no URL among it, too."""
    text = text[:MAX_SHEET]
    position, depth, unclosed = 0, 0, dict.fromkeys(_WITHIN, 0)
    while (token := (_IN_PICTURES if depth else _ANYWHERE).search(text, position)) is not None:
        position, quote = token.end(), token["quote"]
        if quote is not None:
            end = _closed(text, position, quote, unclosed)
            if end < 0:
                continue
            if token["loads"] or depth == 1:
                yield from _named(text[position:end])
            position = end + 1
        elif token["bare"] is not None:
            yield from _named(token["bare"])
        depth = _depth(depth, token)


def _closed(text: str, position: int, quote: str, unclosed: dict[str, int]) -> int:
    """Where the string that begins there ends; -1 where it does not, noted up to where none does."""
    if position <= unclosed[quote]:
        return -1
    within = _WITHIN[quote].match(text, position)
    end = position if within is None else within.end()
    if text[end : end + 1] == quote:
        return end
    unclosed[quote] = end
    return -1


def _depth(depth: int, token: re.Match[str]) -> int:
    """How many parentheses are open after a token, from that of an image-set on; 0 where there is none."""
    match token.lastgroup:
        case "pictures":
            return 1
        case "quote" if depth and token["loads"]:
            return depth + 1
        case "other":
            return {"(": depth + 1, ")": depth - 1}.get(token["other"], 0)
        case _:
            return depth


def _named(written: str) -> Iterator[str]:
    reference = _ESCAPED.sub(_character, written).strip() if "\\" in written else written.strip()
    if reference and reference[:5].lower() != "data:":
        yield reference


def _character(escaped: re.Match[str]) -> str:
    if escaped[1] is None:
        return escaped[2] or ""
    code = int(escaped[1], 16)
    return chr(code) if 0 < code <= _LAST_CHARACTER and not 0xD800 <= code < 0xE000 else "\ufffd"
