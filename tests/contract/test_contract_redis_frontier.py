"""F1, F2, F3, F4, F5, F6, F7, F9, F10, P1, P2, P4, R2, R4, R5, S3, S4, T1, T2, T7, T8, N2: promises kept on Valkey."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from redis_frontier import RedisHarness
from valkey_servers import ValkeyCluster, ValkeySingle

from nephila.testing.contracts import frontier as suite
from nephila.testing.contracts import frontier_policy as policy_suite
from nephila.testing.contracts.frontier_policy import Options

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
