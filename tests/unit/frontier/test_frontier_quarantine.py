"""T2, T5, T8: URLs of a skeleton that brings nothing new are parked, tried once in a while, and let go by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from frontier_bench import DAY_S, PLAIN, SETTINGS, Bench, bench, run, urls

from nephila.frontier.embedded.tallies import group_of
from nephila.frontier.schedule import SimpleRecrawl
from nephila.frontier.traps import TALLIED_FROM
from nephila.model.outcome import Done, Retry
from nephila.model.settings import RecrawlSettings, TrapSettings
from nephila.model.task import Level
from nephila.testing.contracts.frontier import candidates

QUICK = TrapSettings(slow_after=3, stop_after=6, slow_s=60.0, probe_s=3600.0)
TRAPPED = replace(PLAIN, settings=replace(SETTINGS, urls_per_lease=1), traps=QUICK)
CALENDAR = "/cal/{n}"


def days(count: int, folder: str = "cal/") -> list[str]:
    """Pages of the trap."""
    return [f"https://a.test/{folder}{number}" for number in range(1, count + 1)]


def empty(one: Bench) -> Done:
    """A page whose content is known from elsewhere."""
    return one.done(duplicate=True)


def parked(one: Bench) -> int:
    """URLs that are parked in traps."""
    return one.frontier.snapshot().parked.get("trap", 0)


async def warm_up(one: Bench) -> None:
    """Fetch the few first pages of a host, which nobody counts yet."""
    first = [f"https://a.test/page{'s' * number}" for number in range(TALLIED_FROM - 1)]
    for _ in range(await one.admit(*first)):
        assert len(await one.fetch()) == 1


async def fall_in(one: Bench, count: int = 20, folder: str = "cal/") -> None:
    """Fetch, a minute passing each time, until the skeleton is quarantined and all else of it is parked."""
    await warm_up(one)
    await one.admit(*days(count, folder))
    fetched = 0
    for _ in range(3 * QUICK.stop_after):
        if fetched < QUICK.stop_after:
            fetched += len(await one.fetch(empty(one)))
            one.clock.advance(61)
    assert await one.fetch() == await one.fetch() == []
    assert parked(one) == count - QUICK.stop_after


def test_a_skeleton_that_brings_nothing_new_is_stopped_and_the_rest_of_its_host_goes_on(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    """T2, T8: quarantined after `stop_after` wasted fetches; what is parked says why, and what is new is parked too."""

    async def main() -> None:
        async with bench(tmp_path, TRAPPED) as one:
            await fall_in(one)
            say(f"{QUICK.stop_after} fetches wasted, {parked(one)} URLs parked")
            assert one.frontier.snapshot().traps >= 1
            (first,) = [url for url in days(20) if one.state(url) == "parked"][:1]
            assert one.told(first) == ("parked", "trap")
            await one.admit("https://a.test/cal/77", "https://a.test/about", "https://b.test/cal/1")
            assert one.told("https://a.test/cal/77") == ("parked", "trap")
            assert sorted(await one.fetch() + await one.fetch()) == ["https://a.test/about", "https://b.test/cal/1"]

    run(main())


def test_a_skeleton_that_keeps_bringing_new_content_goes_on(tmp_path: Path) -> None:
    """T2: three in four of them new, and none is parked."""

    async def main() -> None:
        async with bench(tmp_path, TRAPPED) as one:
            await warm_up(one)
            await one.admit(*urls(80, folder="shop/"))
            fetched: list[str] = []
            while found := await one.fetch(one.done(duplicate=len(fetched) % 4 == 0)):
                fetched += found
            assert len(fetched) == 80
            assert one.frontier.snapshot().traps == 0

    run(main())


def test_a_slowed_skeleton_is_fetched_once_in_a_while(tmp_path: Path) -> None:
    """T2: after `slow_after` wasted fetches one a minute."""

    async def main() -> None:
        async with bench(tmp_path, TRAPPED) as one:
            await warm_up(one)
            await one.admit(*days(20))
            for _ in range(QUICK.slow_after):
                assert len(await one.fetch(empty(one))) == 1
            for _ in range(3):
                assert await one.fetch() == await one.fetch() == []
                next_in_ms = one.frontier.snapshot().next_in_ms
                assert next_in_ms is not None
                assert 50_000 <= next_in_ms <= 61_000
                one.clock.advance(61)
                assert len(await one.fetch(empty(one))) == 1

    run(main())


def test_one_page_of_a_quarantined_skeleton_is_tried_each_time_and_frees_it_when_it_is_new(tmp_path: Path) -> None:
    """T2: reversible: a probe each `probe_s`; new content makes it slowed, and more of it normal."""

    async def main() -> None:
        async with bench(tmp_path, TRAPPED) as one:
            await fall_in(one, 30)
            before = parked(one)
            for _ in range(3):
                assert await one.fetch() == []
                next_in_ms = one.frontier.snapshot().next_in_ms
                assert next_in_ms is not None
                assert 0 < next_in_ms <= QUICK.probe_s * 1000
                one.clock.advance(QUICK.probe_s + 1)
                assert len(await one.fetch(empty(one))) == 1
                assert await one.fetch() == [], "one and no more"
            assert parked(one) == before - 3
            fetched = 0
            for _ in range(20):
                one.clock.advance(QUICK.probe_s + 1)
                fetched += len(await one.fetch())
            fetched += len(await one.fetch_all())
            assert fetched == before - 3, "new content again: all of it comes back"
            assert parked(one) == 0
            await one.admit("https://a.test/cal/100")
            assert await one.fetch() == ["https://a.test/cal/100"]

    run(main())


def test_probes_outlive_a_restart(tmp_path: Path) -> None:
    """T2, F10: a host that waits for nothing but its probe is not forgotten."""

    async def main() -> None:
        async with bench(tmp_path, TRAPPED) as one:
            await fall_in(one)
            await one.reopen()
            assert await one.fetch() == []
            one.clock.advance(QUICK.probe_s + 1)
            assert len(await one.fetch(empty(one))) == 1

    run(main())


def test_each_skeleton_of_a_host_is_tried_in_its_turn(tmp_path: Path) -> None:
    """T2: two traps on one host, whose pages stand at the same place of the order: each gets its probe."""

    async def main() -> None:
        async with bench(tmp_path, TRAPPED) as one:
            both = [url for pair in zip(days(30), days(30, "log/"), strict=True) for url in pair]
            await warm_up(one)
            await one.admit(*both)
            for _ in range(60):
                await one.fetch(empty(one))
                one.clock.advance(61)
            one.clock.advance(QUICK.probe_s + 1)
            probed = [url for _ in range(4) for url in await one.fetch(empty(one))]
            assert sorted(url.split("/")[3] for url in probed) == ["cal", "log"]

    run(main())


@pytest.mark.parametrize("elsewhere", [False, True], ids=["nothing else", "other work"])
def test_a_skeleton_is_released_by_hand(tmp_path: Path, elsewhere: bool) -> None:
    """T2: all of its URLs come back at once; its figures stay, and its story tells that it was released."""

    async def main() -> None:
        async with bench(tmp_path, TRAPPED) as one:
            await fall_in(one)
            if elsewhere:
                await one.admit("https://a.test/about")
            held = parked(one)
            assert await one.frontier.release_trap("a.test", group_of("/no/such")) == 0
            released = 0
            for pattern in (CALENDAR, "/cal/*", "*"):
                released += await one.frontier.release_trap("a.test", group_of(pattern))
            assert released == held
            assert (parked(one), one.frontier.snapshot().traps) == (0, 0)
            assert len(await one.fetch_all()) == held + elsewhere

    run(main())


def test_a_url_that_somebody_wants_now_is_fetched_from_a_trap(tmp_path: Path) -> None:
    """T2, F1: a person knows better, and the trap stays what it is."""

    async def main() -> None:
        async with bench(tmp_path, TRAPPED) as one:
            await fall_in(one)
            held = parked(one)
            (wanted,) = [url for url in days(20) if one.state(url) == "parked"][:1]
            await one.frontier.admit(candidates(wanted, level=Level.IMMEDIATE))
            assert await one.fetch(empty(one)) == [wanted]
            assert parked(one) == held - 1

    run(main())


def test_a_page_that_was_fetched_keeps_its_history_in_a_trap(tmp_path: Path) -> None:
    """T2, R2, H3: what is due again under a quarantined skeleton is not forgotten to have been fetched."""

    async def main() -> None:
        planned = replace(TRAPPED, recrawl=SimpleRecrawl(RecrawlSettings(first_s=DAY_S)))
        async with bench(tmp_path, planned) as one:
            await fall_in(one)
            (fetched,) = [url for url in days(20) if one.story(url).status == 200][:1]
            one.clock.advance(2 * DAY_S)
            for _ in range(20):
                await one.fetch(empty(one))
            story = one.story(fetched)
            assert (story.visits >= 1, story.status, story.digest) == (True, 200, b"d" * 32)

    run(main())


def test_a_page_that_failed_keeps_its_count_of_retries_in_a_trap(tmp_path: Path) -> None:
    """T2, H5: a URL in a trap that never answers becomes a dead letter like any other."""

    async def main() -> None:
        async with bench(tmp_path, TRAPPED) as one:
            await warm_up(one)
            await one.admit("https://a.test/cal/100")
            assert len(await one.fetch(Retry(600_000, "timeout", "no answer"))) == 1
            await fall_in(one)
            one.clock.advance(600)
            for _ in range(5):
                await one.fetch(empty(one))
            assert one.story("https://a.test/cal/100").retries == 1

    run(main())
