"""Takedowns of a fleet by command (`nephila purge --config FILE`): judged, filed, blocked, and carried out here (K2).

Whoever serves the fleet's crawl may be at it already: then that one is waited for. Every call connects, and leaves.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from typing import TypeVar

from nephila.config import Configured
from nephila.model.errors import NephilaError, StorageError, UsageError
from nephila.model.settings import Settings
from nephila.node.addressing import identifier_of, identify_with
from nephila.node.archiving import object_store
from nephila.node.clock import SystemClock
from nephila.node.takedown import Order, Takedown, TakedownState, Target, check_order
from nephila.node.takedown.carrying_out import plan_of
from nephila.node.takedown.ordering import Foreseen, foreseen_of
from nephila.store.postgres import PostgresCatalogue
from nephila.urls import host_of

from .access import check_fleet
from .agreeing import agree
from .operated import OperatedFleetFrontier
from .regions import Regions, regional
from .servers import open_frontier
from .takedowns import AGAIN_S, FleetTakedowns, Premise
from .untold import Untold
from .visiting import Visits

T = TypeVar("T")


def check_region(whole: Settings, order: Order) -> None:
    """Raise `UsageError` for what another group of workers asks: its archive is another one."""
    regions = Regions(whole.fleet.regions)
    home = whole.fleet.group if whole.fleet.group in regions.groups else ""
    for host in (*map(host_of, order.urls), *order.domains):
        if (group := regions.of(host)) != home:
            raise UsageError(
                f"{host} belongs to {f'the group {group}' if group else 'no group'}, and this is another's crawl",
                f"order it there: --group {group}" if group else "order it without --group",
            )


class FleetPurge:
    """Takedowns of the crawl that settings name. `tell` hears what is waited for."""

    def __init__(self, configured: Configured, tell: Callable[[str], None]) -> None:
        self._whole = configured.settings
        self._settings = regional(self._whole)
        check_fleet(self._settings)
        self._tell = tell

    def checked(self, urls: Sequence[str], domains: Sequence[str], reason: str) -> Order:
        """The order as it is kept; UsageError for one that makes no sense."""
        identify = identify_with(identifier_of(self._settings, 0))
        order = check_order(Order(tuple(urls), tuple(domains), reason, "command line"), identify)
        check_region(self._whole, order)
        return order

    def foresee(self, order: Order) -> Foreseen:
        """What it would take out. Nothing is changed."""

        async def look(premise: Premise) -> Foreseen:
            target = Target(order, identify_with(premise.identifier))
            return await asyncio.to_thread(self._foresee, target)

        return self._with(look)

    def _foresee(self, target: Target) -> Foreseen:
        name = self._settings.catalogue.name or self._settings.fleet.crawl
        with closing(PostgresCatalogue(self._settings.catalogue, name, os.environ, read_only=True)) as catalogue:
            return foreseen_of(plan_of(target, catalogue.removal().rows(), lambda _segment: True))

    def file(self, order: Order) -> Takedown:
        """Put it on record and block it."""

        async def act(premise: Premise) -> Takedown:
            filed = await asyncio.to_thread(premise.records.add, order, premise.clock.wall_ms())
            for entry in Target(order, identify_with(premise.identifier)).blocks(filed.at):
                await premise.frontier.block(entry)
            return filed

        return self._with(act)

    def pending(self) -> list[Takedown]:
        """Those that are not carried out."""

        async def look(premise: Premise) -> list[Takedown]:
            return await asyncio.to_thread(premise.records.pending)

        return self._with(look)

    def is_running(self) -> bool:
        """Whether somebody else has to carry it out: never."""
        return False

    def wait(self, number: str, carry_out: Callable[[], object]) -> Takedown:
        """Carry it out, or wait for whoever does."""
        del carry_out  # that of a crawl directory

        async def act(premise: Premise) -> Takedown:
            async def tell(sentence: str) -> None:
                self._tell(sentence)

            takedowns = FleetTakedowns(premise, tell)
            while True:
                found = await asyncio.to_thread(premise.records.get, number)
                if found is None:
                    raise StorageError(f"the record of takedown {number} is gone")
                if found.state is TakedownState.DONE:
                    return found
                if not await takedowns.carry_out_pending():
                    await takedowns.say("somebody else carries out takedowns of this fleet just now: waiting")
                    await asyncio.sleep(AGAIN_S)

        try:
            return self._with(act)
        except StorageError as error:
            hint = f"takedown {number} stays on record, and is carried out by `nephila purge --config FILE`"
            raise NephilaError(str(error), f"{error.hint}; {hint}" if error.hint else hint) from error

    def _with(self, act: Callable[[Premise], Awaitable[T]]) -> T:
        async def run() -> T:
            async with self._premise() as premise:
                return await act(premise)

        return asyncio.run(run())

    @asynccontextmanager
    async def _premise(self) -> AsyncIterator[Premise]:
        settings, clock = self._settings, SystemClock()
        async with AsyncExitStack() as stack:
            state, inner = await open_frontier(settings, clock, "takedown", stack, looking=True)
            await agree(state, settings)
            visits = Visits(self._whole, clock, stack)
            untold = Untold(visits.registries(state))
            frontier = OperatedFleetFrontier(inner, untold.tell, visits, settings.fleet.group)
            objects = object_store(settings, clock, uploads=1)
            stack.push_async_callback(objects.close)
            identifier = identifier_of(settings, inner.secret)
            yield Premise(settings, clock, state, inner, frontier, identifier, objects)


def open_fleet_purge(configured: Configured, tell: Callable[[str], None]) -> FleetPurge:
    """Somebody who may take down what a fleet has stored."""
    return FleetPurge(configured, tell)
