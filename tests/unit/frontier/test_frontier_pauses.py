"""P4: a domain with too many errors is paused as a whole; repeated 5xx lower its class, successes bring it back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from frontier_bench import PLAIN, SETTINGS, Bench, bench, run, urls

from nephila.model.outcome import Dead, Outcome
from nephila.model.settings import PolitenessSettings, TrapSettings

SINGLE = replace(PLAIN, settings=replace(SETTINGS, urls_per_lease=1))
TIMEOUT, BROKEN, MISSING_NAME = Dead("timeout"), Dead("http_5xx"), Dead("no_such_name")


async def answer(one: Bench, outcome: Outcome | None, times: int) -> None:
    """Let so many requests end so, or well."""
    for _ in range(times):
        assert len(await one.fetch(outcome, hosts=1)) == 1


def test_more_than_half_errors_of_a_hundred_pause_all_hosts_of_a_domain_for_an_hour(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    """P4, F2: the 51st of a hundred; another domain goes on, and after the hour it is judged anew."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            await one.admit(*urls(120))
            await answer(one, None, 49)
            await answer(one, TIMEOUT, 50)
            await answer(one, MISSING_NAME, 3)  # nobody was asked
            await answer(one, TIMEOUT, 1)
            await one.admit("https://www.a.test/", "https://b.test/")
            fetched = []
            while found := await one.fetch():
                fetched += found
            assert fetched == ["https://b.test/"]
            snapshot = one.frontier.snapshot()
            assert snapshot.next_in_ms == 3600 * 1000
            waiting = dict(snapshot.waiting_for)
            say(f"put off: {waiting}")
            assert waiting == {"domain_errors": 120 - 49 - 50 - 3 - 1 + 1}
            assert one.told("https://www.a.test/") == ("queued", "domain_errors")
            one.clock.advance(3601)
            assert len(await one.fetch()) == 2, "one of each host"
            await answer(one, TIMEOUT, 10)

    run(main())


def test_pages_that_are_missing_pause_nobody(tmp_path: Path) -> None:
    """P4: never 404."""

    async def main() -> None:
        async with bench(tmp_path, replace(SINGLE, traps=TrapSettings(slow_after=1000, stop_after=1000))) as one:
            await one.admit(*urls(120))
            for _ in range(120):
                assert len(await one.fetch(one.done(404))) == 1

    run(main())


def test_a_row_of_server_errors_lowers_the_class_of_a_domain_until_it_recovers(tmp_path: Path) -> None:
    """P4, F1: its URLs wait behind those of their own class elsewhere, and no longer once it answers well again."""
    settings = PolitenessSettings(demote_after=2)

    async def main() -> None:
        async with bench(tmp_path, replace(SINGLE, politeness=settings)) as one:

            def lanes() -> list[int]:
                ready = one.frontier._totals.ready
                return [lane for lane, count in enumerate(ready[:-1]) if count]

            async def lane_now() -> list[int]:
                assert await one.claim(0) == []
                return lanes()

            await one.admit(*urls(20))
            (first,) = await lane_now()
            await answer(one, BROKEN, 1)
            assert await lane_now() == [first]
            await answer(one, BROKEN, 1)
            assert await lane_now() == [min(first + 1, 3)]
            await answer(one, BROKEN, 4)
            assert await lane_now() == [3], "two levels at most"
            await answer(one, None, 2)
            await answer(one, None, 2)
            assert await lane_now() == [first]

    run(main())
