"""Carrying out a takedown: block, take out, prove.

The order is what makes it safe to be cut off anywhere and repeated: the catalogue tells what is to be taken out, so its
rows go last (those of what lies elsewhere, with a worker outside, are all that there is of it here, and go when all
else is done). Before them go, for each finished archive file, the index of contents (so that nothing new refers to what
goes), the captures in the file (under a receipt, whole or not at all), what the frontier knows of them, and the CDXJ
index. Whatever was done is found done when it is repeated; the proof is read from the chain in the end, and not from
memory.

Only finished files are touched: nobody writes to them. What lies in files that are still open is taken out when they
are closed; `keeping` sees to that while a crawl runs. Where the files are, and how one takes the place of another, is
the matter of `premises`.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from nephila.interfaces.catalogue import EXTERNAL, RemovableCatalogue
from nephila.interfaces.clock import Clock
from nephila.interfaces.duplicates import DigestIndex
from nephila.interfaces.frontier import UrlStory
from nephila.interfaces.near_duplicates import NearIndex
from nephila.interfaces.removal import ListedCapture
from nephila.model.errors import StorageError
from nephila.model.likeness import Likeness
from nephila.model.policy import Block
from nephila.model.record import SegmentId
from nephila.model.task import Level
from nephila.store.metadata import MetadataFields
from nephila.store.reader import WarcRecord
from nephila.store.rewriting import Rewriting, unit_at
from nephila.store.tombstone import is_tombstone
from nephila.store.trail import ARCHIVES
from nephila.urls import Address, Fingerprint, origin_of

from .premises import Premises
from .record import Rewritten, Takedown, TakedownState
from .target import Target

AT_ONCE = 500
"""URLs in one transaction of the frontier, and rows in one of the catalogue."""

_NOT_MODIFIED = 304

T = TypeVar("T")


class ForgettingFrontier(Protocol):
    """What a takedown asks of a frontier."""

    async def block(self, block: Block) -> None:
        """Ask no more for it."""

    async def forget(
        self,
        gone: Sequence[tuple[str, Fingerprint]],
        emptied: Sequence[tuple[str, Fingerprint]],
        origins: Sequence[str],
    ) -> None:
        """Forget what captures left behind that were taken out of the archive."""

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""

    async def recall(self, stories: Sequence[UrlStory], level: Level) -> int:
        """Queue URLs that have ended once more."""


class Contents(Protocol):
    """What was said before, by which new captures are known for copies. Blocks."""

    def forget(self, rows: Sequence[ListedCapture], names: Callable[[str], bool]) -> None:
        """Let nothing be taken for a copy of these captures any more; `names` says whether a URL goes."""


@dataclass(frozen=True, slots=True)
class OwnContents:
    """The indexes of a crawl directory."""

    duplicates: DigestIndex
    near: NearIndex | None
    shelf: Path
    """What is kept for browsers: all of it goes, and is asked for again."""

    def forget(self, rows: Sequence[ListedCapture], names: Callable[[str], bool]) -> None:
        """As the protocol."""
        shutil.rmtree(self.shelf, ignore_errors=True)
        for row in rows:
            if row.content_hash:
                original = self.duplicates.find(row.content_hash)
                if original is not None and names(original.url):
                    self.duplicates.forget(row.content_hash, original.record_id)
            if row.simhash is not None and self.near is not None:
                self.near.forget(Likeness(row.simhash % (1 << 64)), row.url)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a takedown works on."""

    clock: Clock
    frontier: ForgettingFrontier
    catalogue: RemovableCatalogue
    contents: Contents
    premises: Premises
    orphans: Callable[[], Mapping[SegmentId, set[int]]]
    """Captures that are listed nowhere, because their results came too late."""
    identify: Callable[[str], Address | None]
    save: Callable[[Takedown], None]
    """Keep the record of one. Blocks."""
    threaded: bool = True


@dataclass(slots=True)
class Plan:
    """What one pass is to take out, by file."""

    files: dict[SegmentId, Rewriting] = field(default_factory=dict)
    gone: list[ListedCapture] = field(default_factory=list)
    outside: list[ListedCapture] = field(default_factory=list)
    """Captures that go and lie in no file of ours: a worker outside has reported them (C1)."""
    unnamed: list[tuple[ListedCapture, bool, bool]] = field(default_factory=list)
    """Captures that stay, and whether they name what goes as their original, or as nearly the same."""
    unfinished: int = 0
    """Captures in files that are still open."""
    told_of: set[bytes] = field(default_factory=set)
    """Contents that go, of which a file that is still open says that they have not changed."""

    @property
    def emptied(self) -> list[ListedCapture]:
        """Captures that stay and whose payload goes."""
        return [row for row, same, _ in self.unnamed if same and row.kind == "revisit"]


def plan_of(target: Target, rows: Iterable[ListedCapture], finished: Callable[[SegmentId], bool]) -> Plan:
    """What is to be done, from the rows of the catalogue."""
    plan, known = Plan(), dict[SegmentId, bool]()
    for row in rows:
        goes = target.is_page(row.host, row.fingerprint) or (
            bool(row.visited) and (target.names(row.visited) or target.names(row.url))
        )
        if row.kind == EXTERNAL:  # what it calls its place is a stranger's word, and no name of a file
            if goes:
                plan.outside.append(row)
            continue
        same = not goes and target.names(row.duplicate_of)
        near = not goes and target.names(row.near_duplicate_of)
        if not (goes or same or near):
            continue
        if row.segment not in known:
            known[row.segment] = finished(row.segment)
        if not known[row.segment]:
            plan.unfinished += 1
            continue
        work = plan.files.setdefault(row.segment, Rewriting(row.segment))
        if goes:
            plan.gone.append(row)
            work.gone.add(row.offset)
        else:
            plan.unnamed.append((row, same, near))
            work.mentioning.add(row.offset)
    return plan


class Takedowns:
    """Carries out the takedowns of one crawl. For whoever holds it, one at a time."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts
        self._one = asyncio.Lock()
        self._contents: dict[str, set[bytes]] = {}
        """What the captures said that a takedown under way has taken out: they are not listed any more."""

    @property
    def parts(self) -> Parts:
        """What it works on."""
        return self._p

    async def block(self, takedown: Takedown) -> None:
        """Let it not be fetched any more."""
        for entry in self._target(takedown).blocks(takedown.at):
            await self._p.frontier.block(entry)

    async def take_out(self, takedown: Takedown) -> int:
        """One pass over all finished files; how many captures lie in files that are still open."""
        async with self._one:
            target = self._target(takedown)
            contents = self._contents.setdefault(takedown.id, set())
            plan = await self._in_thread(lambda: self._plan(target, contents))
            await self._in_thread(lambda: self._p.contents.forget([*plan.gone, *plan.outside], target.names))
            await self._in_thread(lambda: self._rewrite(plan, target, takedown))
            await self._forget_in_frontier(plan)
            await self._in_thread(lambda: self._unlist(plan, target))
            return plan.unfinished

    async def finish(self, takedown: Takedown) -> Takedown:
        """The last pass, when nothing of it can come any more: events too, and the proof."""
        await self.take_out(takedown)
        async with self._one:
            target = self._target(takedown)
            self._p.premises.roll_events()
            await self._in_thread(lambda: self._p.premises.mask_events(target, takedown))
            outside = await self._in_thread(lambda: self._unlist_outside(target))
            done = await self._in_thread(lambda: self._proven(takedown, outside))
            await self._in_thread(lambda: self._p.save(done))
            self._contents.pop(takedown.id, None)
            return done

    def _target(self, takedown: Takedown) -> Target:
        return Target(takedown.order, self._p.identify)

    async def _in_thread(self, act: Callable[[], T]) -> T:
        if not self._p.threaded:
            return act()
        acting = asyncio.get_running_loop().run_in_executor(None, act)
        try:
            return await asyncio.shield(acting)
        except asyncio.CancelledError:
            await asyncio.wait({acting})  # a thread cannot be stopped, and nobody may begin beside it
            raise

    # What is to be done

    def _plan(self, target: Target, contents: set[bytes]) -> Plan:
        finished, unfinished = self._p.premises.finished(), self._p.premises.unfinished()
        plan = plan_of(target, self._p.catalogue.removal().rows(), lambda segment: segment not in unfinished)
        if any(_is_moved(row) for row in plan.gone):
            self._add_moved_rules(plan, target, finished)
        contents.update(row.content_hash for row in plan.gone if row.content_hash)
        if contents:
            self._add_unchanged(plan, target, contents, unfinished)
        for segment, offsets in self._p.orphans().items():
            if segment in finished and (found := self._that_go(segment, offsets, lambda it: target.names(_asked(it)))):
                plan.files.setdefault(segment, Rewriting(segment)).gone |= found
        return plan

    def _add_moved_rules(self, plan: Plan, target: Target, present: set[SegmentId]) -> None:
        """A robots.txt that was redirected lies among the captures of another host, and is kept for its origin."""
        for row in self._p.catalogue.removal().rows():
            if not row.robots or row.segment not in present or target.is_page(row.host, row.fingerprint):
                continue
            if self._that_go(
                row.segment, {row.offset}, lambda it: is_tombstone(it[0]) or target.names(_rules_origin(it))
            ):
                plan.gone.append(row)
                plan.files.setdefault(row.segment, Rewriting(row.segment)).gone.add(row.offset)

    def _add_unchanged(
        self, plan: Plan, target: Target, contents: set[bytes], unfinished: Container[SegmentId]
    ) -> None:
        """A 304 is a revisit of whatever had the content first, which may be a page that goes; no row names it."""
        for row in self._p.catalogue.removal().rows():
            if row.status != _NOT_MODIFIED or row.content_hash not in contents or row.kind == EXTERNAL:
                continue
            if target.is_page(row.host, row.fingerprint):
                continue
            if row.segment in unfinished:
                plan.unfinished += 1
                plan.told_of.add(row.content_hash)
            else:
                plan.files.setdefault(row.segment, Rewriting(row.segment)).mentioning.add(row.offset)

    def _that_go(self, segment: SegmentId, offsets: set[int], goes: Callable[[list[WarcRecord]], bool]) -> set[int]:
        """Captures of which the file alone knows what they are."""
        found = set()
        try:
            with closing(self._p.premises.open(segment)) as source:
                for offset in offsets:
                    unit = unit_at(source, segment, offset)
                    if unit is not None and goes(unit):
                        found.add(offset)
        except OSError as error:
            raise StorageError(f"{segment} cannot be read: {error.strerror or error}") from error
        return found

    # Taking out

    def _rewrite(self, plan: Plan, target: Target, takedown: Takedown) -> None:
        self._p.premises.rewrite(list(plan.files.values()), takedown, lambda _record_id, url: target.names(url))

    async def _forget_in_frontier(self, plan: Plan) -> None:
        frontier = self._p.frontier
        rows = (*plan.gone, *plan.outside)
        gone = list(dict.fromkeys((row.host, Fingerprint(row.fingerprint)) for row in rows if row.fingerprint))
        emptied = list(dict.fromkeys((row.host, Fingerprint(row.fingerprint)) for row in plan.emptied))
        origins = sorted({origin_of(row.url) for row in plan.gone if row.robots})
        for first in range(0, len(gone), AT_ONCE):
            await frontier.forget(gone[first : first + AT_ONCE], (), ())
        for first in range(0, len(origins), AT_ONCE):
            await frontier.forget((), (), origins[first : first + AT_ONCE])
        for first in range(0, len(emptied), AT_ONCE):
            batch = emptied[first : first + AT_ONCE]
            await frontier.forget((), batch, ())
            stories = [frontier.story(host, fingerprint) for host, fingerprint in batch]
            ended = [story for story in stories if story is not None and story.state == "completed"]
            await frontier.recall(ended, Level.MEDIUM)

    def _unlist(self, plan: Plan, target: Target) -> None:
        catalogue, removal = self._p.catalogue, self._p.catalogue.removal()
        for segment, work in plan.files.items():
            kept = (row for row in catalogue.captures(segment) if row.offset not in work.gone)
            self._p.premises.write_index(segment, kept)
        for first in range(0, len(plan.unnamed), AT_ONCE):
            removal.unname(plan.unnamed[first : first + AT_ONCE])
        # The last of all, and not before their contents are told of nowhere: that must be known when it is repeated.
        gone = sorted((row for row in plan.gone if row.content_hash not in plan.told_of), key=_is_moved)
        for first in range(0, len(gone), AT_ONCE):
            removal.remove(gone[first : first + AT_ONCE])
        removal.forget_failures(list(target.pages))
        for name in target.order.domains:
            removal.forget_failures((), name)

    def _unlist_outside(self, target: Target) -> tuple[str, ...]:
        """Take out rows of what lies elsewhere, when all else is done: what they named is to be told by the record."""
        removal = self._p.catalogue.removal()
        rows = plan_of(target, removal.rows(), lambda _segment: True).outside
        for first in range(0, len(rows), AT_ONCE):
            removal.remove(rows[first : first + AT_ONCE])
        return tuple(f"{row.segment}#{row.offset}" for row in rows)

    # The proof

    def _proven(self, takedown: Takedown, outside: tuple[str, ...]) -> Takedown:
        """The record with what the chain says of it, when all of it is safe from a power loss."""
        self._p.catalogue.removal().make_durable()
        receipts, head = self._p.premises.proof()
        files: dict[tuple[str, str, str], Rewritten] = {}
        for at, receipt in receipts:
            if receipt.why == takedown.why:
                files[receipt.file, receipt.was[1], receipt.now[1]] = Rewritten(
                    receipt.file, at, receipt.was[1], receipt.now[1], len(receipt.removed), receipt.emptied
                )
        captures = sum(one.removed for one in files.values() if one.file.startswith(f"{ARCHIVES}/"))
        return msgspec.structs.replace(
            takedown,
            state=TakedownState.DONE,
            done_at=self._p.clock.wall_ms(),
            captures=captures,
            emptied=sum(one.emptied for one in files.values()),
            files=tuple(files.values()),
            outside=outside,
            head=head,
        )


def _is_moved(row: ListedCapture) -> bool:
    return bool(row.robots) and 300 <= row.status < 400


def _rules_origin(unit: list[WarcRecord]) -> str:
    """The origin that asked for a robots.txt."""
    return MetadataFields.parse(unit[-1].block).text("robots-origin")


def _asked(unit: list[WarcRecord]) -> str:
    """What was asked for; empty where it was taken out."""
    return unit[0].target
