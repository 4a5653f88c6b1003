"""What a process may claim where several share a frontier."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from frontier_bench import PLAIN, SETTINGS, Bench, bench, pages, run
from hypothesis import given
from hypothesis import strategies as st

from nephila.frontier.embedded.sharing import Sharing
from nephila.model.outcome import Retry
from nephila.model.task import Lease
from nephila.testing.contracts.frontier import candidates


def homes(count: int) -> list[str]:
    return [f"https://h{number}.test/" for number in range(count)]


async def claim(one: Bench, sharing: Sharing, number: int, held: int = 0, hosts: int = 100) -> list[Lease]:
    """Claim as process `number`."""
    sharing.number, sharing.held = number, held
    return await one.frontier.claim(hosts, 60)


@given(active=st.integers(0, 1000), among=st.integers(1, 64))
def test_the_parts_are_the_whole_and_differ_by_one(active: int, among: int) -> None:
    """F2: nothing is left that nobody may claim."""
    left, parts = active, []
    for number in range(1, among + 1):
        parts.append(min(left, Sharing(number, among).part_of(active)))
        left -= parts[-1]
    assert left == 0
    assert max(parts) <= -(-active // among)


def test_a_short_queue_is_not_swept_up_by_who_comes_first(tmp_path: Path) -> None:
    """F2, C1: each holds its part of what is ready or leased; what one gives back, any may claim."""

    async def main() -> None:
        sharing = Sharing(1, 2)
        async with bench(tmp_path, replace(PLAIN, sharing=sharing)) as one:
            await one.frontier.admit(candidates(*homes(20)))
            first = await claim(one, sharing, 1)
            assert len(first) == 10
            assert not await claim(one, sharing, 1, held=10)
            second = await claim(one, sharing, 2)
            assert len(second) == 10
            assert {lease.host for lease in first}.isdisjoint(lease.host for lease in second)

    run(main())


def test_familiar_hosts_come_first_and_no_host_waits_for_one_process(tmp_path: Path) -> None:
    """H6: a host goes to the process that has a connection to it, unless that would keep it waiting."""

    async def main() -> None:
        sharing = Sharing(1, 2)
        async with bench(tmp_path, replace(PLAIN, sharing=sharing)) as one:
            await one.frontier.admit([*candidates(*homes(60))])
            owners: dict[str, list[int]] = {}
            for _ in range(4):
                claimed = [(number, lease) for number in (1, 2) for lease in await claim(one, sharing, number)]
                for number, lease in claimed:
                    owners.setdefault(lease.host, []).append(number)
                    await one.settle(lease, [Retry(0, "timeout") for _ in lease.tasks])
                one.clock.advance(400)
            faithful = sum(len(set(numbers)) == 1 for numbers in owners.values())
            assert len(owners) == 60
            assert faithful >= 45
            assert all(len(numbers) == 4 for numbers in owners.values())
            alone = await claim(one, sharing, 1)
            assert len(alone) == 30
            strangers = await claim(one, sharing, 1)  # as if the other were gone: nobody else takes them
            assert len(strangers) == 30

    run(main())


@pytest.mark.parametrize("urls_per_lease", [1, 8])
def test_a_limit_on_pages_counts_what_all_have_leased(tmp_path: Path, urls_per_lease: int) -> None:
    """S3: never one too many, and what a lease does not bring is free again."""

    async def main() -> None:
        sharing = Sharing(1, 2, max_pages=21)
        settings = replace(SETTINGS, urls_per_lease=urls_per_lease)
        async with bench(tmp_path, replace(PLAIN, settings=settings, sharing=sharing)) as one:
            for host in range(6):
                await one.frontier.admit(pages(30, f"h{host}.test"))
            stored = 0
            for step in range(200):
                leases = [lease for number in (1, 2) for lease in await claim(one, sharing, number)]
                leased = sum(len(lease.tasks) for lease in leases)
                assert stored + leased <= 21
                if not leased:
                    break
                for number, lease in enumerate(leases):
                    fails = (step + number) % 3 == 0
                    outcomes = [Retry(0, "timeout") if fails else one.done() for _ in lease.tasks]
                    await one.settle(lease, outcomes)
                    stored += 0 if fails else len(lease.tasks)
                one.clock.advance(400)
            assert (stored, one.frontier.snapshot().pages_in_cycle) == (21, 21)

    run(main())


def test_the_leases_of_one_process_are_returned_and_no_others(tmp_path: Path) -> None:
    """F3: who is dead is known by number; each of its hosts rests a full delay."""

    async def main() -> None:
        sharing = Sharing(1, 2)
        async with bench(tmp_path, replace(PLAIN, base_delay_ms=1000, sharing=sharing)) as one:
            await one.frontier.admit(candidates(*homes(8)))
            first, second = await claim(one, sharing, 1), await claim(one, sharing, 2)
            assert (len(first), len(second)) == (4, 4)
            assert one.frontier.view.overdue() == set()
            assert await one.frontier.reap_holder(1) == 4
            settled = await one.frontier.settle(first[0].token, [], None)
            assert not settled.accepted
            assert one.frontier.snapshot().hosts_leased == 4
            assert not await claim(one, sharing, 1)
            one.clock.advance(61)
            assert one.frontier.view.overdue() == {2}
            again = await claim(one, sharing, 1)
            assert Counter(lease.host for lease in again) == Counter(lease.host for lease in first)

    run(main())


def test_who_joins_sees_what_is_there_and_judges_nothing_anew(tmp_path: Path) -> None:
    """F10: parked hosts are looked at again by the one that opens the crawl, not by each that joins it."""

    async def main() -> None:
        from nephila.frontier.embedded import LmdbFrontier  # noqa: PLC0415 - beside its only use

        async with bench(tmp_path, replace(PLAIN, max_pages_per_host=1)) as one:
            await one.frontier.admit(pages(3))
            await one.fetch_all()
            before = one.frontier.snapshot()
            await one.frontier.close()
            one.frontier = LmdbFrontier(one.path, one.clock, one.policy, threaded=False, joining=True)
            assert one.frontier.snapshot() == before
            assert one.frontier.refresh() == before
            assert dict(before.waiting_for) == {"host_limit": 2}

    run(main())
