"""Signs that the scripts of a page make it (J1): an empty shell, or the mark of a framework.

Asked of every page that is HTML, so it must cost nearly nothing: of a page with text, only the first bytes of its body
are looked at, where frameworks put their root element; of one with hardly any, everything.

What must stay true: any bytes give an answer, in time that is linear in their number.
"""

from __future__ import annotations

import re

from nephila.model.rendering import Sign
from nephila.native import AVAILABLE, native

SHELL_BYTES = 5_000
SHELL_CHARACTERS = 200
"""SPEC J1: under so many characters of text in over so many bytes of HTML."""

THIN_WORDS = 100
"""Main text of no more words may be that of a shell: two hundred characters are a hundred words at the most."""

_ROOT_BYTES = 512
"""Behind the body tag, where a root element stands if there is one; and before it, where the head is short."""
_HEAD_BYTES = 16_384
"""How far the body tag is looked for in a page that has text; behind a longer head no mark is worth the way."""
_MARKS = (b"__NEXT_DATA__", b"__nuxt")
_ANGULAR = re.compile(rb"[\s\"'](?:data-|x-)?ng-app[\s=>]")
"""An attribute. A page about a spring-apple, or a class of banking-apps, has the letters too."""
_EMPTY_ROOT = re.compile(
    rb"<(?:div|main)\s[^>]{0,200}?\bid\s*=\s*[\"']?(?:root|app)[\"'\s>][^<]{0,200}</(?:div|main)", re.IGNORECASE
)
_PIECE = re.compile(rb"<(script|style|template|noscript|svg|title|head\b|!--)|>\s*([^<\s][^<]*)", re.IGNORECASE)
"""What hides text, or text."""


def sign_of(body: bytes, words: int) -> Sign:
    """What says that the scripts of a page make it; `words` are those of its main text."""
    start = body.find(b"<body", 0, _HEAD_BYTES)
    root = body[start if start >= _ROOT_BYTES else 0 : max(0, start) + _ROOT_BYTES]
    if _is_angular(root) or (b"__n" in root and (b"__next" in root or b"__nuxt" in root)):
        return Sign.MARK
    if words >= THIN_WORDS or visible_characters(body, SHELL_CHARACTERS) >= SHELL_CHARACTERS:
        return Sign.NONE
    if any(mark in body for mark in _MARKS) or _is_angular(body) or _EMPTY_ROOT.search(body):
        return Sign.MARK
    return Sign.SHELL if len(body) > SHELL_BYTES else Sign.NONE


def _is_angular(html: bytes) -> bool:
    return b"ng-app" in html and _ANGULAR.search(html) is not None


def plainly_visible_characters(body: bytes, enough: int) -> int:
    """Characters of text in a page, white space apart, counted up to about `enough`; most pages have that soon."""
    count, position = 0, max(0, body.find(b"<body"))
    while count < enough and (found := _PIECE.search(body, position)) is not None:
        hides = found[1]
        if hides is None:
            count += len(b"".join(found[2].split()).decode("utf-8", "replace"))
            position = found.end()
            continue
        position = body.find(b"-->" if hides == b"!--" else b"</" + hides, found.end())
        if position < 0:
            break
        position += 3
    return count


visible_characters = native.visible_characters if AVAILABLE else plainly_visible_characters
