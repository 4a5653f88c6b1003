"""Keeping what was fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from nephila.model.record import Capture, SegmentId, StoredCapture


class Archive(Protocol):
    """Append-only.

    Promises: records of one capture are written together, so a crash leaves whole captures and at most one torn tail;
    ids are derived from token and attempt, so the same capture has the same name wherever it is read; what `append`
    returned survives kill -9 of the process at once, and power loss after the next `sync`.
    """

    def encode(self, capture: Capture) -> object:
        """What of `append` takes time and touches nothing: for a large capture, to be run in a thread before."""

    def append(self, capture: Capture, encoded: object = None) -> StoredCapture:
        """Write the capture to the open segment. Raises `StorageError` (disk full) and then has written nothing.

        `encoded` is what `encode` made of the same capture, if it was asked.
        """

    def sync(self) -> list[tuple[SegmentId, int]]:
        """Make all that was appended durable; returns (segment, end) for `Frontier.confirm`. May be run in a thread."""

    def tail(self, segment: SegmentId, start: int) -> Iterator[tuple[Capture, StoredCapture]]:
        """Whole captures of a segment from `start` on, read back: what recovery settles from the archive."""

    def on_roll(self, listener: Callable[[SegmentId], None]) -> None:
        """Call `listener` when a segment is closed and will not grow any more."""

    def close(self) -> None:
        """Sync and close the open segment."""
