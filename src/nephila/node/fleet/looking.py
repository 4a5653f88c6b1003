"""Looking into a fleet's crawl from anywhere: `status`, `pages`, `dead`, `why` (F9, T8).

Every call connects and leaves again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TypeVar

from nephila.config import Configured
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.scope import Scope
from nephila.interfaces.catalogue import PageRow
from nephila.interfaces.frontier import UrlStory
from nephila.interfaces.shared import SharedState
from nephila.model.errors import UsageError
from nephila.model.settings import Settings
from nephila.model.summary import SpoolStanding
from nephila.node.addressing import identifier_of, scope_of
from nephila.node.archiving import object_store
from nephila.node.audit import Audit, audit_fleet
from nephila.node.cataloguing import identity_of
from nephila.node.clock import SystemClock
from nephila.node.inspect import DEAD_AT_ONCE, WhyAnswer
from nephila.node.reasons import REASONS
from nephila.node.standing import CrawlStatus, Stored, standing
from nephila.node.story import StoryTeller
from nephila.politeness import StandardPoliteness
from nephila.seeds import SeedUrl, spell
from nephila.store import ArchivePlace
from nephila.store.postgres import PostgresCatalogue
from nephila.urls import Address, registrable_domain

from .access import check_fleet
from .learned import aliases_of_fleet
from .regions import Regions, regional
from .registry import Registry
from .repute import PublishedRepute, score_as_visitor
from .scoping import ENTRIES_AT_ONCE
from .servers import open_frontier

T = TypeVar("T")


class FleetView:
    """A crawl on its engines; of regions, the one that a URL belongs to is asked, else the settings' own."""

    def __init__(self, configured: Configured) -> None:
        self._whole = configured.settings
        self._settings = regional(configured.settings)
        check_fleet(self._settings)

    def pages(self, host: str = "", status: int | None = None, like: str = "", limit: int = 100) -> Iterator[PageRow]:
        """Stored pages, newest first."""
        catalogue = self._catalogue(self._settings)
        try:
            yield from catalogue.pages(host=host, status=status, like=like, limit=limit)
        finally:
            catalogue.close()

    def dead(self, limit: int) -> list[UrlStory]:
        """Dead letters."""

        async def look(frontier: RedisFrontier, _: SharedState) -> list[UrlStory]:
            return frontier.dead(limit)

        return self._with(self._settings, look)

    def revive(self, urls: Sequence[str] | None) -> int:
        """Put dead letters back, all of them for None; how many."""

        async def act(frontier: RedisFrontier, _: SharedState) -> int:
            if urls is not None:
                return await frontier.revive([self._letter(frontier, url) for url in urls])
            count = 0
            while letters := frontier.dead(DEAD_AT_ONCE):
                count += await frontier.revive(letters)
            return count

        return self._with(self._settings, act, scoring=True)

    def why(self, url: str) -> WhyAnswer:
        """What became of a URL, from what was recorded when it was decided."""
        spelled = spell(url)
        text = spelled.address_url if isinstance(spelled, SeedUrl) else url
        address = identifier_of(self._whole, 0).identify(text)
        if not isinstance(address, Address):
            told = REASONS.get(address.reason, address.reason)
            lines = [("URL", url), ("verdict", f"refused: {told}"), ("rule", address.detail)]
            return WhyAnswer(lines, found=False, data={"state": "refused", "reason": address.reason})
        settings = regional(self._whole, Regions(self._whole.fleet.regions).of(address.host))

        async def look(frontier: RedisFrontier, state: SharedState) -> WhyAnswer:
            here = identifier_of(settings, frontier.secret).identify(text)
            if not isinstance(here, Address):
                raise TypeError("an address is one under any secret")
            agent = settings.fetch.user_agent
            politeness = StandardPoliteness(settings.politeness, settings.robots, settings.frontier, agent)
            scope = await _scope(settings, Registry(state, settings.fleet.crawl))
            clock = SystemClock()
            aliases = await aliases_of_fleet(state, settings, clock, registrable_domain(here.host))
            catalogue, objects = self._catalogue(settings), object_store(settings, clock, uploads=1)
            repute = PublishedRepute(objects, ArchivePlace.parse(settings.archive.url), identity_of(frontier.secret))
            try:
                teller = StoryTeller(frontier.view, catalogue, scope, politeness, clock, settings, aliases, repute)
                lines, data, found = await asyncio.to_thread(teller.tell, here)
            finally:
                catalogue.close()
                await objects.close()
            return WhyAnswer(lines, found, data)

        return self._with(settings, look)

    def status(self) -> CrawlStatus:
        """Where the crawl stands, from counters; nothing is scanned."""
        settings = self._settings

        async def look(frontier: RedisFrontier, state: SharedState) -> CrawlStatus:
            roll = await Registry(state, settings.fleet.crawl).roll()
            silent_ms = settings.fleet.silent_s * 1000
            waiting = [one.figures for one in roll.workers]
            heard = [one.figures for one in roll.workers if one.silent_ms < silent_ms]
            spool = SpoolStanding(
                settings.archive.url,
                sum(one.spool_segments for one in waiting),
                sum(one.spool_bytes for one in waiting),
                away=next((one.waits_for for one in heard if one.waits_for), ""),
            )
            catalogue = self._catalogue(settings)
            try:
                found = await asyncio.to_thread(
                    standing,
                    frontier.view,
                    Stored(catalogue.capture_count(), catalogue.wire_bytes()),
                    settings.fleet.crawl,
                    settings.limits.target_domains,
                    running=bool(heard),
                    plugins={},
                )
            finally:
                catalogue.close()
            return replace(found, spool=spool)

        return self._with(settings, look)

    def _letter(self, frontier: RedisFrontier, url: str) -> UrlStory:
        address = identifier_of(self._settings, frontier.secret).identify(url)
        story = frontier.story(address.host, address.fingerprint) if isinstance(address, Address) else None
        if story is None or story.state != "dead_letter":
            raise UsageError(f"{url} is not a dead letter", hint="`nephila dead --config FILE` lists them")
        return story

    def _catalogue(self, settings: Settings) -> PostgresCatalogue:
        name = settings.catalogue.name or settings.fleet.crawl
        return PostgresCatalogue(settings.catalogue, name, os.environ, read_only=True)

    def _with(
        self, settings: Settings, act: Callable[[RedisFrontier, SharedState], Awaitable[T]], *, scoring: bool = False
    ) -> T:
        async def run() -> T:
            async with AsyncExitStack() as stack:
                state, frontier = await open_frontier(settings, SystemClock(), "visitor", stack, looking=True)
                if scoring:
                    await score_as_visitor(settings, frontier, stack)
                return await act(frontier, state)

        return asyncio.run(run())


async def _scope(settings: Settings, registry: Registry) -> Scope:
    """The scope that all workers share."""
    lines: list[bytes] = []
    while entries := await registry.scope(len(lines), ENTRIES_AT_ONCE):
        lines += entries
    return scope_of(settings, b"".join(lines))


def audit_of_fleet(configured: Configured, host: str, expect: Sequence[str]) -> Audit:
    """What the workers of a fleet have sent, held against what was promised: from the store alone (K1)."""
    settings = regional(configured.settings)
    check_fleet(settings)
    return audit_fleet(settings, host=host, expect=expect)


def open_fleet_view(configured: Configured) -> FleetView:
    """A view of the crawl that settings name."""
    return FleetView(configured)
