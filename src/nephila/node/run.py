"""A crawl as a process runs it: the loop, the signals, the directory's lock."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any, Protocol

import uvloop

from nephila.config import Configured
from nephila.interfaces.events import EventSink
from nephila.model.errors import UsageError
from nephila.model.summary import CrawlSnapshot, CrawlSummary, StoppedBy
from nephila.seeds import SeedReport, SeedSource

from .clock import SystemClock
from .collector import calm_collector
from .directory import CrawlDirectory
from .opening import opened
from .processes import process_count, supervised
from .wiring import Ground


class Running(Protocol):
    """A crawl that runs, in one process or in several."""

    seed_report: SeedReport | None

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was ever admitted."""

    def snapshot(self) -> CrawlSnapshot:
        """The figures of this moment."""

    def stop(self, reason: StoppedBy = StoppedBy.INTERRUPT) -> None:
        """End cleanly."""

    async def run(self, seeds: Sequence[SeedSource] = (), *, new_cycle: bool = False) -> CrawlSummary:
        """Crawl to the end."""


View = Callable[[Running], Coroutine[Any, Any, None]]


def run_crawl(
    out: Path,
    configured: Configured,
    seeds: Sequence[SeedSource],
    *,
    new_cycle: bool = False,
    listeners: Sequence[EventSink] = (),
    view: View | None = None,
) -> CrawlSummary:
    """Crawl until it ends; `view` runs beside it. The first signal stops cleanly, a second at once."""
    calm_collector()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_crawl(out, configured, seeds, new_cycle=new_cycle, listeners=listeners, view=view))
    finally:
        # The loop is gone and its handlers with it: a second Ctrl-C while the summary is written still ends at once.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _end_at_once)


async def _crawl(
    out: Path,
    configured: Configured,
    seeds: Sequence[SeedSource],
    *,
    new_cycle: bool,
    listeners: Sequence[EventSink],
    view: View | None,
) -> CrawlSummary:
    if not seeds and not CrawlDirectory(out).marker.exists():
        raise UsageError("there are no seeds", hint="give a URL, --seeds FILE or --domains CSV")
    async with _opened(out, configured, listeners) as crawl:
        _obey_signals(crawl)
        watching = asyncio.create_task(view(crawl), name="view") if view is not None else None
        try:
            summary = await crawl.run(seeds, new_cycle=new_cycle)
        finally:
            if watching is not None:
                watching.cancel()
                with suppress(asyncio.CancelledError):
                    await watching
        report = crawl.seed_report
        if report is not None and report.refused and crawl.is_untouched:
            raise _no_usable_seed(report.sentence(), [f"{one.text}: {one.detail}" for one in report.examples])
        return summary


def _opened(out: Path, configured: Configured, listeners: Sequence[EventSink]) -> AbstractAsyncContextManager[Running]:
    """The crawl as the settings ask for it: in this process, or in several under this one."""
    ground, processes = Ground(SystemClock()), process_count(configured.settings)
    if processes == 1:
        return opened(out, configured, ground, listeners=listeners)
    return supervised(out, configured, ground, processes, listeners=listeners)


def _no_usable_seed(sentence: str, examples: Sequence[str]) -> UsageError:
    return UsageError(f"no seed can be crawled: {sentence}", hint="; ".join(examples[:3]))


def _end_at_once(number: int, _frame: object = None) -> None:
    os._exit(128 + number)


def _obey_signals(crawl: Running) -> None:
    """First SIGINT or SIGTERM: stop cleanly. Second: at once; the directory is as safe as after kill -9.

    Workers end with this process, by the kernel's hand.
    """
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def on_signal(number: int) -> None:
        if seen:
            _end_at_once(number)
        seen.append(number)
        crawl.stop(StoppedBy.INTERRUPT)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
