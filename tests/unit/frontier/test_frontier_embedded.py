"""The LMDB frontier where the contract suite does not reach: limits, cooling, sweeps, groups, stories."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import lmdb
import pytest
from frontier_bench import PLAIN, SEGMENT, SETTINGS, bench, pages, run
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.frontier.embedded import LmdbFrontier, LmdbFrontierView, links, queueing
from nephila.frontier.embedded.book import Book
from nephila.frontier.embedded.tables import lengthen, open_tables, shorten
from nephila.model.errors import FrontierError, StorageError
from nephila.model.outcome import (
    Dead,
    Dropped,
    OriginRules,
    Outcome,
    Retry,
    RulesKind,
    RulesLearned,
    RulesMoved,
)
from nephila.model.task import Lease, PageTask, Refusal, RobotsTask
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.frontier import addresses, candidates
from nephila.testing.recount import check_tables
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

POLITE = replace(PLAIN, base_delay_ms=1000)


# Limits of a host


def test_a_host_over_its_limit_is_parked_and_exactly_so(tmp_path: Path) -> None:
    """S3: pages per host and cycle; a lease of several URLs does not go past it."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, max_pages_per_host=5)) as one:
            await one.frontier.admit(pages(20))
            assert len(await one.fetch_all()) == 5
            snapshot = one.frontier.snapshot()
            assert dict(snapshot.waiting_for) == {"host_limit": 15}
            assert snapshot.next_in_ms is None

    run(main())


def test_answers_that_are_no_pages_do_not_count_against_the_limit(tmp_path: Path) -> None:
    """S3, F6: a redirect or a 404 is no page, neither for the host's limit nor for the domain's count."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, max_pages_per_host=1)) as one:
            await one.frontier.admit(pages(2))
            (lease,) = await one.claim()
            await one.settle(lease, [one.done(page=False)])
            assert one.frontier.snapshot().domains == 0
            assert len(await one.fetch_all()) == 1
            assert (one.frontier.snapshot().pages, one.frontier.snapshot().domains) == (1, 1)

    run(main())


def test_a_parked_host_goes_on_when_the_limit_is_raised(tmp_path: Path) -> None:
    """S3, F10: the same crawl with a higher limit."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, max_pages_per_host=2)) as one:
            await one.frontier.admit(pages(5))
            assert len(await one.fetch_all()) == 2
            await one.reopen()
            assert await one.fetch_all() == []
            await one.reopen(replace(PLAIN, max_pages_per_host=4))
            assert len(await one.fetch_all()) == 2

    run(main())


def test_a_parked_host_goes_on_in_a_new_cycle(tmp_path: Path) -> None:
    """S3, F2: so many pages a cycle."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, max_pages_per_host=2)) as one:
            await one.frontier.admit(pages(3))
            assert len(await one.fetch_all()) == 2
            await one.frontier.begin_cycle()
            assert len(await one.fetch_all()) == 2

    run(main())


def test_a_parked_host_still_answers_for_the_robots_txt_of_others(tmp_path: Path) -> None:
    """P1, S3: rules that lie on a host which has had its pages are fetched all the same."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, max_pages_per_host=1, robots=True)) as one:

            async def learn(lease: Lease, outcome: Outcome | None = None) -> None:
                (task,) = lease.tasks
                assert isinstance(task, RobotsTask)
                rules = OriginRules(task.origin, RulesKind.ALLOW_ALL, b"", 1, one.frontier.timeline.now() + 10**8)
                await one.settle(lease, [outcome or RulesLearned(rules)])

            await one.frontier.admit(pages(2, "www.a.test"))
            (lease,) = await one.claim()
            await learn(lease)
            (lease,) = await one.claim()
            await one.settle(lease, [one.done()])
            assert await one.claim() == []
            await one.frontier.admit(pages(1, "b.test"))
            (lease,) = await one.claim()
            (target,) = addresses("https://www.a.test/robots.txt")
            await learn(lease, RulesMoved("https://b.test", target, 1))
            (hop,) = await one.claim()
            assert hop.host == "www.a.test"
            await learn(hop)
            (page,) = await one.claim()
            assert page.host == "b.test"

    run(main())


# Cycles


def test_bundles_whose_places_are_taken_stand_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F3: where all ties fall together, within a page and between pages, no URL loses its place."""

    def without_ties(*arguments: Any) -> list[links.Bundle]:
        *before, writes = arguments
        first = len(writes)
        bundles = [(key[:-4] + bytes(4), value, count) for key, value, count in links.pack_bundles(*before, writes)]
        writes[first:] = [(key, mark[:-5] + bytes(4) + mark[-1:]) for key, mark in writes[first:]]
        return bundles

    monkeypatch.setattr(queueing, "pack_bundles", without_ties)

    async def main() -> None:
        async with bench(tmp_path, PLAIN) as one:
            for first in (0, 100):
                await one.frontier.admit(pages(first + 100)[first:])  # more than fit into one bundle
            check_tables(one.frontier)
            assert len(await one.fetch_all()) == 200
            check_tables(one.frontier)

    run(main())


def test_a_new_cycle_sweeps_the_whole_frontier_in_steps(tmp_path: Path) -> None:
    """F2, F8: every URL once more, however many there are; no claim is O(frontier)."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            for host in range(4):
                await one.frontier.admit(pages(300, f"h{host}.test"))
            first = await one.fetch_all()
            assert len(set(first)) == len(first) == 1200
            await one.frontier.confirm(SEGMENT, one.end)
            await one.frontier.begin_cycle()
            await one.claim(0)
            assert sum(one.frontier.snapshot().queued.values()) == 500, "one step a claim"
            assert sorted(await one.fetch_all()) == sorted(first)
            assert one.frontier.snapshot().pages_in_cycle == 1200

    run(main())


def test_a_url_left_over_from_an_earlier_cycle_is_fetched_once_in_the_next(tmp_path: Path) -> None:
    """F2: once a cycle, also for what was queued before it began and is linked to again."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            await one.frontier.admit(pages(1))
            await one.frontier.begin_cycle()
            assert len(await one.fetch_all()) == 1
            assert (await one.frontier.admit(pages(1))).known == 1
            assert await one.fetch_all() == []

    run(main())


def test_a_new_cycle_queues_nothing_within_its_cooling_time(tmp_path: Path) -> None:
    """S5: neither by the sweep nor by a link; it comes back by itself when it has cooled."""

    async def main() -> None:
        cool = replace(PLAIN, settings=replace(SETTINGS, cooldown_s=3600.0))
        async with bench(tmp_path, cool) as one:
            await one.frontier.admit(pages(3))
            assert len(await one.fetch_all()) == 3
            await one.frontier.begin_cycle()
            admission = await one.frontier.admit(pages(1))
            assert (admission.added, admission.known, admission.cooling) == (0, 1, 1)
            assert await one.claim() == []
            assert dict(one.frontier.snapshot().delayed) == {"cooling": 3}
            one.clock.advance(3590)
            assert await one.claim() == []
            one.clock.advance(11)
            assert len(await one.fetch_all()) == 3

    run(main())


def test_a_host_that_had_its_pages_goes_on_in_a_new_cycle_while_those_cool(tmp_path: Path) -> None:
    """S3, S5, F2: what it has beside them need not wait for that."""

    async def main() -> None:
        cool = replace(PLAIN, settings=replace(SETTINGS, cooldown_s=3600.0), max_pages_per_host=2)
        async with bench(tmp_path, cool) as one:
            await one.frontier.admit(pages(3))
            first = await one.fetch_all()
            assert len(first) == 2
            await one.frontier.begin_cycle()
            await one.claim(0)
            one.clock.advance(2)
            (left,) = await one.fetch()
            assert left not in first

    run(main())


# Loss and reboot


def test_pages_whose_bytes_are_gone_are_queued_and_counted_as_never_fetched(tmp_path: Path) -> None:
    """F10, S3: what was lost does not use up the limit."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            await one.frontier.admit(pages(3))
            assert len(await one.fetch_all()) == 3
            await one.frontier.confirm(SEGMENT, 100)
            assert await one.frontier.lose(SEGMENT, 200) == 1
            snapshot = one.frontier.snapshot()
            assert (snapshot.pages, snapshot.pages_in_cycle, snapshot.states["completed"]) == (2, 2, 1)
            assert await one.frontier.lose(SEGMENT, 200) == 0
            (lease,) = await one.claim()
            (task,) = lease.tasks
            assert isinstance(task, PageTask)
            assert task.digest == b"", "nothing of the lost capture is relied on"

    run(main())


def test_a_host_that_was_ready_rests_after_a_reboot_too(tmp_path: Path) -> None:
    """P2: after a reboot every host waits one full delay, however far ahead it had been made ready."""

    async def main() -> None:
        ordered = replace(POLITE, ordered=True, base_delay_ms=30_000)
        async with bench(tmp_path, ordered) as one:
            await one.frontier.admit(pages(2))
            (lease,) = await one.claim()
            await one.settle(lease, [one.done()], 30_000)
            assert await one.claim(0) == []
            assert one.frontier.snapshot().hosts_ready == 1
            one.clock.reboot()
            one.clock.jump_wall(3600)
            await one.reopen()
            (lease,) = await one.claim()
            rest = lease.not_before - one.frontier.timeline.rebooted_at
            assert 30_000 <= rest <= 30_001, "what the host was promised counts to the millisecond"

    run(main())


def test_one_exchange_at_a_time_still_waits_for_a_retry(tmp_path: Path) -> None:
    """H5, F6: a URL that is looked at ahead of its time is not asked for before it."""

    async def main() -> None:
        async with bench(tmp_path, replace(POLITE, ordered=True)) as one:
            await one.frontier.admit(pages(1))
            (lease,) = await one.claim()
            await one.settle(lease, [Retry(30_000, "timeout")], 1000)
            due = one.frontier.timeline.now() + 30_000
            (again,) = await one.claim()
            assert again.not_before >= due

    run(main())


# What is refused


def test_refused_urls_are_remembered_once_and_bounded(tmp_path: Path) -> None:
    """T8, F8: for `why`, up to a limit."""

    async def main() -> None:
        async with bench(tmp_path, replace(PLAIN, settings=replace(SETTINGS, max_refusals=3))) as one:
            refusals = [Refusal(found.address, "scope", "domain") for found in pages(5)]
            await one.frontier.admit([], refusals[:2])
            await one.frontier.admit([], [refusals[0]._replace(reason="depth"), *refusals])
            assert one.frontier.snapshot().states["refused"] == 3
            stories = [one.frontier.story("a.test", refusal.address.fingerprint) for refusal in refusals]
            assert [story.reason if story else None for story in stories] == ["scope"] * 3 + [None] * 2
            await one.frontier.admit(pages(1))
            assert one.state("https://a.test/0") == "queued"

    run(main())


# Groups


@pytest.mark.parametrize("threaded", [True, False], ids=["threaded", "in-place"])
def test_a_verb_that_raises_harms_no_other_of_its_group(tmp_path: Path, threaded: bool) -> None:
    """F2: atomic: nothing of it is kept, all of the others is."""

    async def main() -> None:
        frontier = LmdbFrontier(tmp_path, VirtualClock(), PLAIN, threaded=threaded)

        def broken(book: Book) -> None:
            book.totals.draws = 99
            book.txn.put(b"trace", b"1", db=book.db["meta"])
            raise ZeroDivisionError

        def count(book: Book) -> tuple[int, bool]:
            return book.totals.draws, book.txn.get(b"trace", db=book.db["meta"]) is not None

        group = frontier._group
        answers = await asyncio.gather(
            frontier.admit(pages(2)),
            group.run(broken),
            frontier.admit(pages(3)),
            group.run(count),
            return_exceptions=True,
        )
        first, error, second, seen = answers
        assert isinstance(error, ZeroDivisionError)
        assert not isinstance(first, BaseException)
        assert not isinstance(second, BaseException)
        assert (first.added, second.added, second.known, seen) == (2, 1, 2, (0, False))
        check_tables(frontier)
        await frontier.close()

    asyncio.run(main())


def test_a_full_map_is_told_and_loses_nothing(tmp_path: Path) -> None:
    """F10, F8: the engine's own errors are a StorageError with what to do; what was committed stays."""

    async def main() -> None:
        small = replace(PLAIN, settings=replace(SETTINGS, map_bytes=1 << 19))
        async with bench(tmp_path, small) as one:
            added = 0

            async def fill() -> None:
                nonlocal added
                for batch in range(100):
                    added += (await one.frontier.admit(pages(200, f"h{batch}.test"))).added

            with pytest.raises(StorageError, match="size of its map") as told:
                await fill()
            assert "map_bytes" in told.value.hint
            before = added
            assert sum(one.frontier.snapshot().queued.values()) == before > 0
            await one.reopen(PLAIN)
            await fill()
            assert added == 100 * 200, "what was admitted before is known, the rest is new"

    run(main())


def test_closing_waits_for_what_was_handed_in(tmp_path: Path) -> None:
    """F10: a verb whose caller was cancelled is still carried out."""

    async def main() -> None:
        frontier = LmdbFrontier(tmp_path, VirtualClock(), PLAIN, threaded=True)
        admitting = asyncio.create_task(frontier.admit(pages(3)))
        await asyncio.sleep(0)
        admitting.cancel()
        await frontier.close()
        again = LmdbFrontier(tmp_path, VirtualClock(), PLAIN, threaded=False)
        assert (await again.admit(pages(3))).known == 3
        await again.close()

    asyncio.run(main())


def test_a_loop_that_ends_leaves_nobody_waiting(tmp_path: Path) -> None:
    """F10: its tasks are cancelled, the one that commits among them; closing still ends, and callers are let go."""

    async def main() -> None:
        frontier = LmdbFrontier(tmp_path, VirtualClock(), PLAIN, threaded=False)
        admitting = asyncio.create_task(frontier.admit(pages(1)))
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task(), admitting}:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(admitting, 10)
        assert (await frontier.admit(pages(1))).added == 1, "whoever still unwinds is served"
        await asyncio.wait_for(frontier.close(), 10)

    asyncio.run(main())


@pytest.mark.parametrize("is_threaded", [True, False])
def test_what_breaks_between_two_groups_is_told_to_whoever_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_threaded: bool
) -> None:
    """F10, C4: memory may run out while the store follows; nobody waits for an answer that will not come."""

    def short() -> None:
        raise MemoryError

    async def main() -> None:
        frontier = LmdbFrontier(tmp_path, VirtualClock(), PLAIN, threaded=is_threaded)
        await frontier.admit(pages(1))
        writing = frontier._group._writing
        with monkeypatch.context() as patch:
            patch.setattr(writing, "let_go", short)
            patch.setattr(writing, "is_full_with", lambda _: True)
            several = [frontier.admit(pages(2)), frontier.admit(pages(3))]
            answers = await asyncio.wait_for(asyncio.gather(*several, return_exceptions=True), 10)
            assert [type(answer) for answer in answers] == [MemoryError, MemoryError]
        assert (await frontier.admit(pages(3))).added == 2
        await frontier.close()

    asyncio.run(main())


# Stories


def test_a_story_names_each_state(tmp_path: Path) -> None:
    """F2, T8: discovered to completed, and where each stands on the way."""

    async def main() -> None:
        async with bench(tmp_path, POLITE) as one:
            urls = [f"https://h{number}.test/" for number in range(6)]
            await one.frontier.admit(candidates(*urls))
            leases = {lease.tasks[0].url: lease for lease in await one.claim(5)}
            (left,) = set(urls) - set(leases)
            waiting, *others = leases
            assert (one.state(left), one.state(waiting)) == ("queued", "in_progress")
            outcomes: list[Outcome] = [
                one.done(),
                Retry(5000, "timeout"),
                Dropped("robots", "line 2"),
                Dead("tls", "expired"),
            ]
            for url, outcome in zip(others, outcomes, strict=True):
                await one.settle(leases[url], [outcome], 1000)
            told = [one.state(url) for url in others]
            assert told == ["stored_pending", "delayed", "dropped", "dead_letter"]
            await one.frontier.confirm(SEGMENT, one.end)
            assert one.state(others[0]) == "completed"
            (address,) = addresses(others[1])
            story = one.frontier.story(address.host, address.fingerprint)
            assert story is not None
            assert (story.reason, story.detail, story.due_in_ms, story.retries) == ("retry", "timeout", 5000, 1)

    run(main())


def test_dead_letters_are_paged_through(tmp_path: Path) -> None:
    """F9: in key order, a page at a time, none twice and none left out."""

    async def main() -> None:
        async with bench(tmp_path) as one:
            await one.frontier.admit([*pages(7), *pages(5, "b.test")])
            for _ in range(3):
                for lease in await one.claim():
                    await one.settle(lease, [Dead("tls") for _ in lease.tasks])
            seen: list[str] = []
            after = b""
            while letters := one.frontier.dead(5, after):
                seen += [letter.url for letter in letters]
                after = one.frontier.view.key_of(letters[-1])
            assert len(set(seen)) == len(seen) == 12

    run(main())


# Opening


def test_a_frontier_of_another_format_is_refused(tmp_path: Path) -> None:
    """F10: told in one sentence, nothing touched."""
    tables = open_tables(tmp_path, map_bytes=1 << 24, sync=False)
    with tables.env.begin(write=True) as txn:
        txn.put(b"format", b"nephila-frontier-99", db=tables.db["meta"])
    tables.close()
    with pytest.raises(FrontierError, match="nephila-frontier-99"):
        LmdbFrontier(tmp_path, VirtualClock(), PLAIN)
    with pytest.raises(FrontierError, match="nephila-frontier-99"):
        LmdbFrontierView.open(tmp_path, VirtualClock(), 1 << 24)


def test_what_is_no_frontier_is_not_read_as_one(tmp_path: Path) -> None:
    """F10: reading makes nothing."""
    with pytest.raises(FrontierError):
        LmdbFrontierView.open(tmp_path / "none", VirtualClock(), 1 << 24)
    lmdb.open(str(tmp_path), map_size=1 << 20, max_dbs=1).close()
    with pytest.raises(FrontierError, match="holds no frontier"):
        LmdbFrontierView.open(tmp_path, VirtualClock(), 1 << 24)


# Spellings

IDENTIFIER = Identifier(0, NormalRules(), UrlLimits(max_length=65_536, max_segments=1000))


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(
        ["a.test", "a.test.", "[::1]", "127.1", "xn--nxasmq6b", "b\N{LATIN SMALL LETTER U WITH DIAERESIS}.test"]
    ),
    st.sampled_from(["", ":80", ":443", ":8080", ":1"]),
    st.text(max_size=20).map(lambda text: "/" + text),
)
def test_a_shortened_url_is_lengthened_to_itself(scheme: str, host: str, port: str, rest: str) -> None:
    """U1, F8: what the store leaves out, the host's record gives back, to the letter."""
    address = IDENTIFIER.identify(f"{scheme}://{host}{port}{rest}")
    if isinstance(address, Address):
        assert lengthen(shorten(address.url, address.host), address.host) == address.url


@pytest.mark.parametrize(
    ("url", "tail"),
    [
        ("https://a.test/x?y", "s/x?y"),
        ("http://a.test:8080/", "h:8080/"),
        ("https://a.test./x", "=https://a.test./x"),
        ("https://a.testing/x", "=https://a.testing/x"),
    ],
)
def test_a_host_is_cut_off_only_where_it_is_the_host(url: str, tail: str) -> None:
    """F8: a name that merely begins alike is another host."""
    assert shorten(url, "a.test") == tail
    assert lengthen(tail, "a.test") == url
