"""On which line a key of a TOML document stands, which `tomllib` does not tell.

Only ever asked about documents that `tomllib` accepted. So it is enough to walk over strings, comments and brackets to
find where each statement begins; what the key or table header of a statement says is again left to `tomllib`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping

_PIECE = re.compile(
    r"""
      \"\"\"(?:\\.|[^\\])*?\"\"\"\"{0,2}   # a multi-line string may end in two quotes of its own
    | '''.*?''''{0,2}
    | "(?:\\.|[^"\\\n])*"
    | '[^'\n]*'
    | \#[^\n]*
    | [\[\]{}=\n]
    | [^\[\]{}=\n"'\#]+
    """,
    re.VERBOSE | re.DOTALL,
)


def key_lines(text: str) -> Mapping[tuple[str, ...], int]:
    """The line, counted from 1, of every key and table of a valid document, by its whole path."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for line, head in _heads(text):
        if head.startswith("["):
            table = path = _path(head)
        else:
            path = (*table, *_path(f"{head} = 0"))
        for size in range(1, len(path) + 1):
            lines.setdefault(path[:size], line)
    return lines


def _heads(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of every statement, a key's up to its equals sign."""
    line, start, depth = 1, 1, 0
    head, open_head = "", True
    for piece in _PIECE.findall(text.replace("\r\n", "\n")):
        if piece == "\n" and depth == 0:
            if head.strip():
                yield start, head.strip()
            head, open_head, start = "", True, line + 1
        elif piece == "=" and depth == 0:
            open_head = False
        elif open_head and not piece.startswith("#"):
            head += piece
        if piece in ("[", "{"):
            depth += 1
        elif piece in ("]", "}"):
            depth -= 1
        line += piece.count("\n")
    if head.strip():
        yield start, head.strip()


def _path(statement: str) -> tuple[str, ...]:
    """The dotted key of a statement, read by `tomllib` itself."""
    path: list[str] = []
    inner: object = tomllib.loads(statement)
    while inner:
        if isinstance(inner, list):  # [[array of tables]]
            inner = inner[0]
        elif isinstance(inner, dict):
            name, inner = next(iter(inner.items()))
            path.append(name)
        else:
            break
    return tuple(path)
