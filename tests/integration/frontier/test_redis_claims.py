"""N5: a worker takes what falls to it, and what falls to others when it has nothing of its own left."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

from redis_harness import policy_for
from valkey_servers import ValkeySingle

from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.frontier.redis.shards import Shards
from nephila.model.task import Candidate
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.frontier import addresses
from nephila.testing.contracts.frontier_policy import Options

SHARDS, HOSTS = 32, 640
WORKERS = [f"w{number}" for number in range(8)]


def test_shards_of_others_are_asked_when_ours_have_nothing_left() -> None:
    """N5: with fewer shards of its own than are asked at once, too; so hosts stay with whoever knows their links."""
    hosts = asyncio.run(claimed())
    shards = Shards("claims", SHARDS)
    mine, _ = shards.preferred(WORKERS[-1], WORKERS)
    assert 0 < len(mine) < 8
    are_ours = [shards.of_host(host) in mine for host in hosts]
    assert len(hosts) == HOSTS
    assert are_ours == sorted(are_ours, reverse=True)


def test_a_shard_of_which_nothing_was_heard_has_no_more() -> None:
    """N4: an answer that is a repeated one does not tell what is ready."""
    heard: Any = SimpleNamespace(_present={1: (), 2: (0, 3, 0, 0, 0, 0, 0)})
    known = [[RedisFrontier._has_more(heard, shard, lanes) for lanes in (None, [1], [2])] for shard in (0, 1, 2)]
    assert known == [[False] * 3, [False] * 3, [True, True, False]]


async def claimed() -> list[str]:
    """The hosts that the last worker claims, in this order, while the others claim nothing."""
    clock, policy, hosts = VirtualClock(), policy_for(Options(), robots=False), list[str]()
    with ValkeySingle() as valkey:
        async with AsyncExitStack() as stack:
            for worker in WORKERS:
                options = Opening(shards=SHARDS, virtual=True, joining=True)
                last = await RedisFrontier.open(
                    valkey.names, "claims", policy, worker=worker, clock=clock, options=options
                )
                stack.push_async_callback(last.close)
            urls = [f"https://www.host-{number}.test/" for number in range(HOSTS)]
            await last.admit([Candidate(address, 0) for address in addresses(*urls)])
            while leases := await last.claim(15, 300):
                hosts += [lease.host for lease in leases]
    return hosts
