"""A worker: claims from the shared frontier, works off what it gets, tells its supervisor how far it is.

It decides nothing about the crawl as a whole. It does not reap, recover, read seeds or end by itself: it works until it
is told to stop, and where its supervisor is gone it ends at once, as if it had been killed too.

It is woken by its own work (a place that became free, the time of the next host), and looks at the frontier's totals
some forty times a second while it has places free: another process may have brought hosts that it is entitled to.
"""

from __future__ import annotations

import asyncio
import os
import resource
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, assert_never

from nephila.frontier.embedded.sharing import Sharing
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.errors import NephilaError, StorageError
from nephila.model.exchange import FailureKind
from nephila.model.task import Candidate
from nephila.node.clock import SystemClock
from nephila.node.crew import Crew
from nephila.node.directory import CrawlDirectory
from nephila.node.engines import look_ahead_ms
from nephila.node.frontiers import embedded_of
from nephila.node.ground import Ground, Seat
from nephila.node.machinery import Machinery
from nephila.node.memory import failure_of
from nephila.node.rendering import with_browsers
from nephila.node.shipping import HURRY_S
from nephila.node.wiring import assemble
from nephila.politeness import shared_ledger

from .hearing import Overheard
from .messages import Beat, Channel, Ended, Figures, FromWorker, Orders, Ping, Pong, Stop, ToWorker, Unreachable
from .share import USUAL, Rhythm

RENEW_S = 5.0

BYTES_TOLD_IN = 100
"""Where bytes are limited, they are told at once whenever a hundredth of the limit has come."""


class Worker:
    """One worker, from its orders to its end."""

    def __init__(
        self,
        machinery: Machinery,
        sharing: Sharing,
        channel: Channel[FromWorker, ToWorker],
        overheard: Overheard,
        rhythm: Rhythm = USUAL,
    ) -> None:
        self._rhythm = rhythm
        self._m = machinery
        self._sharing = sharing
        self._channel = channel
        self._overheard = overheard
        self._crew = Crew(machinery, self.fail)
        self._telling = asyncio.Event()
        overheard.urgent = self._telling.set
        self._stopping = False
        self.failure: NephilaError | None = None
        """Our own failure that ended it."""

    def stop(self, *, hurry: bool = False) -> None:
        """End cleanly; in a hurry without waiting for uploads."""
        if hurry:
            self._m.bookkeeper.hurry(HURRY_S)
            if self._m.shipper is not None:
                self._m.shipper.hurry()
        self._stopping = True
        self._m.pipeline.stopping = True
        self._crew.woken.set()

    def fail(self, error: NephilaError) -> None:
        """End cleanly because of our own failure."""
        self.failure = self.failure or error
        self.stop()

    async def run(self) -> None:
        """Work until it is told to stop."""
        books = asyncio.create_task(self._crew.keep_books(), name="books")
        others = [
            asyncio.create_task(self._keep_leases(), name="leases"),
            asyncio.create_task(self._keep_telling(), name="beats"),
            asyncio.create_task(self._listen(), name="orders"),
        ]
        for task in (books, *others):
            task.add_done_callback(self._background_ended)
        try:
            await self._conduct()
        finally:
            self.stop()
            await self._crew.disband(books, others[:1])
            if self._m.plugins is not None:
                await self._m.plugins.settle()
            for task in others[1:]:  # figures are told and pings answered while the last answers arrive
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            self._m.events.flush()
            self._tell()

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        """What breaks beside the work must not break in silence."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(failure_of(error, f"the task {task.get_name()} of a worker"))

    async def _conduct(self) -> None:
        """Claim what this process is entitled to, whenever there is something and a place is free."""
        while not self._stopping:
            self._crew.woken.clear()
            if self._is_entitled(self._m.frontier.snapshot()):
                self._sharing.held = len(self._crew)
                if await self._crew.claim(self._crew.places):
                    continue
            await self._sleep()

    def _is_entitled(self, known: FrontierSnapshot) -> bool:
        """Whether a claim would bring something, as far as is known. A host whose time has come is not ready yet."""
        due = known.next_in_ms is not None and known.next_in_ms <= look_ahead_ms(self._m.settings)
        if not due or self._crew.places <= 0 or self._is_at_a_limit(known):
            return False
        self._sharing.held = len(self._crew)
        return self._sharing.part_of(known.hosts_ready + known.hosts_leased + 1) > 0

    def _is_at_a_limit(self, known: FrontierSnapshot) -> bool:
        """Whether what is leased may reach a limit: nothing new is begun then, until it is known."""
        limits = self._m.settings.limits
        pages, domains = limits.max_pages, limits.max_domains
        full = pages and known.pages_in_cycle + known.hosts_leased >= pages
        return bool(full or (domains and known.domains >= domains))

    async def _sleep(self) -> None:
        """Wait for a place, for the time of the next host, or for what others may have brought."""
        wait_s = None
        if self._crew.places > 0:
            next_in = self._m.frontier.snapshot().next_in_ms or 0
            next_s = (next_in - look_ahead_ms(self._m.settings)) / 1000
            poll_s = self._rhythm.worker_s
            wait_s = min(poll_s, next_s) if next_s > 0 else poll_s
        try:
            async with asyncio.timeout(wait_s):
                await self._crew.woken.wait()
        except TimeoutError:
            embedded_of(self._m.frontier).refresh()

    async def _keep_leases(self) -> None:
        try:
            while True:
                await asyncio.sleep(min(RENEW_S, self._m.settings.frontier.lease_s / 6))
                await self._crew.renew()
                self._m.look_for_roll()
        except NephilaError as error:
            self.fail(error)

    # Telling and listening

    async def _keep_telling(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rhythm.beat_s):
                    await self._telling.wait()
            self._telling.clear()
            self._tell()

    def _tell(self) -> None:
        now = with_browsers(self._m.tally.snapshot(), self._m.rendering)
        hosts, domains = self._m.tally.take_met()
        figures = Figures(
            pages=now.pages,
            responses=now.responses,
            bytes=now.bytes,
            duplicates=now.duplicates,
            near_duplicates=now.near_duplicates,
            lists=now.lists,
            listed=now.listed,
            plugins=dict(now.plugins),
            rendered=now.rendered,
            render_gained=now.render_gained,
            visit_parts=now.visit_parts,
            render_resources=now.render_resources,
            render_missed=dict(now.render_missed),
            render_queue=now.render_queue,
            browsers=now.browsers,
            browser_bytes=now.browser_bytes,
            errors=dict(now.errors),
            refused=dict(now.refused),
            statuses=dict(now.statuses),
            in_flight=self._crew.in_flight,
            pages_per_s=now.pages_per_s,
            peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            latencies=now.latencies,
            latency_ms=now.latency_ms,
            lookups=self._m.lookups(),
        )
        self._channel.send(Beat(figures, hosts, domains, self._overheard.take()))

    async def _listen(self) -> None:
        while True:
            match await self._channel.receive():
                case Stop(hurry):
                    self.stop(hurry=hurry)
                case Ping(sequence):
                    self._channel.send(Pong(sequence, len(self._crew)))
                case Orders() as orders:
                    raise RuntimeError(f"a second order: {orders!r}")
                case None:
                    end_at_once()
                case message:
                    assert_never(message)


def end_at_once() -> NoReturn:
    """There is nobody to work for: the next run finds what is left, as after kill -9."""
    os._exit(1)


async def work(
    channel: Channel[FromWorker, ToWorker], addresses: int, ground: Ground | None = None, rhythm: Rhythm = USUAL
) -> None:
    """Follow the orders that come over the channel. `addresses` is the descriptor of the shared table.

    `ground` is the machine's, unless another is given.
    """
    orders = await channel.receive()
    if not isinstance(orders, Orders):
        return  # the crawl was over before it began
    failure: NephilaError | None = None
    try:
        async with AsyncExitStack() as stack:
            worker = _built(orders, channel, addresses, stack, ground or Ground(SystemClock()), rhythm)
            await worker.run()
            failure = worker.failure
    except NephilaError as error:
        failure = error
    except Exception as error:  # noqa: BLE001 - told to whoever supervises, who ends the crawl with it
        failure = failure_of(error, f"worker {orders.number}")
    storage = isinstance(failure, StorageError)
    channel.send(Ended() if failure is None else Ended(str(failure), failure.hint, storage))
    await channel.close()


def _built(
    orders: Orders,
    channel: Channel[FromWorker, ToWorker],
    addresses: int,
    stack: AsyncExitStack,
    ground: Ground,
    rhythm: Rhythm,
) -> Worker:
    settings = orders.settings
    sharing = Sharing(orders.number, orders.among, settings.limits.max_pages)
    ledger = shared_ledger(settings.politeness, addresses, orders.number)
    limit = settings.limits.max_total_bytes
    overheard = Overheard(everything=orders.hear_all, urgent_bytes=limit and max(1, limit // BYTES_TOLD_IN))

    def twins(origin: str, kind: FailureKind) -> tuple[Candidate, ...]:
        channel.send(Unreachable(origin, kind))
        return ()

    def fail(error: NephilaError) -> None:
        worker.fail(error)

    machinery = assemble(
        CrawlDirectory(Path(orders.out)),
        replace(settings, limits=replace(settings.limits, max_total_bytes=0)),
        ground,
        stack,
        fail,
        seat=Seat(sharing, addresses=ledger, twins=twins),
        listeners=[overheard],
    )
    worker = Worker(machinery, sharing, channel, overheard, rhythm)
    return worker
