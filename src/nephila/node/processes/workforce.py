"""The workers of a crawl: started together, replaced when they die, ended together.

A death is answered in this order: the process is waited for; its figures are struck and what it left is put in order
(by the overseer); its permits at addresses are taken back; another is started, after a pause that doubles with
each death. More than `MAX_DEATHS` of one number within `DEATHS_WITHIN_S` are no accident.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Protocol, TypeAlias

from nephila.interfaces.clock import Clock
from nephila.model.errors import NephilaError
from nephila.model.settings import Settings
from nephila.node.memory import failure_of
from nephila.politeness import SharedAddressLedger

from .child import Child, Hear, death_of
from .messages import FromWorker, Orders, Stop, ToWorker
from .share import share_of

MAX_DEATHS = 5
DEATHS_WITHIN_S = 300.0
FIRST_PAUSE_S = 0.25

END_S = 10.0
"""How long workers may take to end: answers on the wire get 2 s, the rest is closing files."""

FIRST_WORD_S = 30.0
"""A worker that says nothing for so long after it was started hangs: a thread that finds no memory for its first frame
dies, and whoever started it waits for ever."""

LEAST_SILENCE_S = 10.0
"""A worker may say nothing for so long at least: importing takes a second, and a busy machine more."""

SPEAKS_S = 1.0
"""A worker that was heard so lately was not stopped: it beats five times a second."""

NOTICE_MS = 250
"""An exchange of a worker that died ends, for the server, when it notices."""


Start: TypeAlias = Callable[[int, int, int, Hear], Awaitable[Child]]
"""Starts a worker of that number, which inherits the two descriptors; whoever is given last hears what it says."""


class Overseer(Protocol):
    """Whoever the workers work for."""

    def hear(self, child: Child, message: FromWorker) -> None:
        """A worker says something."""

    async def lost(self, child: Child, code: int) -> bool:
        """A worker is surely dead, with that exit code; whether another is to take its place."""

    def fail(self, error: NephilaError) -> None:
        """It cannot go on."""


class Workforce:
    """Starts, replaces and ends workers."""

    def __init__(
        self,
        out: str,
        settings: Settings,
        among: int,
        inherited: tuple[int, int],
        clock: Clock,
        *,
        hear_all: bool,
        start: Start = Child.start,
    ) -> None:
        """`inherited`: the descriptors of the directory's lock and of the table of addresses.

        `start` starts one worker: a process, unless another kind is given.
        """
        self._start_child = start
        self._out = out
        self._settings = settings
        self._among = among
        self._inherited = inherited
        self._clock = clock
        self._hear_all = hear_all
        self._children: dict[int, Child] = {}
        self._keepers: list[asyncio.Task[None]] = []
        self._ending = asyncio.Event()
        self.ledger: SharedAddressLedger | None = None
        """Where permits of the dead are taken back."""
        self._overseer: Overseer | None = None
        self._overdue: dict[int, float] = {}
        """Workers with leases that have expired, and since when that is seen."""
        self.deaths = 0
        """Workers that died without a last word."""

    async def start(self) -> None:
        """Start the processes; importing takes them a while, and they wait for their orders."""
        for number in range(1, self._among + 1):
            self._children[number] = await self._start(number)

    def begin(self, overseer: Overseer) -> None:
        """Give the orders, and look after each from now on."""
        self._overseer = overseer
        for number, child in self._children.items():
            child.send(self._orders(number))
            keeper = asyncio.create_task(self._keep(number, overseer), name=f"keeper-{number}")
            keeper.add_done_callback(self._keeper_ended)
            self._keepers.append(keeper)

    def _keeper_ended(self, keeper: asyncio.Task[None]) -> None:
        """What breaks here must not break in silence."""
        if not keeper.cancelled() and (error := keeper.exception()) is not None and self._overseer is not None:
            self._overseer.fail(failure_of(error, keeper.get_name()))

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of all who work now."""
        return tuple(child.pid for child in self._children.values())

    def stop(self, *, hurry: bool = False) -> None:
        """Tell all to end, without waiting for uploads where it has to be soon; nobody is replaced any more."""
        self._ending.set()
        self.tell(Stop(hurry))

    def tell(self, message: ToWorker) -> None:
        """Tell all something."""
        for child in self._children.values():
            child.send(message)

    def have_answered(self, ping: int) -> bool:
        """Whether every worker has answered that ping, and works on nothing."""
        return len(self._children) == self._among and all(one.answered == ping for one in self._children.values())

    def kill_overdue(self, numbers: Iterable[int], patience_s: float) -> None:
        """End workers that have let leases expire; they are replaced.

        One that still speaks may be unable to renew them while another one, that was stopped, has the store's lock: it
        has `patience_s` more for that.
        """
        now = asyncio.get_running_loop().time()
        self._overdue = {number: self._overdue.get(number, now) for number in numbers}
        for number, since in self._overdue.items():
            child = self._children.get(number)
            if child is not None and (now - child.heard_at > SPEAKS_S or now - since >= patience_s):
                child.kill()

    def kill_silent(self, silent_s: float, *, others_wait: bool = False) -> None:
        """End workers that have said nothing for so long: stopped, or stuck before they could take a lease.

        One that has not said its first word yet is waited for no longer than a start can take. One that others may be
        waiting for, because it was stopped in its turn at the store, is waited for no longer than a busy machine takes.
        """
        now = asyncio.get_running_loop().time()
        spoken_s = min(silent_s, LEAST_SILENCE_S) if others_wait else silent_s
        for child in self._children.values():
            if now - child.heard_at > (spoken_s if child.has_spoken else min(silent_s, FIRST_WORD_S)):
                child.kill()

    async def disband(self) -> None:
        """Wait until all have ended, who were told to stop; who does not is killed."""
        if not self._keepers:
            await self.abandon()
            return
        uploads_s = self._settings.limits.max_wait_s if self._settings.archive.url else 0.0
        end_s = None if math.isinf(uploads_s) else END_S + uploads_s
        _, late = await asyncio.wait(self._keepers, timeout=end_s)
        if late:
            for child in self._children.values():
                child.kill()
        await asyncio.gather(*self._keepers, return_exceptions=True)  # each has been told

    async def abandon(self) -> None:
        """End all at once, and wait for it: nothing is put in order."""
        for child in self._children.values():
            child.kill()
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*(child.gone for child in self._children.values()), return_exceptions=True)

    # One worker after the other, under the same number

    async def _keep(self, number: int, overseer: Overseer) -> None:
        deaths: deque[float] = deque(maxlen=MAX_DEATHS)
        loop = asyncio.get_running_loop()
        while True:
            child = self._children[number]
            code = await asyncio.shield(child.gone)
            del self._children[number]
            if not await self._bury(child, code, overseer) or self._ending.is_set():
                return
            deaths.append(loop.time())
            if len(deaths) == MAX_DEATHS and loop.time() - deaths[0] < DEATHS_WITHIN_S:
                overseer.fail(NephilaError(f"worker {number} died {MAX_DEATHS} times, at last it {death_of(code)}"))
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_PAUSE_S * 2 ** (len(deaths) - 1)):
                    await self._ending.wait()
                    return
            child = await self._start(number)
            self._children[number] = child
            child.send(self._orders(number))
            if self._ending.is_set():  # it was told after the others
                child.send(Stop())

    async def _bury(self, child: Child, code: int, overseer: Overseer) -> bool:
        """Put in order what a worker left; whether another is to take its place."""
        if child.ended is None:
            self.deaths += 1
            if self.ledger is not None:
                self.ledger.release(child.number, self._clock.steady_ms(), NOTICE_MS)
        return await overseer.lost(child, code)

    async def _start(self, number: int) -> Child:
        return await self._start_child(number, *self._inherited, self._hear)

    def _hear(self, child: Child, message: FromWorker) -> None:
        if self._overseer is not None:
            self._overseer.hear(child, message)

    def _orders(self, number: int) -> Orders:
        settings = share_of(self._settings, self._among)
        return Orders(self._out, number, self._among, settings, self._hear_all)
