"""Carrying out a retention: by the steps of a takedown, but that nothing is blocked and nobody is told.

Some files at a time, revisits before what they refer to, in the order that makes it safe to be cut off anywhere and
repeated: the index of contents forgets what goes, so that nothing new refers to it; what is to be kept elsewhere is
copied, durably; the files are rewritten under receipts; the frontier forgets what it knows of contents that go; the
CDXJ indexes are written anew; the rows go last, because they say what is to be done. Whatever was done is found done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

from nephila.interfaces.clock import Clock
from nephila.interfaces.duplicates import DigestIndex
from nephila.interfaces.near_duplicates import NearIndex
from nephila.model.likeness import Likeness
from nephila.model.noun import noun
from nephila.model.record import SegmentId
from nephila.node.takedown.carrying_out import AT_ONCE, ForgettingFrontier
from nephila.node.takedown.premises import Premises
from nephila.store import SqliteCatalogue
from nephila.store.moving import Elsewhere
from nephila.store.retention import TURNS, Choice, Outdated, RetentionRule, in_batches
from nephila.store.rewriting import Rewriting
from nephila.urls import Fingerprint

_NOT_MODIFIED = 304
BATCH_BYTES = 4_000_000_000
"""Of files that are written anew before they take each other's place: so much room is needed on the disk."""
BATCH_FILES = 5_000

Going = Mapping[SegmentId, Sequence[Outdated]]
"""What goes from each file of a batch."""
T = TypeVar("T")


@noun
class Retained:
    """What came of it."""

    choice: Choice
    """What was to go."""
    captures: int
    """What went."""
    moved: int
    """Captures that were copied elsewhere by this run."""
    is_finished: bool
    """Whether all of it is done: it was not stopped."""


@noun
class RetentionCause:
    """What tombstones and receipts say."""

    at: int
    id: str = "retention"
    why: str = "retention"


@noun
class RetentionParts:
    """What a retention works on."""

    clock: Clock
    frontier: ForgettingFrontier
    catalogue: SqliteCatalogue
    duplicates: DigestIndex
    near: NearIndex | None
    premises: Premises
    archive: Path
    marks: Path
    """The file of what was indexed."""
    threaded: bool = True


class Retention:
    """Carries out retentions in a crawl that nobody else works on."""

    def __init__(
        self,
        parts: RetentionParts,
        elsewhere: Elsewhere | None = None,
        tell: Callable[[int, int], None] = lambda _done, _files: None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """`tell` hears how many files are done, and of how many; `is_stopped` is asked before each batch of them."""
        self._p = parts
        self._elsewhere = elsewhere
        self._tell = tell
        self._is_stopped = is_stopped

    async def carry_out(self, rule: RetentionRule) -> Retained:
        """Choose, and take out. Raises `StorageError`; what was done until then stays done."""
        at, retention = self._p.clock.wall_ms(), self._p.catalogue.retention()
        choice = await self._in_thread(lambda: retention.choose(rule, self._p.marks))
        files = {turn: retention.files(turn) for turn in TURNS}
        moved = taken_out = done = 0
        total = sum(map(len, files.values()))
        for turn, batch in self._batches(files):
            if self._is_stopped():
                break
            going = {segment: retention.of_file(number, turn) for number, segment in batch}
            moved += await self._in_thread(partial(self._take_out, going, at))
            if rule.before:
                await self._forget_in_frontier(going)
            await self._in_thread(partial(self._unlist, going))
            taken_out += sum(map(len, going.values()))
            done += len(batch)
            self._tell(done, total)
        await self._in_thread(self._p.catalogue.removal().make_durable)
        return Retained(choice, taken_out, moved, done == total)

    async def _in_thread(self, act: Callable[[], T]) -> T:
        return await asyncio.to_thread(act) if self._p.threaded else act()

    def _batches(
        self, files: Mapping[int, Sequence[tuple[int, SegmentId]]]
    ) -> Iterator[tuple[int, list[tuple[int, SegmentId]]]]:
        for turn in TURNS:
            for batch in in_batches(files[turn], self._size_of, BATCH_BYTES, BATCH_FILES):
                yield turn, batch

    def _size_of(self, segment: SegmentId) -> int:
        with closing(self._p.premises.open(segment)) as file:
            return file.size()

    def _take_out(self, going: Going, at: int) -> int:
        """Out of what is known of contents, and of the files; how many captures were moved elsewhere."""
        for rows in going.values():
            self._forget_contents(rows)
        self._p.duplicates.flush()
        moved = 0
        if self._elsewhere is not None:
            for segment, rows in going.items():
                offsets = [row.offset for row in rows]
                listed = self._p.catalogue.captures(segment)
                moved += self._elsewhere.take(self._p.archive / segment, segment, offsets, listed, at)
        works = [Rewriting(segment, {row.offset for row in rows}) for segment, rows in going.items()]
        self._p.premises.rewrite(works, RetentionCause(at), lambda _record_id, _url: False)
        return moved

    def _forget_contents(self, rows: Sequence[Outdated]) -> None:
        """Let nothing new be taken for a copy of what goes."""
        for row in rows:
            known = self._p.duplicates.find(row.content_hash) if row.content_hash else None
            if known is not None and (known.url, known.at) == (row.url, row.at):
                self._p.duplicates.forget(row.content_hash, known.record_id)

    async def _forget_in_frontier(self, going: Going) -> None:
        """Pages whose content goes are asked for in full the next time: what a 304 would refer to is gone."""
        gone: list[tuple[str, Fingerprint]] = []
        for rows in going.values():
            for row in rows:
                story = self._p.frontier.story(row.host, Fingerprint(row.fingerprint)) if row.fingerprint else None
                if story is None or row.status == _NOT_MODIFIED or story.digest != row.content_hash:
                    continue
                gone.append((row.host, Fingerprint(row.fingerprint)))
                if row.simhash is not None and self._p.near is not None:
                    self._p.near.forget(Likeness(row.simhash % (1 << 64)), row.url)
        for first in range(0, len(gone), AT_ONCE):
            await self._p.frontier.forget((), gone[first : first + AT_ONCE], ())

    def _unlist(self, going: Going) -> None:
        retention = self._p.catalogue.retention()
        for segment, rows in going.items():
            offsets = {row.offset for row in rows}
            kept = (row for row in self._p.catalogue.captures(segment) if row.offset not in offsets)
            self._p.premises.write_index(segment, kept)
            for first in range(0, len(rows), AT_ONCE):
                retention.remove(rows[first : first + AT_ONCE])
