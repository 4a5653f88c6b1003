"""What the checks of a frontier stand on: an engine under a virtual clock, and the nouns that they give it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nephila.interfaces.frontier import Frontier, FrontierView
from nephila.model.outcome import (
    Done,
    OriginRules,
    Outcome,
    Release,
    RulesKind,
    RulesLearned,
    Settlement,
)
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings.reach import LONGEST_URL
from nephila.model.task import Candidate, Lease, Level, Pace, RobotsTask
from nephila.testing.clock import VirtualClock
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

DELAY_MS = 1000
LEASE_S = 60.0
SEGMENT = SegmentId("segment-1")


class Harness(Protocol):
    """How the suite gets at an engine."""

    clock: VirtualClock
    robots: bool

    @property
    def frontier(self) -> Frontier:
        """The engine under test, as it is open now."""

    @property
    def view(self) -> FrontierView:
        """Its reading side."""

    async def reopen(self) -> None:
        """Close without ceremony and open again on the same data."""

    async def begin_cycle(self) -> None:
        """Begin a new cycle."""


def addresses(*urls: str) -> list[Address]:
    """Addresses under a fixed secret."""
    identifier = Identifier(7, NormalRules(), UrlLimits(max_length=LONGEST_URL))
    found = [identifier.identify(url) for url in urls]
    assert all(isinstance(address, Address) for address in found), found
    return [address for address in found if isinstance(address, Address)]


def candidates(*urls: str, depth: int = 0, level: Level = Level.MEDIUM) -> list[Candidate]:
    """Candidates for URLs."""
    return [Candidate(address, depth, level) for address in addresses(*urls)]


def release(wait_ms: int = DELAY_MS) -> Release:
    """An ordinary release."""
    return Release(wait_ms, Pace(DELAY_MS))


def done(offset: int = 0, length: int = 100) -> Done:
    """A page stored at an offset."""
    return Done(RecordRef(SEGMENT, offset, length, offset + length), 200, digest=b"d" * 32)


class FrontierCase:
    """A frontier, and what checks do with it: rules for robots.txt are given to every origin before its pages."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness

    @property
    def frontier(self) -> Frontier:
        """The engine under test, as it is open now."""
        return self.harness.frontier

    async def claim_pages(self, hosts: int = 100) -> list[Lease]:
        """Claim, answering robots tasks with "no restrictions" until only pages come."""
        pages: list[Lease] = []
        for _ in range(200):
            leases = await self.frontier.claim(hosts - len(pages), LEASE_S)
            robots = [lease for lease in leases if isinstance(lease.tasks[0], RobotsTask)]
            pages += [lease for lease in leases if lease not in robots]
            for lease in robots:
                task = lease.tasks[0]
                assert isinstance(task, RobotsTask)
                await self.frontier.settle(lease.token, [Settlement(task, self.allow_all(task.origin))], release(0))
            if not robots:
                return pages
        raise AssertionError("robots tasks without end")

    def allow_all(self, origin: str, kind: RulesKind = RulesKind.ALLOW_ALL, fresh_ms: int = 86_400_000) -> RulesLearned:
        """Rules that forbid nothing (or another kind)."""
        wall, now = self.harness.clock.wall_ms(), self.frontier.snapshot().now
        return RulesLearned(OriginRules(origin, kind, b"", wall, now + fresh_ms))

    async def end(self, lease: Lease, outcome: Outcome, links: Sequence[Candidate] = ()) -> bool:
        """Settle the first task of a lease and free the host."""
        settled = await self.frontier.settle(lease.token, [Settlement(lease.tasks[0], outcome, links)], release())
        return settled.accepted

    def urls(self, leases: Sequence[Lease]) -> list[str]:
        """What was claimed."""
        return [task.url for lease in leases for task in lease.tasks]
