"""The books of a crawl whose archive goes to a store of objects: pages count when their segment has arrived there.

The order is that of `Bookkeeper`; only the steps are further apart. Settled captures are written into the journal of
their segment each second, so that neither memory nor the work after a kill grows with what waits for its upload. A
closed segment is handed to the shipper. When its upload is acknowledged it is confirmed; then its rows go from the
journal into the catalogue, its index is written and handed over likewise, and when that has arrived, too, nothing of
the segment stays behind.

Segments arrive in the order in which they were closed, so that a capture may refer to whatever was synced before it.
Where several files are open at once, one that refers to another may be closed before it: there a capture may be
referred to when its segment has arrived, and not before (D2).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from nephila.interfaces.catalogue import CaptureRow, Catalogue
from nephila.interfaces.duplicates import DigestIndex
from nephila.interfaces.near_duplicates import NearIndex
from nephila.model.errors import UnsentError
from nephila.model.record import Original, SegmentId
from nephila.store import RowJournal, SpooledArchive

from .bookkeeper import Bookkeeper, Disowner, Flushed
from .shipping import Shipper

ROWS_AT_ONCE = 5_000
NEWS_S = 0.01
BEAT_S = 1.0
"""The spool is looked at so often though nothing happens: files grow old."""
MOST_HELD = 20_000
"""Captures that may wait until others may refer to them, of half a kilobyte each; the oldest are let go then."""


@dataclass(frozen=True, slots=True)
class Outbound:
    """The way from the spool to the store."""

    archive: SpooledArchive
    journal: RowJournal
    shipper: Shipper
    patience_s: float
    """How long the end of a crawl waits for the uploads."""
    tells: bool = True
    """Whether this process says what is left at the end: one of several does."""
    in_order: bool = True
    """Whether segments arrive in the order in which they were closed, one file being open at a time."""


class SpooledBookkeeper(Bookkeeper):
    """The same for its callers."""

    def __init__(
        self,
        outbound: Outbound,
        frontier: Disowner,
        catalogue: Catalogue,
        duplicates: DigestIndex,
        write_index: Callable[[SegmentId], None],
        near: NearIndex | None = None,
        learned: Sequence[Flushed] = (),
    ) -> None:
        super().__init__(outbound.archive, frontier, catalogue, duplicates, write_index, near, learned)
        self._out = outbound
        self._spooled: dict[SegmentId, int] = {}
        """Up to where each segment is synced in the spool."""
        self._journaled: dict[SegmentId, int] = {}
        """The mark that its journal has."""
        self._held: dict[SegmentId, list[tuple[bytes, Original]]] = {}
        """What others may refer to when the segment that it is in has arrived."""
        self._held_count = 0
        outbound.shipper.on_acknowledged(self.nudge)

    async def wait_for_work(self) -> None:
        """As ever, but no longer than a beat."""
        if not self._rows and not self._errors and not self._arrived():
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S):
                    await self._work.wait()
        self._work.clear()
        self._is_nudged = False

    async def _durable(self) -> list[tuple[SegmentId, int]]:
        """Sync the spool, hand over what is closed, and tell what has arrived."""
        loop = asyncio.get_running_loop()
        for segment, end in await loop.run_in_executor(None, self._out.archive.sync_spool):
            self._spooled[segment] = end
        for segment in self._out.archive.take_closed():
            self._out.shipper.ship(segment)
        await self._out.shipper.measure()
        return self._out.archive.take_acknowledged()

    def _may_be_referred_to(self, durable: Sequence[tuple[SegmentId, int]]) -> None:
        """As ever; where segments do not arrive in order, it is held until they have."""
        if self._out.in_order:
            super()._may_be_referred_to(durable)
            return
        for place in durable:
            if (known := self._originals.pop(place, None)) is not None:
                self._held.setdefault(place[0], []).append(known)
                self._held_count += 1
        while self._held_count > MOST_HELD:
            self._let_go(next(iter(self._held)))

    def _let_go(self, segment: SegmentId) -> list[tuple[bytes, Original]]:
        held = self._held.pop(segment, [])
        self._held_count -= len(held)
        return held

    async def record(self) -> None:
        """Journal what is settled; then as ever."""
        loop = asyncio.get_running_loop()
        if self._near is not None:  # before: what the journal has is not looked at again after a kill
            await loop.run_in_executor(None, self._near.flush)
        kept: set[int] = set()
        for segment, rows, mark in self._ready():
            await loop.run_in_executor(None, self._out.journal.append, segment, rows, mark)
            self._journaled[segment] = mark
            kept |= set(map(id, rows))
        self._rows = [row for row in self._rows if id(row) not in kept]
        await super().record()

    def _ready(self) -> list[tuple[SegmentId, list[CaptureRow], int]]:
        """What journals lack, segment by segment: rows, and the mark that all captures with a row lie before.

        All of it as of one moment. What is settled while a journal is written has no row in the lists; a mark that is
        taken then would pass it, and a kill before the next journal would leave a page that no catalogue knows.
        """
        rows = defaultdict[SegmentId, list[CaptureRow]](list)
        for row in self._rows:
            rows[row.segment].append(row)
        found = []
        for segment, end in self._spooled.items():
            mark = min((end, *self._outstanding.get(segment, ())))
            ready = [row for row in rows.get(segment, ()) if row.end <= mark]
            if ready or mark > self._journaled.get(segment, 0):
                found.append((segment, ready, mark))
        return found

    def _arrived(self) -> list[SegmentId]:
        """Closed segments of which everything is confirmed."""
        return [
            segment
            for segment in self._rolled
            if segment in self._synced and self._confirmed.get(segment, 0) >= self._synced[segment]
        ]

    async def _end(self, segment: SegmentId) -> None:
        """When it has arrived: list its captures, write its index, and send that after it."""
        if segment not in self._arrived():
            return
        self._may_be_referred_to([place for place in self._written() if place[0] == segment])
        for digest, original in self._let_go(segment):
            self._duplicates.remember(digest, original)
        loop = asyncio.get_running_loop()
        rows = (await loop.run_in_executor(None, self._out.journal.read, segment)).rows
        for start in range(0, len(rows), ROWS_AT_ONCE):
            await loop.run_in_executor(None, self._catalogue.record, rows[start : start + ROWS_AT_ONCE], ())
        await super()._end(segment)
        self._out.shipper.ship_index(segment)
        self._spooled.pop(segment, None)
        self._journaled.pop(segment, None)

    # After a crash

    def looked_at(self, segment: SegmentId) -> int:
        """As ever: the mark of its journal."""
        return self._out.journal.repair(segment)

    async def adopt(self, segment: SegmentId, end: int, rows: Sequence[CaptureRow]) -> None:
        """Journal these rows, and send the segment. What is in the store already is listed and nothing else."""
        loop = asyncio.get_running_loop()
        if not self._out.archive.has_in_spool(segment):
            await loop.run_in_executor(None, self._catalogue.record, rows, ())
            return
        if self._near is not None:
            await loop.run_in_executor(None, self._near.flush)
        self._out.archive.take_on(segment)
        self._out.journal.append(segment, rows, end)
        self._spooled[segment] = self._journaled[segment] = end
        self._rolled.append(segment)
        self._out.shipper.ship(segment, again=True)

    # The end

    async def finish(self) -> None:
        """Close the archive, and wait for the uploads as long as that is asked for; what is left stays in the spool."""
        loop = asyncio.get_running_loop()
        try:
            await self.tick()
        finally:
            await loop.run_in_executor(None, self._archive.close)
        shipper = self._out.shipper
        shipper.give_up_in(self._out.patience_s)
        while True:
            await self.tick()
            await self.record()
            if shipper.has_given_up:
                break
            # An upload may have been acknowledged while the books were written.
            left = self._out.archive.has_news or bool(self._arrived())
            if not left and not shipper.is_busy:
                break
            await shipper.progress(NEWS_S if left else BEAT_S)
        await shipper.measure(at_once=True)
        waiting = shipper.standing
        if waiting.segments and self._out.tells and not shipper.is_hurried:
            reason = f": {waiting.away}" if waiting.away else ""
            raise UnsentError(
                f"not all of the archive has arrived in its store{reason}; the spool holds {waiting.words()}",
                hint="nothing is lost: the same command brings them when the store is back; so does `nephila flush DIR`"
                " for a crawl that is no fleet's",
            )
