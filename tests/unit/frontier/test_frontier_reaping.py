"""What a host was promised holds when the lease on it is returned."""

from __future__ import annotations

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
