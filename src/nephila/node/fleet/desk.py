"""The desk of a fleet's crawl: the control API from any machine, on the engines (C1).

All works as on a directory; workers see a change with their next claim. Figures and events are what workers publish
(`publishing`, `broadcasting`), lists are read out of the shards. What people change is on record in the folder that
serves; what was learned of aliases is asked for from the command line.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from nephila.config import Configured
from nephila.frontier.redis.census import RedisCensus
from nephila.interfaces.clock import Clock
from nephila.model.errors import EngineAwayError, NephilaError
from nephila.model.events import Event, EventKind
from nephila.model.settings import Settings
from nephila.node.addressing import identifier_of, scope_of
from nephila.node.archiving import object_store
from nephila.node.cataloguing import CatalogueReaders, identity_of, open_catalogue
from nephila.node.clock import SystemClock
from nephila.node.desk import Desk
from nephila.node.roster import Roster
from nephila.node.scopefile import ScopeFollower
from nephila.node.sowing import Sower
from nephila.node.takedown.office import Office
from nephila.politeness import StandardPoliteness
from nephila.store import ArchivePlace
from nephila.store.postgres import PostgresCatalogue

from .access import check_fleet
from .agreeing import agree
from .broadcasting import Broadcast, StreamTail
from .identity import WorkerDirectory
from .operated import OperatedFleetFrontier
from .outlived import check_not_outlived
from .purging import check_region
from .regions import regional
from .registry import Registry
from .repute import Follower, RegionalRanks
from .scoping import SharedScope
from .servers import open_frontier
from .sight import FleetSight
from .takedowns import FleetTakedowns, Premise
from .untold import Untold
from .visiting import Visits

FOLLOW_S = 2.0


@asynccontextmanager
async def desk_of_fleet(
    configured: Configured, folder: Path, tell: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Desk]:
    """A desk on a fleet's crawl; `folder` keeps the log of changes, and a copy of the scope.

    `tell` hears of servers that are waited for.
    """
    whole = configured.settings
    check_fleet(whole)
    settings = regional(whole)
    settings = replace(
        settings, catalogue=replace(settings.catalogue, name=settings.catalogue.name or settings.fleet.crawl)
    )
    clock, directory = SystemClock(), WorkerDirectory(folder)
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        state, inner = await open_frontier(settings, clock, "desk", stack, visiting=True, waiting=tell)
        registry = Registry(state, check_fleet(settings))
        await check_not_outlived(settings, inner, clock)
        await agree(state, settings)
        await asyncio.to_thread(_make_tables, settings, identity_of(inner.secret))
        objects = object_store(settings, clock, uploads=1)
        stack.push_async_callback(objects.close)

        def warn(_: str, sentence: str) -> None:
            tell(sentence)

        visits = Visits(whole, clock, stack, RegionalRanks(directory.rank, objects, clock, warn))
        untold = directory.untold = Untold(visits.registries(state))
        directory.begin_scope()
        shared = SharedScope(registry, directory)
        await shared.follow()
        following = asyncio.create_task(_keep_following(shared), name="scope")
        stack.callback(following.cancel)
        identifier = identifier_of(settings, inner.secret)
        scope = scope_of(settings, directory.saved_scope())
        frontier = OperatedFleetFrontier(inner, untold.tell, visits, settings.fleet.group)
        census = RedisCensus(inner.view)
        readers = CatalogueReaders(partial(open_catalogue, directory, settings, read_only=True))
        stack.callback(readers.close)
        sight = FleetSight(state, settings.fleet.crawl, settings.fleet.silent_s)
        await sight.look()
        watching = asyncio.create_task(sight.run(), name="sight")
        stack.callback(watching.cancel)
        premise = Premise(settings, clock, state, inner, frontier, identifier, objects)
        told = Broadcast(state, settings.fleet, "desk", clock.wall_ms())
        place = ArchivePlace.parse(settings.archive.url)
        ranks = Follower(directory.rank, objects, place, clock, warn)
        ranks.begin(inner, stack)
        takedowns = FleetTakedowns(premise, partial(_tell, told, clock))
        carrying = asyncio.create_task(takedowns.run(), name="takedowns")
        stack.push_async_callback(_end, carrying)
        yield Desk(
            name=settings.fleet.crawl,
            directory=directory,
            settings=settings,
            clock=clock,
            frontier=frontier,
            census=census,
            identifier=identifier,
            scope=scope,
            sower=Sower(
                frontier, identifier, scope, partial(directory.add_to_scope, scope.unsaved), keep_twin=untold.keep_twin
            ),
            politeness=StandardPoliteness(
                settings.politeness, settings.robots, settings.frontier, settings.fetch.user_agent
            ),
            aliases=None,
            figures=sight.figures,
            nudge=_nothing,
            follow_scope=ScopeFollower(directory, scope),
            catalogue=readers,
            emit=_unheard,
            roster=Roster(census),
            running=sight.is_running,
            at_work=sight.workers,
            events=lambda: StreamTail(state, settings.fleet.crawl),
            crawls=False,
            takedowns=Office(premise.records, partial(check_region, whole), takedowns.wake),
            ranks=ranks.grades,
        )


def _make_tables(settings: Settings, identity: str) -> None:
    """The catalogue is read here; where no worker has made it yet, it is made."""
    PostgresCatalogue(settings.catalogue, settings.catalogue.name, os.environ, identity=identity).close()


async def _keep_following(shared: SharedScope) -> None:
    """Keep up with what others let in; where they are not to be had now, at the next look."""
    while True:
        await asyncio.sleep(FOLLOW_S)
        with suppress(NephilaError):
            await shared.follow()


async def _tell(told: Broadcast, clock: Clock, sentence: str) -> None:
    """Among the events of the workers, where whoever looks at the dashboard sees it."""
    told.emit(Event(EventKind.WARNING, clock.wall_ms(), reason="takedown", detail=sentence))
    with suppress(EngineAwayError):
        await told.tell()


async def _end(task: asyncio.Task[None]) -> None:
    """Cut it off: a takedown is taken up by the next who looks, a file of ranks is there whole or not at all."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _nothing() -> None:
    """Workers look by themselves."""


def _unheard(_event: Event) -> None:
    """There is no crawl in this process to tell it."""
