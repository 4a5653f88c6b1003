"""Questions that people ask of a catalogue in SQL, and that change nothing (W6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Answered:
    """What a statement brought. Rows are read as they are asked for, and once."""

    columns: Sequence[str]
    rows: Iterator[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table or a view."""

    name: str
    columns: Sequence[tuple[str, str]]
    """Name and type."""


class CatalogueQueries(Protocol):
    """A catalogue that can be asked anything and told nothing. One answer at a time: asking again ends the last one."""

    def ask(self, statement: str) -> Answered:
        """Run one statement that reads.

        Raises `QueryError` for one that cannot be run, KeyboardInterrupt where somebody stops it; so may reading rows.
        """

    def tables(self) -> list[Table]:
        """What there is to be read."""

    def close(self) -> None:
        """Let go."""
