"""What a host was promised holds when the lease on it is returned."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from frontier_bench import PLAIN, SETTINGS, bench, pages, run

AHEAD = replace(PLAIN, settings=replace(SETTINGS, urls_per_lease=1, look_ahead_ms=20_000), base_delay_ms=1000)


@pytest.mark.parametrize("waited_s", [1.0, 40.0])
def test_a_lease_that_was_taken_ahead_of_time_does_not_shorten_a_rest(tmp_path: Path, waited_s: float) -> None:
    """P2, P3, F10: killed while it waits for its turn: who asked for 30 s is left alone for them."""

    async def main() -> None:
        async with bench(tmp_path, AHEAD) as one:
            await one.frontier.admit(pages(3))
            (lease,) = await one.claim(1)
            await one.settle(lease, [one.done()], 30_000)
            one.clock.advance(15)
            assert len(await one.claim(1)) == 1  # 15 s ahead
            one.clock.advance(waited_s)
            assert await one.frontier.reap_all() == 1
            left_ms = max(1000, (15 - waited_s) * 1000)
            next_in_ms = one.frontier.snapshot().next_in_ms
            assert next_in_ms is not None
            assert left_ms <= next_in_ms <= left_ms + 2

    run(main())


def test_who_is_stopped_while_it_reaps_keeps_what_it_had_leased(tmp_path: Path) -> None:
    """F3, F10: a process that slept past its leases settles what has come meanwhile, and asks for nothing again."""
    lingering = replace(AHEAD, settings=replace(AHEAD.settings, linger_ms=5.0))

    async def main() -> None:
        async with bench(tmp_path, lingering) as one:
            await one.frontier.admit(pages(1))
            (lease,) = await one.claim(1)
            reaping = asyncio.create_task(one.frontier.reap())
            await asyncio.sleep(0.001)
            one.clock.advance(3600)  # between the call and its commit
            await one.settle(lease, [one.done()])
            assert await reaping == 0

    run(main())
