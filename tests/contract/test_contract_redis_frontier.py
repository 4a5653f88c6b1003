"""F1, F2, F3, F4, F5, F6, F7, F9, F10, P1, P2, P4, R2, R4, R5, S3, S4, T1, T2, T7, T8, N2: promises kept on Valkey."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from redis_harness import RedisHarness
from valkey_servers import ValkeyCluster, ValkeySingle, redis_server

from nephila.frontier.embedded.book import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import FrontierSettings
from nephila.model.task import Candidate, Pace
from nephila.node.clock import SystemClock
from nephila.testing.chunks import MemoryChunks
from nephila.testing.contracts import frontier as suite
from nephila.testing.contracts import frontier_policy as policy_suite
from nephila.testing.contracts.frontier_policy import Options
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

CHECKS = [*suite.checks(), *policy_suite.checks()]
ORDERED_OVER_DOMAINS = {
    "check_fewest_pages_of_the_domain_then_depth",
    "check_waiting_lifts_a_url",
    "check_immediate_goes_before_everything",
}
"""Which domain goes first is decided within a shard; over several, the classes are drawn and shards take turns."""

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
    """F1, F2, F3, F4, F5, F6, F7, F9, F10, P1, P2, P4, R2, R4, R5, S3, S4, D1, T1, T2, T7, T8, H5, N2: the check."""
    run_check(RedisHarness(single, robots=robots), check)


@pytest.mark.parametrize("check", CHECKS)
def test_the_frontier_on_a_cluster_keeps_its_promises(cluster: list[str], check: str) -> None:
    """F1, F2, F3, F4, F5, F6, F7, F9, F10, P1, P2, P4, R2, R4, R5, S3, S4, D1, T1, T2, T7, T8, H5, N2: the check."""
    run_check(RedisHarness(cluster, robots=True, replicas=1), check)


@pytest.mark.parametrize("check", [check for check in CHECKS if check not in ORDERED_OVER_DOMAINS])
def test_the_frontier_in_several_shards_keeps_its_promises(cluster: list[str], check: str) -> None:
    """F1, F2, F3, F4, F5, F7, F9, F10, P1, P2, P4, R2, R4, R5, S3, S4, D1, T1, T2, T7, T8, H5, N1, N2: the check."""
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
