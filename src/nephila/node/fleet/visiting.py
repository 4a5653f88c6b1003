"""The frontiers of other regions, opened when something is first handed over to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from nephila.frontier.redis import RedisFrontier
from nephila.interfaces.clock import Clock
from nephila.interfaces.shared import SharedState
from nephila.model.settings import Settings
from nephila.node.addressing import identifier_of

from .regions import Abroad, Border, Regions, regional
from .registry import Registry
from .servers import open_frontier


def _unheard(_: str) -> None:
    """Of a server that is away whoever works has heard already."""


Score = Callable[[Settings, RedisFrontier, AsyncExitStack], Awaitable[None]]
"""Lets a frontier score by the ranks of its own crawl, that of a region: see `repute`."""


async def _by_count(_settings: Settings, _frontier: RedisFrontier, _stack: AsyncExitStack) -> None:
    """Nothing is admitted there that would have a score."""


class Visits:
    """One for a process. `settings` are those of the crawl as a whole; what it opens is closed by `stack`."""

    def __init__(self, settings: Settings, clock: Clock, stack: AsyncExitStack, score: Score = _by_count) -> None:
        self._settings = settings
        self._clock = clock
        self._stack = stack
        self._score = score
        self._known: dict[str, Abroad] = {}
        self._open: dict[str, RedisFrontier] = {}
        self._one = asyncio.Lock()
        """Held while one is opened: when a worker begins, hundreds of pages have links into a region at once."""

    async def __call__(self, group: str) -> Abroad:
        """The frontier of a group's region; of the crawl itself for an empty name."""
        if group not in self._known:
            async with self._one:
                if group not in self._known:
                    self._known[group] = await self._opened(group)
        return self._known[group]

    async def _opened(self, group: str) -> Abroad:
        settings = regional(self._settings, group)
        _, frontier = await open_frontier(
            settings, self._clock, "visitor", self._stack, visiting=True, waiting=_unheard
        )
        await self._score(settings, frontier, self._stack)
        self._open[group] = frontier
        return Abroad(frontier, identifier_of(settings, frontier.secret))

    async def elsewhere(self, home: str) -> list[RedisFrontier]:
        """The frontiers of all regions but that of a group."""
        groups = Regions(self._settings.fleet.regions).groups
        others = {"", *groups} - {home if home in groups else ""} if groups else set[str]()
        for group in others:
            await self(group)
        return [self._open[group] for group in sorted(others)]

    def hurry(self, seconds: float) -> None:
        """Somebody wants an end: no engine is waited for longer than that."""
        for frontier in self._open.values():
            frontier.hurry(seconds)

    def border(self, home: str) -> Border | None:
        """What sorts by region for a worker of that group; None where there are no regions."""
        regions = Regions(self._settings.fleet.regions)
        return Border(regions, home, self) if regions else None

    def registries(self, state: SharedState) -> list[Registry]:
        """The registers of all regions."""
        groups = ["", *sorted(Regions(self._settings.fleet.regions).groups)]
        return [Registry(state, regional(self._settings, group).fleet.crawl) for group in groups]
