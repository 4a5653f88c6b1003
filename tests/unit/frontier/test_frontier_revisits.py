"""R2, R5, F4: pages come back when their plan says so; gone is only what is proven gone, and it may come back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from frontier_bench import DAY_S, HOUR_S, PLAIN, SEGMENT, SETTINGS, Bench, bench, run, urls

from nephila.frontier.embedded import replanning
from nephila.frontier.schedule import SimpleRecrawl
from nephila.model.outcome import Retry
from nephila.model.policy import DomainPolicy
from nephila.model.settings import RecrawlSettings
from nephila.model.task import Level, PageTask
from nephila.testing.contracts.frontier import candidates

A = "https://a.test/"
PLANNED = replace(PLAIN, recrawl=SimpleRecrawl(RecrawlSettings()), settings=replace(SETTINGS, urls_per_lease=1))


async def wait_for_it(one: Bench) -> None:
    """Let time pass until the next visit is due."""
    due_in_ms = one.story(A).due_in_ms
    assert due_in_ms is not None
    one.clock.advance(due_in_ms / 1000 + 1)


def test_a_page_is_fetched_again_when_it_is_due_and_not_before(tmp_path: Path) -> None:
    """R2, F2: a week after the first visit, twice as long after a visit without change, half after a change."""

    async def main() -> None:
        async with bench(tmp_path, PLANNED) as one:
            await one.admit(A)
            assert await one.fetch() == [A]
            await one.frontier.confirm(SEGMENT, one.end)
            snapshot = one.frontier.snapshot()
            assert (snapshot.planned, snapshot.next_in_ms) == (1, 7 * DAY_S * 1000)
            assert dict(snapshot.delayed) == {}, "a planned visit is no delay"
            one.clock.advance(7 * DAY_S - 10)
            assert await one.fetch() == []
            one.clock.advance(20)
            (lease,) = await one.claim()
            assert isinstance(lease.tasks[0], PageTask)
            assert lease.tasks[0].digest == b"d" * 32, "the last capture is known"
            assert one.frontier.snapshot().due_again != {}
            await one.settle(lease, [one.done(changed=False)])
            story = one.story(A)
            assert (story.visits, story.changes, story.due_in_ms) == (2, 0, (14 * DAY_S + 20) * 1000)
            one.clock.advance(14 * DAY_S + 30)
            assert await one.fetch(one.done(changed=True)) == [A]
            assert one.story(A).changes == 1
            due_in_ms = one.story(A).due_in_ms
            assert due_in_ms is not None
            assert 7 * DAY_S * 1000 <= due_in_ms < 8 * DAY_S * 1000

    run(main())


def test_what_is_planned_is_revised_in_steps_that_outlive_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R2, R4, F4: no claim looks at the whole frontier, and none is forgotten where a crawl is stopped."""
    monkeypatch.setattr(replanning, "REPLAN_STEP", 7)

    async def main() -> None:
        async with bench(tmp_path, PLANNED) as one:
            pages = [f"https://{host}.test/{number}" for host in "abcde" for number in range(8)]
            await one.admit(*pages)
            assert sum([len(await one.fetch()) for _ in range(8)]) == len(pages)
            assert one.frontier.snapshot().next_in_ms != 0
            await one.reopen(replace(PLANNED, recrawl=SimpleRecrawl(RecrawlSettings(max_s=DAY_S))))

            def moved() -> int:
                return sum(one.story(page).interval_s == DAY_S for page in pages)

            counts = []
            while one.frontier.snapshot().next_in_ms == 0:
                before = moved()
                assert await one.claim() == []
                counts.append(moved() - before)
                await one.reopen()
            assert sum(counts) == len(pages)
            assert max(counts) <= 7
            assert len(counts) >= len(pages) / 7
            await one.frontier.set_policy("b.test", DomainPolicy(recrawl_s=HOUR_S))
            await one.frontier.set_policy("c.test", DomainPolicy(recrawl_s=2 * HOUR_S))
            while one.frontier.snapshot().next_in_ms == 0:
                assert await one.claim() == []
            intervals = {page: one.story(page).interval_s for page in pages}
            expected = {"b": HOUR_S, "c": 2 * HOUR_S}
            assert intervals == {page: expected.get(page[8], DAY_S) for page in pages}

    run(main())


def test_policies_of_many_domains_at_once_are_one_look_at_everything(tmp_path: Path) -> None:
    """R4: what waits to be looked at is kept small."""

    async def main() -> None:
        async with bench(tmp_path, PLANNED) as one:
            await one.admit(*(f"https://d{number}.test/" for number in range(80)))
            assert len(await one.fetch(hosts=80)) == 80
            for number in range(80):
                await one.frontier.set_policy(f"d{number}.test", DomainPolicy(recrawl_s=HOUR_S + number))
            while one.frontier.snapshot().next_in_ms == 0:
                assert await one.claim() == []
            intervals = [one.story(f"https://d{number}.test/").interval_s for number in range(80)]
            assert intervals == [HOUR_S + number for number in range(80)]

    run(main())


def test_planned_visits_outlive_a_restart_and_a_page_wanted_now_comes_before_them(tmp_path: Path) -> None:
    """R2, F10, F1: and it is planned only once."""

    async def main() -> None:
        async with bench(tmp_path, PLANNED) as one:
            await one.admit(A)
            assert await one.fetch() == [A]
            await one.reopen()
            assert one.frontier.snapshot().planned == 1
            await one.frontier.admit(candidates(A, level=Level.IMMEDIATE))
            assert one.frontier.snapshot().planned == 0
            assert await one.fetch() == [A]
            assert one.frontier.snapshot().planned == 1

    run(main())


def test_due_pages_are_drawn_before_new_ones_by_their_share(tmp_path: Path) -> None:
    """F4: 30/70 where both have a ready host, and what one does not use goes to the other."""

    async def main() -> None:
        async with bench(tmp_path, PLANNED) as one:
            for number in range(300):
                await one.admit(f"https://old{number}.test/")
            assert len(await one.fetch(hosts=300)) == 300
            await one.frontier.confirm(SEGMENT, one.end)
            one.clock.advance(8 * DAY_S)
            for number in range(300):
                await one.admit(f"https://new{number}.test/")
            first = await one.fetch(hosts=200)
            due = sum("old" in url for url in first)
            assert 125 <= due <= 155, due
            rest = await one.fetch(hosts=400)
            assert len(rest) == 400

    run(main())


def test_a_page_is_gone_after_repeated_answers_over_days_and_not_before(tmp_path: Path) -> None:
    """R5: once missing is not gone, nor three times within an hour; and it is asked for ever more rarely."""

    async def main() -> None:
        async with bench(tmp_path, PLANNED) as one:
            await one.admit(A)
            for _ in range(3):
                assert await one.fetch(one.done(404)) == [A]
                assert (one.told(A)[1], one.frontier.snapshot().gone) == ("", 0)
                await one.frontier.admit(candidates(A, level=Level.IMMEDIATE))
            intervals = []
            for _ in range(3):
                if one.state(A) != "queued":
                    await wait_for_it(one)
                assert await one.fetch(one.done(410)) == [A]
                intervals.append(one.story(A).due_in_ms or 0)
            assert (one.told(A)[1], one.frontier.snapshot().gone) == ("gone", 1)
            assert intervals == sorted(intervals)
            assert intervals[0] < intervals[-1]

    run(main())


def test_a_gone_page_is_counted_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    """R5, F2: counters are kept with every change."""

    async def main() -> None:
        async with bench(tmp_path, PLANNED) as one:
            await one.admit(A)
            for _ in range(5):
                assert await one.fetch(one.done(404)) == [A]
                await wait_for_it(one)
            assert one.frontier.snapshot().gone == 1
            assert await one.fetch(Retry(1000, "timeout")) == [A]
            one.clock.advance(2)
            assert one.frontier.snapshot().gone == 1
            assert await one.fetch(one.done(404)) == [A]
            assert one.frontier.snapshot().gone == 1

    run(main())


def test_a_gone_page_comes_back_when_it_comes_back(tmp_path: Path) -> None:
    """R5: it has changed, and is visited as an ordinary page again."""

    async def main() -> None:
        async with bench(tmp_path, PLANNED) as one:
            await one.admit(A)
            for _ in range(4):
                assert await one.fetch(one.done(404)) == [A]
                await wait_for_it(one)
            assert await one.fetch() == [A]
            assert one.frontier.snapshot().gone == 0
            story = one.story(A)
            assert (story.reason, story.changes) == ("", 1)
            assert story.due_in_ms is not None
            assert story.due_in_ms <= 7 * DAY_S * 1000

    run(main())


def test_a_failure_is_no_proof_of_anything(tmp_path: Path) -> None:
    """R5, H5: a server that does not answer says nothing of its pages."""

    async def main() -> None:
        async with bench(tmp_path, PLANNED) as one:
            await one.admit(A)
            assert await one.fetch() == [A]
            await wait_for_it(one)
            for _ in range(4):
                assert await one.fetch(Retry(2 * int(DAY_S) * 1000, "timeout")) == [A]
                one.clock.advance(2 * DAY_S + 1)
            assert one.frontier.snapshot().gone == 0
            assert one.story(A).visits == 1

    run(main())


def test_without_a_plan_pages_are_fetched_once_a_cycle(tmp_path: Path) -> None:
    """F2, R2: re-crawls can be switched off."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            await one.admit(*urls(2))
            assert len(await one.fetch_all()) == 2
            assert (one.frontier.snapshot().planned, one.frontier.snapshot().next_in_ms) == (0, None)
            one.clock.advance(400 * DAY_S)
            assert await one.fetch() == []

    run(main())
