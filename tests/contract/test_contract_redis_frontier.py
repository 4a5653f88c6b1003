"""F1, F2, F3, F4, F5, F6, F7, F9, F10, P1, P2, P4, R2, R3, R4, R5, S3, S4, T1, T2, T7, T8, N2: Valkey."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator

import pytest
from redis_harness import RedisHarness, policy_for
from valkey_servers import ValkeyCluster, ValkeySingle, redis_server

from nephila.frontier.policy import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.frontier.redis.shards import Shards
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import FrontierSettings, RecrawlSettings, TrapSettings
from nephila.model.task import Candidate, Level, Pace
from nephila.node.clock import SystemClock
from nephila.testing.chunks import MemoryChunks
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts import frontier as suite
from nephila.testing.contracts import frontier_policy as policy_suite
from nephila.testing.contracts.frontier_policy import Options
from nephila.testing.repute import GivenRepute
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

CHECKS = [*suite.checks(), *policy_suite.checks()]
ORDERED_OVER_DOMAINS = {"check_fewest_pages_of_the_domain_then_depth", "check_waiting_lifts_a_url"}
"""Which domain goes first is decided within a shard (decision 36, 7); what is promised of several has its own tests."""

DRAWN = {"check_no_level_starves", "check_new_and_due_share_the_fetches"}
"""What is drawn is leases: with a robots.txt before every page, half of the draws of these checks would go to those."""


@pytest.fixture(scope="module")
def single() -> Iterator[list[str]]:
    with ValkeySingle() as valkey:
        yield valkey.names


@pytest.fixture(scope="module")
def redis() -> Iterator[tuple[list[str], str]]:
    binary, told = redis_server()
    if binary is None:
        yield [], told
        return
    with ValkeySingle(binary=binary) as server:
        yield server.names, told


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[str]]:
    with ValkeyCluster() as valkey:
        yield valkey.names


def run_check(harness: RedisHarness, check: str) -> None:
    async def run() -> None:
        await harness.configure(Options())
        try:
            kind = suite.FrontierContract if check in suite.checks() else policy_suite.PolicyContract
            await getattr(kind(harness), check)()
        finally:
            await harness.frontier.close()

    asyncio.run(run())


@pytest.mark.parametrize("robots", [True, False], ids=["robots", "no-robots"])
@pytest.mark.parametrize("check", CHECKS)
def test_the_frontier_on_one_valkey_keeps_its_promises(single: list[str], check: str, robots: bool) -> None:
    """F1, F2, F3, F4, F5, F6, F7, F9, F10, P1, P2, P4, R2, R3, R4, R5, S3, S4, D1, T1, T2, T7, T8, H5, N2: each."""
    run_check(RedisHarness(single, robots=robots), check)


@pytest.mark.parametrize("check", CHECKS)
def test_the_frontier_on_a_cluster_keeps_its_promises(cluster: list[str], check: str) -> None:
    """F1, F2, F3, F4, F5, F6, F7, F9, F10, P1, P2, P4, R2, R3, R4, R5, S3, S4, D1, T1, T2, T7, T8, H5, N2: each."""
    run_check(RedisHarness(cluster, robots=True, replicas=1), check)


@pytest.mark.parametrize("check", [check for check in CHECKS if check not in ORDERED_OVER_DOMAINS])
def test_the_frontier_in_several_shards_keeps_its_promises(cluster: list[str], check: str) -> None:
    """F1, F2, F3, F4, F5, F7, F9, F10, P1, P2, P4, R2, R3, R4, R5, S3, S4, D1, T1, T2, T7, T8, H5, N1, N2: each."""
    run_check(RedisHarness(cluster, robots=check not in DRAWN, shards=5), check)


def test_the_frontier_on_redis_keeps_its_promises(redis: tuple[list[str], str], say: Callable[[str], None]) -> None:
    """F1, F2, F3, F4, F5, F6, F7, F8, F9, F10, P1, P2, P4, R2, R4, R5, S3, S4, D1, T1, T2, T7, T8, H5, N2: all checks.

    Where there is no Redis the list at the end says so: a wheel that carries one is not known.
    """
    names, told = redis
    if not names:
        say(f"the checks were not run on Redis: {told}")
        pytest.skip(told)
    for check in CHECKS:
        run_check(RedisHarness(names, robots=True), check)
        run_check(RedisHarness(names, robots=False, chunks=MemoryChunks()), check)
    say(f"{len(CHECKS)} checks on {told}, each with queues in the engine and kept elsewhere")


@pytest.mark.parametrize("check", CHECKS)
def test_the_frontier_keeps_its_promises_with_its_queues_kept_elsewhere(single: list[str], check: str) -> None:
    """F1, F2, F3, F4, F5, F6, F7, F8, F9, F10, R2, R4, R5, S3, S4, D1, T1, T2, T7, T8, N2: marks as low as they get."""
    run_check(RedisHarness(single, robots=False, chunks=MemoryChunks()), check)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("spills", [False, True], ids=["here", "elsewhere"])
def test_a_compact_frontier_keeps_its_promises(single: list[str], check: str, spills: bool) -> None:
    """F1, F2, F3, F4, F5, F6, F7, F8, F9, F10, R2, R4, R5, S3, S4, D1, T1, T2, T7, T8, N2: but what it gives up."""
    run_check(RedisHarness(single, robots=False, chunks=MemoryChunks() if spills else None, compact=True), check)


def test_within_one_of_several_shards_waiting_decides(cluster: list[str]) -> None:
    """F7, N1: the same check, with as many shards as it takes for its two domains to share one."""
    domains = ("low.test", "high.test")
    count = next(count for count in range(3, 257) if len({Shards("any", count).of_domain(one) for one in domains}) == 1)
    run_check(RedisHarness(cluster, robots=True, shards=count), "check_waiting_lifts_a_url")


def spread_over(shards: Shards, word: str, each: int) -> list[str]:
    """Domains of every shard, so many of each."""
    found: dict[int, list[str]] = {}
    for number in range(100_000):
        domain = f"{word}{number}.test"
        some = found.setdefault(shards.of_domain(domain), [])
        if len(some) < each:
            some.append(domain)
        if len(found) == shards.count and all(len(one) == each for one in found.values()):
            break
    return [domain for some in found.values() for domain in some]


def test_over_shards_the_classes_are_drawn_by_what_waiting_has_made_of_them(cluster: list[str]) -> None:
    """F1, F7, N1: what waited for 26 days is of the class high in all shards, and has its share of the draws."""

    async def run() -> None:
        harness = RedisHarness(cluster, robots=False, shards=5)
        await harness.configure(Options())
        contract, shards = policy_suite.PolicyContract(harness), Shards("any", 5)
        old, new = spread_over(shards, "old", 12), spread_over(shards, "new", 12)
        await harness.frontier.admit(suite.candidates(*(f"https://{one}/" for one in old), level=Level.LOW))
        contract.tick(26 * policy_suite.DAY_S)
        await harness.frontier.admit(suite.candidates(*(f"https://{one}/" for one in new), level=Level.MEDIUM))
        first = [lease.host for _ in range(40) for lease in await contract.claim_pages(1)]
        await harness.frontier.close()
        assert sum(one in old for one in first) >= 28, "80 to 15"
        assert any(one in new for one in first), "nothing starves"

    asyncio.run(run())


def test_what_a_trap_holds_is_told_to_its_end(single: list[str]) -> None:
    """T2, T8: hundreds of URLs in a few bundles are all of them, and not "more"."""

    async def run() -> None:
        harness = RedisHarness(single, robots=False)
        await harness.configure(Options(traps=TrapSettings(slow_after=3, stop_after=5)))
        contract = policy_suite.PolicyContract(harness)
        await harness.frontier.admit(suite.candidates(*(f"https://a.test/c?d={i}" for i in range(40))))
        while await contract.serve(contract.page(duplicate=True)):
            contract.tick()
        await harness.frontier.admit(suite.candidates(*(f"https://a.test/c?d={i}" for i in range(40, 700))))
        held = harness.frontier.snapshot().parked["trap"]
        told = harness.frontier.view.traps(100)
        await harness.frontier.close()
        assert held > 600
        assert sum(one.parked for one in told) == held
        assert not any(one.parked_more for one in told)

    asyncio.run(run())


class SlowRepute(GivenRepute):
    """Whoever asks for a grade takes his time, and more becomes due meanwhile."""

    clock: VirtualClock
    asked: list[str]

    def grade_of(self, host: str) -> int | None:
        self.asked.append(host)
        self.clock.advance(10)
        return super().grade_of(host)


def test_a_claim_asks_once_for_the_grades_of_what_is_due(single: list[str]) -> None:
    """R2, R3, N2: what becomes due while it does so is left for the next claim, so that none goes on for ever."""

    async def run() -> None:
        harness, repute = RedisHarness(single, robots=False), SlowRepute({"a.test": 3}, turn=0)
        repute.clock, repute.asked = harness.clock, []
        recrawl = RecrawlSettings(policy="simple", first_s=policy_suite.DAY_S)
        await harness.configure(Options(recrawl=recrawl, repute=repute))
        contract = policy_suite.PolicyContract(harness)
        for name in ("a", "b", "c"):
            await harness.frontier.admit(suite.candidates(f"https://{name}.test/"))
            assert await contract.serve() == [f"https://{name}.test/"]
            contract.tick(5)
        contract.tick(policy_suite.DAY_S - 14)
        repute.turn = 1
        claimed, asked = list[list[str]](), list[list[str]]()
        for _ in range(3):
            claimed.append([lease.host for lease in await harness.frontier.claim(10, 60)])
            asked.append(repute.asked.copy())
            repute.asked.clear()
        await harness.frontier.close()
        assert claimed == [["a.test"], ["b.test", "c.test"], []]
        assert asked == [["a.test"], ["b.test", "c.test"], []]

    asyncio.run(run())


def test_over_shards_each_shard_keeps_the_order_of_its_domains(cluster: list[str]) -> None:
    """F6, N1: of the domains of one shard, those with the fewest pages come first, whatever the others do."""

    async def run() -> None:
        harness = RedisHarness(cluster, robots=False, shards=5)
        await harness.configure(Options())
        contract, shards = suite.FrontierContract(harness), Shards("any", 5)
        domains = spread_over(shards, "some", 5)
        for pages in range(3):  # the first domain of each shard has no page, the second one, and so on
            urls = [f"https://{one}/{pages}" for at, one in enumerate(domains) if at % 5 > pages]
            await harness.frontier.admit(suite.candidates(*urls))
            for lease in await contract.claim_pages(100):
                await contract.end(lease, suite.done())
            harness.clock.advance(2)
        for at, one in enumerate(domains):  # of those with as many pages, the last is the least deep
            await harness.frontier.admit(suite.candidates(f"https://{one}/last", depth=5 - at % 5))
        order = [lease.host for _ in domains for lease in await contract.claim_pages(1)]
        await harness.frontier.close()
        assert sorted(order) == sorted(domains)
        for shard in range(5):
            places = [domains.index(one) % 5 for one in order if shards.of_domain(one) == shard]
            assert places == [0, 1, 2, 4, 3], "fewest pages, then the least depth"

    asyncio.run(run())


def test_immediate_work_that_others_bring_goes_first_once_it_was_heard_of(cluster: list[str]) -> None:
    """F1, N1: over 20 shards full of other work; a worker hears of it by its next look at the counters."""

    async def run() -> None:
        harness = RedisHarness(cluster, robots=False, shards=20)
        await harness.configure(Options())
        contract, shards = suite.FrontierContract(harness), Shards("any", 20)
        await harness.frontier.admit(
            suite.candidates(*(f"https://{one}/" for one in spread_over(shards, "h", 3)), level=Level.HIGH)
        )
        await contract.claim_pages(5)
        other = await RedisFrontier.open(
            cluster, harness._crawl, policy_for(Options(), robots=False), worker="w2", clock=harness.clock,
            options=Opening(virtual=True, visiting=True),
        )  # fmt: skip
        await other.admit(suite.candidates("https://now.test/", level=Level.IMMEDIATE, depth=9))
        await other.close()
        await harness.frontier.look()
        (lease,) = await contract.claim_pages(1)
        assert lease.host == "now.test"
        await harness.frontier.close()

    asyncio.run(run())


HOUR_MS = 3_600_000


async def set_ahead(frontier: RedisFrontier, shard: int, by_ms: int) -> int:
    """Have a shard lie so far ahead of its server's clock, as when that was set back; its time then."""
    key = frontier._shards.keys[shard]
    now = int((await frontier._caller.call(shard, "snapshot"))[0]) + by_ms
    await frontier._valkey.do(key, "HSET", f"{key}:meta", "last", now)
    return now


def real_frontier(servers: list[str], crawl: str, shards: int) -> Coroutine[None, None, RedisFrontier]:
    """By the servers' own clock."""
    return RedisFrontier.open(
        servers,
        crawl,
        Policy(FrontierSettings(), base_delay_ms=1000, robots=False),
        worker="w",
        clock=SystemClock(),
        options=Opening(shards=shards),
    )


def test_time_goes_on_where_the_clock_of_a_server_was_set_back(single: list[str]) -> None:
    """N2, P1: hosts do not wait for the hour to come once more, and a clock that is put right makes no leap."""

    async def run() -> None:
        frontier = await real_frontier(single, "set-back", 1)
        clock = int((await frontier._caller.call(0, "snapshot"))[0])
        last = await set_ahead(frontier, 0, HOUR_MS)
        moments = [await frontier._caller.call(0, "rest") for _ in range(200)]
        assert moments == sorted(moments)
        assert moments[0] >= last
        assert moments[-1] > moments[0], "it stands still"
        assert moments[-1] - moments[0] <= (await frontier._caller.call(0, "snapshot"))[1] - clock
        # The server's clock is put forward again: where it is by now, the timeline is already.
        key = frontier._shards.keys[0]
        await frontier._valkey.do(key, "HSET", f"{key}:meta", "last", clock)
        now = await frontier._caller.call(0, "rest")
        assert 0 <= now - clock < HOUR_MS
        assert await frontier._valkey.do(key, "HGET", f"{key}:meta", "ahead") == b"0"
        await frontier.close()

    asyncio.run(run())


def test_a_host_is_not_asked_early_where_another_server_is_ahead(single: list[str]) -> None:
    """P1, N4: the moment of a lease is told in the worker's own time, whichever server's clock that follows."""

    async def run() -> None:
        frontier = await real_frontier(single, "ahead", 2)
        (host,) = (one for one in spread_over(Shards("any", 2), "a", 1) if frontier._shards.of_domain(one) == 0)
        await frontier.admit(suite.candidates(f"https://{host}/1", f"https://{host}/2"))
        await set_ahead(frontier, 1, HOUR_MS)
        await frontier.look()
        (lease,) = await frontier.claim(1, 300)
        assert lease.expires_at - frontier.timeline.now() > 200_000, "it does not look as if it had ended"
        done = Done(RecordRef(SegmentId("s"), 0, 1, 1), 200, bytes(32), outlinks=0)
        settled_at = frontier.timeline.now()
        await frontier.settle(lease.token, [Settlement(lease.tasks[0], done, [])], Release(499, Pace(499)))
        (lease,) = await frontier.claim(1, 300)
        assert lease.not_before >= settled_at + 499, "its whole rest"
        await frontier.close()

    asyncio.run(run())


def test_what_is_confirmed_of_a_segment_is_noted_once_for_all_shards(single: list[str]) -> None:
    """N8, F8: workers close a file a minute each, and nobody forgets one: a note in each of 256 shards has no bound."""

    async def run() -> None:
        frontier = await real_frontier(single, "noted", 20)
        keys = frontier._shards.keys
        hosts = spread_over(Shards("any", 20), "a", 1)
        await frontier.admit(suite.candidates(*(f"https://{one}/" for one in hosts)))
        names = [SegmentId(f"s{number}") for number in range(3)]
        for at, lease in enumerate(await frontier.claim(20, 300)):
            done = Done(RecordRef(names[at % 2], at, 1, at + 1), 200, bytes(32), outlinks=0)
            await frontier.settle(lease.token, [Settlement(lease.tasks[0], done, [])], Release(0, Pace(0)))
        view = frontier.view
        assert view.pending_segments() == await frontier.pending_segments() == {"s0", "s1"}
        assert [await frontier.confirm(name, 20) for name in names] == [10, 10, 0]
        assert view.pending_segments() == await frontier.pending_segments() == set()
        assert view.marks() == {"s0": 20, "s1": 20, "s2": 20}
        assert view.marks(names[1:]) == {"s1": 20, "s2": 20}
        assert view.marks([]) == view.marks([SegmentId("none")]) == {}
        noted = [await frontier._valkey.do(key, "HLEN", f"{key}:marks") for key in keys]
        assert sum(noted) == 3
        await frontier.close()

    asyncio.run(run())


def test_several_pages_of_a_lease_are_settled_in_one_call(single: list[str]) -> None:
    """F3, T2, N2: also where the host is looked at more closely from one of them on."""

    async def run() -> None:
        frontier = await RedisFrontier.open(
            single,
            "several",
            Policy(FrontierSettings(look_ahead_ms=0), base_delay_ms=0, robots=False),
            worker="w",
            clock=SystemClock(),
            options=Opening(shards=1),
        )
        identifier = Identifier(7, NormalRules(), UrlLimits())
        links = [identifier.identify(f"http://a.test/page-{number}") for number in range(8)]
        await frontier.admit([Candidate(link, 1) for link in links if isinstance(link, Address)])
        (lease,) = await frontier.claim(1, 300)
        assert len(lease.tasks) == 8
        settlements = [
            Settlement(task, Done(RecordRef(SegmentId("s"), at, 1, at + 1), 200, bytes(32), outlinks=0), [])
            for at, task in enumerate(lease.tasks)
        ]
        settled = await frontier.settle(lease.token, settlements, Release(0, Pace(0)))
        assert settled.accepted
        known = await frontier.look()
        assert (known.pages, known.states["pending"], sum(known.queued.values())) == (8, 8, 0)
        assert await frontier.claim(1, 300) == []
        await frontier.close()

    asyncio.run(run())
