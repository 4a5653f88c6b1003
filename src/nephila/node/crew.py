"""The leases that this process works on: one task each, renewed while they last, with the books kept beside them.

Whoever conducts (a crawl in one process, or a worker among several) claims, starts and knows when it is over; what
happens to a lease in between is the same, and is here.

Disbanding is the end of every run, whatever ended it: what is on the wire gets a moment to arrive and is then cut off;
what was stored is settled; the books are closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from nephila.model.errors import NephilaError
from nephila.model.task import Lease

from .machinery import Machinery
from .memory import failure_of

GRACE_S = 2.0
"""How long answers on the wire may still arrive after a stop: Ctrl-C is to end within five seconds."""

CATALOGUE_S = 1.0

LEASES_PER_EXCHANGE = 4
"""Leases in all for each exchange that there may be at once: by so much more are those that wait for their moment, and
those whose answers are being settled, which have let go of what was fetched.

With one exchange at a time there is one lease: the order is promised (F6).
"""

LASTING_PER_EXCHANGE = 8
"""The same where leases last through the delays of their hosts, as in a fleet. A lease of five seconds and six pages is
asked for some 200 ms each, and waits for the rest: 256 exchanges would keep 1,300 such leases busy, and more where
answers come sooner. So 2,048 are held at most; each is some kilobytes, and what its pages say until they are settled.
"""


class Crew:
    """Works off leases. `fail` is called with our own failures; `woken` is set when a place becomes free."""

    def __init__(self, machinery: Machinery, fail: Callable[[NephilaError], None]) -> None:
        self._m = machinery
        self._fail = fail
        self._working: dict[asyncio.Task[None], Lease] = {}
        self._books_closed = False
        self.woken = asyncio.Event()
        machinery.pipeline.answered = self._answered
        machinery.pipeline.departures.has_place = self._has_place
        machinery.bookkeeper.on_room(self.woken.set)
        if machinery.shipper is not None:
            machinery.shipper.on_room(self.woken.set)

    def __len__(self) -> int:
        return len(self._working)

    @property
    def working(self) -> frozenset[object]:
        """What is being worked on, to be compared with what is later."""
        return frozenset(self._working)

    @property
    def in_flight(self) -> int:
        """Leases whose hosts are asked, or whose answers are being settled: not those who wait for their moment."""
        return len(self._working) - self._m.pipeline.departures.waiting

    @property
    def places(self) -> int:
        """How many more leases could be worked on: none while spool or books are full, so that nothing is fetched."""
        if (self._m.shipper is not None and self._m.shipper.is_full) or not self._m.bookkeeper.has_room():
            return 0
        exchanges = self._m.settings.fetch.concurrency
        most = exchanges * (LASTING_PER_EXCHANGE if self._m.leases_last else LEASES_PER_EXCHANGE)
        most = most if exchanges > 1 else 1
        return min(exchanges - self._exchanges, most - len(self._working))

    @property
    def _exchanges(self) -> int:
        """Leases whose hosts are being asked: not those who wait for their moment, or whose last answer has come."""
        return self.in_flight - self._m.pipeline.settling

    def _has_place(self) -> bool:
        """Whether one more host may be asked; who is to stop need not wait to hear of it."""
        return self._m.pipeline.stopping or self._exchanges < self._m.settings.fetch.concurrency

    def _answered(self) -> None:
        """An exchange is over: if that was the first to make a place, somebody waits for it."""
        if self.places == 1:
            self.woken.set()
        self._let_leave()

    def _let_leave(self) -> None:
        """There may be a place for somebody whose moment has come."""
        departures = self._m.pipeline.departures
        if departures.is_held:
            asyncio.get_running_loop().call_soon(departures.leave)

    async def claim(self, hosts: int) -> list[Lease]:
        """Claim up to so many hosts and start on each; what was claimed."""
        try:
            leases = await self._m.frontier.claim(hosts, self._m.settings.frontier.lease_s)
            if leases and self._m.before_work is not None:
                await self._m.before_work(leases)
        except NephilaError as error:
            self._fail(error)
            return []
        for lease in leases:
            self._start(lease)
        return leases

    def _start(self, lease: Lease) -> None:
        self._m.expiries[lease.token] = lease.expires_at
        task = asyncio.get_running_loop().create_task(self._m.pipeline.work(lease), name=f"work-{lease.host}")
        self._working[task] = lease
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        lease = self._working.pop(task)
        self._m.expiries.pop(lease.token, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(failure_of(error, "a lease"))
        self.woken.set()
        self._let_leave()

    async def keep_books(self) -> None:
        """Sync and confirm often, write the catalogue each second."""
        await keep_books(self._m, self._fail, lambda: self._books_closed)

    async def renew(self) -> None:
        """Renew the leases that are held for long; one that is gone may not be sent on any more."""
        lease_ms, asked_at = self._m.settings.frontier.lease_s * 1000, self._m.frontier.timeline.now()
        soon = asked_at + lease_ms * 2 / 3
        held = [token for token, expires_at in self._m.expiries.items() if expires_at < soon]
        if not held:
            return
        kept = await self._m.frontier.renew(held, self._m.settings.frontier.lease_s)
        ends = int(asked_at + lease_ms)  # at least: the answer may have come long after it was done
        for token in held:
            if token in self._m.expiries:
                self._m.expiries[token] = ends if token in kept else 0

    async def disband(self, books: asyncio.Task[None] | None, others: Sequence[asyncio.Task[None]]) -> None:
        """Let answers arrive, cut off the rest, close the books, end the tasks beside it."""
        if self._working:
            await asyncio.wait(self._working, timeout=GRACE_S)
        for task in self._m.pipeline.sending & self._working.keys():
            task.cancel()
        while self._working:
            await asyncio.wait(self._working)
        self._books_closed = True
        self._m.bookkeeper.hurry(self._m.settings.limits.max_wait_s)
        self._m.bookkeeper.nudge()  # not cancelled: it may be in the middle of writing an index
        for task in others:
            task.cancel()
        await asyncio.gather(*filter(None, (books, *others)), return_exceptions=True)
        try:
            await self._m.bookkeeper.finish()
        except NephilaError as error:
            self._fail(error)


async def keep_books(
    machinery: Machinery, fail: Callable[[NephilaError], None], are_closed: Callable[[], bool]
) -> None:
    """Sync and confirm often, write the catalogue each second, until the books are closed."""
    written_at = waited_s = 0.0
    loop, every_s = asyncio.get_running_loop(), machinery.settings.archive.sync_ms / 1000
    recording: asyncio.Task[None] | None = None
    try:
        while not are_closed():
            await machinery.bookkeeper.wait_for_work()
            await asyncio.sleep(max(0.0, every_s - waited_s))
            waited_s = 0.0
            machinery.look_at_directory()
            await machinery.bookkeeper.tick()
            if recording is None and loop.time() - written_at >= CATALOGUE_S:
                recording = asyncio.create_task(machinery.bookkeeper.record(), name="catalogue")
            if recording is not None:
                # A catalogue that is slow or away must not keep pages from being synced and confirmed, nor delay it.
                began = loop.time()
                await asyncio.wait({recording}, timeout=every_s)
                waited_s = loop.time() - began
                if recording.done():
                    ended, recording = recording, None
                    ended.result()
                    machinery.events.flush()
                    written_at = loop.time()
        if recording is not None:
            await recording
    except NephilaError as error:
        fail(error)
    finally:
        if recording is not None:
            await asyncio.gather(recording, return_exceptions=True)  # what broke first was told
