"""F2, F10, N1: a new cycle on Valkey is begun once, whoever says so and whatever breaks on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count

import pytest
from redis_harness import policy_for
from valkey_servers import ValkeySingle

from nephila.frontier.policy import Policy
from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.frontier.redis.shards import crawl_key
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.task import Candidate, Pace
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.frontier import addresses
from nephila.testing.contracts.frontier_policy import Options

SEGMENT = SegmentId("segment")
SHARDS = 4
PLAIN = replace(policy_for(Options(), robots=False), base_delay_ms=0)
_NUMBERS = count()


@pytest.fixture(scope="module")
def names() -> Iterator[list[str]]:
    with ValkeySingle() as valkey:
        yield valkey.names


class Site:
    """A crawl of a few hosts in which all is fetched."""

    def __init__(self, names: list[str], policy: Policy = PLAIN, shards: int = SHARDS) -> None:
        self.names, self.crawl, self.policy, self.shards = names, f"cycles-{next(_NUMBERS)}", policy, shards
        self.clock, self.end = VirtualClock(), 0

    @asynccontextmanager
    async def opened(self, worker: str = "w1") -> AsyncIterator[RedisFrontier]:
        frontier = await RedisFrontier.open(
            self.names,
            self.crawl,
            self.policy,
            worker=worker,
            clock=self.clock,
            options=Opening(shards=self.shards, virtual=True, joining=True),
        )
        try:
            yield frontier
        finally:
            await frontier.close()

    async def fetch_all(self, frontier: RedisFrontier) -> list[str]:
        """Claim and settle until nothing is to be had."""
        found: list[str] = []
        while True:
            leases = await frontier.claim(50, 60)
            for lease in leases:
                settlements = []
                for task in lease.tasks:
                    self.end += 100
                    done = Done(RecordRef(SEGMENT, self.end - 100, 90, self.end), 200, b"d" * 32)
                    settlements.append(Settlement(task, done, ()))
                    found.append(task.url)
                await frontier.settle(lease.token, settlements, Release(0, Pace(0)))
            if not leases and frontier.snapshot().next_in_ms != 0:
                return found
            self.clock.advance(0.01)


def pages(hosts: int, each: int) -> list[Candidate]:
    urls = [f"https://h{host}.test/{page}" for host in range(hosts) for page in range(each)]
    return [Candidate(address, 0) for address in addresses(*urls)]


def test_two_who_begin_a_cycle_at_once_begin_one(names: list[str]) -> None:
    """F2, F10: said again it is the same; when that is over, or left, the next one is begun, again by one alone."""

    async def main() -> None:
        site = Site(names)
        async with site.opened() as worker, site.opened("a") as one, site.opened("b") as two:
            await worker.admit(pages(6, 3))
            first = await site.fetch_all(worker)
            assert sorted(await asyncio.gather(one.begin_cycle(), two.begin_cycle())) == [False, True]
            known = await worker.look()
            assert (known.cycle, known.sweeping, known.next_in_ms) == (2, True, 0)
            assert sorted(await site.fetch_all(worker)) == sorted(first)
            known = await worker.look()
            assert (known.sweeping, known.pages_in_cycle, known.pages) == (False, 18, 36)
            assert not await one.begin_cycle(), "nobody has said that it is over"
            assert sorted(await asyncio.gather(one.begin_cycle_after(2), two.begin_cycle_after(2))) == [False, True]
            assert (await worker.look()).cycle == 3
            assert sorted(await site.fetch_all(worker)) == sorted(first)
            assert await worker.end_cycle()
            assert await two.begin_cycle()
            assert (await worker.look()).cycle == 4

    asyncio.run(main())


def test_a_worker_that_thinks_all_is_done_goes_on_with_a_cycle_that_was_begun_meanwhile(names: list[str]) -> None:
    """F2: its word that the last one is over does not end the new one, which it takes to all shards."""

    async def main() -> None:
        site = Site(names)
        async with site.opened() as worker:
            await worker.admit(pages(6, 3))
            await site.fetch_all(worker)
            key = crawl_key(site.crawl, "crawl")  # somebody begins one, and dies before any shard was told
            await worker._valkey.do(key, "HSET", key, "cycle", 2, "open", "1")
            assert not await worker.end_cycle()
            known = worker.snapshot()
            assert (known.cycle, known.sweeping) == (2, True)
            assert not await worker.begin_cycle(), "it is open"
            assert len(await site.fetch_all(worker)) == 18
            assert await worker.end_cycle()
            assert await worker.begin_cycle()

    asyncio.run(main())


def test_a_worker_that_starts_takes_a_cycle_to_the_shards_that_were_not_told(names: list[str]) -> None:
    """F2, F10: whoever began it died on the way."""

    async def main() -> None:
        site = Site(names)
        async with site.opened() as worker:
            await worker.admit(pages(6, 3))
            await site.fetch_all(worker)
            key = crawl_key(site.crawl, "crawl")
            await worker._valkey.do(key, "HSET", key, "cycle", 2, "open", "1")
            await worker._every("begin_cycle", 2, shards=[0])
        async with site.opened() as worker:
            assert len(await site.fetch_all(worker)) == 18
            assert worker.snapshot().pages_in_cycle == 18
        async with site.opened() as worker:
            assert await site.fetch_all(worker) == [], "not swept again"

    asyncio.run(main())


def test_a_cycle_is_swept_in_steps(names: list[str]) -> None:
    """F2, F8: no call looks at more than a few hundred URLs, and one that was begun anew on the way misses none."""

    async def main() -> None:
        site = Site(names, shards=1)
        async with site.opened() as worker:
            for some in range(0, 1200, 300):
                await worker.admit(pages(1200, 1)[some : some + 300])
            assert len(await site.fetch_all(worker)) == 1200
            await worker.begin_cycle()
            await worker.claim(0, 60)
            assert 0 < sum(worker.snapshot().queued.values()) <= 600
            assert await worker.begin_cycle_after(2)
            assert len(await site.fetch_all(worker)) == 1200
            assert worker.snapshot().pages_in_cycle == 1200

    asyncio.run(main())


def test_a_host_that_had_its_pages_goes_on_in_a_new_cycle_while_those_cool(names: list[str]) -> None:
    """S3, S5, F2: what it has beside them need not wait for that, nor for a worker that starts."""

    async def main() -> None:
        cool = replace(PLAIN, settings=replace(PLAIN.settings, cooldown_s=3600.0), max_pages_per_host=2)
        site = Site(names, cool)
        async with site.opened() as worker:
            await worker.admit(pages(1, 3))
            first = await site.fetch_all(worker)
            assert len(first) == 2
            await worker.begin_cycle()
            (left,) = await site.fetch_all(worker)
            assert left not in first
            assert dict(worker.snapshot().delayed) == {"cooling": 2}

    asyncio.run(main())


def test_hosts_that_had_their_pages_go_on_when_a_worker_comes_with_a_higher_limit(names: list[str]) -> None:
    """S3, F10, N3: nobody looks after the crawl as a whole, and no host waits for the next cycle."""
    hosts = 600  # more than one step in a shard

    async def main() -> None:
        site = Site(names, replace(PLAIN, max_pages_per_host=1), shards=1)
        async with site.opened() as frontier:
            await frontier.admit(pages(hosts, 3))
            assert len(await site.fetch_all(frontier)) == hosts
        site.policy = replace(PLAIN, max_pages_per_host=2)
        async with site.opened() as frontier:
            assert frontier.snapshot().next_in_ms == 0, "nobody may think that all is done"
            assert len(await site.fetch_all(frontier)) == hosts
        site.policy = PLAIN
        async with site.opened("w2") as frontier:
            assert len(await site.fetch_all(frontier)) == hosts
        async with site.opened() as frontier:
            assert frontier.snapshot().next_in_ms is None
            assert await site.fetch_all(frontier) == []

    asyncio.run(main())
