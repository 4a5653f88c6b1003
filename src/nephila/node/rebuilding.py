"""A frontier built anew from archive and catalogue, after all of it was lost (N8): `nephila frontier rebuild`.

Everything that a crawl knows has come of settling answers, and the answers lie in the archive with all that belongs to
them: where a page was found, how deep, when it was asked for and when the answer ended. So each of them is settled once
more, in the order of the archive, by the same code that settles what a kill has left behind (`recovery`), on a clock
that shows the time of the answer. Links that were found and not fetched are queued by that, rules of robots.txt come
into force, and histories, ranks, budgets and tallies of traps grow again.

It is built in a folder beside, and put into its place when it is whole: an interrupted rebuild leaves nothing but that
folder, which the next one removes. The secret of the crawl is lost with its frontier, so there is a new one, and as
the catalogue names pages by fingerprints, it is written anew as well; the old one stays beside it under another name.

What must stay true: nothing is asked of any server, and no file of the archive grows.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nephila.config import load, read_stored, write_stored
from nephila.frontier.embedded import LmdbFrontierView
from nephila.interfaces.catalogue import CaptureRow, Catalogue
from nephila.interfaces.clock import Clock
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.errors import CrawlDirectoryError, FrontierError, NephilaError, UsageError
from nephila.model.record import Capture, SegmentId, StoredCapture
from nephila.model.settings import Settings
from nephila.model.task import Candidate, PageTask, PartTask, RobotsTask
from nephila.store import SqliteCatalogue

from .addressing import identify_with
from .directory import CrawlDirectory
from .frontiers import embedded_of
from .ground import Ground
from .machinery import Machinery
from .takedown.record import TakedownFolder
from .takedown.target import Target
from .wiring import assemble

FOLDER = "rebuild"
CAPTURES_AT_ONCE = 5_000
"""After so many, what was learned of sites is written: it need not wait in memory for the end of the archive."""
LOST = (
    "policies and blocks by hand, but for takedowns",
    "seeds that were never asked for",
    "tries that left no answer, and with them dead letters",
    "notes on refused links that have no page in the archive",
    "the numbers of cycles: this is the first",
)
"""What no archive holds."""

OF_LEASES = ("worker", "assigned_at", "timeout_at")
"""Of a capture, what its lease was, which the old catalogue knows."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What came of it."""

    segments: int
    captures: int
    unowned: int
    """Captures that belong to nobody: their results had come too late."""
    pages: int
    queued: int
    hosts: int
    lost: tuple[str, ...] = LOST


class ArchiveClock:
    """Shows the time of the answer that is settled; never goes back."""

    def __init__(self) -> None:
        self._now_ms = 1

    def advance_to(self, wall_ms: int) -> None:
        """Show that instant, unless it is past."""
        self._now_ms = max(self._now_ms, wall_ms)

    def wall_ms(self) -> int:
        """UTC milliseconds."""
        return self._now_ms

    def steady_ms(self) -> int:
        """The same: nobody sets this clock."""
        return self._now_ms

    def boot_id(self) -> str:
        """Of no machine: whoever opens the frontier finds a reboot, after which every host rests a full delay."""
        return "rebuilt from the archive"


def rebuild_directory(out: Path, clock: Clock, file: Path | None = None, listed: Catalogue | None = None) -> Rebuilt:
    """Build the frontier of a crawl directory anew; `file` has the settings where the directory has none.

    `listed` is the old catalogue, where that is elsewhere.
    """
    directory = CrawlDirectory(out)
    if not directory.warc.is_dir():
        raise CrawlDirectoryError(f"there is no archive in {directory.warc}", "copy the archive's files there")
    with directory.held():
        stored = read_stored(out)
        settings = load(stored=stored, file=file if stored is None else None).settings
        _refuse(directory, settings, clock)
        scratch = _scratch(directory)
        try:
            rebuilt = asyncio.run(_rebuild(directory, scratch, _local(settings), clock, listed))
            _put_in_place(directory, scratch)
        finally:
            shutil.rmtree(scratch.root, ignore_errors=True)
        if stored is None:
            write_stored(out, _local(settings))
    return rebuilt


def _refuse(directory: CrawlDirectory, settings: Settings, clock: Clock) -> None:
    if read_stored(directory.root) is not None and (settings.archive.url or settings.catalogue.url):
        raise UsageError(
            f"the archive or the catalogue of the crawl in {directory.root} is elsewhere",
            "copy the archive's files into the folder warc of a new directory and rebuild there (docs/moving.md)",
        )
    if directory.has_frontier:
        with closing(LmdbFrontierView.open(directory.frontier, clock, settings.frontier.map_bytes)) as view:
            known = view.totals().urls
        if known:
            raise FrontierError(
                f"{directory.root} has a frontier, which knows {known:,} URLs",
                f"nothing is overwritten: move {directory.frontier} away first",
            )


def _local(settings: Settings) -> Settings:
    """The settings with everything in the directory."""
    here = Settings()
    return replace(settings, archive=replace(settings.archive, url=""), catalogue=here.catalogue, stream=here.stream)


def _scratch(directory: CrawlDirectory) -> CrawlDirectory:
    """A folder to build in, with the archive, the scope and the takedowns of the crawl, and what it learned."""
    root = directory.root / FOLDER
    shutil.rmtree(root, ignore_errors=True)
    scratch = CrawlDirectory(root)
    with scratch.held():
        scratch.warc.rmdir()
    scratch.warc, scratch.scope, scratch.takedowns = directory.warc, directory.scope, directory.takedowns
    if directory.aliases.is_dir():
        shutil.copytree(directory.aliases, scratch.aliases, ignore=shutil.ignore_patterns("lock.mdb"))
    return scratch


async def _rebuild(
    directory: CrawlDirectory, scratch: CrawlDirectory, settings: Settings, clock: Clock, listed: Catalogue | None
) -> Rebuilt:
    quick = replace(settings, frontier=replace(settings.frontier, linger_ms=0.0, sync=False))
    archived, failures = ArchiveClock(), list[NephilaError]()
    async with AsyncExitStack() as stack:
        machinery = assemble(scratch, quick, Ground(archived, threaded=False), stack, failures.append)
        old = SqliteCatalogue(directory.catalogue, read_only=True) if directory.catalogue.exists() else None
        if old is not None:
            stack.callback(old.close)
        replay = Replay(machinery, archived, old or listed)
        await replay.run()
        archived.advance_to(clock.wall_ms())
        await _block_again(directory, machinery)
        await machinery.bookkeeper.record()
        found = await _rested(machinery)
    if failures:
        raise failures[0]
    queued = sum(found.queued.values()) + sum(found.delayed.values()) + sum(found.parked.values())
    return Rebuilt(replay.segments, replay.captures, replay.unowned, found.pages, queued, found.hosts)


async def _block_again(directory: CrawlDirectory, machinery: Machinery) -> None:
    """What was to be taken down stays blocked (K2): links to it are still in the archive."""
    folder = TakedownFolder(directory.takedowns)
    for takedown in folder.newest(folder.count()):
        for entry in Target(takedown.order, identify_with(machinery.identifier)).blocks(takedown.at):
            await embedded_of(machinery.frontier).block(entry)


async def _rested(machinery: Machinery) -> FrontierSnapshot:
    """Have the present written down: the timeline goes on from there."""
    await machinery.frontier.reap_all()
    return machinery.frontier.snapshot()


class Replay:
    """Settles every capture of an archive."""

    def __init__(self, machinery: Machinery, clock: ArchiveClock, old: Catalogue | None) -> None:
        self._m = machinery
        self._frontier = embedded_of(machinery.frontier)
        self._archive = machinery.recovery.archive
        self._clock = clock
        self._old = old
        self._identify = identify_with(machinery.identifier)
        self.segments = self.captures = self.unowned = 0
        self._kept = 0
        """Captures when what was learned of sites was last written."""

    async def run(self) -> None:
        """All segments, oldest first."""
        for segment in self._archive.segments():
            await self._segment(segment)

    async def _segment(self, segment: SegmentId) -> None:
        end = self._archive.recover(segment, 0)
        if end == 0:
            return
        self.segments += 1
        known, upto = self._listed(segment)
        parts: list[CaptureRow] = []
        for capture, stored in self._archive.tail(segment, 0):
            owned = stored.ref.offset >= upto or stored.ref.offset in known
            self._clock.advance_to(capture.fetched.ended_at)
            if owned and isinstance(capture.task, PartTask):
                parts.append(self._m.recovery.row_of_part(capture, stored))
                self.captures += 1
            elif owned and await self._settle(capture, stored):
                self.captures += 1
            else:
                await self._frontier.disown(segment, stored.ref.offset)
                self.unowned += 1
        books = self._m.bookkeeper
        rows = sorted([*parts, *books.take(segment)], key=lambda row: row.offset)
        rows = [replace(row, **known[row.offset]) if row.offset in known else row for row in rows]
        await books.adopt(segment, end, rows)
        books.pass_over(segment)
        if self.captures - self._kept >= CAPTURES_AT_ONCE:
            self._kept = self.captures
            await books.record()

    def _listed(self, segment: SegmentId) -> tuple[dict[int, dict[str, Any]], int]:
        """What the old catalogue alone has of its captures of a segment, by offset; and up to where it lists all."""
        if self._old is None:
            return {}, 0
        found = {row.offset: {name: getattr(row, name) for name in OF_LEASES} for row in self._old.captures(segment)}
        return found, self._old.upto(segment)

    async def _settle(self, capture: Capture, stored: StoredCapture) -> bool:
        """Settle one; False where it belongs to nobody."""
        address = self._identify(capture.task.url)
        if address is None:
            return False
        match capture.task:
            case RobotsTask() as task:
                await self._frontier.lease_robots_again(capture.token, task, address.host)
            case PartTask():
                return False
            case PageTask() as task:
                candidate = Candidate(address, task.depth, task.level, task.hops)
                via = self._identify(capture.via) if capture.via else None
                if not await self._frontier.lease_again(capture.token, candidate, via, stored.ref):
                    return False
                capture = replace(capture, task=replace(task, fingerprint=address.fingerprint))
        return await self._m.recovery.settle_again(capture, stored)


def _put_in_place(directory: CrawlDirectory, scratch: CrawlDirectory) -> None:
    """The catalogue first: a frontier without it would be found in want of it, and have it listed again."""
    if directory.catalogue.exists():
        aside = directory.catalogue.with_name("catalogue-before-rebuild.sqlite")
        for end in ("", "-wal", "-shm"):
            old = directory.catalogue.with_name(directory.catalogue.name + end)
            if old.exists():
                old.replace(aside.with_name(aside.name + end))
    for end in ("", "-wal", "-shm"):
        new = scratch.catalogue.with_name(scratch.catalogue.name + end)
        if new.exists():
            new.replace(directory.catalogue.with_name(directory.catalogue.name + end))
    shutil.rmtree(directory.frontier, ignore_errors=True)
    scratch.frontier.replace(directory.frontier)
