"""The conductor: claims leases while there are free places, hands each to the pipeline, and knows when it is over.

Every task has this crawl as its parent. The beat of it:

- `_conduct` claims whenever a place is free and something may be asked, and sleeps until one of the two changes.
- The crew works on what was claimed, and keeps the books: see `crew`.
- `_keep_leases` renews what is held for long and returns what has expired.

Stopping is one word for every reason to end: no new lease, no new request, and the crew is disbanded. A full disk ends
a crawl the same way.
"""

from __future__ import annotations

import asyncio
import math
import resource
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from nephila.interfaces.events import EventSink
from nephila.model.errors import NephilaError, StorageError
from nephila.model.events import Event, EventKind
from nephila.model.summary import CrawlSnapshot, CrawlSummary, StoppedBy
from nephila.observe.limit import Used, with_limit
from nephila.seeds import SeedReport, SeedSource

from .closing import cause_of, ended_by, stopped_by, summary_of
from .crew import Crew
from .engines import look_ahead_ms
from .machinery import Machinery, begin_shipping
from .memory import failure_of
from .recovery import Recovered
from .rendering import with_browsers
from .shipping import HURRY_S
from .sowing import UNREAD

REAP_S = 5.0
READERS_EVERY = 12
"""Beats of `REAP_S`: dead readers of the store are looked for each minute (DESIGN section 3)."""


class Crawl:
    """A crawl of one directory, from `run` to its summary."""

    def __init__(self, machinery: Machinery) -> None:
        self._m = machinery
        self._crew = Crew(machinery, self.fail)
        self._wake = self._crew.woken
        self._stopped_by: StoppedBy | None = None
        self._failure: NephilaError | None = None
        self._paused = False
        self._started_ms = 0
        self._has_seeds = False
        self.seed_report: SeedReport | None = None
        """What became of the seeds; None until they are all read."""
        self.sown = asyncio.Event()
        """Set when they are read, or cannot be."""
        self.recovered: Recovered | None = None
        self.afterwards: Callable[[], Awaitable[None]] | None = None
        """What else is to be done when nobody writes to the archive any more: a retention."""

    def listen(self, sink: EventSink) -> None:
        """Let another listener hear the events from now on."""
        self._m.events.add(sink)

    def stop(self, reason: StoppedBy = StoppedBy.INTERRUPT) -> None:
        """End cleanly; the first reason counts."""
        if self._stopped_by is None:
            self._stopped_by = reason
            self._m.pipeline.stopping = True
            self._wake.set()
        if reason is StoppedBy.INTERRUPT:
            self._m.bookkeeper.hurry(HURRY_S)
            if self._m.shipper is not None:
                self._m.shipper.hurry()

    def fail(self, error: NephilaError) -> None:
        """End cleanly because of our own failure; `run` raises it in the end unless it is the disk's.

        It counts before any other reason: a crawl whose books could not be closed is not done.
        """
        if self._failure is None:
            self._failure = cause_of(error, self._m.look_at_directory)
        self.stop(StoppedBy.STORAGE)
        self._stopped_by = stopped_by(self._failure)

    def pause(self) -> None:
        """Ask nothing new until `resume`; what is on the wire arrives."""
        self._paused = True

    def resume(self) -> None:
        """Go on after `pause`."""
        self._paused = False
        self._wake.set()

    def nudge(self) -> None:
        """Look again: somebody has brought work or lifted a pause."""
        self._wake.set()

    def processes(self) -> tuple[int, ...]:
        """Nobody works for this process."""
        return ()

    @property
    def machinery(self) -> Machinery:
        """The parts, for whoever operates the crawl while it runs."""
        return self._m

    def warn(self, reason: str, detail: str) -> None:
        """Tell the listeners something that concerns the crawl as a whole."""
        self._m.events.emit(Event(EventKind.WARNING, self._m.clock.wall_ms(), reason=reason, detail=detail))

    @property
    def failure(self) -> NephilaError | None:
        """Our own failure that ended the crawl."""
        return self._failure

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was ever admitted: there is nothing to go on with."""
        return self._m.frontier.snapshot().hosts == 0

    def snapshot(self) -> CrawlSnapshot:
        """The figures of this moment."""
        frontier = self._m.frontier.snapshot()
        queued = sum(frontier.queued.values()) + sum(frontier.delayed.values())
        now = self._m.tally.snapshot(
            in_flight=self._crew.in_flight,
            queued=queued,
            stopping=self._stopped_by is not None,
            lookups=self._m.lookups(),
        )
        now = with_limit(with_browsers(now, self._m.rendering), self._m.settings.limits, self._used())
        return now if self._m.shipper is None else replace(now, spool=self._m.shipper.standing)

    async def run(self, seeds: Sequence[SeedSource] = (), *, new_cycle: bool = False) -> CrawlSummary:
        """Crawl until there is nothing left to do, a limit is reached or somebody stops it."""
        self._started_ms = self._m.clock.steady_ms()
        self._has_seeds = bool(seeds)
        machinery = self._m
        background: list[asyncio.Task[None]] = []
        try:
            await begin_shipping(machinery)
            self.recovered = await self._recover()
            if machinery.takedowns is not None:
                await machinery.takedowns.block_pending()
            if new_cycle and not await machinery.frontier.begin_cycle():
                self.warn("cycle", "the cycle that was begun is not finished yet: this goes on with it")
            machinery.allowance.pages = machinery.frontier.snapshot().pages_in_cycle
            self._tell(EventKind.CRAWL_START)
            background = [
                asyncio.create_task(self._crew.keep_books(), name="books"),
                asyncio.create_task(self._keep_leases(), name="leases"),
                *([asyncio.create_task(machinery.takedowns.run(), name="takedowns")] if machinery.takedowns else []),
                *(asyncio.create_task(doing, name=name) for name, doing in self._beside()),
                asyncio.create_task(self._sow(seeds), name="seeds"),
            ]
            for task in background:
                task.add_done_callback(self._background_ended)
            await self._conduct(background[-1])
        finally:
            await self._end(background)
        if self._failure is not None and not isinstance(self._failure, StorageError):
            raise self._failure
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return summary_of(
            self.snapshot(),
            machinery.frontier,
            stopped_by=ended_by(self._stopped_by, self._m.shipper),
            failure=self._failure,
            out=machinery.out,
            target_domains=machinery.settings.limits.target_domains,
            cpu_s=usage.ru_utime + usage.ru_stime,
            peak_rss_bytes=usage.ru_maxrss * 1024,
        )

    async def _recover(self) -> Recovered:
        """Go on from what an earlier run left."""
        return await self._m.recovery.run()

    def _beside(self) -> Sequence[tuple[str, Coroutine[Any, Any, None]]]:
        """What else is to be done while it runs, by its name."""
        return ()

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        """What breaks beside the crawl must not break in silence."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(failure_of(error, f"the task {task.get_name()}"))

    # The beat

    async def _sow(self, seeds: Sequence[SeedSource]) -> None:
        """Admit the seeds while the crawl already runs: a list of millions need not be read first."""
        try:
            self.seed_report = await self._m.sower.sow([*seeds, *self._m.plugin_seeds], self._wake.set)
        except NephilaError as error:
            self.fail(error)
        finally:
            self.sown.set()
            self._wake.set()

    async def _conduct(self, sowing: asyncio.Task[None]) -> None:
        """Claim and hand out until it is over."""
        while self._stopped_by is None:
            reached = self._m.allowance.reached(self._used())
            if reached is not None:
                self.stop(reached)
                return
            self._wake.clear()
            free = self._free()
            leases = await self._crew.claim(free) if free > 0 and not self._paused else []
            if leases and self._free() > 0:
                continue
            if not leases and not self._crew and sowing.done() and not self._paused and await self._is_over():
                if not await self._m.frontier.end_cycle():
                    continue  # somebody has begun the next one
                self.stop(StoppedBy.DONE)
                return
            await self._sleep()

    def _free(self) -> int:
        left = self._m.allowance.left
        return self._crew.places if left is None else min(self._crew.places, left)

    async def _is_over(self) -> bool:
        """Whether nothing can run within --max-wait."""
        if math.isinf(self._m.settings.limits.max_wait_s):
            return False
        known = self._m.frontier.snapshot()
        if known.hosts_leased:  # to a worker outside: none of our own is at work when this is asked
            return False
        return known.next_in_ms is None or known.next_in_ms > self._m.settings.limits.max_wait_s * 1000

    async def _sleep(self) -> None:
        """Wait for a task to end, for a seed, for the next host's time, or for the end of the time limit."""
        next_in = self._m.frontier.snapshot().next_in_ms
        waits: list[float] = []
        if next_in is not None and self._free() > 0 and not self._paused:
            waits.append(max(0.001, (next_in - look_ahead_ms(self._m.settings)) / 1000))
        if self._m.settings.limits.max_time_s:
            waits.append(max(0.001, self._m.settings.limits.max_time_s - self._used().seconds))
        with suppress(TimeoutError):
            async with asyncio.timeout(min(waits, default=None)):
                await self._wake.wait()

    async def _keep_leases(self) -> None:
        """Renew what is held for long; return what has expired."""
        frontier, beats = self._m.frontier, 0
        try:
            while True:
                await asyncio.sleep(min(REAP_S, self._m.settings.frontier.lease_s / 6))
                await self._crew.renew()
                await frontier.reap()
                if frontier.snapshot().next_in_ms == 0:
                    self._wake.set()  # another process may have brought work: seeds, a pause that was lifted
                if (beats := beats + 1) % READERS_EVERY == 0:
                    frontier.check_readers()
        except NephilaError as error:
            self.fail(error)

    # The end

    async def _end(self, background: Sequence[asyncio.Task[None]]) -> None:
        """Let answers arrive, cut off the rest, close the books."""
        if self._stopped_by is None:
            self.stop(StoppedBy.STORAGE if self._failure else StoppedBy.INTERRUPT)
        await self._crew.disband(background[0] if background else None, background[1:])
        if self._m.plugins is not None:
            await self._m.plugins.settle()
        await self._carry_out_takedowns()
        if self._has_seeds and self.seed_report is None and self._failure is None:
            self.warn("seeds", UNREAD)
        self._tell(EventKind.CRAWL_END)
        self._m.events.flush()

    async def _carry_out_takedowns(self) -> None:
        """What was ordered and is not done: all files are closed now. Then what else was asked for."""
        try:
            if self._m.takedowns is not None and self._failure is None:
                await self._m.takedowns.finish()
            if self.afterwards is not None and self._failure is None:
                await self.afterwards()
        except NephilaError as error:
            self.fail(error)

    def _used(self) -> Used:
        return Used(
            pages=self._m.allowance.pages,
            domains=self._m.frontier.snapshot().domains,
            bytes=self._m.bytes_before + self._m.tally.bytes,
            seconds=(self._m.clock.steady_ms() - self._started_ms) / 1000,
        )

    def _tell(self, kind: EventKind) -> None:
        snapshot = self.snapshot()
        counts = (("pages", snapshot.pages), ("queued", snapshot.queued), ("errors", sum(snapshot.errors.values())))
        reason = "" if kind is EventKind.CRAWL_START else str(self._stopped_by)
        self._m.events.emit(Event(kind, self._m.clock.wall_ms(), reason=reason, counts=counts))
