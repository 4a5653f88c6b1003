"""Looking into a fleet's crawl from anywhere: `pages`, `dead`, `why` (F9, T8). Every call connects and leaves again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import TypeVar

from nephila.config import Configured
from nephila.frontier.redis import RedisFrontier
from nephila.interfaces.catalogue import CaptureRow, PageRow
from nephila.interfaces.frontier import UrlStory
from nephila.model.errors import UsageError
from nephila.model.outcome import OriginRules
from nephila.model.settings import Settings
from nephila.node.audit import Audit, audit_fleet
from nephila.node.clock import SystemClock
from nephila.node.inspect import DEAD_AT_ONCE, WhyAnswer
from nephila.node.reasons import REASONS
from nephila.node.wiring import identifier_of
from nephila.politeness import StandardPoliteness
from nephila.seeds import SeedUrl, spell
from nephila.store.postgres import PostgresCatalogue
from nephila.urls import Address, origin_of

from .access import check_fleet
from .regions import Regions, regional
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

        async def look(frontier: RedisFrontier) -> list[UrlStory]:
            return frontier.dead(limit)

        return self._with(self._settings, look)

    def revive(self, urls: Sequence[str] | None) -> int:
        """Put dead letters back, all of them for None; how many."""

        async def act(frontier: RedisFrontier) -> int:
            if urls is not None:
                return await frontier.revive([self._letter(frontier, url) for url in urls])
            count = 0
            while letters := frontier.dead(DEAD_AT_ONCE):
                count += await frontier.revive(letters)
            return count

        return self._with(self._settings, act)

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

        async def look(frontier: RedisFrontier) -> tuple[UrlStory | None, OriginRules | None, bytes]:
            here = identifier_of(settings, frontier.secret).identify(text)
            fingerprint = here.fingerprint if isinstance(here, Address) else address.fingerprint
            return frontier.story(address.host, fingerprint), frontier.rules(origin_of(address.url)), fingerprint

        story, rules, fingerprint = self._with(settings, look)
        agent = settings.fetch.user_agent
        politeness = StandardPoliteness(settings.politeness, settings.robots, settings.frontier, agent)
        robots = permission_told(lambda _origin: rules, address, politeness)
        return story_told(address, story, robots, self._captures(settings, fingerprint))

    def _captures(self, settings: Settings, fingerprint: bytes) -> list[CaptureRow]:
        catalogue = self._catalogue(settings)
        try:
            return catalogue.captures_of(fingerprint)
        finally:
            catalogue.close()

    def _letter(self, frontier: RedisFrontier, url: str) -> UrlStory:
        address = identifier_of(self._settings, frontier.secret).identify(url)
        story = frontier.story(address.host, address.fingerprint) if isinstance(address, Address) else None
        if story is None or story.state != "dead_letter":
            raise UsageError(f"{url} is not a dead letter", hint="`nephila dead --config FILE` lists them")
        return story

    def _catalogue(self, settings: Settings) -> PostgresCatalogue:
        name = settings.catalogue.name or settings.fleet.crawl
        return PostgresCatalogue(settings.catalogue, name, os.environ, read_only=True)

    def _with(self, settings: Settings, act: Callable[[RedisFrontier], Awaitable[T]]) -> T:
        async def run() -> T:
            async with AsyncExitStack() as stack:
                _, frontier = await open_frontier(settings, SystemClock(), "visitor", stack, visiting=True)
                return await act(frontier)

        return asyncio.run(run())


def permission_told(
    rules_of: Callable[[str], OriginRules | None], address: Address, politeness: StandardPoliteness
) -> str:
    """What robots.txt says of a URL, in words."""
    rules = rules_of(origin_of(address.url))
    if rules is None:
        return "not asked for yet"
    permission = politeness.permits(rules, address.url, "")
    return "allows it" if permission.allowed else f"forbids it (line {permission.line}: {permission.rule})"


def story_told(address: Address, story: UrlStory | None, robots: str, captures: Sequence[CaptureRow]) -> WhyAnswer:
    """The story of a URL, for people in lines, for scripts as data."""
    lines = [("URL", address.url)]
    if story is None:
        lines += [("verdict", "never met"), ("robots.txt", robots)]
        return WhyAnswer(lines, found=False, data={"state": "unknown", "robots": robots})
    lines.append(("verdict", story.state.replace("_", " ")))
    if story.reason:
        detail = f" ({story.detail})" if story.detail else ""
        lines.append(("because", f"{REASONS.get(story.reason, story.reason)}{detail}"))
    lines.append(("found", f"on {story.via}" if story.via else "as a seed"))
    lines.append(("depth", f"{story.depth} hops from a seed, class {story.level.name.lower()}"))
    lines.append(("robots.txt", robots))
    if story.host_wait_ms:
        lines.append(("host", f"rests for another {story.host_wait_ms / 1000:.1f} s"))
    if story.due_in_ms is not None:
        lines.append(("due", f"in {max(0, story.due_in_ms) / 1000:.0f} s"))
    lines += [("stored", f"{row.status}, {row.length:,} bytes, {row.segment} at {row.offset}") for row in captures[:3]]
    data = {
        "state": story.state,
        "reason": story.reason,
        "detail": story.detail,
        "via": story.via,
        "depth": story.depth,
        "retries": story.retries,
        "robots": robots,
        "captures": len(captures),
    }
    return WhyAnswer(lines, found=True, data=data)


def audit_of_fleet(configured: Configured, host: str, expect: Sequence[str]) -> Audit:
    """What the workers of a fleet have sent, held against what was promised: from the store alone (K1)."""
    settings = regional(configured.settings)
    check_fleet(settings)
    return audit_fleet(settings, host=host, expect=expect)


def open_fleet_view(configured: Configured) -> FleetView:
    """A view of the crawl that settings name."""
    return FleetView(configured)
