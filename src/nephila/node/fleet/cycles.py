"""Beginning a new cycle of a fleet's crawl (F2): everything that has ended is fetched once more.

Whoever says so need not wait for it: shards queue their URLs in steps, as workers claim from them. Said again, or by
two at once, it is the same cycle: one that was begun is gone on with until nothing of it is left.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import AsyncExitStack
from dataclasses import dataclass

from nephila.config import Configured
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.settings import LimitSettings, Settings
from nephila.node.clock import SystemClock

from .access import check_fleet
from .regions import Regions, regional
from .registry import Registry, Roll
from .servers import open_frontier


@dataclass(frozen=True, slots=True)
class CycleBegun:
    """What came of it."""

    crawl: str
    begun: bool
    """False: it was begun before, and is gone on with."""
    known: FrontierSnapshot
    roll: Roll
    others: tuple[str, ...] = ()
    """Groups whose regions have cycles of their own; empty for what is nobody's."""


def begin_cycle(configured: Configured, *, unfinished: bool = False) -> CycleBegun:
    """Begin one; `unfinished`: also where the last one that was begun is not at its end."""
    return asyncio.run(_begin(configured.settings, unfinished=unfinished))


async def _begin(whole: Settings, *, unfinished: bool) -> CycleBegun:
    settings = regional(whole)
    crawl = check_fleet(settings)
    async with AsyncExitStack() as stack:
        state, frontier = await open_frontier(settings, SystemClock(), "operator", stack, looking=True)
        known = await frontier.look()
        left = known.cycle if unfinished or is_over(known, settings.limits) else None
        begun = await frontier.begin_cycle_after(left)
        roll = await Registry(state, crawl).roll()
        return CycleBegun(crawl, begun, await frontier.look(), roll, _elsewhere(whole))


def _elsewhere(whole: Settings) -> tuple[str, ...]:
    groups = Regions(whole.fleet.regions).groups
    home = whole.fleet.group if whole.fleet.group in groups else ""
    return tuple(sorted({"", *groups} - {home}))


def is_over(known: FrontierSnapshot, limits: LimitSettings) -> bool:
    """Whether nothing is left of a cycle, as a worker judges that; those that never end do not say so themselves."""
    wait_s = limits.max_wait_s if math.isfinite(limits.max_wait_s) else LimitSettings().max_wait_s
    return not known.hosts_leased and (known.next_in_ms is None or known.next_in_ms > wait_s * 1000)
