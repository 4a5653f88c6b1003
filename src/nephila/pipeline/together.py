"""Pages of one lease are settled together, where a call of the frontier costs more than waiting does: in a fleet.

The pages of a lease follow one another at the pace of their host. One that need not be the last word on it is concluded
in a task of its own, beside the lease, and hands in its settlement here. It waits for company: until the lease ends,
until something else is settled for the lease, or until the first of them has waited long enough. Then all that were
handed in go to the frontier in one call, and each is told what became of it.

What must stay true:

- What ends the lease goes behind all that was handed in, in the same call; so it first waits for those who have a page
  in hand and have not handed it in yet. There is one call at a time: none arrives behind the end of its lease.
- The lease itself waits for nobody's company, and a page that is settled alone waits for none either.
- Whoever hands in is answered, or fails as the call did. No task outlives the work on its lease.
- Where the frontier has failed for good, nothing more is handed to it: the lease is left as a kill would leave it.
- What waits has a bound for all leases of a process, whatever pages link to: beyond it, no lease waits for company.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from nephila.interfaces.frontier import Frontier, Settled
from nephila.model.errors import NephilaError
from nephila.model.outcome import Release, Settlement
from nephila.model.task import Token

ROOM_BYTES = 128 << 20
"""For all that waits in a process: some 4,700 pages of 60 links, more than two for each of 2,048 leases."""
LINK_BYTES = 350
"""Of a link, beside its URL: measured."""
PAGE_BYTES = 4096
"""What is kept of a page beside its links, until it is settled."""


class Room:
    """What the settlements take that wait for company, of all leases of a process."""

    def __init__(self, most: int = ROOM_BYTES) -> None:
        self._most = most
        self.taken = 0

    @property
    def is_full(self) -> bool:
        """Whether what has come may not wait."""
        return self.taken > self._most


def bytes_of(settlement: Settlement) -> int:
    """What a settlement takes, as good as need be."""
    links = sum(LINK_BYTES + len(link.address.url) for link in settlement.links)
    return PAGE_BYTES + links + sum(LINK_BYTES + len(one.address.url) for one in settlement.refused)


class _Handed(NamedTuple):
    """A settlement that waits for company, and who is told of it."""

    settlement: Settlement
    told: asyncio.Future[Settled]


class Together:
    """The settlements of one lease. `steady_ms` is the clock that does not jump; the room is that of all leases."""

    def __init__(
        self, frontier: Frontier, token: Token, wait_s: float, steady_ms: Callable[[], int], room: Room
    ) -> None:
        self._room = room
        self._frontier = frontier
        self._token = token
        self._wait_s = wait_s
        self._steady_ms = steady_ms
        self._beside: set[asyncio.Task[None]] = set()
        self._in_hand: set[asyncio.Task[Any]] = set()
        """Those beside the lease that have not handed in yet."""
        self._handed_in = asyncio.Event()
        self._waiting: list[_Handed] = []
        self._calling = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._failure: NephilaError | None = None

    def begin(self, concluding: Coroutine[Any, Any, None], name: str) -> None:
        """Conclude a page beside the lease, which goes on."""
        task = asyncio.create_task(concluding, name=name)
        self._beside.add(task)
        self._in_hand.add(task)
        task.add_done_callback(self._ended)

    @property
    def is_busy(self) -> bool:
        """Whether pages are still being concluded beside the lease."""
        return bool(self._beside)

    async def settle(self, settlements: Sequence[Settlement], release: Release | None) -> Settled:
        """As the frontier does, with whatever was handed in; a page beside the lease waits for company."""
        task = asyncio.current_task()
        if task is not None and task in self._in_hand and release is None and len(settlements) == 1:
            return await self._hand_in(task, settlements[0])
        if release is None:
            return await self._call(settlements, None)
        asked_ms = self._steady_ms()
        while self._in_hand:
            self._handed_in.clear()
            await self._handed_in.wait()
        waited_ms = max(0, self._steady_ms() - asked_ms - 1)  # what rounding may have added is not taken off a rest
        return await self._call(settlements, replace(release, wait_ms=max(0, release.wait_ms - waited_ms)))

    async def settle_alone(self, settlement: Settlement) -> Settled:
        """Settle what may be refused: nothing else is, because of it."""
        async with self._calling:
            return await self._ask((settlement,), None)

    def check(self) -> None:
        """Raise our own failure, if one of the pages has met it: the lease is to be left."""
        if self._failure is not None:
            raise self._failure

    def fails(self, error: NephilaError) -> bool:
        """Our own failure: nothing more is settled. False where it is known already."""
        is_news, self._failure = error is not self._failure, error
        return is_news

    async def end(self) -> None:
        """The lease has ended, or we have failed: wait until all that was handed in is concluded."""
        while self._beside:
            if self._failure is not None:
                self._refuse(self._failure)
            elif self._waiting and not self._in_hand:
                await self._call((), None)
            await asyncio.wait(self._beside, return_when=asyncio.FIRST_COMPLETED)

    async def _hand_in(self, task: asyncio.Task[Any], settlement: Settlement) -> Settled:
        self.check()
        loop = asyncio.get_running_loop()
        told: asyncio.Future[Settled] = loop.create_future()
        if not self._waiting:
            self._timer = loop.call_later(self._wait_s, self._wait_no_longer, task.get_name())
        self._waiting.append(_Handed(settlement, told))
        self._hands_in(task)
        size = bytes_of(settlement)
        self._room.taken += size
        try:
            if self._room.is_full and self._timer is not None:
                self._timer.cancel()
                self._wait_no_longer(task.get_name())
            return await told
        finally:
            self._room.taken -= size

    def _wait_no_longer(self, name: str) -> None:
        self._timer = None
        task = asyncio.create_task(self._tell_those_who_wait(), name=name)
        self._beside.add(task)
        task.add_done_callback(self._ended)

    async def _tell_those_who_wait(self) -> None:
        await self._call((), None)

    def _take(self) -> list[_Handed]:
        """Those who wait now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        taken, self._waiting = self._waiting, []
        return taken

    async def _call(self, settlements: Sequence[Settlement], release: Release | None) -> Settled:
        """Settle what waits, then what is given; the answer is to that. All go on in the order of their pages."""
        async with self._calling:
            taken = self._take()
            every = [*(one.settlement for one in taken), *settlements]
            if not every and release is None:
                return Settled(accepted=True)
            try:
                settled = await self._ask(every, release)
            except BaseException as error:
                for one in taken:
                    _tell(one.told, error)
                if settlements or release is not None or not isinstance(error, Exception):
                    raise
                return Settled(accepted=False)  # they are told
        parts = settled.each or (settled,) * len(every)
        for one, its_own in zip(taken, parts, strict=False):
            if not one.told.done():
                one.told.set_result(its_own)
        if taken and settlements:
            await asyncio.sleep(0)
        return parts[-1] if settlements else settled

    async def _ask(self, settlements: Sequence[Settlement], release: Release | None) -> Settled:
        self.check()
        return await self._frontier.settle(self._token, settlements, release)

    def _refuse(self, error: NephilaError) -> None:
        for one in self._take():
            _tell(one.told, error)

    def _hands_in(self, task: asyncio.Task[Any]) -> None:
        self._in_hand.discard(task)
        self._handed_in.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._beside.discard(task)
        self._hands_in(task)


def _tell(told: asyncio.Future[Settled], error: BaseException) -> None:
    """Let somebody fail as a call did."""
    if told.done():
        return
    if isinstance(error, Exception):
        told.set_exception(error)
    else:
        told.cancel()
