"""The order in which the frontier on disk hands out pages, as an `Order` to be measured (see `fetch_orders`).

All pages of a graph stand on one host, each under a path of its own, so that only what the frontier thinks of each page
decides: no other domain has its turn, no host rests, nothing is over budget, due again or taken for a trap. Of the
score only the authority is left, and there is one class.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from frontier_world import FrontierWorld

from nephila.model.outcome import Release
from nephila.model.settings import BudgetSettings, PrioritySettings, TrapSettings
from nephila.model.task import Lease, Pace, PageTask

MANY = 10**6
ONLY_AUTHORITY = PrioritySettings(
    authority=100, depth=0, freshness=0, news=0, sitemap=0, document=0, other=0, high_from=0, medium_from=0, reserve=0.0
)


class ByFrontier:
    """The order of `LmdbFrontier`, one URL at a time; use it in a `with`.

    `draw` is part of every path: what is left to chance goes by the spelling of a URL.
    """

    def __init__(self, path: Path, draw: int = 0) -> None:
        self._prefix = f"https://one.test/{draw}/page-"
        self._runner = asyncio.Runner()
        self._world = FrontierWorld(
            path,
            delay_s=1.0,
            recrawl=None,
            priority=ONLY_AUTHORITY,
            budget=BudgetSettings(first_urls=MANY, queued_per_host=MANY, queued_per_prefix=MANY),
            traps=TrapSettings(slow_after=MANY, stop_after=MANY, poured_per_hour=MANY),
        )
        self._lease: Lease | None = None
        self._depths: dict[int, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._world.close())
        self._runner.close()

    def begin(self, seeds: Sequence[int]) -> None:
        self._depths = dict.fromkeys(seeds, 0)
        self._runner.run(self._world.admit(*(f"{self._prefix}{page}" for page in seeds)))

    def next(self) -> int | None:
        self._world.clock.advance(2.0)  # more than the host's delay: it is always free
        leases = self._runner.run(self._world.frontier.claim(1, 300))
        if not leases:
            return None
        (self._lease,) = leases
        (task,) = self._lease.tasks
        assert isinstance(task, PageTask)
        return int(task.url.removeprefix(self._prefix))

    def settle(self, page: int, links: Sequence[int]) -> None:
        assert self._lease is not None
        (task,) = self._lease.tasks
        assert isinstance(task, PageTask)
        depth = self._depths[page] + 1
        for target in links:
            self._depths.setdefault(target, depth)
        found = [self._world.candidate(f"{self._prefix}{target}", depth) for target in links]
        done = self._world.page(task, found)
        pace = Pace(self._world.delay_ms, 0, self._world.delay_ms)
        release = Release(self._world.delay_ms, pace)
        self._runner.run(self._world.frontier.settle(self._lease.token, [done], release))
