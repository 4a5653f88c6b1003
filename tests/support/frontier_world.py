"""The LMDB frontier alone under virtual time: claims and settles of a made-up web, without fetching anything.

A web is a function from a task to what came of it. Time goes from one moment to the next in which something may be
claimed, so that a month of a polite crawl costs what its pages cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.policy import Policy
from nephila.frontier.schedule import SimpleRecrawl
from nephila.model.outcome import Done, OriginRules, Outcome, Release, RulesKind, RulesLearned, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import FrontierSettings, RecrawlSettings
from nephila.model.task import Candidate, Lease, Level, Pace, PageTask, RobotsTask
from nephila.testing.clock import VirtualClock
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

DAY_S = 86_400.0
SETTINGS = FrontierSettings(sync=False, linger_ms=0, look_ahead_ms=0, map_bytes=1 << 34)


@dataclass(frozen=True)
class Brought:
    """What came of asking for a page."""

    outcome: Outcome | None = None
    """None: an ordinary page with content of its own."""
    links: Sequence[Candidate] = ()
    text: bytes = b""
    changed: bool = True


class FrontierWorld:
    """A frontier, a clock and a worker that never fails."""

    def __init__(self, path: Path, *, delay_s: float = 1.0, robots: bool = False, **policy: Any) -> None:
        self.clock = VirtualClock()
        policy.setdefault("recrawl", SimpleRecrawl(RecrawlSettings()))
        self.policy = Policy(SETTINGS, base_delay_ms=int(delay_s * 1000), robots=robots, **policy)
        self.delay_ms = int(delay_s * 1000)
        self._path = path
        self.frontier = LmdbFrontier(path, self.clock, self.policy, threaded=False)
        self._identifier = Identifier(self.frontier.secret, NormalRules(), UrlLimits())
        self._offset = 0
        self.fetched: list[tuple[float, PageTask]] = []
        """When, and what."""

    def address(self, url: str) -> Address:
        found = self._identifier.identify(url)
        assert isinstance(found, Address), found
        return found

    def candidate(self, url: str, depth: int = 0, level: Level | None = None, bonus: int = 0) -> Candidate:
        return Candidate(self.address(url), depth, level, 0, bonus)

    async def admit(self, *urls: str, depth: int = 0, level: Level | None = None) -> None:
        await self.frontier.admit([self.candidate(url, depth, level) for url in urls])

    async def reopen(self) -> None:
        await self.frontier.close()
        self.frontier = LmdbFrontier(self._path, self.clock, self.policy, threaded=False)

    def page(self, task: PageTask, links: Sequence[Candidate] = (), text: bytes = b"", **done: Any) -> Settlement:
        """An ordinary page."""
        self._offset += 100
        ref = RecordRef(SegmentId("segment-1"), self._offset, 100, self._offset + 100)
        text = text or task.fingerprint[:8]
        outcome = Done(ref, 200, task.fingerprint * 2, text=text, shape=text, outlinks=len(links))
        return Settlement(task, replace(outcome, **done), links)

    async def work(self, leases: Sequence[Lease], answer: Callable[[PageTask], Brought]) -> int:
        """Settle leases; how many pages were among them."""
        count = 0
        for lease in leases:
            settlements: list[Settlement] = []
            for task in lease.tasks:
                if isinstance(task, RobotsTask):
                    rules = OriginRules(
                        task.origin, RulesKind.ALLOW_ALL, b"", self.clock.wall_ms(), self.now() + int(DAY_S * 1000)
                    )
                    settlements.append(Settlement(task, RulesLearned(rules)))
                    continue
                count += 1
                self.fetched.append((self.clock.elapsed_s(), task))
                brought = answer(task)
                if brought.outcome is None:
                    settlements.append(self.page(task, brought.links, brought.text, changed=brought.changed))
                else:
                    settlements.append(Settlement(task, brought.outcome, brought.links))
            pace = Pace(max(self.delay_ms, lease.pace.base_ms), lease.pace.crawl_delay_ms, lease.pace.base_ms)
            await self.frontier.settle(lease.token, settlements, Release(max(pace.delay_ms, pace.crawl_delay_ms), pace))
        return count

    def now(self) -> int:
        return self.frontier.timeline.now()

    async def run(
        self,
        answer: Callable[[PageTask], Brought],
        *,
        days: float = 1e9,
        pages: int = 1 << 60,
        hosts_at_once: int = 256,
        seconds_per_claim: float = 0.0,
    ) -> int:
        """Crawl until nothing is left, so many pages were fetched or so much time has passed; how many pages."""
        end = self.clock.elapsed_s() + days * DAY_S
        done = 0
        while done < pages and self.clock.elapsed_s() < end:
            leases = await self.frontier.claim(min(hosts_at_once, pages - done), 300)
            done += await self.work(leases, answer)
            self.clock.advance(seconds_per_claim)
            if leases:
                continue
            wait = self.frontier.snapshot().next_in_ms
            if wait is None:
                break
            self.clock.advance(min(max(wait, 1) / 1000, max(0.001, end - self.clock.elapsed_s())))
        return done

    async def close(self) -> None:
        await self.frontier.close()


def play(path: Path, story: Callable[[FrontierWorld], Any], **options: Any) -> Any:
    """Run a story on a fresh frontier."""

    async def run() -> Any:
        world = FrontierWorld(path, **options)
        try:
            return await story(world)
        finally:
            await world.close()

    return asyncio.run(run())
