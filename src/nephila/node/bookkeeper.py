"""From appended to completed: the archive is synced, the frontier told, the catalogue written.

The order is everything (DESIGN section 4). A capture counts as outstanding from the moment its bytes lie in the archive
until its settle has been answered. Nothing at or past the first outstanding capture of a segment is ever confirmed, so
whatever lies past the confirmed mark after a crash is looked at again, and what lies before it is known to be settled.
The catalogue is written last, up to the same mark: what it misses after a crash is found in the archive. The index of
contents learns of a capture when it is settled and its bytes are durable: one that is refused is in no index, and files
are synced one after the other, so that a power loss in between must not leave a revisit without its original.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from nephila.interfaces.archive import Archive
from nephila.interfaces.catalogue import CaptureRow, Catalogue, ErrorRow
from nephila.interfaces.duplicates import DigestIndex
from nephila.interfaces.frontier import Frontier
from nephila.interfaces.near_duplicates import NearIndex
from nephila.model.record import Original, SegmentId

MOST_WAITING = 20_000
"""Rows, of a kilobyte or two each."""


class Disowner(Frontier, Protocol):
    """A frontier that remembers captures which belong to nobody."""

    async def disown(self, segment: SegmentId, offset: int) -> None:
        """Remember that the capture at that place was refused."""


class Flushed(Protocol):
    """Something that was learned and is to be kept."""

    def flush(self) -> None:
        """Make it durable."""


class Bookkeeper:
    """Implements `interfaces.ledger.Ledger`; `tick` does the rest, at least every `sync_ms`."""

    def __init__(
        self,
        archive: Archive,
        frontier: Disowner,
        catalogue: Catalogue,
        duplicates: DigestIndex,
        write_index: Callable[[SegmentId], None],
        near: NearIndex | None = None,
        learned: Sequence[Flushed] = (),
    ) -> None:
        """`learned` is made durable together with the catalogue."""
        self._learned = tuple(learned)
        self._archive = archive
        self._frontier = frontier
        self._catalogue = catalogue
        self._duplicates = duplicates
        self._write_index = write_index
        self._near = near
        self._outstanding: dict[SegmentId, set[int]] = {}
        self._synced: dict[SegmentId, int] = {}
        self._confirmed: dict[SegmentId, int] = {}
        self._last: dict[SegmentId, int] = {}
        """Where the last capture of each segment begins."""
        self._rows: list[CaptureRow] = []
        self._unwritten: set[SegmentId] = set()
        """Segments that have some of them, and maybe others: no index is written for these."""
        self._errors: list[ErrorRow] = []
        self._originals: dict[tuple[SegmentId, int], tuple[bytes, Original]] = {}
        self._refused: list[tuple[SegmentId, int]] = []
        self._rolled: list[SegmentId] = []
        self._work = asyncio.Event()
        self._is_nudged = False
        """Whether `_work` is set, without a call: it is asked twice a page."""
        self._room: list[Callable[[], None]] = []
        self._is_awaited = False
        self.most_waiting = MOST_WAITING
        archive.on_roll(self._rolled.append)

    def appended(self, segment: SegmentId, offset: int) -> None:
        """A capture lies in the archive and is not settled yet."""
        outstanding = self._outstanding.get(segment)
        if outstanding is None:
            outstanding = self._outstanding[segment] = set()
        outstanding.add(offset)
        self._last[segment] = offset
        if not self._is_nudged:
            self.nudge()

    def first_of_its_kind(self, segment: SegmentId, offset: int, digest: bytes, original: Original) -> None:
        """A capture that others may refer to when it is durable."""
        self._originals[segment, offset] = (digest, original)

    def settled(self, segment: SegmentId, offset: int, row: CaptureRow | None) -> None:
        """It is settled now, or belongs to nobody."""
        if row is None:
            self._originals.pop((segment, offset), None)
            self._refused.append((segment, offset))
        else:
            self._rows.append(row)
            self._unwritten.add(segment)
            self._outstanding[segment].discard(offset)
        if not self._is_nudged:
            self.nudge()

    def failed(self, row: ErrorRow) -> None:
        """A task ended without a usable answer."""
        self._errors.append(row)
        self.nudge()

    def has_room(self) -> bool:
        """Whether something new may be fetched: not while too much waits for a catalogue that is away or slow.

        Whoever is told no is woken, through `on_room`, when there is room again.
        """
        self._is_awaited = len(self._rows) + len(self._errors) >= self.most_waiting
        return not self._is_awaited

    def on_room(self, listener: Callable[[], None]) -> None:
        """Call `listener` when there is room again."""
        self._room.append(listener)

    def hurry(self, patience_s: float) -> None:
        """The end has come: a catalogue that is away is waited for so long, and no longer."""
        self._catalogue.hurry(patience_s)

    async def wait_for_work(self) -> None:
        """Wait until something was left to be synced, confirmed or recorded."""
        if not self._rows and not self._errors and not self._rolled:
            await self._work.wait()
        self._work.clear()
        self._is_nudged = False

    def nudge(self) -> None:
        """End a wait for work."""
        self._work.set()
        self._is_nudged = True

    async def tick(self) -> None:
        """Sync, confirm, disown: what keeps a page's bytes from being lost."""
        refused, self._refused = self._refused, []
        for segment, offset in refused:
            await self._frontier.disown(segment, offset)
            if segment in self._outstanding:  # else it is of an earlier run, and handed over
                self._outstanding[segment].discard(offset)
        written = self._written()
        for segment, end in await self._durable():
            self._synced[segment] = end
        self._may_be_referred_to(written)
        marks = {segment: min((end, *self._outstanding.get(segment, ()))) for segment, end in self._synced.items()}
        ahead = {segment: mark for segment, mark in marks.items() if mark > self._confirmed.get(segment, 0)}
        await asyncio.gather(*(self._frontier.confirm(segment, mark) for segment, mark in ahead.items()))
        self._confirmed |= ahead

    def _written(self) -> list[tuple[SegmentId, int]]:
        """Captures that are settled, and that others may refer to when they are durable."""
        return [place for place in self._originals if place[1] not in self._outstanding.get(place[0], ())]

    def _may_be_referred_to(self, durable: Sequence[tuple[SegmentId, int]]) -> None:
        for place in durable:
            if (known := self._originals.pop(place, None)) is not None:
                self._duplicates.remember(*known)

    async def _durable(self) -> list[tuple[SegmentId, int]]:
        """What has become durable, by doing what makes it so."""
        return await asyncio.get_running_loop().run_in_executor(None, self._archive.sync)

    async def record(self) -> None:
        """Write what is confirmed into the catalogue, and the index of segments that will not grow any more."""
        ready = [row for row in self._rows if row.end <= self._confirmed.get(row.segment, 0)]
        errors = list(self._errors)
        loop = asyncio.get_running_loop()
        if self._near is not None:  # before: what the catalogue has is not looked at again after a kill
            await loop.run_in_executor(None, self._near.flush)
        if ready or errors:
            await loop.run_in_executor(None, self._catalogue.record, ready, errors)
        # Only now are they let go: what the catalogue refused must keep the index of its segment from being written.
        recorded = set(map(id, ready))
        self._rows = [row for row in self._rows if id(row) not in recorded]
        del self._errors[: len(errors)]
        if self._is_awaited and self.has_room():
            for listener in self._room:
                listener()
        await loop.run_in_executor(None, self._duplicates.flush)
        for part in self._learned:
            await loop.run_in_executor(None, part.flush)
        self._unwritten = {row.segment for row in self._rows}
        for segment in list(self._rolled):
            # Asked before each: while an index is written, captures of other segments are settled and confirmed.
            if segment in self._unwritten or self._outstanding.get(segment):
                continue
            # Nor while a capture that belongs to nobody is not synced: a file that has its index is looked at no more.
            if self._confirmed.get(segment, 0) > self._last.get(segment, -1):
                await self._end(segment)

    async def _end(self, segment: SegmentId) -> None:
        """Nothing of a segment is on its way any more: write its index, and forget it."""
        await asyncio.get_running_loop().run_in_executor(None, self._write_index, segment)
        self._forget(segment)

    def _forget(self, segment: SegmentId) -> None:
        self._rolled.remove(segment)
        self._outstanding.pop(segment, None)
        self._synced.pop(segment, None)
        self._confirmed.pop(segment, None)
        self._last.pop(segment, None)

    def take(self, segment: SegmentId) -> list[CaptureRow]:
        """Hand over the rows of a segment of an earlier run: recovery confirms and records it as a whole."""
        taken = [row for row in self._rows if row.segment == segment]
        self._rows = [row for row in self._rows if row.segment != segment]
        self._outstanding.pop(segment, None)
        self._last.pop(segment, None)
        return taken

    def pass_over(self, segment: SegmentId) -> None:
        """The captures of a segment were gone through, and nothing is going to refer to them (N8)."""
        self._originals = {place: known for place, known in self._originals.items() if place[0] != segment}

    def looked_at(self, segment: SegmentId) -> int:
        """Up to where the captures of a segment of an earlier run have rows that are kept beside the catalogue."""
        del segment
        return 0

    async def adopt(self, segment: SegmentId, end: int, rows: Sequence[CaptureRow]) -> None:
        """A segment of an earlier run is settled to its end: confirm it, record these rows of it, write its index."""
        await self._frontier.confirm(segment, end)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._catalogue.record, rows, ())
        await loop.run_in_executor(None, self._write_index, segment)

    async def finish(self) -> None:
        """Everything is settled: close the archive, whatever the disk says, and leave nothing unwritten."""
        try:
            await self.tick()
        finally:
            await asyncio.get_running_loop().run_in_executor(None, self._archive.close)
        await self.tick()
        await self.record()
