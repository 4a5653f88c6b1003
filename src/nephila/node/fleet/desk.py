"""The desk of a fleet's crawl: the control API from any machine, on the engines (C1).

Seeds, policies, blocks, re-crawls, dead letters, pages and the status work as on a directory; workers see a change with
their next claim. What a directory's own store answers, lists of domains and hosts and leases over HTTP, is not kept for
a fleet, and the answer says so. What people change is on record in the folder that serves.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn, cast

from nephila.config import Configured
from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.embedded.census import Census, DomainFigures, HostFigures, Loan
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.scope import Scope, ScopeSeeds
from nephila.model.errors import UsageError
from nephila.model.events import Event
from nephila.model.settings import Settings
from nephila.model.task import Token
from nephila.node.cataloguing import identity_of
from nephila.node.clock import SystemClock
from nephila.node.desk import Desk
from nephila.node.extending import documents_of
from nephila.node.inspect import WhyAnswer
from nephila.node.logbook import FiguresFile
from nephila.node.roster import Roster
from nephila.node.scopefile import ScopeFollower
from nephila.node.sowing import Sower
from nephila.node.wiring import identifier_of
from nephila.politeness import StandardPoliteness
from nephila.store.postgres import PostgresCatalogue
from nephila.urls import Address

from .access import check_fleet
from .frontier import FleetFrontier
from .identity import WorkerDirectory
from .looking import permission_told, story_told
from .opening import agree
from .regions import regional
from .registry import Registry
from .scoping import SharedScope
from .servers import open_frontier
from .untold import Untold
from .visiting import Visits

FOLLOW_S = 2.0


class NoCensus:
    """Stands where a directory's census does."""

    def domains(self, after: bytes, limit: int) -> tuple[list[DomainFigures], bytes]:
        """None are listed."""
        del after, limit
        return [], b""

    def domain(self, name: str) -> DomainFigures | None:
        """Not kept."""
        del name
        _not_kept()

    def hosts(self, domain: str, limit: int, after: str = "") -> list[HostFigures]:
        """Not kept."""
        del domain, limit, after
        _not_kept()

    def loan(self, token: Token) -> Loan | None:
        """Not kept."""
        del token
        _not_kept()


def _not_kept() -> NoReturn:
    raise UsageError(
        "domains, hosts and leases over HTTP are not kept for a fleet's crawl",
        "ask the catalogue in SQL, or `fleet status`",
    )


class FleetDesk(Desk):
    """A desk whose frontier is on a server."""

    __slots__ = ()

    @property
    def census(self) -> Census:
        """There is none."""
        return cast("Census", NoCensus())

    def is_running(self) -> bool:
        """Whether there are hosts at work."""
        return self.frontier.snapshot().hosts_leased > 0

    async def why(self, url: str) -> WhyAnswer:
        """What became of a URL."""
        address = self.identify(url)
        if not isinstance(address, Address):
            return await super().why(url)
        story = self.story(address)
        captures = await self.captures(address)
        return story_told(address, story, permission_told(self.frontier.rules, address, self.politeness), captures)


@asynccontextmanager
async def desk_of_fleet(configured: Configured, folder: Path) -> AsyncIterator[Desk]:
    """A desk on a fleet's crawl; `folder` keeps the log of changes, and a copy of the scope."""
    whole = configured.settings
    check_fleet(whole)
    settings = regional(whole)
    settings = replace(
        settings, catalogue=replace(settings.catalogue, name=settings.catalogue.name or settings.fleet.crawl)
    )
    clock, directory = SystemClock(), WorkerDirectory(folder)
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        state, inner = await open_frontier(settings, clock, "desk", stack, visiting=True)
        registry = Registry(state, check_fleet(settings))
        await agree(registry, settings)
        await asyncio.to_thread(_make_tables, settings, identity_of(inner.secret))
        visits = Visits(whole, clock, stack)
        untold = directory.untold = Untold(visits.registries(state))
        directory.begin_scope()
        shared = SharedScope(registry, directory)
        await shared.follow()
        following = asyncio.create_task(_keep_following(shared, inner), name="scope")
        stack.callback(following.cancel)
        identifier = identifier_of(settings, inner.secret)
        scope = Scope(
            settings.scope,
            settings.limits.max_depth,
            ScopeSeeds.from_bytes(directory.saved_scope()),
            repeated_segments=settings.traps.repeated_segments,
            documents=documents_of(settings),
        )
        frontier = FleetFrontier(inner, untold.tell, visits.border(settings.fleet.group))
        save = partial(directory.add_to_scope, scope.unsaved)
        yield FleetDesk(
            directory=directory,
            settings=settings,
            clock=clock,
            frontier=cast("LmdbFrontier", inner),  # it has all that a desk asks for
            identifier=identifier,
            scope=scope,
            sower=Sower(frontier, identifier, scope, save, keep_twin=untold.keep_twin),
            politeness=StandardPoliteness(
                settings.politeness, settings.robots, settings.frontier, settings.fetch.user_agent
            ),
            aliases=None,
            figures=FiguresFile(directory.figures).read,
            nudge=_nothing,
            follow_scope=ScopeFollower(directory, scope),
            emit=_unheard,
            roster=Roster(cast("Census", NoCensus())),
            crawls=False,
            take_up=_nothing,
        )


def _make_tables(settings: Settings, identity: str) -> None:
    """The catalogue is read here; where no worker has made it yet, it is made."""
    PostgresCatalogue(settings.catalogue, settings.catalogue.name, os.environ, identity=identity).close()


async def _keep_following(shared: SharedScope, frontier: RedisFrontier) -> None:
    """Keep up with what others let in, and with the counters."""
    while True:
        await asyncio.sleep(FOLLOW_S)
        await shared.follow()
        await frontier.look()


def _nothing() -> None:
    """Workers look by themselves."""


def _unheard(_event: Event) -> None:
    """There is no crawl in this process to tell it."""
