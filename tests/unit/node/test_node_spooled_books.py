"""The books of an archive on its way to a store: what the journals beside the spool say must be true at any moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nephila.interfaces.catalogue import CaptureRow, ErrorRow
from nephila.model.record import SegmentId
from nephila.node.spooled_books import Outbound, SpooledBookkeeper

A, B = SegmentId("a.warc.gz"), SegmentId("b.warc.gz")


def row(segment: SegmentId, offset: int, end: int) -> CaptureRow:
    return CaptureRow(
        *("u", b"", "h", "d", 0, "", 0, 0, 0, 200, "", b"", 0, 0, 0, "response"),
        *(segment, offset, end - offset, end, ""),
    )


@dataclass
class Spool:
    """An archive, its shipper and its journals; frontier, catalogue and index of contents take what they are given."""

    synced: list[tuple[SegmentId, int]] = field(default_factory=list)
    frames: list[tuple[SegmentId, list[int], int]] = field(default_factory=list)
    """As the journals have them: the offsets of rows, and the mark."""
    meanwhile: Callable[[], None] = lambda: None
    """Happens while a journal is written."""

    def on_roll(self, listener: Callable[[SegmentId], None]) -> None:
        """Nothing is closed here."""

    def on_acknowledged(self, listener: Callable[[], None]) -> None:
        """Nothing arrives here."""

    def sync_spool(self) -> list[tuple[SegmentId, int]]:
        return self.synced

    def take_closed(self) -> list[SegmentId]:
        return []

    def take_acknowledged(self) -> list[tuple[SegmentId, int]]:
        return []

    async def measure(self) -> None:
        """There is room."""

    def append(self, segment: SegmentId, rows: Sequence[CaptureRow], mark: int) -> None:
        self.meanwhile()
        self.frames.append((segment, [one.offset for one in rows], mark))

    def record(self, captures: Sequence[CaptureRow], errors: Sequence[ErrorRow]) -> None:
        """The catalogue."""

    def flush(self) -> None:
        """The index of contents."""


def test_no_mark_passes_a_capture_that_is_settled_while_journals_are_written() -> None:
    """F10, W2, W3, N3: no journal has its row yet, and what lies before a mark is not looked at again after a kill."""

    async def main() -> Spool:
        spool = Spool(synced=[(A, 100), (B, 100)])
        outbound = Outbound(spool, spool, spool, 1.0)  # type: ignore[arg-type]  # one for all of them
        keeper = SpooledBookkeeper(outbound, spool, spool, spool, lambda _segment: None)  # type: ignore[arg-type]
        loop, settled = asyncio.get_running_loop(), threading.Event()
        for segment in (A, B):
            keeper.appended(segment, 0)
        keeper.settled(A, 0, row(A, 0, 100))

        def settle() -> None:
            keeper.settled(B, 0, row(B, 0, 100))
            settled.set()

        def meanwhile() -> None:
            if not settled.is_set():
                loop.call_soon_threadsafe(settle)
                assert settled.wait(30)

        spool.meanwhile = meanwhile
        await keeper.tick()
        for _ in range(2):
            await keeper.record()
        return spool

    assert asyncio.run(main()).frames == [(A, [0], 100), (B, [0], 100)]


def test_every_capture_wakes_whoever_syncs_the_spool() -> None:
    """W2: and not the first alone: what comes later would lie unsynced for as long as the spool is left alone."""

    async def main() -> None:
        spool = Spool()
        outbound = Outbound(spool, spool, spool, 1.0)  # type: ignore[arg-type]  # one for all of them
        keeper = SpooledBookkeeper(outbound, spool, spool, spool, lambda _segment: None)  # type: ignore[arg-type]
        for offset in (0, 100, 200):
            waiting = asyncio.create_task(keeper.wait_for_work())
            await asyncio.sleep(0)
            keeper.appended(A, offset)
            for _ in range(5):  # turns of the loop
                await asyncio.sleep(0)
            assert waiting.done()

    asyncio.run(main())
