"""Looking into a crawl directory, beside a crawl that may be running: `status`, `pages`, `dead`, `why`."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from nephila.config import load, read_stored
from nephila.dedup import LearnedEnvironment, LmdbListings
from nephila.frontier.embedded import LmdbFrontier, LmdbFrontierView
from nephila.interfaces.catalogue import PageRow, WholeCatalogue
from nephila.interfaces.frontier import UrlStory
from nephila.model.errors import UsageError
from nephila.model.listing import ListTotals
from nephila.model.settings import Settings
from nephila.model.summary import SpoolStanding
from nephila.politeness import StandardPoliteness
from nephila.seeds import SeedUrl, spell
from nephila.store import LocalDisk, spool_standing
from nephila.urls import Address, origin_of

from .addressing import aliases_of, identifier_of, scope_of
from .cataloguing import has_catalogue, identity_of, open_catalogue
from .clock import SystemClock
from .directory import CrawlDirectory
from .engines import policy_of
from .importance.grades import DirectoryRanks
from .logbook import read_figures
from .losses import what_is_lacking
from .noting import Noting, noted, unnoted
from .plugin_books import plugin_counts
from .reasons import REASONS
from .redirected import RedirectTargets
from .standing import CrawlStatus, Stored, standing
from .story import StoryTeller

DEAD_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """The story of a URL: for people in lines, for scripts as data."""

    lines: Sequence[tuple[str, str]]
    found: bool
    data: Mapping[str, object]


class CrawlView:
    """Reads a crawl directory. Every call opens what it needs and closes it again."""

    def __init__(self, out: Path, noting: Noting = unnoted) -> None:
        self._directory, self._settings = begun(out)
        self._noting = noting
        self._clock = SystemClock()

    def status(self) -> CrawlStatus:
        """Where the crawl stands, from counters; nothing is scanned."""
        catalogue = self._catalogue()
        try:
            stored = Stored(catalogue.capture_count(), catalogue.wire_bytes())
        finally:
            catalogue.close()
        learned = self._learned()
        totals = LmdbListings(learned).totals() if learned is not None else ListTotals()
        if learned is not None:
            learned.close()
        view = self._frontier()
        try:
            found = standing(
                view,
                stored,
                str(self._directory.root),
                self._settings.limits.target_domains,
                running=self._is_running(),
                lists=totals,
                plugins=plugin_counts(self._directory.plugins),
            )
            return replace(found, spool=self._spool(), rendering=self._rendering())
        finally:
            view.close()

    def _rendering(self) -> dict[str, int]:
        """What browsers did in the last run, or are doing."""
        figures = read_figures(self._directory.figures)
        if figures is None:
            return {}
        told, queue = figures.present.rendering, figures.present.render_queue
        counts = {"rendered": told.rendered, "gained": told.gained, "missed": sum(told.missed.values())}
        counts |= {"waiting": queue, "browsers": told.browsers}
        return counts if any(counts.values()) else {}

    def _spool(self) -> SpoolStanding | None:
        """What waits for its upload, as its directory shows it."""
        if not self._settings.archive.url:
            return None
        waiting = spool_standing(LocalDisk(), self._directory.spool, self._clock.wall_ms())
        return replace(waiting, place=self._settings.archive.url)

    def why(self, url: str) -> WhyAnswer:
        """What became of a URL, from what was recorded when it was decided."""
        spelled = spell(url)
        view = self._frontier()
        catalogue = self._catalogue()
        learned = self._learned()
        try:
            identifier = identifier_of(self._settings, view.secret)
            aliases = aliases_of(learned, self._settings, identifier, self._clock) if learned is not None else None
            address = identifier.identify(spelled.address_url if isinstance(spelled, SeedUrl) else url)
            twin = identifier.identify(spelled.fallback) if isinstance(spelled, SeedUrl) and spelled.fallback else None
            if isinstance(twin, Address) and isinstance(address, Address):
                # Without a scheme, the one that the crawl has met is meant.
                known = view.story(address.host, address.fingerprint) or view.rules(origin_of(address.url))
                address = address if known else twin
            if not isinstance(address, Address):
                told = REASONS.get(address.reason, address.reason)
                return WhyAnswer(
                    [("URL", url), ("verdict", f"refused: {told}"), ("rule", address.detail)],
                    found=False,
                    data={"state": "refused", "reason": address.reason, "detail": address.detail},
                )
            scope = scope_of(self._settings, self._directory.saved_scope())
            ranks = DirectoryRanks(self._directory.rank, self._clock.steady_ms, identity_of(view.secret))
            with closing(ranks):
                targets = RedirectTargets(self._directory.warc, self._directory.spool)
                teller = StoryTeller(
                    view, catalogue, scope, self._politeness(), self._clock, self._settings, aliases, ranks
                )
                lines, data, found = teller.tell(address, targets)
            if learned is not None:
                from .listings import ListTeller  # noqa: PLC0415 - start-up: the rules of the sentence come with it

                listings, settings = LmdbListings(learned), self._settings.sitemaps
                ListTeller(listings, identifier, view, self._politeness(), settings).add(address, lines, data)
            return WhyAnswer(lines, found, data)
        finally:
            if learned is not None:
                learned.close()
            catalogue.close()
            view.close()

    def dead(self, limit: int) -> list[UrlStory]:
        """Dead letters."""
        view = self._frontier()
        try:
            return view.dead(limit)
        finally:
            view.close()

    def revive(self, urls: Sequence[str] | None) -> int:
        """Put dead letters back, all of them for None; how many."""
        return asyncio.run(self._revive(urls))

    def pages(self, host: str = "", status: int | None = None, like: str = "", limit: int = 100) -> Iterator[PageRow]:
        """Stored pages, newest first."""
        catalogue = self._catalogue()
        try:
            yield from catalogue.pages(host=host, status=status, like=like, limit=limit)
        finally:
            catalogue.close()

    async def _revive(self, urls: Sequence[str] | None) -> int:
        ranks = DirectoryRanks(self._directory.rank, self._clock.steady_ms)
        policy = policy_of(self._settings, repute=ranks)
        frontier = LmdbFrontier(self._directory.frontier, self._clock, policy, threaded=False)
        ranks.identity = identity_of(frontier.secret)
        try:
            letters = None if urls is None else [self._letter(frontier, url) for url in urls]
            wanted = noted(urls or ())
            with self._noting("retry", "all" if letters is None else "", wanted=wanted) as change:
                revived = await (_revive_all(frontier) if letters is None else frontier.revive(letters))
                change.after = {**wanted, "revived": revived}
            return revived
        finally:
            await frontier.close()
            ranks.close()

    def _letter(self, frontier: LmdbFrontier, url: str) -> UrlStory:
        address = identifier_of(self._settings, frontier.secret).identify(url)
        story = frontier.story(address.host, address.fingerprint) if isinstance(address, Address) else None
        if story is None or story.state != "dead_letter":
            raise UsageError(f"{url} is not a dead letter", hint="`nephila dead DIR` lists them")
        return story

    def _learned(self) -> LearnedEnvironment | None:
        """What was learned; None where a crawl of an earlier version has learned nothing yet."""
        if not (self._directory.aliases / "data.mdb").exists():
            return None
        return LearnedEnvironment(self._directory.aliases, read_only=True)

    def _frontier(self) -> LmdbFrontierView:
        return LmdbFrontierView.open(self._directory.frontier, self._clock, self._settings.frontier.map_bytes)

    def _catalogue(self) -> WholeCatalogue:
        return open_catalogue(self._directory, self._settings, read_only=True)

    def _politeness(self) -> StandardPoliteness:
        settings = self._settings
        return StandardPoliteness(settings.politeness, settings.robots, settings.frontier, settings.fetch.user_agent)

    def _is_running(self) -> bool:
        descriptor = os.open(self._directory.marker, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False


def begun(out: Path) -> tuple[CrawlDirectory, Settings]:
    """A crawl directory with its settings; raises `CrawlDirectoryError` when nothing has begun there."""
    directory = CrawlDirectory(out)
    directory.check()
    settings = load(stored=read_stored(out)).settings
    if not (directory.has_frontier and has_catalogue(directory, settings)):
        raise what_is_lacking(directory)
    return directory, settings


async def _revive_all(frontier: LmdbFrontier) -> int:
    count = 0
    while letters := frontier.dead(DEAD_AT_ONCE):
        count += await frontier.revive(letters)
    return count


def open_view(out: Path, noting: Noting = unnoted) -> CrawlView:
    """A view of a crawl directory; raises `CrawlDirectoryError` when it is none."""
    return CrawlView(out, noting)
