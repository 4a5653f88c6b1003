"""How a worker goes quiet on a takedown (K2): after it, nothing of what goes can come from this worker any more.

Called for by whoever carries the takedown out, with a number that a worker learns with its signs of life and answers
when it is done. By then what was to be taken down is blocked, so nothing of it is claimed any more. What was claimed
before is waited for; then what this worker keeps of it is forgotten, so that nothing new refers to it; what was being
judged meanwhile is waited for; then archive and event file are closed, and all that lies in spool and event folder is
waited for until it has arrived in the store and is listed.

Work goes on all the while: other pages are claimed and fetched as ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nephila.dedup import LmdbNearIndex, SharedDigestIndex
from nephila.model.errors import NephilaError
from nephila.node.takedown import Takedown, Target
from nephila.node.takedown.target import Identify

POLL_S = 0.1
AGAIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Hold:
    """What a worker holds, as far as this is about it."""

    orders: Callable[[], Sequence[Takedown]]
    """Takedowns that are not carried out yet. Blocks."""
    identify: Identify
    contents: SharedDigestIndex
    near: LmdbNearIndex | None
    working: Callable[[], frozenset[object]]
    """What is being worked on now."""
    flush: Callable[[], None]
    """Write what was told of events. On the loop, as they are told there."""
    roll: Callable[[], None]
    """Close archive and event file."""
    left: Callable[[], frozenset[str]]
    """Files that are not in the store, or not listed. Blocks."""
    carry: Callable[[], None]
    """Have what can be brought to the store brought there now."""


class Quiet:
    """One for each worker."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._called = 0
        self._heard = asyncio.Event()
        self.answered = 0
        """The last call that this worker is quiet on."""

    def hear(self, call: int) -> None:
        """A call, of whatever age."""
        if call > self._called:
            self._called = call
            self._heard.set()

    async def run(self) -> None:
        """Answer calls, until cancelled. What an engine that is away keeps from being done is done later."""
        while True:
            await self._heard.wait()
            self._heard.clear()
            while self.answered < self._called:
                call = self._called
                try:
                    await self._be_quiet()
                except NephilaError:
                    await asyncio.sleep(AGAIN_S)  # whoever called waits, and says for whom
                else:
                    self.answered = call

    async def _be_quiet(self) -> None:
        hold = self._hold
        await self._ended(hold.working())
        await self._forget(await asyncio.to_thread(hold.orders))
        await self._ended(hold.working())
        hold.flush()
        left = await asyncio.to_thread(hold.left)
        hold.roll()
        while left:
            hold.carry()
            await asyncio.sleep(POLL_S)
            left &= await asyncio.to_thread(hold.left)

    async def _ended(self, before: frozenset[object]) -> None:
        while before & self._hold.working():  # noqa: ASYNC110 - leases end in many ways, and it is seldom waited for
            await asyncio.sleep(POLL_S)

    async def _forget(self, orders: Sequence[Takedown]) -> None:
        for takedown in orders:
            target = Target(takedown.order, self._hold.identify)
            await self._hold.contents.forget_named(target.may_be_in, target.names)
            if self._hold.near is not None:
                await asyncio.to_thread(self._hold.near.forget_named, target.names)
