"""F7: a host goes on with what may be fetched, however much of it waits for a robots.txt that cannot be had."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

import pytest
from valkey_servers import ValkeySingle

from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.embedded.passing import HOLDS_MS, LOOKED_AT, WORTH_KEEPING
from nephila.frontier.policy import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.frontier.redis.spilling import Spilled
from nephila.interfaces.frontier import Frontier
from nephila.model.outcome import Done, OriginRules, Release, RulesKind, RulesLearned, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import BudgetSettings, FrontierSettings
from nephila.model.task import Candidate, Lease, Pace, PageTask, RobotsTask
from nephila.testing.chunks import MemoryChunks
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.frontier import addresses
from nephila.testing.loop import run_virtual

MANY = 1_000_000
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
POLICY = Policy(
    FrontierSettings(look_ahead_ms=0, sync=False, linger_ms=0, map_bytes=1 << 28, urls_per_lease=1),
    base_delay_ms=1000,
    robots=True,
    budget=BudgetSettings(first_urls=MANY, queued_per_host=MANY, queued_per_prefix=MANY),
)
WANTED = "https://www.a.test/wanted"


class Engine(Frontier, Protocol):
    """What is needed of one."""

    async def close(self) -> None: ...


def pages(scheme: str, count: int, depth: int = 1) -> list[Candidate]:
    urls = (f"{scheme}://www.a.test/{scheme}-{number}" for number in range(count))
    return [Candidate(address, depth) for address in addresses(*urls)]


class Visitor:
    """Asks for what it is given; http answers nothing, so its robots.txt cannot be had, and https allows all."""

    def __init__(self, frontier: Engine, clock: VirtualClock) -> None:
        self.frontier, self.clock, self.end = frontier, clock, 0
        self.began = frontier.timeline.now()
        self.asked: list[str] = []
        self.is_repaired = False

    async def visit(self, seconds: float) -> None:
        """For so long."""
        for _ in range(round(seconds / 0.5)):
            spilling = getattr(self.frontier, "spilling", None)
            while spilling is not None and await self.frontier.spill() != Spilled():  # type: ignore[attr-defined]
                pass
            for lease in await self.frontier.claim(1, 300):
                await self._ask(lease)
            self.clock.advance(0.5)

    async def _ask(self, lease: Lease) -> None:
        (task,) = lease.tasks
        self.asked.append(task.url)
        if isinstance(task, RobotsTask):
            settlement = Settlement(task, RulesLearned(self._rules(task)))
        else:
            assert isinstance(task, PageTask)
            self.end += 100
            done = Done(RecordRef(SegmentId("s"), self.end - 100, 90, self.end), 200, self.end.to_bytes(32, "big"))
            settlement = Settlement(task, done, ())
        await self.frontier.settle(lease.token, [settlement], Release(900, Pace(1000)))

    def _rules(self, task: RobotsTask) -> OriginRules:
        now, fails = self.frontier.timeline.now(), task.origin.startswith("http:") and not self.is_repaired
        kind = RulesKind.UNAVAILABLE if fails else RulesKind.ALLOW_ALL
        fresh_ms = HOUR_MS if fails else DAY_MS
        return OriginRules(
            task.origin, kind, b"", self.clock.wall_ms(), now + fresh_ms, failing_since=self.began if fails else 0
        )


async def starve(frontier: Engine, clock: VirtualClock, blocked: int) -> Visitor:
    """So many pages that cannot be asked for stand before some that can."""
    visitor = Visitor(frontier, clock)
    try:
        await frontier.admit([Candidate(address, 0) for address in addresses(WANTED)])
        await visitor.visit(3)
        assert WANTED in visitor.asked, "so that https is known to answer"
        await frontier.admit(pages("http", blocked))
        await frontier.admit(pages("https", 20, depth=9))
        await visitor.visit(60)
        assert sum(url.startswith("https://www.a.test/https-") for url in visitor.asked) == 20
        assert not any(url.startswith("http://www.a.test/http-") for url in visitor.asked)
        visitor.is_repaired = True
        clock.advance(HOUR_MS / 1000)
        await visitor.visit(20)
        assert sum(url.startswith("http://www.a.test/http-") for url in visitor.asked) >= 10, "none is forgotten"
    finally:
        await frontier.close()
    return visitor


@pytest.mark.parametrize("blocked", [WORTH_KEEPING - 6, 4 * WORTH_KEEPING, LOOKED_AT + 1000])
def test_on_one_machine(tmp_path: Path, blocked: int) -> None:
    """F7: fewer than a claim looks at, and more."""
    clock = VirtualClock()

    async def main() -> None:
        await starve(LmdbFrontier(tmp_path, clock, POLICY, threaded=False), clock, blocked)

    run_virtual(main, clock)


def test_what_comes_in_front_meanwhile_has_its_turn(tmp_path: Path) -> None:
    """F7: what is passed over is looked at anew after a minute."""
    clock = VirtualClock()

    async def main() -> None:
        frontier = LmdbFrontier(tmp_path, clock, POLICY, threaded=False)
        visitor = Visitor(frontier, clock)
        try:
            await frontier.admit(pages("http", LOOKED_AT + 1000))
            await frontier.admit(pages("https", 200, depth=9))
            await visitor.visit(10)
            assert any(url.startswith("https://www.a.test/https-") for url in visitor.asked)
            await frontier.admit([Candidate(address, 0) for address in addresses(WANTED)])
            await visitor.visit(HOLDS_MS / 1000 + 20)
            assert WANTED in visitor.asked
        finally:
            await frontier.close()

    run_virtual(main, clock)


@pytest.mark.parametrize(
    ("blocked", "spills"), [(250, False), (1000, False), (6000, False), (2600, True), (6000, True)]
)
def test_on_valkey(blocked: int, spills: bool) -> None:
    """F7, F8: also where most of the queue is kept outside."""
    clock = VirtualClock()

    async def main() -> None:
        options = Opening(shards=1, virtual=True, chunks=MemoryChunks() if spills else None)
        frontier = await RedisFrontier.open(valkey.names, "s", POLICY, worker="w", clock=clock, options=options)
        await starve(frontier, clock, blocked)

    with ValkeySingle() as valkey:
        asyncio.run(main())


def test_on_valkey_an_origin_that_nobody_has_heard_of_is_found_when_the_other_has_failed_for_an_hour() -> None:
    """F7, F8: before, a large site without its robots.txt is not moved about."""
    clock = VirtualClock()

    async def main() -> None:
        options = Opening(shards=1, virtual=True, chunks=MemoryChunks())
        frontier = await RedisFrontier.open(valkey.names, "s", POLICY, worker="w", clock=clock, options=options)
        visitor = Visitor(frontier, clock)
        try:
            await frontier.admit([*pages("http", 6000), *(Candidate(address, 9) for address in addresses(WANTED))])
            await visitor.visit(30)
            assert visitor.asked == ["http://www.a.test/robots.txt"]
            clock.advance(HOUR_MS / 1000)
            await visitor.visit(60)
            assert WANTED in visitor.asked
        finally:
            await frontier.close()

    with ValkeySingle() as valkey:
        asyncio.run(main())
