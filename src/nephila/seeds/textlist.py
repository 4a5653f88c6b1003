"""Seeds from a text with one URL or domain a line.

Blank lines and lines that begin with ``#`` are passed over. A ``#`` after white space begins a comment too; one that
directly follows a URL is its fragment and stays. Nothing else is interpreted here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nephila.model.task import Level

from .lines import NumberedLines
from .seed import SEED_LEVEL, Seed

_COMMENT = re.compile(r"(?:^|\s)#.*", re.DOTALL)


class TextSeeds:
    """The seeds among the lines of a file or stream, each with its line in the origin."""

    def __init__(self, lines: NumberedLines, level: Level = SEED_LEVEL) -> None:
        self._lines = lines
        self._level = level

    def __iter__(self) -> Iterator[Seed]:
        for number, line in self._lines:
            text = _COMMENT.sub("", line).strip() if "#" in line else line.strip()
            if text:
                yield Seed(text, f"{self._lines.name}:{number}", self._level)
