"""A crawl as a process runs it: the loop, the signals, the directory's lock."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop

from nephila.config import Configured
from nephila.interfaces.events import EventSink
from nephila.model.errors import UsageError
from nephila.model.summary import CrawlSummary, StoppedBy
from nephila.seeds import SeedSource

from .clock import SystemClock
from .collector import calm_collector
from .crawl import Crawl
from .directory import CrawlDirectory
from .opening import opened
from .wiring import Ground

View = Callable[[Crawl], Coroutine[Any, Any, None]]


def run_crawl(
    out: Path,
    configured: Configured,
    seeds: Sequence[SeedSource],
    *,
    new_cycle: bool = False,
    listeners: Sequence[EventSink] = (),
    view: View | None = None,
) -> CrawlSummary:
    """Crawl in this process until it ends; `view` runs beside it. The first signal stops cleanly, a second at once."""
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
    async with opened(out, configured, Ground(SystemClock()), listeners=listeners) as crawl:
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


def _no_usable_seed(sentence: str, examples: Sequence[str]) -> UsageError:
    return UsageError(f"no seed can be crawled: {sentence}", hint="; ".join(examples[:3]))


def _end_at_once(number: int, _frame: object = None) -> None:
    os._exit(128 + number)


def _obey_signals(crawl: Crawl) -> None:
    """First SIGINT or SIGTERM: stop cleanly. Second: at once; the directory is as safe as after kill -9."""
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def on_signal(number: int) -> None:
        if seen:
            _end_at_once(number)
        seen.append(number)
        crawl.stop(StoppedBy.INTERRUPT)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
