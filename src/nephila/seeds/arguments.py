"""Seeds that stand on the command line, or in a Python list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nephila.model.task import Level

from .seed import SEED_LEVEL, Seed


class ArgumentSeeds:
    """Each text is one seed. `origin` says who gave them, where it was not the command line."""

    def __init__(self, texts: Iterable[str], origin: str = "argument", level: Level = SEED_LEVEL) -> None:
        self._texts = texts
        self._origin = origin
        self._level = level

    def __iter__(self) -> Iterator[Seed]:
        for text in self._texts:
            yield Seed(text.strip(), self._origin, self._level)
