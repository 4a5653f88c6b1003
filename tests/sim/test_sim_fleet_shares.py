"""N1, N5, P2, F7: fleets of up to 600 workers under virtual time, with the crawler's own choice of shards."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from nephila.frontier.redis.shards import Shards
from nephila.testing.fleet_model import Fleet, live_through


@pytest.mark.parametrize("workers", [1, 4, 60, 600])
def test_a_fleet_of_any_size_asks_every_host_politely_and_forgets_none(
    workers: int, say: Callable[[str], None]
) -> None:
    """N1, N5, P2, F7: one request at a time to a host, its delay kept, no host left out, nor a worker with shards.

    There are fewer hosts than the largest fleet could ask: workers to which no shard falls may have nothing to do.
    """
    fleet = Fleet(workers, hosts=max(300, 12 * workers), duration_ms=15_000)
    lived = live_through(fleet)
    assert (lived.twice_at_once, lived.hurried) == (0, 0)
    assert min(lived.by_host) >= 1
    assert all(pages for pages, own in zip(lived.by_worker, lived.own_shards, strict=True) if own)
    assert lived.longest_wait_ms <= 10_000
    allowed = fleet.hosts * 1000 / (fleet.delay_ms + fleet.answer_ms)
    able = workers * fleet.slots * 1000 / fleet.answer_ms
    share = lived.pages_a_second(fleet) / min(allowed, able)
    say(
        f"{lived.pages_a_second(fleet):,.0f} pages/s, {share:.0%} of what is possible; a host waited "
        f"{lived.longest_wait_ms / 1000:.1f} s at most; {lived.from_others / lived.pages:.0%} from shards of others; "
        f"{lived.by_worker.count(0)} workers had nothing to do"
    )
    assert share > 0.6


def test_twice_the_workers_bring_nearly_twice_the_pages(say: Callable[[str], None]) -> None:
    """N5: while hosts have work, answers take their time, and there are more shards than workers; then less."""
    rates = [
        live_through(Fleet(workers, hosts=20_000, slots=4, duration_ms=8_000)).pages / 8
        for workers in (75, 150, 300, 600)
    ]
    for fewer, more in pairwise(rates[:3]):
        assert more > 1.9 * fewer, rates
    assert rates[3] > 1.4 * rates[2], "600 workers on 256 shards"
    say(f"75, 150, 300 and 600 workers on 256 shards: {', '.join(f'{rate:,.0f}' for rate in rates)} pages/s")


@pytest.mark.parametrize("workers", [2, 10, 60, 250])
def test_shards_are_shared_out_and_stay_when_a_worker_leaves(workers: int) -> None:
    """N1: every shard falls to one worker, to none far more than to others; who leaves takes nobody else's along."""
    shards = Shards("any", 256)
    names = [f"worker-{number}" for number in range(workers)]
    owners = shards.owners(names)
    mine = {name: {shard for shard, owner in enumerate(owners) if owner == name} for name in names}
    assert mine[names[-1]] == set(shards.preferred(names[-1], names[:-1])[0]), "as a worker itself finds it"
    assert sorted(shard for some in mine.values() for shard in some) == list(range(256))
    assert max(map(len, mine.values())) <= 256 / workers + 5 * (256 / workers) ** 0.5 + 1
    for shard, owner in enumerate(shards.owners(names[1:])):
        assert owner == owners[shard] or owners[shard] == names[0]
