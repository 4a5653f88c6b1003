"""Leases for workers outside: one URL of a host, never a robots.txt, taken back when they run out."""

from __future__ import annotations

from pathlib import Path

from frontier_world import FrontierWorld, play

from nephila.frontier.embedded.census import LmdbCensus
from nephila.model.outcome import Dead, Done, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.task import Lease, Level, Pace, PageTask, Token
from nephila.testing.recount import check_tables

REST = Release(1000, Pace(1000))


def done(lease: Lease) -> Settlement:
    """Its page, kept somewhere else."""
    task = lease.tasks[0]
    assert isinstance(task, PageTask)
    return Settlement(task, Done(RecordRef(SegmentId("s3://bucket/x"), lease.token, 0, lease.token), 200, b"d" * 32))


def test_one_url_of_each_host_is_lent_whatever_its_delay(tmp_path: Path) -> None:
    """C1, P2: the store keeps the delays; our own claims see nothing of a host that is lent."""

    async def story(world: FrontierWorld) -> None:
        await world.admit(*(f"https://{host}.test/{page}" for host in "abc" for page in range(5)))
        lent = await world.frontier.lend(2, 60)
        assert [len(lease.tasks) for lease in lent.leases] == [1, 1]
        ours = await world.frontier.claim(10, 60)
        assert {lease.host for lease in ours}.isdisjoint(lease.host for lease in lent.leases)
        assert len(ours[0].tasks) > 1  # with no delay, several go into a lease of our own
        check_tables(world.frontier)

    play(tmp_path, story, delay_s=0)


def test_a_robots_txt_is_not_lent(tmp_path: Path) -> None:
    """C1, P1: its host is given back at once, and told of."""

    async def story(world: FrontierWorld) -> None:
        await world.admit("https://a.test/", "https://b.test/")
        lent = await world.frontier.lend(10, 60)
        assert (lent.leases, lent.without_rules) == ([], 2)
        assert len(await world.frontier.claim(10, 60)) == 2
        check_tables(world.frontier)

    play(tmp_path, story, robots=True)


def test_a_result_is_taken_once_and_completes_its_page(tmp_path: Path) -> None:
    """C1, F3: nothing waits for a segment of ours; a second report, or one of a lease of our own, changes nothing."""

    async def story(world: FrontierWorld) -> None:
        await world.admit("https://a.test/", "https://b.test/")
        (lease,) = (await world.frontier.lend(1, 60)).leases
        assert LmdbCensus(world.frontier.view).loan(lease.token) is not None
        assert (await world.frontier.take_back(lease.token, done(lease), REST)).accepted
        assert not (await world.frontier.take_back(lease.token, done(lease), REST)).accepted
        states = world.frontier.snapshot().states
        assert (states["completed"], states["pending"]) == (1, 0)
        (own,) = await world.frontier.claim(1, 60)
        assert not (await world.frontier.take_back(own.token, done(own), REST)).accepted
        assert LmdbCensus(world.frontier.view).loan(own.token) is None
        assert LmdbCensus(world.frontier.view).loan(Token(10**6)) is None
        check_tables(world.frontier)

    play(tmp_path, story)


def test_a_lease_that_ran_out_comes_back_and_a_late_result_is_dropped(tmp_path: Path) -> None:
    """C1, F3: by `reap_lent`, which touches nobody else's, and by the next lease."""

    async def story(world: FrontierWorld) -> None:
        await world.admit("https://a.test/", "https://b.test/")
        (lent,) = (await world.frontier.lend(1, 10)).leases
        (own,) = await world.frontier.claim(1, 10)
        world.clock.advance(11)
        assert await world.frontier.reap_lent() == 1
        assert world.frontier.view.holds(own.token, own.tasks[0].fingerprint)  # type: ignore[union-attr]
        assert not (await world.frontier.take_back(lent.token, done(lent), REST)).accepted
        world.clock.advance(5)
        again = (await world.frontier.lend(1, 10)).leases
        assert [lease.host for lease in again] == [lent.host]
        check_tables(world.frontier)

    play(tmp_path, story)


def test_what_was_lent_outlives_the_crawl_that_was_killed(tmp_path: Path) -> None:
    """C1, P2, F3: the next start returns what its own dead held; whoever works outside is still at it, and is heard."""

    async def story(world: FrontierWorld) -> None:
        await world.admit("https://a.test/", "https://b.test/", "https://c.test/")
        lent, other = (await world.frontier.lend(2, 60)).leases
        (own,) = await world.frontier.claim(1, 60)
        await world.reopen()
        assert await world.frontier.reap_all() == 1
        world.clock.advance(5)
        assert [lease.host for lease in await world.frontier.claim(3, 60)] == [own.host]
        assert (await world.frontier.take_back(lent.token, done(lent), REST)).accepted
        world.clock.advance(60)
        assert await world.frontier.reap_all() == 2  # he was never heard of again
        assert not (await world.frontier.take_back(other.token, done(other), REST)).accepted
        check_tables(world.frontier)

    play(tmp_path, story)


def test_what_has_ended_is_called_back_in_a_class(tmp_path: Path) -> None:
    """C1, R2: done, given up and delayed alike; what is queued already is left to `admit`."""

    async def story(world: FrontierWorld) -> None:
        await world.admit("https://a.test/", "https://b.test/", "https://c.test/")
        first, second, _ = await world.frontier.claim(3, 60)
        await world.frontier.settle(first.token, [done(first)], REST)
        await world.frontier.settle(second.token, [Settlement(second.tasks[0], Dead("timeout"))], REST)
        stories = [
            world.frontier.story(lease.host, lease.tasks[0].fingerprint)  # type: ignore[union-attr]
            for lease in (first, second)
        ]
        found = [one for one in stories if one is not None]
        assert await world.frontier.recall(found, Level.IMMEDIATE) == 2
        assert await world.frontier.recall(found, Level.IMMEDIATE) == 0
        assert world.frontier.snapshot().queued["immediate"] == 2
        assert world.frontier.snapshot().states["dead"] == 0
        check_tables(world.frontier)

    play(tmp_path, story)


def test_domains_and_hosts_are_listed_in_steps(tmp_path: Path) -> None:
    """C1, C3: every domain once, whatever the step; hosts added up; how long a host has waited."""

    async def story(world: FrontierWorld) -> None:
        urls = [f"https://{host}.site{number}.test/{page}" for number in range(9) for host in "ab" for page in range(3)]
        await world.admit(*urls)
        census = LmdbCensus(world.frontier.view)
        names: list[str] = []
        mark = b""
        while True:
            found, mark = census.domains(mark, 2)
            names += [one.domain for one in found]
            assert all((one.hosts, one.queued) == (2, 6) for one in found)
            if not mark:
                break
        assert sorted(names) == [f"site{number}.test" for number in range(9)]
        hosts = census.hosts("site3.test", 10)
        assert sorted(one.host for one in hosts) == ["a.site3.test", "b.site3.test"]
        assert census.hosts("site3.test", 10, after=hosts[0].host) == hosts[1:]
        assert census.named(["never.test"]) == []
        assert census.longest_wait_s() == 0
        await world.frontier.claim(1, 60)
        world.clock.advance(100)
        assert census.longest_wait_s() >= 100

    play(tmp_path, story)
