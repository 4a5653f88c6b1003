"""The most important pages are kept fresh (R2): visited again before they are older than `recrawl.target_age_s`.

When a page pays for another visit is decided page by page (`frontier.estimated`), without a look at any other one; but
which thousand pages matter most is a question about all of them. It is answered with the ranks (`renewing`), and acted
upon here: some times a day, those of them that are about to be too old are made due, as if a sitemap had said that they
have changed. Plans stay what they are, and count again for a page that others have pushed out.

A domain for which a person has fixed the interval keeps that. What is blocked, gone, failing or cooling is left to
those who decide about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from nephila.frontier.blocklist import Blocklist
from nephila.interfaces.catalogue import CaptureRow, Catalogue
from nephila.interfaces.frontier import Found
from nephila.model.errors import NephilaError
from nephila.model.settings import RecrawlSettings
from nephila.model.task import Candidate
from nephila.node.frontiers import NodeFrontier
from nephila.ranking import read_foremost
from nephila.urls import Address, Identifier, registrable_domain

LOOKS = 24
"""So many, in the time that a page may be old: once an hour for a day."""
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 3600.0
AHEAD = 2
"""A page is made due so many looks before it is too old: one for what lies between looks, one to be fetched in."""
_ERROR = 400


class Freshening:
    """A task beside a crawl."""

    def __init__(
        self,
        folder: Path,
        identity: str,
        target: RecrawlSettings,
        frontier: NodeFrontier,
        identifier: Identifier,
        catalogue: Callable[[], AbstractContextManager[Catalogue]],
        wall_ms: Callable[[], int],
        every_s: float = 0.0,
    ) -> None:
        """`folder` has the ranks, `identity` is the crawl's; `catalogue` opens its catalogue for reading.

        Somebody who looks more rarely than it would itself says how often (`every_s`).
        """
        self._folder, self._identity, self._target = folder, identity, target
        self._frontier, self._identifier = frontier, identifier
        self._catalogue, self._wall_ms = catalogue, wall_ms
        self._has_failed = False
        self._pause_s = max(SHORTEST_PAUSE_S, min(target.target_age_s / LOOKS, LONGEST_PAUSE_S), every_s)

    async def run(self, nudge: Callable[[], None], warn: Callable[[str, str], None]) -> None:
        """Until it is cancelled. `nudge` is called when something became due; a failure is told once."""
        while self._target.enabled and self._target.target_pages:
            await asyncio.sleep(self._pause_s)
            try:
                if await self.look():
                    nudge()
            except NephilaError as error:
                if not self._has_failed:
                    warn(
                        "rank", f"the most important pages could not be looked at, and are visited as planned: {error}"
                    )
                self._has_failed = True
            else:
                self._has_failed = False

    async def look(self) -> int:
        """Make due what is about to be too old; how many pages. Raises `NephilaError`."""
        age_s = max(0.0, self._target.target_age_s - AHEAD * self._pause_s)
        before_ms = self._wall_ms() - round(age_s * 1000)
        wanted = await asyncio.to_thread(self._wanted, before_ms)
        if not wanted:
            return 0
        said = Found(changed={one.address.fingerprint: before_ms // 1000 for one in wanted})
        return len((await self._frontier.admit(wanted, (), said)).renewed)

    def _wanted(self, before_ms: int) -> list[Candidate]:
        """The most important pages that have not answered since then. Runs in a thread."""
        foremost = read_foremost(self._folder, self._identity)[: self._target.target_pages]
        if not foremost:
            return []
        with self._catalogue() as catalogue:
            captures = (catalogue.captures_of(fingerprint) for fingerprint in foremost)
            older = [rows[0].url for rows in captures if rows and last_seen(rows) < before_ms]
        blocks = Blocklist(self._frontier.view.blocks()) if older else Blocklist()
        return [one for url in older if (one := self._candidate(url, blocks)) is not None]

    def _candidate(self, url: str, blocks: Blocklist) -> Candidate | None:
        """A page as it is known, unless somebody else decides when it is visited."""
        address = self._identifier.identify(url)
        if not isinstance(address, Address) or blocks.find(address.host, address.url, address.fingerprint) is not None:
            return None
        policy = self._frontier.view.policy(registrable_domain(address.host))
        if policy is not None and policy.recrawl_s is not None:
            return None
        story = self._frontier.view.story(address.host, address.fingerprint)
        return None if story is None else Candidate(address, story.depth)


def last_seen(captures: Iterable[CaptureRow]) -> int:
    """When a page last answered with what it is, or that it has not changed, in UTC ms; errors say nothing of that."""
    return max((row.at for row in captures if row.status < _ERROR), default=0)
