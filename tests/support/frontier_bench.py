"""An embedded frontier under a virtual clock, and the shortest way to say what is done to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.policy import Policy
from nephila.interfaces.frontier import UrlStory
from nephila.model.outcome import Done, Outcome, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import FrontierSettings
from nephila.model.task import Candidate, Lease, Pace
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.frontier import addresses, candidates
from nephila.testing.recount import check_tables

SETTINGS = FrontierSettings(sync=False, linger_ms=0, look_ahead_ms=0, map_bytes=1 << 28)
PLAIN = Policy(SETTINGS, base_delay_ms=0, robots=False)
SEGMENT = SegmentId("segment-1")
HOUR_S, DAY_S = 3600.0, 86_400.0


class Bench:
    """A frontier in a directory."""

    def __init__(self, path: Path, policy: Policy) -> None:
        self.clock = VirtualClock()
        self.path = path
        self.policy = policy
        self.end = 0
        self.frontier = LmdbFrontier(path, self.clock, policy, threaded=False)

    async def reopen(self, policy: Policy | None = None) -> None:
        """Close and open again, perhaps under other settings."""
        await self.frontier.close()
        self.policy = policy or self.policy
        self.frontier = LmdbFrontier(self.path, self.clock, self.policy, threaded=False)

    async def admit(self, *urls: str) -> int:
        """Admit URLs as seeds whose class is left to their score; how many are new."""
        return (await self.frontier.admit([Candidate(address, 0) for address in addresses(*urls)])).added

    async def claim(self, hosts: int = 10) -> list[Lease]:
        """Claim for a minute."""
        return await self.frontier.claim(hosts, 60)

    def done(self, status: int = 200, **facts: Any) -> Done:
        """An answer, stored behind the last one; a page when it is a 2xx."""
        start, self.end = self.end, self.end + 100
        facts.setdefault("page", status < 300)
        return Done(RecordRef(SEGMENT, start, 50, self.end), status, b"d" * 32, **facts)

    async def settle(
        self, lease: Lease, outcomes: Sequence[Outcome], wait_ms: int = 0, links: Sequence[Candidate] = ()
    ) -> None:
        """End the tasks of a lease one by one; the links are the first one's."""
        ends = [
            Settlement(task, outcome, () if number else links)
            for number, (task, outcome) in enumerate(zip(lease.tasks, outcomes, strict=False))
        ]
        pace = Pace(max(0, lease.pace.base_ms, self.policy.base_delay_ms))
        settled = await self.frontier.settle(lease.token, ends, Release(wait_ms, pace))
        assert settled.accepted

    async def fetch(self, outcome: Outcome | None = None, *, hosts: int = 10, links: Sequence[str] = ()) -> list[str]:
        """Claim once and let every task end so (by default as a page); what was fetched."""
        fetched: list[str] = []
        for lease in await self.claim(hosts):
            found = [Candidate(address, 1) for address in addresses(*links)]
            await self.settle(lease, [outcome or self.done() for _ in lease.tasks], 0, found)
            fetched += [task.url for task in lease.tasks]
        return fetched

    async def fetch_all(self, steps: int = 1000) -> list[str]:
        """Claim and complete until nothing comes any more, letting a second pass each time."""
        fetched: list[str] = []
        for _ in range(steps):
            leases = await self.claim(100)
            if not leases and self.frontier.snapshot().next_in_ms is None:
                return fetched
            for lease in leases:
                await self.settle(lease, [self.done() for _ in lease.tasks], self.policy.base_delay_ms)
                fetched += [task.url for task in lease.tasks]
            self.clock.advance(1)
        raise AssertionError("it does not end")

    def story(self, url: str) -> UrlStory:
        """What `why` would tell of a URL."""
        (address,) = addresses(url)
        story = self.frontier.story(address.host, address.fingerprint)
        assert story is not None, f"nothing is known of {url}"
        return story

    def state(self, url: str) -> str:
        """Where a URL stands."""
        return self.story(url).state

    def told(self, url: str) -> tuple[str, str]:
        """Where a URL stands, and why."""
        story = self.story(url)
        return story.state, story.reason


@asynccontextmanager
async def bench(path: Path, policy: Policy = PLAIN) -> AsyncIterator[Bench]:
    """A new frontier; whatever a test did to it, its counters must equal a recount in the end."""
    one = Bench(path / "frontier", policy)
    try:
        yield one
        check_tables(one.frontier)
    finally:
        await one.frontier.close()


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine."""
    asyncio.run(main)


def pages(count: int, host: str = "a.test") -> list[Candidate]:
    """Numbered pages of one host, of the class medium."""
    return candidates(*(f"https://{host}/{number}" for number in range(count)))


def urls(count: int, host: str = "a.test", folder: str = "") -> list[str]:
    """The same as plain URLs, perhaps in a folder."""
    return [f"https://{host}/{folder}{number}" for number in range(count)]
