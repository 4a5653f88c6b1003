"""The frontiers of other regions, on a real server."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from valkey_servers import ValkeySingle

from nephila.model.settings import ArchiveSettings, CatalogueSettings, FleetSettings, Settings
from nephila.node.clock import SystemClock
from nephila.node.fleet.visiting import Visits

PAGES = 30
LINES = 2
"""Of a visitor: to what workers share, and to the frontier."""


def test_a_region_is_entered_once_however_many_pages_have_links_into_it(valkey: ValkeySingle) -> None:
    """N6, N4: a worker that begins has hundreds at once, and each line to the engine stays open."""
    settings = Settings(
        fleet=FleetSettings(crawl="visited", servers=tuple(valkey.names), shards=2, regions=("eu=de",)),
        catalogue=CatalogueSettings(url="postgresql://nobody@127.0.0.1:1/none"),
        archive=ArchiveSettings(url="s3://b/visited"),
    )

    def lines() -> int:
        return len(valkey.server.ask("CLIENT", "LIST").splitlines())

    async def enter() -> int:
        async with AsyncExitStack() as stack:
            visits, before = Visits(settings, SystemClock(), stack), lines()
            entered = await asyncio.gather(*(visits("eu") for _ in range(PAGES)))
            assert len(set(map(id, entered))) == 1
            return lines() - before

    assert asyncio.run(enter()) <= LINES
