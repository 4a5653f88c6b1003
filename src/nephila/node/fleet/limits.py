"""The limits of a crawl that many workers share (S3): what all have used is asked for, what is left is divided.

Each worker may store its part of the pages that are left, until it has asked again; so the last few are given out one
by one, and no worker runs away with what others have used meanwhile. What goes beyond is what was on its way: a page
for each worker, and those that others had begun when it was asked.

Where there is no such limit, nobody asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.settings import LimitSettings
from nephila.node.allowance import PageAllowance

LOOK_S = 0.5


class SharedLimits:
    """One worker's view of them."""

    def __init__(
        self, limits: LimitSettings, allowance: PageAllowance, look: Callable[[], Awaitable[FrontierSnapshot]]
    ) -> None:
        self._max_pages = limits.max_pages
        self._allowance = allowance
        self._look = look
        self.are_set = bool(limits.max_pages or limits.max_domains)
        self.are_known = not self.are_set
        """Whether it was asked at all: before that nothing is begun."""
        self.alive = 1
        """Workers among which the rest is divided."""

    async def follow(self, wake: Callable[[], None]) -> None:
        """Ask again and again, and wake whoever waits for a part."""
        while self.are_set:
            await self.ask()
            wake()
            await asyncio.sleep(LOOK_S)

    async def ask(self) -> None:
        """Find out what all have used, and take a part of what is left."""
        used = (await self._look()).pages_in_cycle
        if self._max_pages:
            left = max(0, self._max_pages - used)
            self._allowance.pages = self._max_pages - -(-left // max(1, self.alive))
        self.are_known = True
