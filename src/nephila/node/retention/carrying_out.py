"""Carrying out a retention: by the steps of a takedown, but that nothing is blocked and nobody is told.

What is known of contents forgets all that goes, so that nothing new refers to it; and the frontier, where contents of
pages go, so that no 304 does. Then some files at a time, revisits before what they refer to, in the order that makes it
safe to be cut off anywhere and repeated: what is to be kept elsewhere is copied, durably; the files are rewritten under
receipts; the CDXJ indexes are written anew; the rows go last, because they say what is to be done. Whatever was done is
found done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from nephila.interfaces.catalogue import RemovableCatalogue
from nephila.interfaces.clock import Clock
from nephila.interfaces.duplicates import DigestIndex
from nephila.interfaces.frontier import UrlStory
from nephila.interfaces.near_duplicates import NearIndex
from nephila.interfaces.retention import TURNS, CatalogueRetention, Choice, Outdated, RetentionRule
from nephila.model.errors import StorageError
from nephila.model.likeness import Likeness
from nephila.model.noun import noun
from nephila.model.record import SegmentId
from nephila.node.takedown.carrying_out import AT_ONCE
from nephila.node.takedown.premises import ArchiveFiles
from nephila.store.moving import Elsewhere
from nephila.store.retention import in_batches
from nephila.store.rewriting import Rewriting
from nephila.urls import Fingerprint

_NOT_MODIFIED = 304
BATCH_BYTES = 4_000_000_000
"""Of files that are written anew before they take each other's place: so much room is needed on the disk."""
BATCH_FILES = 5_000

Going = Mapping[SegmentId, Sequence[Outdated]]
"""What goes from each file of a batch."""
Files = Mapping[int, Sequence[tuple[int, SegmentId]]]
"""By turn."""
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


class OutdatedPages(Protocol):
    """What a retention asks of a frontier."""

    async def forget(
        self,
        gone: Sequence[tuple[str, Fingerprint]],
        emptied: Sequence[tuple[str, Fingerprint]],
        origins: Sequence[str],
    ) -> None:
        """Forget what captures left behind that are taken out of the archive."""

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""


class OutdatedContents(Protocol):
    """What was said before, by which new captures are known for copies."""

    async def forget(self, rows: Sequence[Outdated], *, pages: Sequence[Outdated]) -> None:
        """Let nothing new be taken for a copy of these captures; nor, nearly, of those `pages`. Durable at the end."""


@dataclass(frozen=True, slots=True)
class DirectoryContents:
    """The indexes of a crawl directory."""

    duplicates: DigestIndex
    near: NearIndex | None
    threaded: bool = True

    async def forget(self, rows: Sequence[Outdated], *, pages: Sequence[Outdated]) -> None:
        """As the protocol."""
        act = partial(self._forget, rows, pages)
        await (asyncio.to_thread(act) if self.threaded else _done(act))

    def _forget(self, rows: Sequence[Outdated], pages: Sequence[Outdated]) -> None:
        for row in rows:
            known = self.duplicates.find(row.content_hash) if row.content_hash else None
            if known is not None and (known.url, known.at) == (row.url, row.at):
                self.duplicates.forget(row.content_hash, known.record_id)
        self.duplicates.flush()
        for row in pages:
            if row.simhash is not None and self.near is not None:
                self.near.forget(Likeness(row.simhash % (1 << 64)), row.url)


async def _done(act: Callable[[], None]) -> None:
    act()


@dataclass(frozen=True, slots=True)
class RetentionParts:
    """What a retention works on."""

    clock: Clock
    frontier: OutdatedPages
    catalogue: RemovableCatalogue
    choosing: CatalogueRetention
    """Of that catalogue."""
    contents: OutdatedContents
    premises: ArchiveFiles
    is_alone: Callable[[], Awaitable[None]] | None = None
    """Awaited when all is forgotten that goes: raises where somebody may know it all the same."""
    threaded: bool = True


class Retention:
    """Carries out retentions of a crawl, one at a time."""

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
        at, choosing = self._p.clock.wall_ms(), self._p.choosing
        choice = await self._in_thread(lambda: choosing.choose(rule))
        files = {turn: await self._in_thread(partial(choosing.files, turn)) for turn in TURNS}
        await self._forget(files, by_age=bool(rule.before))
        moved = taken_out = done = 0
        total = sum(map(len, files.values()))
        batches = self._batches(files)
        while (found := await self._in_thread(lambda: next(batches, None))) is not None and not self._is_stopped():
            turn, batch = found
            going = await self._in_thread(partial(self._going, turn, batch))
            moved += await self._in_thread(partial(self._take_out, going, at))
            taken_out += sum(map(len, going.values()))
            done += len(batch)
            self._tell(done, total)
        await self._in_thread(self._p.catalogue.removal().make_durable)
        return Retained(choice, taken_out, moved, done == total)

    async def _in_thread(self, act: Callable[[], T]) -> T:
        return await asyncio.to_thread(act) if self._p.threaded else act()

    def _batches(self, files: Files) -> Iterator[tuple[int, list[tuple[int, SegmentId]]]]:
        for turn in TURNS:
            for batch in in_batches(files[turn], self._size_of, BATCH_BYTES, BATCH_FILES):
                yield turn, batch

    def _size_of(self, segment: SegmentId) -> int:
        try:
            with closing(self._p.premises.open(segment)) as file:
                return file.size()
        except OSError as error:
            raise StorageError(
                f"{segment} cannot be read: {(error.strerror or str(error)).lower()}.",
                hint="Nothing was changed in it; `nephila audit` tells what is missing.",
            ) from error

    def _going(self, turn: int, batch: Sequence[tuple[int, SegmentId]]) -> Going:
        return {segment: self._p.choosing.of_file(number, turn) for number, segment in batch}

    # Out of what is known

    async def _forget(self, files: Files, *, by_age: bool) -> None:
        """Let nothing new refer to what goes; pages whose content goes are asked for in full the next time."""
        for turn in TURNS:
            for number, _ in files[turn]:
                rows = await self._in_thread(partial(self._p.choosing.of_file, number, turn))
                pages = [row for row in rows if self._is_content(row)] if by_age else []
                for first in range(0, len(pages), AT_ONCE):
                    gone = [(row.host, Fingerprint(row.fingerprint)) for row in pages[first : first + AT_ONCE]]
                    await self._p.frontier.forget((), gone, ())
                await self._p.contents.forget(rows, pages=pages)
        if self._p.is_alone is not None:
            await self._p.is_alone()

    def _is_content(self, row: Outdated) -> bool:
        """Whether a capture is what the frontier knows of its page: what a 304 would refer to."""
        if not row.fingerprint or row.status == _NOT_MODIFIED:
            return False
        story = self._p.frontier.story(row.host, Fingerprint(row.fingerprint))
        return story is not None and story.digest == row.content_hash

    # Out of files and catalogue

    def _take_out(self, going: Going, at: int) -> int:
        """How many captures were moved elsewhere."""
        moved = 0
        if self._elsewhere is not None:
            for segment, rows in going.items():
                with closing(self._p.premises.open(segment)) as file:
                    offsets, listed = [row.offset for row in rows], partial(self._p.catalogue.captures, segment)
                    moved += self._elsewhere.take(file, segment, offsets, listed, at)
        works = [Rewriting(segment, {row.offset for row in rows}) for segment, rows in going.items()]
        self._p.premises.rewrite(works, RetentionCause(at), lambda _record_id, _url: False)
        for segment, rows in going.items():
            self._unlist(segment, rows)
        return moved

    def _unlist(self, segment: SegmentId, rows: Sequence[Outdated]) -> None:
        gone = {row.offset for row in rows}
        kept = (row for row in self._p.catalogue.captures(segment) if row.offset not in gone)
        self._p.premises.write_index(segment, kept)
        for first in range(0, len(rows), AT_ONCE):
            self._p.choosing.remove(rows[first : first + AT_ONCE])
