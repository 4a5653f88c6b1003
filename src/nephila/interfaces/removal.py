"""Taking captures out of a catalogue (K2): the rows, and what was counted of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from nephila.model.record import SegmentId


class ListedCapture(NamedTuple):
    """What deciding takes of a row."""

    number: int
    """Of the segment, as the catalogue counts them."""
    offset: int
    segment: SegmentId
    fingerprint: bytes
    url: str
    host: str
    domain: str
    kind: str
    robots: bool
    content_hash: bytes
    simhash: int | None
    duplicate_of: str
    near_duplicate_of: str
    status: int
    visited: str = ""
    """Of something that a page in a browser asked for: that page (J3)."""


class CatalogueRemoval(Protocol):
    """Whoever takes down reads all rows once, decides, and removes a batch in one transaction.

    What is removed a second time is not there any more and changes nothing. Works on a catalogue that is open for
    writing; one that is open for reading has `rows`.
    """

    def rows(self) -> Iterator[ListedCapture]:
        """Every capture, read a batch at a time."""

    def remove(self, captures: Sequence[ListedCapture]) -> None:
        """Take out captures, and the standing of their pages: all captures of a page go, or none."""

    def unname(self, captures: Sequence[tuple[ListedCapture, bool, bool]]) -> None:
        """Let captures not name their original any more, nor what they are nearly the same as."""

    def forget_failures(self, fingerprints: Sequence[bytes], name: str = "") -> None:
        """Take out errors and dead letters of URLs, and those of a host with all below it; with it its figures."""

    def make_durable(self) -> None:
        """Let what was removed be gone for good, whatever is lost after it returns."""
