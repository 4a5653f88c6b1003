"""F1, F4, F6, F7 in the engine: shares, ageing and the starving reserve, by what is claimed and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from frontier_bench import DAY_S, PLAIN, SETTINGS, Bench, bench, run, urls

from nephila.frontier.embedded.book import AGE_STEP_S
from nephila.model.settings import PrioritySettings
from nephila.model.task import Candidate, Level, PageTask
from nephila.testing.contracts.frontier import addresses, candidates

SINGLE = replace(PLAIN, settings=replace(SETTINGS, urls_per_lease=1))
NO_RESERVE = replace(SINGLE, priority=PrioritySettings(reserve=0.0))
CLASSES = (Level.HIGH, Level.MEDIUM, Level.LOW)


async def levels_of(one: Bench, hosts: int) -> list[Level]:
    """Claim and settle; the class of each page."""
    found: list[Level] = []
    for lease in await one.claim(hosts):
        (task,) = lease.tasks
        assert isinstance(task, PageTask)
        found.append(task.level)
        await one.settle(lease, [one.done()])
    return found


def test_classes_are_claimed_80_15_5_while_all_have_a_ready_host(tmp_path: Path, say: Callable[[str], None]) -> None:
    """F1, F6: 1,000 of 1,900 hosts, none of the classes runs dry."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            for level, count in zip(CLASSES, (1500, 300, 100), strict=True):
                names = [f"https://{level.name.lower()}{number}.test/" for number in range(count)]
                await one.frontier.admit(candidates(*names, level=level))
            claimed = Counter(await levels_of(one, 1000))
            say(f"{[claimed[level] / 10 for level in CLASSES]} of 80/15/5")
            for level, share in zip(CLASSES, (80, 15, 5), strict=True):
                assert abs(claimed[level] / 10 - share) < 3

    run(main())


def test_immediate_goes_before_everything(tmp_path: Path) -> None:
    """F1, F6: also before the starving, on whatever host, and for a URL that waits already."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            await one.frontier.admit(
                candidates(*(f"https://h{number}.test/" for number in range(50)), level=Level.HIGH)
            )
            one.clock.advance(2 * DAY_S)
            assert await one.claim(0) == []
            await one.frontier.admit(candidates("https://h7.test/", "https://new.test/", level=Level.IMMEDIATE))
            assert set(await one.fetch(hosts=2)) == {"https://h7.test/", "https://new.test/"}

    run(main())


def test_within_a_class_the_domain_with_the_fewest_pages_goes_first(tmp_path: Path) -> None:
    """F6: one of each domain before the second of any."""

    async def main() -> None:
        async with bench(tmp_path, NO_RESERVE) as one:
            for domain in ("a.test", "b.test", "c.test"):
                for host in ("www", "m", "x"):
                    await one.frontier.admit(candidates(*urls(3, f"{host}.{domain}")))
            fetched = [url for _ in range(27) for url in await one.fetch(hosts=1)]
            domains = [".".join(url.split("/")[2].split(".")[-2:]) for url in fetched]
            for first in range(0, 27, 3):
                assert len(set(domains[first : first + 3])) == 3, domains

    run(main())


@pytest.mark.parametrize("pauses_s", [(0.0, 7.0), (0.0, 50_000.0)], ids=["minutes", "a month"])
def test_with_one_exchange_at_a_time_the_same_input_gives_the_same_order(
    tmp_path: Path, pauses_s: tuple[float, float]
) -> None:
    """F6: whatever the crawl's secret is and however long each fetch takes."""

    async def main() -> None:
        ordered = replace(SINGLE, ordered=True)
        orders = []
        for pause_s in pauses_s:
            async with bench(tmp_path / str(pause_s), ordered) as one:
                found: list[str] = []
                for domain in ("a.test", "b.test"):
                    addressed = addresses(*urls(10, f"www.{domain}"), *urls(10, domain))
                    await one.frontier.admit([Candidate(address, index % 3) for index, address in enumerate(addressed)])
                while fetched := await one.fetch(hosts=1, links=[f"https://c.test/{len(found) % 12}"]):
                    found += fetched
                    one.clock.advance(pause_s)
                orders.append(found)
        assert orders[0] == orders[1]
        assert len(orders[0]) == 52

    run(main())


# Ageing


@pytest.mark.parametrize("looked_at", [False, True], ids=["left alone", "looked at every day"])
def test_a_url_of_the_lowest_class_is_of_the_highest_after_thirty_days(tmp_path: Path, looked_at: bool) -> None:
    """F7: then it takes its turn among the high ones, also where its host was ready all the time."""

    async def main() -> None:
        async with bench(tmp_path, NO_RESERVE) as one:
            await one.frontier.admit(candidates("https://patient.test/", level=Level.LOW))
            for _ in range(30):
                one.clock.advance(DAY_S)
                if looked_at:
                    assert await one.claim(0) == []
            names = [f"https://high{number}.test/" for number in range(100)]
            await one.frontier.admit(candidates(*names, level=Level.HIGH))
            assert await one.fetch(hosts=1) == ["https://patient.test/"], "the highest score of its class"

    run(main())


def test_what_waits_longer_goes_first_among_equals(tmp_path: Path) -> None:
    """F7, F6: of the same class and score, with the other domains' counts equal."""

    async def main() -> None:
        async with bench(tmp_path, NO_RESERVE) as one:
            for number in range(8):
                await one.frontier.admit(candidates(f"https://h{number}.test/", level=Level.HIGH))
                one.clock.advance(DAY_S)
            fetched = [url for _ in range(8) for url in await one.fetch(hosts=1)]
            assert fetched == [f"https://h{number}.test/" for number in range(8)]

    run(main())


def test_queued_urls_are_counted_by_class_and_age(tmp_path: Path) -> None:
    """F7, F8: what `status` shows is kept with every change, never scanned for."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            first = one.clock.wall_ms() // 1000 // AGE_STEP_S
            await one.frontier.admit(candidates(*urls(3), level=Level.LOW))
            one.clock.advance(AGE_STEP_S)
            await one.frontier.admit(candidates(*urls(5), level=Level.HIGH))
            assert one.frontier.view.ages() == {first: [0, 3, 0, 0], first + 1: [0, 2, 0, 0]}
            await one.fetch_all()
            assert one.frontier.view.ages() == {}

    run(main())


# The starving reserve


def test_a_fifth_goes_to_hosts_that_have_waited_for_a_day_the_oldest_first(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    """F7, F1: though there is always something of a higher class; and not more than a fifth."""

    async def main() -> None:
        lanes = PrioritySettings(low_share=1, medium_share=1, high_share=1_000_000, ageing_s=10**9)
        async with bench(tmp_path, replace(SINGLE, priority=lanes)) as one:
            for number in range(100):
                await one.frontier.admit(candidates(f"https://low{number:03}.test/", level=Level.LOW))
                one.clock.advance(1)
            one.clock.advance(DAY_S)
            names = [f"https://high{number}.test/" for number in range(400)]
            await one.frontier.admit(candidates(*names, level=Level.HIGH))
            fetched = await one.fetch(hosts=300)
            starving = [url for url in fetched if "low" in url]
            say(f"{len(starving)} of 300 to starving hosts")
            assert abs(len(starving) / 3 - 20) < 4
            assert starving == sorted(starving), "the oldest first"
            assert one.frontier.snapshot().reserved == len(starving)

    run(main())


def test_nobody_starves_before_a_day_has_passed(tmp_path: Path) -> None:
    """F7: the reserve is not taken where it is not needed."""

    async def main() -> None:
        lanes = PrioritySettings(low_share=1, medium_share=1, high_share=1_000_000)
        async with bench(tmp_path, replace(SINGLE, priority=lanes)) as one:
            await one.frontier.admit(
                candidates(*(f"https://low{number}.test/" for number in range(20)), level=Level.LOW)
            )
            one.clock.advance(DAY_S - 60)
            names = [f"https://high{number}.test/" for number in range(100)]
            await one.frontier.admit(candidates(*names, level=Level.HIGH))
            assert not any("low" in url for url in await one.fetch(hosts=100))
            assert one.frontier.snapshot().reserved == 0

    run(main())


def test_a_host_that_was_served_waits_anew(tmp_path: Path) -> None:
    """F7: one with a long queue does not take the whole reserve: after each page it has waited for nothing yet."""

    async def main() -> None:
        lanes = PrioritySettings(reserve=1.0, low_share=1, medium_share=1, high_share=1_000_000, ageing_s=10**9)
        async with bench(tmp_path, replace(SINGLE, priority=lanes)) as one:
            await one.frontier.admit(candidates(*urls(50, "long.test"), level=Level.LOW))
            one.clock.advance(1)
            await one.frontier.admit(candidates("https://short.test/", level=Level.LOW))
            one.clock.advance(DAY_S + 1)
            fetched = await one.fetch(hosts=1) + await one.fetch(hosts=1)
            assert [url.split("/")[2] for url in fetched] == ["long.test", "short.test"]

    run(main())


def test_a_claim_that_brings_nothing_writes_nothing(tmp_path: Path) -> None:
    """F6, F9: whoever waits for the time of a host does not make the disk sync for it, and gets the host in time."""

    async def main() -> None:
        async with bench(tmp_path, replace(SINGLE, settings=replace(SINGLE.settings, look_ahead_ms=100))) as one:

            def commits() -> int:
                with one.frontier._tables.env.begin() as txn:
                    return int(txn.id())

            before = commits()
            assert await one.claim(5) == []
            assert commits() == before
            await one.frontier.admit(candidates("https://one.test/", "https://one.test/2"))
            (lease,) = await one.claim(5)
            await one.settle(lease, [one.done()], 10_000)
            before = commits()
            for _ in range(5):
                assert await one.claim(5) == []
            assert commits() == before
            next_in_ms = one.frontier.snapshot().next_in_ms
            assert next_in_ms is not None
            one.clock.advance((next_in_ms - 101) / 1000)
            assert await one.claim(5) == []
            one.clock.advance(0.001)
            assert len(await one.claim(5)) == 1
            assert commits() > before

    run(main())
