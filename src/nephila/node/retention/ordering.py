"""Retention by command: what would go, and a run that fetches nothing and takes it out (`nephila retain`).

And the marks of what downstream has indexed, which an age limit spares (`nephila indexed`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import uvloop

from nephila import VERSION
from nephila.config import Configured
from nephila.engines.disk import LocalDisk
from nephila.frontier.embedded import LmdbFrontierView
from nephila.interfaces.events import EventSink
from nephila.model.errors import NephilaError, UsageError
from nephila.model.settings import RetentionSettings, Settings
from nephila.model.summary import StoppedBy
from nephila.node.cataloguing import identity_of
from nephila.node.clock import SystemClock
from nephila.node.collector import calm_collector
from nephila.node.directory import CrawlDirectory
from nephila.node.ground import Ground
from nephila.node.inspect import begun
from nephila.node.memory import check_memory_limits, threads
from nephila.node.opening import opened
from nephila.node.stopping import obey_no_more, obey_signals
from nephila.node.takedown import TakedownKeeper
from nephila.node.takedown.carrying_out import OwnContents
from nephila.store import CrawlIdentity, SqliteCatalogue
from nephila.store.indexed import IndexedMarks, captures_named
from nephila.store.moving import Elsewhere
from nephila.store.publishing import PublishingCatalogue
from nephila.store.retention import Choice, RetentionRule

from .carrying_out import Retained, Retention, RetentionParts

Tell = Callable[[int, int], None]


def rule_of(settings: RetentionSettings, now_ms: int) -> RetentionRule:
    """What the settings ask for; raises `UsageError` where that is nothing."""
    if not settings.captures and not settings.max_age_s:
        raise UsageError(
            "with all captures of a page kept, and no age limit, there is nothing that could go",
            "give --captures, --older-than, or both",
        )
    before = now_ms - int(settings.max_age_s * 1000) if settings.max_age_s else 0
    return RetentionRule(settings.captures, max(0, before))


def foresee(out: Path, configured: Configured) -> Choice:
    """What would go, as the catalogue has it now. Nothing is changed; a crawl may run."""
    directory, _ = begun(out)
    _refuse(configured.settings)
    rule = rule_of(configured.settings.retention, SystemClock().wall_ms())
    catalogue = SqliteCatalogue(directory.catalogue, read_only=True)
    try:
        return catalogue.retention().choose(rule, directory.indexed)
    finally:
        catalogue.close()


def retain(
    out: Path, configured: Configured, elsewhere: Path | None, listeners: Sequence[EventSink], tell: Tell
) -> Retained:
    """Take out what need not be kept, or move it; raises `CrawlDirectoryError` while a crawl runs there."""
    _refuse(configured.settings)
    rule = rule_of(configured.settings.retention, SystemClock().wall_ms())
    if elsewhere is not None:
        _refuse_inside(out, elsewhere)
    check_memory_limits(configured.settings.frontier.map_bytes)
    calm_collector()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, threads(runner.get_loop()):
            return runner.run(_retain(out, configured, rule, elsewhere, listeners, tell))
    finally:
        obey_no_more()


async def _retain(
    out: Path,
    configured: Configured,
    rule: RetentionRule,
    elsewhere: Path | None,
    listeners: Sequence[EventSink],
    tell: Tell,
) -> Retained:
    CrawlDirectory(out).check()
    done: list[Retained] = []
    stopped = asyncio.Event()
    async with opened(out, configured, Ground(SystemClock()), listeners=listeners, for_good=False) as crawl:
        obey_signals(lambda _: stopped.set())
        keeper = crawl.machinery.takedowns
        parts = parts_of(keeper, CrawlDirectory(out)) if keeper is not None else None
        if keeper is None or parts is None:
            raise UsageError("archive or catalogue of this crawl are not in its directory", "see docs/retention.md")
        place = None
        if elsewhere is not None:
            identity = CrawlIdentity(crawl.machinery.frontier.secret, f"Nephila/{VERSION}")
            place = Elsewhere(elsewhere, LocalDisk(), identity)
        retention = Retention(parts, place, tell, stopped.is_set)

        async def carry_out() -> None:
            done.append(await retention.carry_out(rule))

        keeper.afterwards = carry_out
        crawl.stop(StoppedBy.DONE)
        summary = await crawl.run()
    if not done:
        raise NephilaError(summary.failure or "it was broken off", "do it again: it goes on where it was")
    return done[0]


def parts_of(keeper: TakedownKeeper, directory: CrawlDirectory) -> RetentionParts | None:
    """What a retention works on: what takedowns do, where all of it is in the crawl's directory."""
    parts = keeper.parts
    catalogue = parts.catalogue
    if isinstance(catalogue, PublishingCatalogue):
        catalogue = catalogue.itself
    if not isinstance(catalogue, SqliteCatalogue) or not isinstance(parts.contents, OwnContents):
        return None
    return RetentionParts(
        parts.clock,
        parts.frontier,
        catalogue,
        parts.contents.duplicates,
        parts.contents.near,
        parts.premises,
        directory.warc,
        directory.indexed,
        parts.threaded,
    )


def mark_indexed(out: Path, lines: Iterable[str]) -> tuple[int, int]:
    """Mark captures as indexed, all or none: how many were new, and how many there are. A crawl may run."""
    directory, settings = begun(out)
    view = LmdbFrontierView.open(directory.frontier, SystemClock(), settings.frontier.map_bytes)
    try:
        identity = identity_of(view.secret)
    finally:
        view.close()
    return IndexedMarks(directory.indexed).add(captures_named(lines, identity))


def _refuse(settings: Settings) -> None:
    """Raise `UsageError` where files or rows are not ours to rewrite."""
    if settings.archive.url or settings.fleet.crawl:
        raise UsageError(
            f"the archive of this crawl is in {settings.archive.url or 'a store'}, where objects are never overwritten",
            "a rule of the bucket can let them expire",
        )
    if settings.catalogue.url:
        raise UsageError(
            "the catalogue of this crawl is in PostgreSQL, and retention works on crawl directories only",
            "see docs/retention.md",
        )


def _refuse_inside(out: Path, elsewhere: Path) -> None:
    if elsewhere.resolve().is_relative_to(out.resolve()):
        raise UsageError(
            f"{elsewhere} lies in the crawl directory, where files that no chain knows count as tampering",
            "choose a directory outside of it",
        )
    if elsewhere.exists() and not elsewhere.is_dir():
        raise UsageError(f"{elsewhere} is no directory", "choose another one")
