"""Carrying out a takedown: block, take out, prove.

The order is what makes it safe to be cut off anywhere and repeated: the catalogue tells what is to be taken out, so its
rows go last. Before them go, for each finished archive file, the index of contents (so that nothing new refers to what
goes), the captures in the file (under a receipt, whole or not at all), what the frontier knows of them, and the CDXJ
index. Whatever was done is found done when it is repeated; the proof is read from the chain in the end, and not from
memory.

Only finished files are touched, those that have their index: nobody writes to them. What lies in files that are still
open is taken out when they are closed; `keeping` sees to that while a crawl runs.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from nephila.frontier.embedded import LmdbFrontier
from nephila.interfaces.catalogue import RemovableCatalogue
from nephila.interfaces.clock import Clock
from nephila.interfaces.duplicates import DigestIndex
from nephila.interfaces.near_duplicates import NearIndex
from nephila.interfaces.removal import ListedCapture
from nephila.model.errors import StorageError
from nephila.model.likeness import Likeness
from nephila.model.record import SegmentId
from nephila.model.task import Level
from nephila.node.directory import CrawlDirectory
from nephila.observe.eventfile import event_files
from nephila.observe.redaction import masked_line
from nephila.store import Disk, LocalArchive, LocalDisk, Trail
from nephila.store.metadata import MetadataFields
from nephila.store.reader import WarcRecord
from nephila.store.receipt import check_sealed, replace_sealed
from nephila.store.rewriting import DRAFT_SUFFIX, Rewriting, unit_at, write_draft
from nephila.store.tombstone import is_tombstone
from nephila.store.trail import ARCHIVES, EVENTS, FIRST
from nephila.store.trail_check import TrailCheck
from nephila.urls import Address, Fingerprint, origin_of

from .record import Rewritten, Takedown, TakedownFolder, TakedownState
from .target import Target

AT_ONCE = 500
"""URLs in one transaction of the frontier, and rows in one of the catalogue."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parts:
    """What a takedown works on."""

    directory: CrawlDirectory
    disk: Disk
    clock: Clock
    frontier: LmdbFrontier
    catalogue: RemovableCatalogue
    duplicates: DigestIndex
    near: NearIndex | None
    archive: LocalArchive
    trail: Trail
    identify: Callable[[str], Address | None]
    roll_events: Callable[[], None]
    """Have this process go on in another event file."""
    threaded: bool = True


@dataclass(frozen=True, slots=True)
class _Draft:
    """A file that is ready to take the place of another."""

    file: str
    draft: str
    removed: list[str]
    emptied: int = 0


@dataclass(slots=True)
class Plan:
    """What one pass is to take out, by file."""

    files: dict[SegmentId, Rewriting] = field(default_factory=dict)
    gone: list[ListedCapture] = field(default_factory=list)
    unnamed: list[tuple[ListedCapture, bool, bool]] = field(default_factory=list)
    """Captures that stay, and whether they name what goes as their original, or as nearly the same."""
    unfinished: int = 0
    """Captures in files that are still open."""

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
    """Carries out the takedowns of one crawl directory. For whoever holds it, one at a time."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts
        self.folder = TakedownFolder(parts.directory.takedowns)
        self._one = asyncio.Lock()

    async def block(self, takedown: Takedown) -> None:
        """Let it not be fetched any more."""
        for entry in self._target(takedown).blocks(takedown.at):
            await self._p.frontier.block(entry)

    async def take_out(self, takedown: Takedown) -> int:
        """One pass over all finished files; how many captures lie in files that are still open."""
        async with self._one:
            target = self._target(takedown)
            plan = await self._in_thread(lambda: self._plan(target))
            await self._in_thread(lambda: self._forget_contents(plan, target))
            await self._in_thread(lambda: self._rewrite(plan, target, takedown))
            await self._forget_in_frontier(plan)
            await self._in_thread(lambda: self._unlist(plan, target))
            return plan.unfinished

    async def finish(self, takedown: Takedown) -> Takedown:
        """The last pass, when nothing of it can come any more: events too, and the proof."""
        await self.take_out(takedown)
        async with self._one:
            target = self._target(takedown)
            self._p.roll_events()
            await self._in_thread(lambda: self._mask_events(target, takedown))
            done = await self._in_thread(lambda: self._proven(takedown))
            self.folder.save(done)
            return done

    def roll_events(self) -> None:
        """Have this process go on in another event file."""
        self._p.roll_events()

    def event_files_in_use(self) -> set[str]:
        """Event files that a process writes to: they cannot be rewritten."""
        return {path.name for path in event_files(self._p.directory.events) if not _is_nobodys(path)}

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

    def _plan(self, target: Target) -> Plan:
        unfinished = set(self._p.archive.unfinished())
        plan = plan_of(target, self._p.catalogue.removal().rows(), lambda segment: segment not in unfinished)
        present = set(self._p.archive.segments()) - unfinished
        if any(_is_moved(row) for row in plan.gone):
            self._add_moved_rules(plan, target, present)
        for segment, offsets in self._p.frontier.view.all_orphans().items():
            # Listed nowhere, because their results came too late.
            if segment in present and (found := self._that_go(segment, offsets, lambda it: target.names(_asked(it)))):
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

    def _that_go(self, segment: SegmentId, offsets: set[int], goes: Callable[[list[WarcRecord]], bool]) -> set[int]:
        """Captures of which the file alone knows what they are."""
        found = set()
        try:
            with closing(self._p.disk.open(self._p.directory.warc / segment)) as source:
                for offset in offsets:
                    unit = unit_at(source, segment, offset)
                    if unit is not None and goes(unit):
                        found.add(offset)
        except OSError as error:
            raise StorageError(f"{segment} cannot be read: {error.strerror or error}") from error
        return found

    # Taking out

    def _forget_contents(self, plan: Plan, target: Target) -> None:
        """Nothing may be taken for a copy of what goes any more; what is kept for browsers is asked for again."""
        shutil.rmtree(self._p.directory.rendering, ignore_errors=True)
        for row in plan.gone:
            if row.content_hash:
                original = self._p.duplicates.find(row.content_hash)
                if original is not None and target.names(original.url):
                    self._p.duplicates.forget(row.content_hash, original.record_id)
            if row.simhash is not None and self._p.near is not None:
                self._p.near.forget(Likeness(row.simhash % (1 << 64)), row.url)

    def _rewrite(self, plan: Plan, target: Target, takedown: Takedown) -> None:
        root, folder = self._p.directory.root, self._p.directory.warc

        def mentions(_record_id: str, url: str) -> bool:
            return target.names(url)

        drafts: list[_Draft] = []
        for segment, work in plan.files.items():
            draft = write_draft(self._p.disk, folder, work, takedown=takedown.id, at=takedown.at, mentions=mentions)
            if draft is not None:
                removed = [one.digest for one in work.removed]
                drafts.append(_Draft(f"{ARCHIVES}/{segment}", f"{ARCHIVES}/{draft}", removed, work.emptied))
        self._replace(drafts, root, self._p.disk, takedown)

    def _replace(self, drafts: Sequence[_Draft], root: Path, disk: Disk, takedown: Takedown) -> None:
        if not drafts:
            return
        check_sealed(self._p.disk, LocalDisk(), root, {one.file for one in drafts})
        for one in drafts:
            replace_sealed(
                *(self._p.trail, disk, root, one.file, one.draft),
                removed=one.removed,
                why=takedown.why,
                emptied=one.emptied,
            )

    async def _forget_in_frontier(self, plan: Plan) -> None:
        frontier = self._p.frontier
        gone = list(dict.fromkeys((row.host, Fingerprint(row.fingerprint)) for row in plan.gone if row.fingerprint))
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
            self._p.archive.write_index(segment, kept)
        for first in range(0, len(plan.unnamed), AT_ONCE):
            removal.unname(plan.unnamed[first : first + AT_ONCE])
        gone = sorted(plan.gone, key=_is_moved)  # the last of all: what they say must be known when it is repeated
        for first in range(0, len(gone), AT_ONCE):
            removal.remove(gone[first : first + AT_ONCE])
        removal.forget_failures(list(target.pages))
        for name in target.order.domains:
            removal.forget_failures((), name)

    # Events

    def _mask_events(self, target: Target, takedown: Takedown) -> None:
        """Mask what event files tell of it, but for those that are being written by others."""
        root, disk = self._p.directory.root, LocalDisk()
        drafts: list[_Draft] = []
        for path in event_files(self._p.directory.events):
            if not _is_nobodys(path):
                continue
            name = f"{path.name}{DRAFT_SUFFIX}"
            if (removed := _mask(path, path.with_name(name), target)) is not None:
                drafts.append(_Draft(f"{EVENTS}/{path.name}", f"{EVENTS}/{name}", [removed]))
        self._replace(drafts, root, disk, takedown)

    # The proof

    def _proven(self, takedown: Takedown) -> Takedown:
        """The record with what the chain says of it, when all of it is safe from a power loss."""
        self._p.catalogue.removal().make_durable()
        self._p.trail.seal(now=True)
        found = TrailCheck(self._p.directory.root, self._p.disk, LocalDisk()).run(only=("",))
        files: dict[tuple[str, str, str], Rewritten] = {}
        for at, receipt in found.receipts:
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
            head=found.heads.get(FIRST, ""),
        )


def _is_moved(row: ListedCapture) -> bool:
    return bool(row.robots) and 300 <= row.status < 400


def _rules_origin(unit: list[WarcRecord]) -> str:
    """The origin that asked for a robots.txt."""
    return MetadataFields.parse(unit[-1].block).text("robots-origin")


def _asked(unit: list[WarcRecord]) -> str:
    """What was asked for; empty where it was taken out."""
    return unit[0].target


def _is_nobodys(path: Path) -> bool:
    """Whether no process writes to an event file: each holds a lock on its own."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _mask(path: Path, draft: Path, target: Target) -> str | None:
    """Write an event file anew with lines masked: the digest of those lines, None where there is none to mask."""
    masked = sha256()
    changed = False
    try:
        with path.open("rb") as source, draft.open("wb") as out:
            for line in source:
                anew = masked_line(line, target.names, target.is_page) if target.may_be_in(line) else line
                if anew != line:
                    masked.update(line)
                    changed = True
                out.write(anew)
            out.flush()
            os.fsync(out.fileno())
        if not changed:
            draft.unlink()
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise StorageError(f"{path.name} could not be rewritten: {error.strerror or error}", "make room") from error
    return masked.hexdigest() if changed else None
