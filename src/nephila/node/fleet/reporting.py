"""The report of a fleet's crawl (O3): from the catalogue, the counters of the frontier, and what workers say.

What lies in spools is in no catalogue yet. So the report tells beside each worker how much waits there; the count of
pages is the frontier's, which counts what is settled.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack

from nephila.config import Configured
from nephila.model.settings import Settings
from nephila.node.clock import SystemClock
from nephila.node.desk import WorkerSeen
from nephila.node.reporting import TRAPS, put_together
from nephila.report import CrawlReport, WorkerFigures
from nephila.store.postgres import PostgresCatalogue

from .looking import FleetView
from .operating import FleetOperator
from .regions import regional
from .servers import open_frontier
from .sight import FleetSight


def report_on_fleet(configured: Configured) -> CrawlReport:
    """What the crawl that settings name came to, of regions the one that they name."""
    status = FleetView(configured).status()
    settings = regional(configured.settings)
    traps = FleetOperator(configured.settings).traps(TRAPS)
    workers = [_told(one) for one in asyncio.run(_workers(settings))]
    name = settings.catalogue.name or settings.fleet.crawl
    catalogue = PostgresCatalogue(settings.catalogue, name, os.environ, read_only=True)
    try:
        return put_together(status, traps, catalogue, workers)
    finally:
        catalogue.close()


async def _workers(settings: Settings) -> list[WorkerSeen]:
    async with AsyncExitStack() as stack:
        state, _ = await open_frontier(settings, SystemClock(), "visitor", stack, looking=True)
        sight = FleetSight(state, settings.fleet.crawl, settings.fleet.silent_s)
        await sight.look()
        return sight.workers()


def _told(one: WorkerSeen) -> WorkerFigures:
    return WorkerFigures(one.name, one.state, one.pages, one.errors, one.pages_per_s, one.spool_bytes)
