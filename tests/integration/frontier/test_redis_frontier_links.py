"""F2, F8, N1: what links bring to the frontier on Valkey comes out as it was spelled, and is known from then on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from random import Random

import pytest
from redis_harness import policy_for
from valkey_servers import ValkeySingle

from nephila.frontier.redis import RedisFrontier
from nephila.frontier.redis.opening import Opening
from nephila.interfaces.frontier import Admission
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.task import Candidate, Lease, Level, Pace
from nephila.node.clock import SystemClock
from nephila.testing.contracts.frontier import addresses
from nephila.testing.contracts.frontier_policy import Options

SEED = "https://site.test/seed"


@pytest.fixture(scope="module")
def names() -> Iterator[list[str]]:
    with ValkeySingle() as valkey:
        yield valkey.names


async def opened(names: list[str], crawl: str, *, compact: bool = False) -> RedisFrontier:
    policy, options = policy_for(Options(), robots=False), Opening(shards=1, compact=compact)
    return await RedisFrontier.open(names, crawl, policy, worker="w1", clock=SystemClock(), options=options)


async def fetched(frontier: RedisFrontier, links: Sequence[Candidate] = ()) -> str:
    """Claim one page, and settle it with those links."""
    (lease,) = await frontier.claim(1, 60)
    done = Done(RecordRef(SegmentId("segment"), 0, 90, 100), 200, b"d" * 32, outlinks=len(links))
    await frontier.settle(lease.token, [Settlement(lease.tasks[0], done, links)], Release(0, Pace(0)))
    return lease.tasks[0].url


def test_links_come_out_as_they_were_spelled(names: list[str]) -> None:
    """F2, F8: tails that share nothing, little, all, and more than a byte can say with the base of their bundle."""
    long = "a" * 400
    spelled = [
        "https://site.test/",
        f"https://site.test/{long}",
        f"https://site.test/{long}/b",
        f"https://site.test/{long[:254]}",
        f"https://site.test/{long[:253]}c",
        f"https://site.test/b{'c' * 600}",
        "http://site.test/plain",
        "https://site.test:8443/port",
        "https://site.test/?query=1",
        "https://other.test/",
        f"https://third.test/{long}",
    ]
    order = Random(1)

    async def lived_through(turn: int) -> set[str]:
        frontier = await opened(names, f"spelled-{turn}")
        await frontier.admit([Candidate(one, 0, Level.IMMEDIATE) for one in addresses(SEED)])
        order.shuffle(spelled)  # another one is the base
        await fetched(frontier, [Candidate(one, 1) for one in addresses(*spelled)])
        found = {await fetched(frontier) for _ in spelled}
        await frontier.close()
        return found

    for turn in range(len(spelled)):
        assert asyncio.run(lived_through(turn)) == set(spelled)


@pytest.mark.parametrize("compact", [False, True], ids=["ordinary", "compact"])
def test_what_is_known_stays_known_while_a_host_grows(names: list[str], compact: bool) -> None:
    """F2, F8: through dozens of buckets, by pages of kinds, depths and classes that differ."""
    order, size, kinds = Random(2), 6_000, 5
    urls = addresses(*(f"https://site.test/section-{number % 9}/{number}" for number in range(size)))

    async def run() -> None:
        frontier, added = await opened(names, f"growing-{compact}", compact=compact), 0
        for first in range(0, size, 150):
            some = [*urls[first : first + 150], *order.sample(urls[: first + 1], min(first, 60))]
            order.shuffle(some)
            told = await frontier.admit([Candidate(one, order.randrange(kinds)) for one in some])
            added += told.added
            assert told == Admission(150, len(some) - 150)
        assert added == size
        again = await frontier.admit([Candidate(one, kinds) for one in urls])
        assert again == Admission(0, size)
        assert (await frontier.look()).urls == size
        await frontier.close()

    asyncio.run(run())


@pytest.mark.parametrize("compact", [False, True], ids=["ordinary", "compact"])
def test_what_is_known_stays_known_when_entries_leave_out_what_their_bucket_tells(
    names: list[str], compact: bool
) -> None:
    """F2, F8: a host passes 256 buckets, and its later entries are other parts of their names than the first ones."""
    size, step = 48_000, 1_000
    urls = addresses(*(f"https://site.test/{number}" for number in range(size)))

    async def run() -> None:
        frontier = await opened(names, f"wide-{compact}", compact=compact)
        for first in range(0, size, step):
            assert (await frontier.admit([Candidate(one, 1) for one in urls[first : first + step]])).added == step
        for first in range(0, size, step):
            told = await frontier.admit([Candidate(one, 1) for one in urls[first : first + step]])
            assert told == Admission(0, step)
        await frontier.close()

    asyncio.run(run())


def test_what_a_crawl_was_made_with_stays(names: list[str]) -> None:
    """F2, N2: a crawl that is compact stays so, whoever opens it."""

    async def run() -> None:
        urls = [Candidate(one, 1) for one in addresses(*(f"https://site.test/{number}" for number in range(500)))]
        for compact in (True, False):
            frontier = await opened(names, "for-good", compact=compact)
            assert (await frontier.admit(urls)).added == (500 if compact else 0)
            await frontier.close()

    asyncio.run(run())


def test_pages_that_are_settled_at_once_bring_each_link_once(names: list[str]) -> None:
    """F2, F5, N1: their links to one shard go there in one call; each page is told what was new of its own."""
    pages = [f"https://page-{number}.test/" for number in range(12)]
    links = [Candidate(one, 1) for one in addresses(*(f"https://linked-{number}.test/" for number in range(20)))]

    async def run() -> None:
        policy, options = policy_for(Options(), robots=False), Opening(shards=3)
        frontier = await RedisFrontier.open(names, "at-once", policy, worker="w1", clock=SystemClock(), options=options)
        await frontier.admit([Candidate(one, 0, Level.IMMEDIATE) for one in addresses(*pages)])
        leases: list[Lease] = []
        while len(leases) < len(pages):  # shards are asked for as many each
            leases += await frontier.claim(len(pages) - len(leases), 60)
        done = Done(RecordRef(SegmentId("segment"), 0, 90, 100), 200, b"d" * 32, outlinks=len(links))
        told = await asyncio.gather(
            *(
                frontier.settle(lease.token, [Settlement(lease.tasks[0], done, links)], Release(0, Pace(0)))
                for lease in leases
            )
        )
        assert all(one.accepted for one in told)
        assert sum(one.admission.added for one in told) == len(links)
        assert {one.admission.added + one.admission.known for one in told} == {len(links)}
        assert (await frontier.look()).urls == len(pages) + len(links)
        await frontier.close()

    asyncio.run(run())


def test_captures_that_belong_to_nobody_are_found_wherever_they_lie(names: list[str]) -> None:
    """K2, F3: also in a file that holds nothing else, as files do that are named by a key; a takedown looks there."""

    async def lived_through() -> dict[SegmentId, set[int]]:
        frontier = await opened(names, "orphans")
        await frontier.admit([Candidate(one, 0, Level.IMMEDIATE) for one in addresses(SEED)])
        await fetched(frontier)
        await frontier.disown(SegmentId("segment"), 100)
        await frontier.disown(SegmentId("alone"), 7)
        await frontier.disown(SegmentId("alone"), 9)
        found = await asyncio.to_thread(frontier.view.all_orphans)
        await frontier.close()
        return found

    assert asyncio.run(lived_through()) == {"segment": {100}, "alone": {7, 9}}
