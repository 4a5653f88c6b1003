"""Where a statement in SQL ends: at a semicolon that stands in no text, name or comment."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PIECE = re.compile(
    r"""'(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) | `[^`]*(?:`|\Z) | --[^\n]*(?:\n|\Z) | /\*.*?(?:\*/|\Z) | ;""",
    re.VERBOSE | re.DOTALL,
)
_COMMENTS = re.compile(r"--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z)", re.DOTALL)


def split(text: str) -> tuple[list[str], str]:
    """The statements that have ended, without their semicolons, and what has been begun."""
    found, start = list[str](), 0
    for piece in _PIECE.finditer(text):
        if piece[0] == ";":
            found.append(text[start : piece.start()])
            start = piece.end()
    return [one.strip() for one in found if says_something(one)], text[start:]


def says_something(text: str) -> bool:
    """Whether there is more in it than white space and comments."""
    return bool(_COMMENTS.sub("", text).strip())


def statements(text: str) -> Iterator[str]:
    """All statements of a text; the last one may lack its semicolon."""
    ended, rest = split(text)
    yield from ended
    if says_something(rest):
        yield rest.strip()
