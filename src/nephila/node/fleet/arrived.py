"""The catalogue as a worker of a fleet writes it: what it lists has arrived in the store, and may be shared (D2)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from nephila.dedup import SharedDigestIndex
from nephila.interfaces.catalogue import BookedCatalogue, CaptureRow, ErrorRow, PageRow
from nephila.model.record import SegmentId


class ArrivedCatalogue:
    """A `BookedCatalogue` over another one."""

    def __init__(self, inner: BookedCatalogue, contents: SharedDigestIndex) -> None:
        self._inner = inner
        self._contents = contents

    def record(self, captures: Sequence[CaptureRow], errors: Sequence[ErrorRow]) -> None:
        """As the interface; then the others may know the contents of whole answers."""
        self._inner.record(captures, errors)
        self._contents.arrived(
            (row.content_hash, row.url, row.at)
            for row in captures
            if row.kind == "response" and row.content_hash and not row.truncated
        )

    def upto(self, segment: SegmentId) -> int:
        """As the interface."""
        return self._inner.upto(segment)

    def pages(
        self, *, host: str = "", status: int | None = None, like: str = "", limit: int = 100
    ) -> Iterator[PageRow]:
        """As the interface."""
        return self._inner.pages(host=host, status=status, like=like, limit=limit)

    def captures(self, segment: SegmentId) -> Iterator[CaptureRow]:
        """As the interface."""
        return self._inner.captures(segment)

    def captures_of(self, fingerprint: bytes) -> list[CaptureRow]:
        """As the interface."""
        return self._inner.captures_of(fingerprint)

    def show_blocked(self, names: Collection[str], suffixes: Collection[str] = ()) -> None:
        """As the interface."""
        self._inner.show_blocked(names, suffixes)

    def hurry(self, patience_s: float) -> None:
        """As the interface."""
        self._inner.hurry(patience_s)

    def close(self) -> None:
        """As the interface."""
        self._inner.close()
