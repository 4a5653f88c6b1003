"""Retention by command: what would go, and a run that fetches nothing and takes it out (`nephila retain`).

And the marks of what downstream has indexed, which an age limit spares (`nephila indexed`).
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop

from nephila.config import Configured
from nephila.frontier.embedded import LmdbFrontier, LmdbFrontierView
from nephila.interfaces.catalogue import Catalogue
from nephila.interfaces.events import EventSink
from nephila.interfaces.objects import RewritingStore
from nephila.interfaces.retention import Choice, Marks, RetainingCatalogue, RetentionRule
from nephila.model.errors import NephilaError, StorageError, UsageError
from nephila.model.settings import RetentionSettings, Settings
from nephila.model.summary import StoppedBy
from nephila.node.archiving import object_store
from nephila.node.cataloguing import identity_of, read_catalogue
from nephila.node.clock import SystemClock
from nephila.node.collector import calm_collector
from nephila.node.directory import CrawlDirectory
from nephila.node.ground import Ground
from nephila.node.inspect import begun
from nephila.node.machinery import Machinery
from nephila.node.memory import check_memory_limits, threads
from nephila.node.opening import opened
from nephila.node.stopping import obey_no_more, obey_signals
from nephila.store import ArchivePlace
from nephila.store.indexed import IndexedMarks, captures_named
from nephila.store.publishing import PublishingCatalogue

from .carrying_out import DirectoryContents, Retained, Retention, RetentionParts
from .spooled import StoredPremises
from .target import check_target, elsewhere_at

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
    _refuse_worker(configured.settings)
    rule = rule_of(configured.settings.retention, SystemClock().wall_ms())
    with read_catalogue(directory, configured.settings) as catalogue:
        return retaining(catalogue).retention(directory.indexed).foresee(rule)


def retain(out: Path, configured: Configured, elsewhere: str, listeners: Sequence[EventSink], tell: Tell) -> Retained:
    """Take out what need not be kept, or move it; raises `CrawlDirectoryError` while a crawl runs there."""
    _refuse_worker(configured.settings)
    rule = rule_of(configured.settings.retention, SystemClock().wall_ms())
    check_target(elsewhere, configured.settings, out)
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
    elsewhere: str,
    listeners: Sequence[EventSink],
    tell: Tell,
) -> Retained:
    CrawlDirectory(out).check()
    done: list[Retained] = []
    stopped = asyncio.Event()
    async with opened(out, configured, Ground(SystemClock()), listeners=listeners, for_good=False) as crawl:
        obey_signals(lambda _: stopped.set())
        machinery = crawl.machinery

        async def carry_out() -> None:
            secret = machinery.frontier.secret
            async with (
                parts_of(machinery, CrawlDirectory(out)) as parts,
                elsewhere_at(elsewhere, configured.settings, secret) as place,
            ):
                done.append(await Retention(parts, place, tell, stopped.is_set).carry_out(rule))

        crawl.afterwards = carry_out
        crawl.stop(StoppedBy.DONE)
        summary = await crawl.run()
    if not done:
        raise NephilaError(summary.failure or "it was broken off", "do it again: it goes on where it was")
    return done[0]


@asynccontextmanager
async def parts_of(
    machinery: Machinery, directory: CrawlDirectory, objects: RewritingStore | None = None
) -> AsyncIterator[RetentionParts]:
    """What a retention of a crawl directory works on, until the end of the block, when its books are closed.

    `objects` stands in for the store that the settings name.
    """
    settings, books = machinery.settings, machinery.books
    if not isinstance(books.frontier, LmdbFrontier):
        raise UsageError("the frontier of this crawl is not in its directory", "name the fleet: --config FILE")
    threaded = machinery.threaded
    contents = DirectoryContents(books.duplicates, books.near, threaded)
    catalogue = retaining(books.catalogue)
    common = (machinery.clock, books.frontier, catalogue, catalogue.retention(directory.indexed), contents)
    if machinery.takedowns is not None:
        yield RetentionParts(*common, machinery.takedowns.parts.premises, threaded=threaded)
        return
    if machinery.shipper is not None and (waiting := machinery.shipper.standing.segments):
        raise StorageError(
            f"{waiting} archive files wait in the spool for {settings.archive.url}", hint="`nephila flush` brings them."
        )
    place = ArchivePlace.parse(settings.archive.url)
    store = objects or object_store(settings, machinery.clock, uploads=1)
    try:
        with tempfile.TemporaryDirectory(prefix="nephila-retention-") as scratch:
            premises = StoredPremises(directory.root, store, place, machinery.evidence.trail, Path(scratch))
            yield RetentionParts(*common, premises, threaded=threaded)
    finally:
        await store.close()


def _refuse_worker(settings: Settings) -> None:
    if settings.fleet.crawl:
        raise UsageError("this is the directory of a worker, and not a crawl's", "name the fleet: --config FILE")


def retaining(catalogue: Catalogue) -> RetainingCatalogue:
    """A catalogue as retention asks it, without what it tells others."""
    if isinstance(catalogue, PublishingCatalogue):
        catalogue = catalogue.itself
    if not isinstance(catalogue, RetainingCatalogue):
        raise UsageError("the catalogue of this crawl does not tell what need not be kept", "see docs/retention.md")
    return catalogue


def mark_indexed(out: Path, lines: Iterable[str]) -> tuple[int, int]:
    """Mark captures as indexed, all or none: how many were new, and how many there are. A crawl may run."""
    directory, settings = begun(out)
    view = LmdbFrontierView.open(directory.frontier, SystemClock(), settings.frontier.map_bytes)
    try:
        identity = identity_of(view.secret)
    finally:
        view.close()
    named = captures_named(lines, identity)
    if not settings.catalogue.url:
        return IndexedMarks(directory.indexed).add(named)
    with read_catalogue(directory, settings) as catalogue:
        return marks_of(catalogue).add(named)


def marks_of(catalogue: Catalogue) -> Marks:
    """The marks that a catalogue keeps itself."""
    from nephila.store.postgres import PostgresCatalogue  # noqa: PLC0415 - only where it is asked for

    if not isinstance(catalogue, PostgresCatalogue):
        raise UsageError("this catalogue keeps no marks", "see docs/retention.md")
    return catalogue.indexed()
