"""Several processes as one crawl: who gets what, what their figures come to, what they tell each other."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import tracemalloc
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import msgspec
import pytest

from nephila.frontier.scope import Scope, ScopeSeeds
from nephila.model.events import Event, EventKind
from nephila.model.exchange import FailureKind
from nephila.model.settings import FetchSettings, FrontierSettings, LimitSettings, ScopeSettings, Settings
from nephila.model.summary import CrawlSnapshot
from nephila.node.clock import SystemClock
from nephila.node.directory import CrawlDirectory
from nephila.node.processes.child import Child, death_of
from nephila.node.processes.hearing import LATEST, Overheard, unpacked
from nephila.node.processes.messages import (
    Beat,
    Ended,
    Figures,
    Orders,
    Ping,
    Pong,
    Stop,
    Unreachable,
    supervisors_end,
    workers_end,
)
from nephila.node.processes.roll import Roll
from nephila.node.processes.share import process_count, share_of, usable_cores
from nephila.node.processes.workforce import Workforce
from nephila.node.scopefile import ScopeFollower
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

NOTHING = CrawlSnapshot(
    elapsed_s=10.0, pages=0, responses=0, bytes=0, in_flight=0, queued=0, hosts=0, domains=0, duplicates=0
)


# Who says nothing


@dataclass
class Mute:
    """A worker as far as the workforce looks at it here."""

    heard_at: float
    has_spoken: bool = True
    killed: int = 0

    def kill(self) -> None:
        self.killed += 1


def test_workers_that_say_nothing_for_too_long_are_ended_and_no_others() -> None:
    """F3, N3: one that hangs without a lease has nothing that could expire; silence is all that tells."""

    async def main() -> list[int]:
        workforce = Workforce("out", Settings(), 3, (0, 0), SystemClock(), hear_all=False)
        now = asyncio.get_running_loop().time()
        heard = {1: Mute(now), 2: Mute(now - 9.0), 3: Mute(now - 11.0)}
        workforce._children = cast("dict[int, Child]", heard)
        workforce.kill_silent(10.0)
        return [one.killed for one in heard.values()]

    assert asyncio.run(main()) == [0, 0, 1]


def test_a_worker_that_never_says_a_word_is_waited_for_as_long_as_a_start_can_take() -> None:
    """F3, N3, Q5: leases of minutes are no reason to wait minutes for one that hangs in its start."""

    async def main() -> list[int]:
        workforce = Workforce("out", Settings(), 3, (0, 0), SystemClock(), hear_all=False)
        now = asyncio.get_running_loop().time()
        heard = {1: Mute(now - 31.0), 2: Mute(now - 31.0, has_spoken=False), 3: Mute(now - 9.0, has_spoken=False)}
        workforce._children = cast("dict[int, Child]", heard)
        workforce.kill_silent(300.0)
        return [one.killed for one in heard.values()]

    assert asyncio.run(main()) == [0, 1, 0]


def test_a_worker_that_others_may_be_waiting_for_is_not_waited_for_as_long_as_leases_last() -> None:
    """N3, Q4: it may have been stopped in its turn at the store; one that still starts has no turn."""

    async def main() -> list[int]:
        workforce = Workforce("out", Settings(), 3, (0, 0), SystemClock(), hear_all=False)
        now = asyncio.get_running_loop().time()
        heard = {1: Mute(now - 9.0), 2: Mute(now - 11.0), 3: Mute(now - 11.0, has_spoken=False)}
        workforce._children = cast("dict[int, Child]", heard)
        workforce.kill_silent(300.0)
        assert not any(one.killed for one in heard.values())
        workforce.kill_silent(300.0, others_wait=True)
        return [one.killed for one in heard.values()]

    assert asyncio.run(main()) == [0, 1, 0]


def test_who_lets_leases_expire_is_ended_unless_another_may_keep_it_from_renewing_them() -> None:
    """F3, N3: one that was stopped in a transaction has the store's lock; others cannot renew, and still speak."""

    async def main() -> list[int]:
        workforce = Workforce("out", Settings(), 3, (0, 0), SystemClock(), hear_all=False)
        now = asyncio.get_running_loop().time()
        stopped, kept_out, fine = Mute(now - 4.0), Mute(now), Mute(now - 4.0)
        workforce._children = cast("dict[int, Child]", {1: stopped, 2: kept_out, 3: fine})
        workforce.kill_overdue({1, 2}, 60.0)
        first = [stopped.killed, kept_out.killed, fine.killed]
        workforce.kill_overdue({2}, 60.0)
        assert kept_out.killed == 0
        workforce.kill_overdue({2}, 0.0)  # its patience is over: nobody else was to blame
        return [*first, kept_out.killed]

    assert asyncio.run(main()) == [1, 0, 0, 1]


# How many, and what each gets


def test_auto_is_one_for_each_core_and_one_exchange_at_a_time_is_one_process() -> None:
    """C4, F6: the order of a crawl with one exchange at a time is promised."""
    assert process_count(Settings()) == 1
    assert process_count(Settings(processes=3)) == 3
    assert process_count(Settings(processes=0), cores=5) == 5
    assert process_count(Settings(processes=4, fetch=FetchSettings(concurrency=1))) == 1


@pytest.mark.parametrize(
    ("quota", "cores"), [("150000 100000", 2), ("50000 100000", 1), ("max 100000", None), ("", None)]
)
def test_a_quota_of_processor_time_counts_as_cores(tmp_path: Path, quota: str, cores: int | None) -> None:
    """C4: a container with two processors' worth of time on a machine of sixty-four."""
    file = tmp_path / "cpu.max"
    file.write_text(quota, encoding="ascii")
    allowed = len(os.sched_getaffinity(0))
    assert usable_cores(file) == min(allowed, cores or allowed)
    assert usable_cores(tmp_path / "missing") == allowed


def test_memory_is_divided_and_the_rest_is_each_workers_own() -> None:
    """S5: bodies in flight are bounded for the machine; commits wait a little longer for company."""
    settings = Settings(fetch=FetchSettings(concurrency=50, max_in_flight_bytes=100_000_000, kept_connections=401))
    share = share_of(settings, 4)
    assert share.fetch == replace(settings.fetch, max_in_flight_bytes=25_000_000, kept_connections=101)
    assert share.frontier.linger_ms == 20.0
    assert share_of(settings, 40).frontier.linger_ms == 20.0
    patient = Settings(frontier=FrontierSettings(linger_ms=50.0))
    assert share_of(patient, 2).frontier.linger_ms == 50.0


# Figures


def test_figures_of_all_workers_add_up_and_a_host_counts_once() -> None:
    """C4: what the live view and the summary show is the crawl, not a process."""
    roll = Roll(LimitSettings(max_pages=100))
    first = Figures(10, 14, 1000, 1, {"timeout": 2}, {"robots": 1}, {200: 10, 404: 4}, 5, 2.5, 70)
    second = Figures(20, 21, 2000, 0, {"timeout": 1, "reset": 1}, {}, {200: 20, 301: 1}, 3, 4.0, 80)
    roll.hear(1, Beat(first, [1, 2], [7]))
    roll.hear(2, Beat(second, [2, 3], [7, 8]))
    own = replace(NOTHING, pages=1, responses=1, statuses={200: 1})
    seen = roll.snapshot(own, ([3, 4], []), queued=9, stopping=True)
    assert (seen.pages, seen.responses, seen.bytes, seen.duplicates) == (31, 36, 3000, 1)
    assert seen.errors == {"timeout": 3, "reset": 1}
    assert seen.statuses == {200: 31, 404: 4, 301: 1}
    assert (seen.hosts, seen.domains, seen.in_flight, seen.queued) == (4, 2, 8, 9)
    assert seen.pages_per_s == 6.5
    assert (seen.limit, seen.limit_share, seen.stopping) == ("max-pages", 0.31, True)
    assert roll.peak_rss_bytes == 150


def test_hosts_of_a_large_crawl_take_little_memory() -> None:
    """Q5: a supervisor knows millions of them, and of each nothing but that it was met."""
    draw, many = random.Random(1), 50_000
    hosts = [str(draw.getrandbits(64) - 2**63) for _ in range(many)]
    roll = Roll(LimitSettings())
    tracemalloc.start()
    for first in range(0, many, 1000):
        for worker in (1, 2):
            roll.hear(worker, Beat(Figures(), [int(host) for host in hosts[first : first + 1000]]))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert roll.snapshot(NOTHING, ((), ()), queued=0, stopping=False).hosts == many
    assert taken < 30 * many


def test_what_a_worker_told_stays_when_it_dies_and_its_follower_counts_from_nothing() -> None:
    """F3, C4: nothing of the dead is in flight; pages that it could not tell of are known to the frontier."""
    roll = Roll(LimitSettings())
    roll.hear(1, Beat(Figures(pages=10, in_flight=4, pages_per_s=3.0, peak_rss_bytes=90)))
    roll.strike(1)
    roll.strike(1)
    roll.hear(1, Beat(Figures(pages=2, in_flight=1, pages_per_s=1.0, peak_rss_bytes=50)))
    seen = roll.snapshot(NOTHING, ((), ()), queued=0, stopping=False)
    assert (seen.pages, seen.in_flight, seen.pages_per_s, seen.limit) == (12, 1, 1.0, "")
    assert roll.snapshot(NOTHING, ((), ()), queued=0, stopping=False, least_pages=13).pages == 13
    assert roll.peak_rss_bytes == 90


# What is told


def test_warnings_and_the_latest_exchanges_are_told_unless_somebody_wants_all() -> None:
    """O1, C4: no page crosses a pipe, and of a thousand answers a second the screen shows five."""
    events = [Event(EventKind.FETCH_OK, at, url=f"http://h/{at}", status=200, bytes=10) for at in range(20)]
    warning = Event(EventKind.WARNING, 3, reason="events_lost", detail="the disk is full")
    other = Event(EventKind.RETRY, 4, url="http://h/", fingerprint=b"\x01\xff", counts=(("a", 1),))
    some, everything = Overheard(everything=False), Overheard(everything=True)
    for event in (*events, warning, other):
        some.emit(event)
        everything.emit(event)
    assert [unpacked(fields) for fields in some.take()] == [warning, *events[-LATEST:]]
    assert [unpacked(fields) for fields in everything.take()] == [*events, warning, other]
    assert some.take() == []


def test_bytes_are_told_at_once_where_they_are_limited() -> None:
    """S3: a limit over all processes must not wait for the next beat."""
    told: list[int] = []
    overheard = Overheard(everything=False, urgent_bytes=25)
    overheard.urgent = lambda: told.append(1)
    for at in range(10):
        overheard.emit(Event(EventKind.FETCH_OK, at, status=200, bytes=10))
    assert len(told) == 3


def test_every_message_arrives_as_it_was_sent_and_the_end_of_a_channel_is_told() -> None:
    """C4: settings too, an endless wait among them."""
    settings = Settings(limits=LimitSettings(max_wait_s=float("inf")), processes=2)
    orders = [Orders("crawl", 1, 2, settings, hear_all=True), Stop(), Ping(7)]
    event = Event(EventKind.ERROR, 5, url="http://h/", fingerprint=bytes(range(16)), reason="dns", counts=(("x", 2),))
    overheard = Overheard(everything=True)
    overheard.emit(event)
    reports = [
        Beat(Figures(1, statuses={200: 1}), [1 << 63], [2], overheard.take()),
        Pong(7, 3),
        Unreachable("https://h", FailureKind.CONNECT),
        Ended("the disk is full", "make room", storage=True),
    ]

    async def main() -> None:
        ours, its = socket.socketpair()
        supervisor, worker = await supervisors_end(ours), await workers_end(its)
        for order in orders:
            supervisor.send(order)  # type: ignore[arg-type]  # a list of all kinds
        for report in reports:
            worker.send(report)  # type: ignore[arg-type]  # as above
        assert [await worker.receive() for _ in orders] == orders
        heard = [await supervisor.receive() for _ in reports]
        assert heard == reports
        assert isinstance(heard[0], Beat)
        assert [unpacked(fields) for fields in heard[0].events] == [event]
        await worker.close()
        assert await supervisor.receive() is None
        supervisor.send(Stop())
        await supervisor.close()

    asyncio.run(main())


def test_event_fields_have_the_types_of_an_event() -> None:
    """O1: a field that is added to events must be added to what workers tell."""
    event = Event(EventKind.WARNING, 1)
    overheard = Overheard(everything=True)
    overheard.emit(event)
    (fields,) = overheard.take()
    assert len(fields) == len(Event.__slots__)
    beat = Beat(Figures(), events=[fields])
    assert msgspec.msgpack.Decoder(Beat).decode(msgspec.msgpack.encode(beat)) == beat


@pytest.mark.parametrize(
    ("code", "sentence"),
    [(-9, "was ended by SIGKILL"), (1, "ended with exit code 1"), (-200, "was ended by signal 200")],
)
def test_a_death_is_told_in_words(code: int, sentence: str) -> None:
    """C4."""
    assert death_of(code) == sentence


# A scope that others widen


def address(url: str) -> Address:
    found = Identifier(1, NormalRules(), UrlLimits()).identify(url)
    assert isinstance(found, Address)
    return found


def test_what_one_process_lets_in_is_let_in_by_all(tmp_path: Path) -> None:
    """S2: what is saved before a URL is admitted is known before its page is judged; a torn end is not believed."""
    directory = CrawlDirectory(tmp_path)
    widening, following = Scope(ScopeSettings(mode="host")), Scope(ScopeSettings(mode="host"))
    follow = ScopeFollower(directory, following)
    follow()
    link = address("http://b.test/x")
    assert following.judge(link, 1) is not None
    for url in ("http://a.test/", "http://b.test/"):
        widening.add_seed(address(url))
        directory.add_to_scope(widening.unsaved)
        follow()
    assert following.judge(link, 1) is None
    with directory.scope.open("ab") as stream:
        stream.write(b"host c.te")
    follow()
    assert following.seeds() == ScopeSeeds(hosts=frozenset({"a.test", "b.test"}))
    widening.add_seed(address("http://d.test/"))
    directory.add_to_scope(widening.unsaved)
    follow()
    assert following.seeds().hosts == {"a.test", "b.test", "d.test"}
    assert directory.scope.read_bytes() == b"host a.test\nhost b.test\nhost d.test\n"
