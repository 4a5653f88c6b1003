"""The supervisor: begins a crawl, looks after its workers, knows when it is over, and has the last word.

It fetches nothing and holds no lease. What it decides, it decides on the frontier's totals as of one transaction:

- *Over* is a crawl in which no host is leased and none can be within --max-wait; every worker has then confirmed that
  nothing it sent is still on its way.
- *A limit* is reached when the totals say so: pages and domains are counted in the transaction that stores them. Bytes
  are as the workers told them, each after a hundredth of the limit at most.

A worker that dies is followed by another. Before that, when it is surely dead, its archive files are recovered as after
a crash (what it had stored is settled from there), its leases are returned, and its permits at addresses lapse. One
that dies again and again ends the crawl.
"""

from __future__ import annotations

import asyncio
import math
import resource
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import assert_never

from nephila.frontier.embedded.lending import OUTSIDE
from nephila.interfaces.events import EventSink
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.errors import NephilaError, StorageError
from nephila.model.events import Event, EventKind
from nephila.model.summary import CrawlSnapshot, CrawlSummary, StoppedBy
from nephila.model.task import Candidate
from nephila.node.closing import cause_of, ended_by, stopped_by, summary_of
from nephila.node.crawl import READERS_EVERY, REAP_S
from nephila.node.crew import keep_books
from nephila.node.frontiers import embedded_of
from nephila.node.heartbeat import heartbeat_figures
from nephila.node.machinery import Machinery, begin_shipping
from nephila.node.memory import failure_of
from nephila.node.recovery import Recovered
from nephila.node.shipping import HURRY_S
from nephila.node.sowing import UNREAD
from nephila.observe import Fanout
from nephila.observe.limit import Used, with_limit
from nephila.seeds import SeedReport, SeedSource

from .child import Child, death_of
from .hearing import unpacked
from .messages import Beat, Ended, FromWorker, Ping, Pong, Unreachable
from .roll import Roll
from .share import USUAL, Rhythm
from .workforce import LEAST_SILENCE_S, Workforce

PONG_S = 5.0

PATIENCE_S = 5.0
"""For a worker that could not renew its leases and still speaks: some renewals, once nobody holds the store's lock."""

LATE_S = 1.0
"""A supervisor that looks so much later than it meant to was stopped itself, with its workers perhaps."""


class Supervisor:
    """A crawl in several processes, from `run` to its summary. Has what `Crawl` has for whoever watches."""

    def __init__(
        self,
        machinery: Machinery,
        workforce: Workforce,
        listeners: Sequence[EventSink],
        rhythm: Rhythm = USUAL,
    ) -> None:
        self._m = machinery
        self._frontier = embedded_of(machinery.frontier)
        self._rhythm = rhythm
        self._workforce = workforce
        self._heard = Fanout(listeners)
        self._roll = Roll(machinery.settings.limits)
        self._woken = asyncio.Event()
        self._stopped_by: StoppedBy | None = None
        self._failure: NephilaError | None = None
        self._started_ms = 0
        self._pages_before = 0
        self._heartbeats = 0
        self._twins: set[asyncio.Task[None]] = set()
        self._returning: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._returning.set_result(None)
        self._pings = 0
        self._books: asyncio.Task[None] | None = None
        self._books_closed = False
        self._has_seeds = False
        self.seed_report: SeedReport | None = None
        """What became of the seeds; None until they are all read."""
        self.sown = asyncio.Event()
        """Set when they are read, or cannot be."""
        self.recovered: Recovered | None = None

    def stop(self, reason: StoppedBy = StoppedBy.INTERRUPT) -> None:
        """End cleanly; the first reason counts."""
        if self._stopped_by is None:
            self._stopped_by = reason
            self._workforce.stop(hurry=reason is StoppedBy.INTERRUPT)
            self._woken.set()
        if reason is StoppedBy.INTERRUPT:
            self._m.bookkeeper.hurry(HURRY_S)
        if reason is StoppedBy.INTERRUPT and self._m.shipper is not None:
            self._workforce.stop(hurry=True)
            self._m.shipper.hurry()

    def fail(self, error: NephilaError) -> None:
        """End cleanly because of our own failure; `run` raises it in the end unless it is the disk's."""
        if self._failure is None:
            self._failure = cause_of(error, self._m.look_at_directory)
        self.stop(StoppedBy.STORAGE)
        self._stopped_by = stopped_by(self._failure)

    def nudge(self) -> None:
        """Look again: somebody has brought work. The workers look by themselves."""
        self._woken.set()

    def processes(self) -> tuple[int, ...]:
        """The workers, as processes."""
        return self._workforce.pids

    @property
    def machinery(self) -> Machinery:
        """The supervisor's own parts, for whoever operates the crawl while it runs."""
        return self._m

    def warn(self, reason: str, detail: str) -> None:
        """Tell the listeners something that concerns the crawl as a whole."""
        self._m.events.emit(Event(EventKind.WARNING, self._m.clock.wall_ms(), reason=reason, detail=detail))

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was ever admitted: there is nothing to go on with."""
        return self._m.frontier.snapshot().hosts == 0

    def snapshot(self) -> CrawlSnapshot:
        """The figures of this moment, of all processes."""
        frontier = self._m.frontier.snapshot()
        now = self._roll.snapshot(
            self._m.tally.snapshot(),
            self._m.tally.take_met(),
            queued=sum(frontier.queued.values()) + sum(frontier.delayed.values()),
            stopping=self._stopped_by is not None,
            least_pages=frontier.pages - self._pages_before if self._workforce.deaths else 0,
        )
        now = with_limit(now, self._m.settings.limits, self._used(frontier))
        return now if self._m.shipper is None else replace(now, spool=self._m.shipper.standing)

    async def run(self, seeds: Sequence[SeedSource] = (), *, new_cycle: bool = False) -> CrawlSummary:
        """Crawl until there is nothing left to do, a limit is reached or somebody stops it."""
        machinery = self._m
        self._has_seeds = bool(seeds)
        self._started_ms = machinery.clock.steady_ms()
        self._pages_before = machinery.frontier.snapshot().pages
        background: list[asyncio.Task[None]] = []
        try:
            await begin_shipping(machinery)
            self.recovered = await machinery.recovery.run()
            if machinery.takedowns is not None:
                await machinery.takedowns.block_pending()
            if new_cycle and not await machinery.frontier.begin_cycle():
                self.warn("cycle", "the cycle that was begun is not finished yet: this goes on with it")
            self._tell(EventKind.CRAWL_START)
            if self._stopped_by is None:
                self._workforce.begin(self)
                background = [
                    asyncio.create_task(self._sow(seeds), name="seeds"),
                    asyncio.create_task(self._keep_leases(), name="leases"),
                ]
                if machinery.takedowns is not None:
                    background.append(asyncio.create_task(machinery.takedowns.run(), name="takedowns"))
                if machinery.shipper is not None:  # what the dead left is uploaded here
                    self._books = asyncio.create_task(self._keep_books(), name="books")
                    self._books.add_done_callback(self._background_ended)
                for task in background:
                    task.add_done_callback(self._background_ended)
                await self._watch(background[0])
        finally:
            await self._end(background)
        if self._failure is not None and not isinstance(self._failure, StorageError):
            raise self._failure
        return self._summary()

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        """What breaks beside the crawl must not break in silence."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(failure_of(error, f"the task {task.get_name()}"))

    # Watching

    async def _sow(self, seeds: Sequence[SeedSource]) -> None:
        """Admit the seeds while the workers already crawl."""
        try:
            self.seed_report = await self._m.sower.sow([*seeds, *self._m.plugin_seeds], self._woken.set)
        finally:
            self.sown.set()
            self._woken.set()

    async def _watch(self, sowing: asyncio.Task[None]) -> None:
        """Look at the frontier a few times a second until it is over."""
        while self._stopped_by is None:
            try:
                self._m.look_at_directory()
            except StorageError as error:
                self.fail(error)
                return
            known = self._frontier.refresh()
            if (reached := self._m.allowance.reached(self._used(known))) is not None:
                self.stop(reached)
            elif sowing.done() and self._is_over(known) and await self._have_all_confirmed():
                await self._m.frontier.end_cycle()
                self.stop(StoppedBy.DONE)
            else:
                self._woken.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._rhythm.supervisor_s):
                        await self._woken.wait()

    def _is_over(self, known: FrontierSnapshot) -> bool:
        """Whether no host is leased, and none can be within --max-wait."""
        max_wait_s = self._m.settings.limits.max_wait_s
        if math.isinf(max_wait_s) or known.hosts_leased or self._twins:
            return False
        return known.next_in_ms is None or known.next_in_ms > max_wait_s * 1000

    async def _have_all_confirmed(self) -> bool:
        """Whether no worker works on anything, and nothing that one has sent changes that it is over."""
        self._pings += 1
        self._workforce.tell(Ping(self._pings))
        with suppress(TimeoutError):
            async with asyncio.timeout(PONG_S):
                while self._stopped_by is None and not self._workforce.have_answered(self._pings):
                    self._woken.clear()
                    await self._woken.wait()
        return self._workforce.have_answered(self._pings) and self._is_over(self._frontier.refresh())

    async def _keep_leases(self) -> None:
        """Kill workers that have let a lease expire: only then may it be returned (DESIGN section 11).

        One that hangs without a lease is killed, too: it would be missed for ever. Where others wait for their turn at
        the store, it may be one that was stopped in its own, and they would wait for as long as its leases last.
        """
        beats, loop = 0, asyncio.get_running_loop()
        lease_s = self._m.settings.frontier.lease_s
        every_s = min(REAP_S, lease_s / 6)
        while True:
            began_s = loop.time()
            await asyncio.sleep(every_s)
            was_awake = loop.time() - began_s < every_s + LATE_S
            overdue = self._frontier.view.overdue()
            self._workforce.kill_overdue(overdue, min(PATIENCE_S, lease_s))
            if OUTSIDE in overdue and self._returning.done():
                # Never waited for here: a worker that was stopped may hold the store's lock until it is killed here.
                self._returning = asyncio.create_task(self._return_lent(), name="lent")
                self._returning.add_done_callback(self._background_ended)
            if was_awake:  # else it has heard nobody, whoever spoke
                self._workforce.kill_silent(max(LEAST_SILENCE_S, lease_s), others_wait=self._frontier.is_waited_at())
            if (beats := beats + 1) % READERS_EVERY == 0:
                self._frontier.check_readers()

    async def _return_lent(self) -> None:
        await self._frontier.reap_lent()

    async def _keep_books(self) -> None:
        await keep_books(self._m, self.fail, lambda: self._books_closed)

    # Listening to workers

    def hear(self, child: Child, message: FromWorker) -> None:
        """As `Overseer`."""
        match message:
            case Beat():
                self._roll.hear(child.number, message)
                for fields in message.events:
                    self._heard.emit(unpacked(fields))
                self._tell_heartbeats()
                if self._m.settings.limits.max_total_bytes:
                    self._woken.set()
            case Unreachable(origin, kind):
                if candidates := self._m.sower.twins(origin, kind):
                    task = asyncio.create_task(self._admit_twins(candidates), name="twins")
                    self._twins.add(task)
                    task.add_done_callback(self._twins.discard)
                    task.add_done_callback(self._background_ended)
            case Pong() | Ended():
                self._woken.set()
            case _:
                assert_never(message)

    async def _admit_twins(self, candidates: Sequence[Candidate]) -> None:
        await self._m.frontier.admit(candidates)
        self._woken.set()

    async def lost(self, child: Child, code: int) -> bool:
        """As `Overseer`: put in order what it left; whether another is to take its place."""
        self._roll.strike(child.number)
        ended = child.ended
        if ended is None:
            self.warn("worker", f"worker {child.number} (process {child.pid}) {death_of(code)}; nothing is lost by it")
            self._frontier.check_readers()
            await self._m.recovery.of_writer(child.number)
        elif ended.failure:
            kind = StorageError if ended.storage else NephilaError
            self.fail(kind(ended.failure, ended.hint))
        self._woken.set()
        return self._stopped_by is None

    def _tell_heartbeats(self) -> None:
        """After every so many pages of all workers together (O1)."""
        now = self.snapshot()
        every = self._m.settings.observe.heartbeat_pages
        while self._heartbeats < now.pages // every:
            self._heartbeats += 1
            counts = heartbeat_figures(now)
            self._m.events.emit(Event(EventKind.HEARTBEAT, self._m.clock.wall_ms(), counts=counts))

    # The end

    async def _end(self, background: Sequence[asyncio.Task[None]]) -> None:
        """Let the workers end, then close the books."""
        if self._stopped_by is None:
            self.stop(StoppedBy.STORAGE if self._failure else StoppedBy.INTERRUPT)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, *self._twins, return_exceptions=True)
        try:
            await self._workforce.disband()
            await asyncio.gather(self._returning, return_exceptions=True)  # what broke was told
            await self._close_books()
            await self._m.bookkeeper.finish()
            if self._m.takedowns is not None and self._failure is None:
                await self._m.takedowns.finish()
            self._frontier.refresh()
        except NephilaError as error:
            self.fail(error)
        if self._has_seeds and self.seed_report is None and self._failure is None:
            self.warn("seeds", UNREAD)
        self._tell(EventKind.CRAWL_END)
        self._m.events.flush()

    async def _close_books(self) -> None:
        """Not cancelled: it may be in the middle of writing."""
        self._books_closed = True
        self._m.bookkeeper.hurry(self._m.settings.limits.max_wait_s)
        self._m.bookkeeper.nudge()
        if self._books is not None:
            await asyncio.gather(self._books, return_exceptions=True)  # what broke there was told

    def _used(self, known: FrontierSnapshot) -> Used:
        return Used(
            pages=known.pages_in_cycle,
            domains=known.domains,
            bytes=self._m.bytes_before + self._m.tally.bytes + self._roll.bytes,
            seconds=(self._m.clock.steady_ms() - self._started_ms) / 1000,
        )

    def _tell(self, kind: EventKind) -> None:
        now = self.snapshot()
        counts = (("pages", now.pages), ("queued", now.queued), ("errors", sum(now.errors.values())))
        reason = "" if kind is EventKind.CRAWL_START else str(self._stopped_by)
        self._m.events.emit(Event(kind, self._m.clock.wall_ms(), reason=reason, counts=counts))

    def _summary(self) -> CrawlSummary:
        """The last word; processor time is that of all processes, the dead ones included."""
        usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return summary_of(
            self.snapshot(),
            self._m.frontier,
            stopped_by=ended_by(self._stopped_by, self._m.shipper),
            failure=self._failure,
            out=self._m.out,
            target_domains=self._m.settings.limits.target_domains,
            cpu_s=sum(one.ru_utime + one.ru_stime for one in usage),
            peak_rss_bytes=usage[0].ru_maxrss * 1024 + self._roll.peak_rss_bytes,
        )
