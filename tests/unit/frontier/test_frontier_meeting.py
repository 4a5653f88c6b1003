"""F1, F2, F6, R1: a URL that is met again: it may be moved to a better place, and is still counted once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from frontier_bench import DAY_S, PLAIN, SEGMENT, SETTINGS, bench, run, urls

from nephila.model.task import Candidate, Level
from nephila.testing.contracts.frontier import addresses
from nephila.testing.recount import check_tables

URL = "https://a.test/x"
(ADDRESS,) = addresses(URL)
SINGLE = replace(PLAIN, settings=replace(SETTINGS, urls_per_lease=1))
ORDERED = replace(SINGLE, ordered=True)


@pytest.mark.parametrize("policy", [SINGLE, ORDERED], ids=["any order", "ordered"])
@pytest.mark.parametrize(
    "meeting",
    [Candidate(ADDRESS, 1, Level.LOW), Candidate(ADDRESS, 9, Level.HIGH), Candidate(ADDRESS, 9, Level.IMMEDIATE)],
    ids=["nearer", "higher", "immediate"],
)
def test_a_waiting_url_moves_to_the_place_it_deserves(tmp_path: Path, policy: object, meeting: Candidate) -> None:
    """F6, F1: found nearer to a seed, or more urgent; it is fetched once."""

    async def main() -> None:
        async with bench(tmp_path, policy) as one:  # type: ignore[arg-type]
            others = [Candidate(address, 5, Level.LOW) for address in addresses(*urls(20))]
            await one.frontier.admit([*others, Candidate(ADDRESS, 9, Level.LOW)])
            one.clock.advance(DAY_S)
            await one.frontier.admit([meeting])
            check_tables(one.frontier)
            assert await one.fetch() == [URL]
            assert len(await one.fetch_all()) == 20

    run(main())


def test_a_class_that_was_given_is_not_raised_by_the_score(tmp_path: Path) -> None:
    """F1, R1: whoever gives a class means it, also for a URL that waits in a lower one."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            await one.frontier.admit([Candidate(ADDRESS, 0, Level.LOW)])
            await one.frontier.admit([Candidate(ADDRESS, 0, Level.MEDIUM)])
            assert one.story(URL).level is Level.MEDIUM

    run(main())


def test_a_worse_meeting_changes_nothing(tmp_path: Path) -> None:
    """F6: deeper, or of a lower class."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            await one.frontier.admit([Candidate(ADDRESS, 1, Level.HIGH)])
            await one.frontier.admit([Candidate(ADDRESS, 7, Level.LOW), Candidate(ADDRESS, 3)])
            story = one.story(URL)
            assert (story.depth, story.level) == (1, Level.HIGH)

    run(main())


@pytest.mark.parametrize("state", ["queued", "completed", "in the last cycle"])
def test_a_url_that_stands_twice_in_one_admission_is_counted_once(tmp_path: Path, state: str) -> None:
    """F2: admit is idempotent, within one call too."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            await one.frontier.admit([Candidate(ADDRESS, 5, Level.LOW)])
            if state != "queued":
                assert await one.fetch() == [URL]
                await one.frontier.confirm(SEGMENT, one.end)
            if state == "in the last cycle":
                await one.frontier.begin_cycle()
            level = Level.IMMEDIATE if state == "completed" else None
            admission = await one.frontier.admit([Candidate(ADDRESS, depth, level) for depth in (3, 2, 1)])
            assert (admission.added, admission.known) == (0, 3)
            check_tables(one.frontier)
            assert sum(one.frontier.snapshot().queued.values()) == 1
            assert await one.fetch() == [URL]
            assert await one.fetch() == []

    run(main())


def test_links_raise_the_rank_of_what_waits(tmp_path: Path) -> None:
    """R1: fifty pages of other domains that link to one URL and no other make it more important than its like."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            homes = addresses(*(f"https://h{number}.test/" for number in range(50)))
            await one.frontier.admit([Candidate(address, 0, Level.IMMEDIATE) for address in homes])
            plain = "https://a.test/plain"
            first = True
            for _ in range(50):
                assert len(await one.fetch(hosts=1, links=[URL, plain] if first else [URL])) == 1
                first = False
            assert one.story(URL).rank > one.story(plain).rank
            assert await one.fetch() == [URL]

    run(main())


def test_a_leased_url_that_is_met_again_stays_where_it_was_claimed(tmp_path: Path) -> None:
    """F3, F2: its lease still settles it, and it is fetched once."""

    async def main() -> None:
        async with bench(tmp_path, SINGLE) as one:
            await one.frontier.admit([Candidate(ADDRESS, 5, Level.LOW)])
            (lease,) = await one.claim()
            await one.frontier.admit([Candidate(ADDRESS, 0, Level.IMMEDIATE)])
            check_tables(one.frontier)
            await one.settle(lease, [one.done()])
            assert await one.fetch() == []
            assert one.state(URL) == "stored_pending"

    run(main())
