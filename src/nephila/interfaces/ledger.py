"""What the pipeline leaves for the bookkeeping beside it."""

from __future__ import annotations

from typing import Protocol

from nephila.model.record import Original, SegmentId

from .catalogue import CaptureRow, ErrorRow


class Ledger(Protocol):
    """Knows which captures lie in the archive without being settled: nothing is confirmed past the first of them."""

    def appended(self, segment: SegmentId, offset: int) -> None:
        """A capture lies in the archive and is not settled yet."""

    def first_of_its_kind(self, segment: SegmentId, offset: int, digest: bytes, original: Original) -> None:
        """That capture has a body which none before it had; others may refer to it when it is settled and durable."""

    def settled(self, segment: SegmentId, offset: int, row: CaptureRow | None) -> None:
        """It is settled now; `row` goes into the catalogue. None: the settle was refused, the capture is nobody's."""

    def failed(self, row: ErrorRow) -> None:
        """A task ended without a usable answer."""
