"""A worker's upkeep of long queues: what lies far back is kept in the database, and is back before it is needed (F8).

Every worker looks after the shards that fall to it. A database that is away is no reason to stop: nothing leaves the
engine then, and hosts of which nothing is left there wait until it is back.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Protocol

from nephila.frontier.redis.spilling import Spilled
from nephila.model.errors import NephilaError

LOOK_S = 2.0
"""How often, where there was nothing to do; as much less at random."""
CLEAR_S = 60.0
STRANGERS_S = 6 * 3600.0
"""How often the whole store is gone through for chunks of workers that died: they cost disk, and nothing else."""


class SpillingFrontier(Protocol):
    """The part of a frontier that this is about."""

    async def spill(self) -> Spilled:
        """Do what is to be done now."""

    async def clear_chunks(self, *, strangers: bool) -> int:
        """Delete what nobody needs any more."""


class LongQueues:
    """One for a worker."""

    def __init__(self, frontier: SpillingFrontier, draw: random.Random) -> None:
        self._frontier = frontier
        self._draw = draw
        self._said = ""

    async def look_after(self, warn: Callable[[str, str], None]) -> None:
        """Until the worker ends."""
        loop = asyncio.get_running_loop()
        clear_at = loop.time() + CLEAR_S * self._draw.uniform(0.5, 1.0)
        strangers_at = loop.time() + STRANGERS_S * self._draw.uniform(0.0, 1.0)
        while True:
            done = Spilled()
            try:
                done = await self._frontier.spill()
                now = loop.time()
                if now >= clear_at:
                    await self._frontier.clear_chunks(strangers=now >= strangers_at)
                    clear_at = now + CLEAR_S
                    strangers_at = now + STRANGERS_S if now >= strangers_at else strangers_at
            except NephilaError as error:
                self._say(str(error), warn)
            else:
                self._say(f"{done.missing} parts of queues are not in the database" if done.missing else "", warn)
            if not (done.out or done.back):
                await asyncio.sleep(LOOK_S * self._draw.uniform(0.5, 1.0))

    def _say(self, what: str, warn: Callable[[str, str], None]) -> None:
        """Once, while it is the same."""
        if what and what != self._said:
            warn("queue_store", what)
        self._said = what
