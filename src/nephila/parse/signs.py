"""Signs that the scripts of a page make it (J1): an empty shell, or the mark of a framework.

Asked of every page that is HTML, so it must cost nearly nothing: of a page with text, only the first bytes of its body
are looked at, where frameworks put their root element; of one with hardly any, everything.

What must stay true: any bytes give an answer, in time that is linear in their number.
"""

from __future__ import annotations

import re

from nephila.model.rendering import Sign

SHELL_BYTES = 5_000
SHELL_CHARACTERS = 200
"""SPEC J1: under so many characters of text in over so many bytes of HTML."""

THIN_WORDS = 100
"""Main text of no more words may be that of a shell: two hundred characters are a hundred words at the most."""

_ROOT_BYTES = 512
"""Behind the body tag, where a root element stands if there is one; and before it, where the head is short."""
_MARKS = (b"__NEXT_DATA__", b"__nuxt", b"ng-app")
_EMPTY_ROOT = re.compile(
    rb"<(?:div|main)\s[^>]{0,200}?\bid\s*=\s*[\"']?(?:root|app)[\"'\s>][^<]{0,200}</(?:div|main)", re.IGNORECASE
)
_INVISIBLE = re.compile(
    rb"<(script|style|template|noscript|svg|head|title)\b.*?(?:</\1\b[^>]*>?|\Z)|<!--.*?(?:-->|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_TEXT = re.compile(rb">([^<]+)")


def sign_of(body: bytes, words: int) -> Sign:
    """What says that the scripts of a page make it; `words` are those of its main text."""
    if words >= THIN_WORDS:
        start = body.find(b"<body")
        if start < 0:
            return Sign.NONE
        root = body[0 if start < _ROOT_BYTES else start : start + _ROOT_BYTES]
        marked = b"ng-app" in root or (b"__n" in root and (b"__next" in root or b"__nuxt" in root))
        return Sign.MARK if marked else Sign.NONE
    if any(mark in body for mark in _MARKS) or _EMPTY_ROOT.search(body):
        return Sign.MARK
    return Sign.SHELL if len(body) > SHELL_BYTES and visible_characters(body) < SHELL_CHARACTERS else Sign.NONE


def visible_characters(body: bytes, enough: int = SHELL_CHARACTERS) -> int:
    """Characters of text in a page, white space apart, counted up to about `enough`."""
    count = 0
    for found in _TEXT.finditer(_INVISIBLE.sub(b" ", body)):
        text = b"".join(found[1].split())
        count += len(text.decode("utf-8", "replace"))
        if count >= enough:
            break
    return count
