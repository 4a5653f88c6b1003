"""Finding captures that need not be kept any longer in a catalogue, and taking them out of it (W5).

Of every URL the newest captures stay: so many that say what it is (2xx, 304), and so many others. Beside that, or
instead, what is older than an age goes, where nobody downstream has marked it as indexed.

What stays all the same: the captures that the table of pages stands on (by number); rules of robots.txt, without which
no audit could judge; and whatever a capture that stays refers to as its original. That is known by the digest of the
payload: should several have it, all of them stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from nephila.model.noun import noun
from nephila.model.record import SegmentId

from .catalogue import RemovableCatalogue

TURNS = (0, 1)
"""Originals to which others refer that go as well come in the second."""


@noun
class RetentionRule:
    """What is kept."""

    captures: int
    """Of every URL; 0: all of them."""
    before: int = 0
    """What was captured before this instant (UTC milliseconds) and is not marked goes, too; 0: none of it."""


class Outdated(NamedTuple):
    """A capture that goes."""

    number: int
    """Of its segment, as the catalogue counts them."""
    offset: int
    fingerprint: bytes
    url: str
    host: str
    at: int
    status: int
    content_hash: bytes
    simhash: int | None


@noun
class Choice:
    """What goes, in figures."""

    captures: int
    urls: int
    files: int
    bytes: int
    """Of the archive."""
    pages_gone: int
    """Pages of which no capture stays."""


class CatalogueRetention(Protocol):
    """What is chosen is kept, on disk, until something else is, and given out a file at a time. Every call blocks."""

    def foresee(self, rule: RetentionRule) -> Choice:
        """What would go. Nothing is changed, and nothing is kept."""

    def choose(self, rule: RetentionRule) -> Choice:
        """Find out what goes."""

    def files(self, turn: int) -> list[tuple[int, SegmentId]]:
        """Numbers and names of the segments that something goes from in that turn, in their order."""

    def of_file(self, number: int, turn: int) -> list[Outdated]:
        """What goes from one of them in that turn."""

    def remove(self, captures: Sequence[Outdated]) -> None:
        """Take these out for good; a page stands on the newest that is left, and goes with the last."""


class Marks(Protocol):
    """What downstream has indexed."""

    def add(self, captures: Iterable[tuple[SegmentId, int]]) -> tuple[int, int]:
        """Mark these, all or none of them: how many were new, and how many there are. Raises `StorageError`."""


@runtime_checkable
class RetainingCatalogue(RemovableCatalogue, Protocol):
    """A catalogue that tells what need not be kept."""

    def retention(self, marks: Path) -> CatalogueRetention:
        """What finds it; `marks` is the file of what was indexed, for a catalogue that is a file itself."""
