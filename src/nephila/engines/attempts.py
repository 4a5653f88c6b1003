"""How long an attempt may take that is under way when somebody wants an end. For a loop, from its own thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LAST_TRY_S = 2.0
"""What is begun, or under way, when the end has come gets so long at least."""


class Attempts:
    """Gives every attempt its time, and takes it back."""

    def __init__(self, loop: asyncio.AbstractEventLoop, usual_s: float) -> None:
        self._loop = loop
        self._usual_s = usual_s
        self.give_up_at = float("inf")
        """When nothing is to be waited for any more, by the loop's clock."""
        self._under_way: set[asyncio.Timeout] = set()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Raises TimeoutError when it takes too long."""
        async with asyncio.timeout_at(self._end()) as limit:
            self._under_way.add(limit)
            try:
                yield
            finally:
                self._under_way.discard(limit)

    def give_up_in(self, seconds: float) -> None:
        """From now on nothing takes longer than that."""
        self.give_up_at = min(self.give_up_at, self._loop.time() + seconds)
        for limit in self._under_way:
            when = limit.when()
            if when is not None:
                limit.reschedule(min(when, self._end()))

    def _end(self) -> float:
        now = self._loop.time()
        return min(now + self._usual_s, max(self.give_up_at, now + LAST_TRY_S))
