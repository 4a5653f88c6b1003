"""C1, C3, F3, F7: lists of domains and hosts, and what is lent, are the same on both engines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from frontier_world import FrontierWorld
from redis_harness import RedisHarness
from valkey_servers import ValkeySingle

from nephila.frontier.embedded.census import LmdbCensus
from nephila.frontier.redis.census import RedisCensus
from nephila.interfaces.census import Census
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.task import Candidate, Lease, Pace, PageTask, Token
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.frontier_policy import Options
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

REST = Release(1000, Pace(1000))


class Engine:
    """A frontier, its census and its clock."""

    def __init__(self, frontier: Any, census: Census, clock: VirtualClock) -> None:
        self.frontier, self.census, self.clock = frontier, census, clock
        self._identifier = Identifier(frontier.secret, NormalRules(), UrlLimits())

    async def admit(self, *urls: str) -> None:
        found = [self._identifier.identify(url) for url in urls]
        await self.frontier.admit([Candidate(one, 0) for one in found if isinstance(one, Address)])

    def walked(self, step: int) -> list[Any]:
        found: list[Any] = []
        mark = b""
        while True:
            some, mark = self.census.domains(mark, step)
            found += some
            if not mark:
                return found


Play = Callable[[Callable[[Engine], Awaitable[None]]], None]


@pytest.fixture(scope="module")
def valkey() -> Iterator[list[str]]:
    with ValkeySingle() as server:
        yield server.names


@pytest.fixture(params=["embedded", "valkey-1", "valkey-7"])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """Runs a story on an engine."""

    async def on_valkey(story: Callable[[Engine], Awaitable[None]], shards: int) -> None:
        harness = RedisHarness(request.getfixturevalue("valkey"), robots=False, shards=shards)
        await harness.configure(Options())
        try:
            frontier = harness.frontier
            await story(Engine(frontier, RedisCensus(frontier.view), harness.clock))
        finally:
            await harness.frontier.close()

    async def embedded(story: Callable[[Engine], Awaitable[None]]) -> None:
        world = FrontierWorld(tmp_path)
        try:
            await story(Engine(world.frontier, LmdbCensus(world.frontier.view), world.clock))
        finally:
            await world.frontier.close()

    def run(story: Callable[[Engine], Awaitable[None]]) -> None:
        if request.param == "embedded":
            asyncio.run(embedded(story))
        else:
            asyncio.run(on_valkey(story, int(request.param.rpartition("-")[2])))

    return run


def done(lease: Lease, segment: str = "s3://bucket/x") -> Settlement:
    (task,) = lease.tasks
    assert isinstance(task, PageTask)
    return Settlement(task, Done(RecordRef(SegmentId(segment), lease.token, 0, lease.token), 200, b"d" * 32))


def test_every_domain_is_walked_to_and_its_hosts_are_added_up(play: Play) -> None:
    """C1, C3: once each, whatever the step; hosts of unusual names, too; by name the same as by walking."""

    async def story(engine: Engine) -> None:
        hosts = ("", "www.", "a.", "b.c.")
        urls = [f"https://{host}site{n}.test/{page}" for n in range(9) for host in hosts for page in range(3)]
        await engine.admit(*urls)
        for step in (1, 4, 1000):
            found = engine.walked(step)
            assert sorted(one.domain for one in found) == [f"site{n}.test" for n in range(9)]
            assert {(one.hosts, one.queued, one.pages, one.reason) for one in found} == {(4, 12, 0, "")}
            assert {one.state for one in found} <= {"ready", "waiting"}
        names = ["site3.test", "never.test", "site1.test"]
        by_name = {one.domain: one for one in found}
        assert engine.census.named(names) == [by_name["site3.test"], by_name["site1.test"]]
        assert engine.census.named([]) == []
        listed = engine.census.hosts("site3.test", 10)
        assert {one.host for one in listed} == {f"{host}site3.test" for host in hosts}
        assert {(one.queued, one.fetched) for one in listed} == {(3, 0)}
        assert engine.census.hosts("site3.test", 2) == listed[:2]
        assert engine.census.hosts("site3.test", 10, after=listed[1].host) == listed[2:]
        assert engine.census.hosts("site3.tes", 10) == []
        for other in range(100):  # wherever it stands in the order
            after = engine.census.hosts("site3.test", 10, after=f"elsewhere{other}.test")
            assert after == listed[len(listed) - len(after) :]

    play(story)


def test_where_hosts_stand_is_told(play: Play) -> None:
    """C3, F7: leased, resting, with what they have brought; how long the first has waited."""

    async def story(engine: Engine) -> None:
        assert engine.census.longest_wait_s() == 0
        await engine.admit("https://a.test/1", "https://b.test/1", "https://b.test/2")
        leases = {lease.host: lease for lease in await engine.frontier.claim(2, 60)}
        assert {one.state for one in engine.walked(10)} == {"leased"}
        lease = leases["a.test"]
        await engine.frontier.settle(lease.token, [done(lease, "segment-1")], Release(5000, Pace(5000), 321))
        (host,) = engine.census.hosts("a.test", 1)
        assert (host.fetched, host.queued, host.delay_ms) == (1, 0, 5000)
        assert host.next_at > host.last_at > 0
        (domain,) = engine.census.named(["a.test"])
        assert (domain.pages, domain.state, domain.delay_ms) == (1, "idle", 5000)
        await engine.admit("https://c.test/1")
        await engine.frontier.claim(0, 60)
        engine.clock.advance(100)
        await engine.frontier.claim(0, 60)
        assert engine.census.longest_wait_s() <= 100

    play(story)


def test_what_is_lent_is_known_by_its_token_and_its_page_waits_for_no_segment(play: Play) -> None:
    """C1, F3: nobody else's lease is; reported once, the page is completed, and nothing is pending on its place."""

    async def story(engine: Engine) -> None:
        await engine.admit("https://a.test/", "https://b.test/")
        (lease,) = (await engine.frontier.lend(1, 60)).leases
        loan = engine.census.loan(lease.token)
        assert loan is not None
        assert (loan.host, loan.fingerprint) == (lease.host, lease.tasks[0].fingerprint)
        (own,) = await engine.frontier.claim(5, 60)
        assert engine.census.loan(own.token) is None
        assert engine.census.loan(Token(10**6)) is None
        assert not (await engine.frontier.take_back(own.token, done(own), REST)).accepted
        assert (await engine.frontier.take_back(lease.token, done(lease), REST)).accepted
        assert not (await engine.frontier.take_back(lease.token, done(lease), REST)).accepted
        assert engine.census.loan(lease.token) is None
        states = engine.frontier.view.snapshot().states
        assert (states["completed"], states["pending"]) == (1, 0)
        assert engine.frontier.view.pending_segments() == set()

    play(story)
