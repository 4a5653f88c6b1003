"""A crawl as a process runs it: the loop, the signals, the directory's lock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import uvloop

from nephila.config import Configured
from nephila.fetch import raise_descriptor_limit
from nephila.interfaces.events import EventSink
from nephila.model.errors import NephilaError, UsageError
from nephila.model.summary import CrawlSnapshot, CrawlSummary, StoppedBy
from nephila.seeds import SeedReport, SeedSource

from .cataloguing import identity_of, read_catalogue
from .clock import SystemClock
from .collector import calm_collector
from .directory import CrawlDirectory
from .ground import Ground
from .importance.beside import Recomputing
from .importance.freshening import Freshening
from .machinery import Machinery
from .memory import check_memory_limits, threads
from .noting import GivenSeeds
from .opening import opened
from .processes import process_count, supervised
from .scopefile import check_scope
from .sowing import check_sown
from .stopping import obey_no_more, obey_signals
from .watching import Overhearing, Watch


class Running(Protocol):
    """A crawl that runs, in one process or in several."""

    seed_report: SeedReport | None
    sown: asyncio.Event
    """Set when the seeds are read, or cannot be."""

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was ever admitted."""

    def snapshot(self) -> CrawlSnapshot:
        """The figures of this moment."""

    def processes(self) -> Sequence[int]:
        """The ids of processes that work for this one."""

    @property
    def machinery(self) -> Machinery:
        """The parts of this process, for whoever operates the crawl while it runs."""

    def nudge(self) -> None:
        """Look again: somebody has brought work or lifted a pause."""

    def warn(self, reason: str, detail: str) -> None:
        """Tell the listeners something that concerns the crawl as a whole."""

    def fail(self, error: NephilaError) -> None:
        """End cleanly because of our own failure."""

    def stop(self, reason: StoppedBy = StoppedBy.INTERRUPT) -> None:
        """End cleanly."""

    async def run(self, seeds: Sequence[SeedSource] = (), *, new_cycle: bool = False) -> CrawlSummary:
        """Crawl to the end."""


View = Callable[[Running], Coroutine[Any, Any, None]]
Serve = Callable[[Running, Watch], Coroutine[Any, Any, None]]


def run_crawl(
    out: Path,
    configured: Configured,
    seeds: Sequence[SeedSource],
    *,
    new_cycle: bool = False,
    listeners: Sequence[EventSink] = (),
    view: View | None = None,
    serve: Serve | None = None,
    given: GivenSeeds | None = None,
) -> CrawlSummary:
    """Crawl until it ends; `view` and `serve` run beside it. The first signal stops cleanly, a second at once.

    `given` notes the seeds where the crawl goes on.
    """
    raise_descriptor_limit(1)  # the loop itself needs some
    check_memory_limits(configured.settings.frontier.map_bytes)
    if not (seeds or configured.settings.plugins.enabled):
        check_scope(out, configured.settings)
    calm_collector()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, threads(runner.get_loop()):
            return runner.run(
                _crawl(
                    out,
                    configured,
                    seeds,
                    new_cycle=new_cycle,
                    listeners=listeners,
                    view=view,
                    serve=serve,
                    given=given,
                )
            )
    finally:
        obey_no_more()


def run_flush(out: Path, configured: Configured, *, listeners: Sequence[EventSink] = ()) -> CrawlSummary:
    """Bring what a crawl left in its spool to the archive's store, carry out takedowns, and fetch nothing."""
    raise_descriptor_limit(1)
    check_memory_limits(configured.settings.frontier.map_bytes)
    calm_collector()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, threads(runner.get_loop()):
            return runner.run(_flush(out, configured, listeners))
    finally:
        obey_no_more()


async def _flush(out: Path, configured: Configured, listeners: Sequence[EventSink]) -> CrawlSummary:
    CrawlDirectory(out).check()
    async with opened(out, configured, Ground(SystemClock()), listeners=listeners, for_good=False) as crawl:
        obey_signals(lambda _: crawl.stop(StoppedBy.INTERRUPT))
        crawl.stop(StoppedBy.DONE)
        return await crawl.run()


async def _crawl(
    out: Path,
    configured: Configured,
    seeds: Sequence[SeedSource],
    *,
    new_cycle: bool,
    listeners: Sequence[EventSink],
    view: View | None,
    serve: Serve | None,
    given: GivenSeeds | None,
) -> CrawlSummary:
    if not seeds and not configured.settings.plugins.enabled and not CrawlDirectory(out).marker.exists():
        raise UsageError("there are no seeds", hint="give a URL, --seeds FILE or --domains CSV")
    overhearing = Overhearing()
    async with _opened(out, configured, [*listeners, overhearing]) as crawl:
        obey_signals(lambda _: crawl.stop(StoppedBy.INTERRUPT))
        workers = process_count(configured.settings)
        watch = Watch(crawl.machinery, crawl.snapshot, crawl.warn, overhearing, workers, crawl.processes)
        viewing = asyncio.create_task(view(crawl), name="view") if view is not None else None
        ranking = Recomputing(out, configured.settings.rank, lambda: crawl.snapshot().pages, crawl.warn)
        ranked = asyncio.create_task(ranking.run(), name="rank")
        fresh = asyncio.create_task(_freshening(crawl).run(crawl.nudge, crawl.warn), name="fresh")
        for task in (ranked, fresh):
            task.add_done_callback(partial(_did_without, crawl))
        beside = [asyncio.create_task(watch.run(), name="watch")]
        if serve is not None:
            beside.append(asyncio.create_task(serve(crawl, watch), name="serve"))
        if given is not None and not crawl.is_untouched:
            beside.append(asyncio.create_task(_note(crawl, given), name="changes"))
        for task in beside:
            task.add_done_callback(partial(_broke, crawl))
        try:
            summary = await crawl.run(seeds, new_cycle=new_cycle)
        finally:
            for task in (ranked, fresh, *beside):
                task.cancel()
            await asyncio.gather(ranked, fresh, *beside, return_exceptions=True)  # what broke was told
            if viewing is not None:
                viewing.cancel()
                with suppress(asyncio.CancelledError):
                    await viewing
        if crawl.is_untouched:
            check_sown(crawl.seed_report, summary, given=bool(seeds))
        return summary


def _opened(out: Path, configured: Configured, listeners: Sequence[EventSink]) -> AbstractAsyncContextManager[Running]:
    """The crawl as the settings ask for it: in this process, or in several under this one."""
    ground, processes = Ground(SystemClock()), process_count(configured.settings)
    if processes == 1:
        return opened(out, configured, ground, listeners=listeners)
    return supervised(out, configured, ground, processes, listeners=listeners)


async def _note(crawl: Running, given: GivenSeeds) -> None:
    """Have it on record that seeds are given, before any of them is read, and what became of them."""
    with given.noting("seeds", "", wanted=given.named) as change:
        await crawl.sown.wait()
        report = crawl.seed_report
        change.after = {**given.named, "unread": True} if report is None else {**given.named, "added": report.added}


def _freshening(crawl: Running) -> Freshening:
    parts = crawl.machinery
    directory = CrawlDirectory(parts.out)
    return Freshening(
        directory.rank,
        identity_of(parts.frontier.secret),
        parts.settings.recrawl,
        parts.frontier,
        parts.identifier,
        partial(read_catalogue, directory, parts.settings),
        parts.clock.wall_ms,
    )


def _broke(crawl: Running, task: asyncio.Task[None]) -> None:
    """A crawl that is to be watched or served and is not would be out of sight: it ends, and says why."""
    if not task.cancelled() and (error := task.exception()) is not None:
        name = task.get_name()
        crawl.fail(error if isinstance(error, NephilaError) else NephilaError(f"the task {name} broke: {error!r}"))


def _did_without(crawl: Running, task: asyncio.Task[None]) -> None:
    """A crawl goes on without new ranks, and without what is done by them."""
    if not task.cancelled() and (error := task.exception()) is not None:
        lost = "ranks are not computed" if task.get_name() == "rank" else "the most important pages are not kept fresh"
        crawl.warn("rank", f"{lost} any more in this run: {error!r}")
