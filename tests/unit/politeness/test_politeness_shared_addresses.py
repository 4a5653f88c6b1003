"""The ledger of addresses that several processes share: the same limits, whoever asks, whoever dies."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.interfaces.addresses import AddressBusy, AddressPermit
from nephila.model.settings import PolitenessSettings
from nephila.politeness import (
    AddressLimit,
    AddressLimits,
    MemoryAddressLedger,
    SharedAddressLedger,
    mark_resumed,
    shared_ledger,
    shared_table,
)
from nephila.politeness.addresses import SWEEP_FROM
from nephila.politeness.shared_addresses import BUCKET, BUCKETS

SERVER = "192.0.2.1"


class Table:
    """A table, and a ledger on it for each of so many processes."""

    def __init__(
        self, concurrency: int = 4, rate: float = 10.0, *, processes: int = 3, resumed_at: int | None = None
    ) -> None:
        self._descriptor = shared_table()
        if resumed_at is not None:
            mark_resumed(self._descriptor, resumed_at)
        limits = AddressLimits(AddressLimit(concurrency, rate))
        self.ledgers = [
            SharedAddressLedger(limits, os.dup(self._descriptor), number) for number in range(1, processes + 1)
        ]

    def __enter__(self) -> list[SharedAddressLedger]:
        return self.ledgers

    def __exit__(self, *_: object) -> None:
        for ledger in self.ledgers:
            ledger.close()
        os.close(self._descriptor)


@pytest.fixture
def three() -> Iterator[list[SharedAddressLedger]]:
    with Table() as ledgers:
        yield ledgers


@given(
    concurrency=st.integers(1, 5),
    rate=st.sampled_from([0.5, 2.5, 10.0, 12.5]),
    calls=st.lists(
        st.tuples(st.integers(0, 700), st.integers(0, 2), st.integers(0, 12), st.booleans(), st.sampled_from([0, 250])),
        max_size=120,
    ),
)
def test_the_limits_hold_over_all_processes(
    concurrency: int, rate: float, calls: list[tuple[int, int, int, bool, int]]
) -> None:
    """P2: whichever process asks for whichever host, in whatever order."""
    held: list[tuple[SharedAddressLedger, AddressPermit]] = []
    until: list[int] = []
    granted: list[int] = []
    now = 0
    with Table(concurrency, rate) as ledgers:
        for step_ms, process, host, ends, notice_ms in calls:
            now += step_ms
            if ends and held:
                ledger, permit = held.pop(0)
                ledger.give_back(permit, now, notice_ms=notice_ms)
                until.append(now + notice_ms)
            answer = ledgers[process].ask(SERVER, f"h{host}", now)
            if isinstance(answer, AddressPermit):
                held.append((ledgers[process], answer))
                granted.append(now)
            else:
                assert answer.wait_ms >= 1
            assert len(held) + sum(end > now for end in until) <= concurrency
    whole = -int(-rate // 1)
    span_ms = 1000 * whole / rate
    assert all(later - earlier >= span_ms for earlier, later in zip(granted, granted[whole:], strict=False))


@given(calls=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 9), st.booleans()), max_size=100))
def test_one_process_alone_is_answered_as_by_the_ledger_of_one(calls: list[tuple[int, int, bool]]) -> None:
    """P2: the decisions are the same; only where they are written down differs."""
    plain = MemoryAddressLedger(AddressLimits(AddressLimit(4, 10.0)))
    held: list[tuple[AddressPermit, AddressPermit]] = []
    now = 0
    with Table(processes=1) as (shared,):
        for step_ms, host, ends in calls:
            now += step_ms
            if ends and held:
                one, other = held.pop(0)
                plain.give_back(one, now)
                shared.give_back(other, now)
            answers = plain.ask(SERVER, f"h{host}", now), shared.ask(SERVER, f"h{host}", now)
            assert answers[0] == answers[1]
            if isinstance(answers[0], AddressPermit) and isinstance(answers[1], AddressPermit):
                held.append((answers[0], answers[1]))


def test_permits_of_a_process_that_died_lapse_when_its_servers_have_noticed(three: list[SharedAddressLedger]) -> None:
    """P2, F3: at once means for the server, too; the permits of others stay."""
    first, second, third = three
    for number in range(3):
        assert isinstance(first.ask(SERVER, f"a{number}", 0), AddressPermit)
    kept = second.ask(SERVER, "b", 0)
    assert isinstance(kept, AddressPermit)
    assert first.ask("192.0.2.9", "c", 0)
    assert third.release(1, 5000, 250) == 4
    assert isinstance(third.ask(SERVER, "d", 5200), AddressBusy)
    assert isinstance(third.ask(SERVER, "e", 9000), AddressPermit)
    assert isinstance(third.ask(SERVER, "d", 9001), AddressPermit)
    second.give_back(kept, 9100)
    assert third.release(1, 9200, 250) == 0


def test_a_crawl_that_goes_on_assumes_that_all_was_granted_before() -> None:
    """P2, F10: in whichever process the address is met first."""
    with Table(resumed_at=5000) as ledgers:
        busy = ledgers[0].ask(SERVER, "a", 5100)
        assert isinstance(busy, AddressBusy)
        assert busy.wait_ms >= 900
        assert isinstance(ledgers[1].ask("192.0.2.2", "a", 6000), AddressPermit)


def test_a_full_table_says_to_come_again_and_forgets_who_is_idle() -> None:
    """P2: more busy addresses than there is room for are refused, never let through uncounted."""
    with Table(processes=1) as (ledger,):
        answers = [ledger.ask(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", "h", 0) for n in range(2 * BUCKETS * BUCKET)]
        granted = sum(isinstance(answer, AddressPermit) for answer in answers)
        assert BUCKETS * BUCKET * 0.9 < granted <= BUCKETS * BUCKET
        for answer in answers:
            if isinstance(answer, AddressPermit):
                ledger.give_back(answer, 10)
        later = [ledger.ask(f"11.{n >> 16}.{n >> 8 & 255}.{n & 255}", "h", 10_000) for n in range(BUCKETS)]
        assert all(isinstance(answer, AddressPermit) for answer in later)


def test_what_another_process_held_is_not_remembered_for_ever(three: list[SharedAddressLedger]) -> None:
    """P2, Q5: addresses that others asked at the same time are forgotten like all others; own permits are kept."""
    first, second, _ = three
    both = [f"10.0.{n >> 8}.{n & 255}" for n in range(200)]
    for address in both:
        first.ask(address, "a", 0)
        permit = second.ask(address, "b", 0)
        assert isinstance(permit, AddressPermit)
        second.give_back(permit, 10)
    held = second.ask(SERVER, "b", 0)
    assert isinstance(held, AddressPermit)
    for n in range(2 * SWEEP_FROM):
        permit = second.ask(f"11.0.{n >> 8}.{n & 255}", "h", 1_000_000 + 2_000 * n)
        assert isinstance(permit, AddressPermit)
        second.give_back(permit, 1_000_010 + 2_000 * n)
    assert not second._servers.keys() & set(both)
    second.give_back(held, 9_000_000)


def test_a_rate_of_thousands_is_counted_over_a_part_of_a_second() -> None:
    """P2: what is remembered of an address fits its slot whatever the settings say."""
    with Table(concurrency=10_000, rate=5000.0) as ledgers:
        times = [
            at for at in range(2000) for turn in range(6)
            if isinstance(ledgers[turn % 3].ask(SERVER, f"h{at}.{turn}", at), AddressPermit)
        ]  # fmt: skip
    assert len(times) / 2 > 4000
    assert max(times.count(at) for at in set(times)) <= 128


def test_hundreds_of_exchanges_that_are_broken_off_fit_their_slot() -> None:
    """P2: a server with a high limit of its own hangs up on all, or sends what nobody wants; then a process dies."""
    now = 1 << 33  # a machine that has run for months: numbers take more room
    with Table(concurrency=2000, rate=5000.0) as ledgers:
        held: list[tuple[SharedAddressLedger, AddressPermit]] = []
        for at in range(now, now + 250):
            for turn in range(6):
                answer = ledgers[turn % 3].ask(SERVER, f"h{at}.{turn}", at)
                if isinstance(answer, AddressPermit):
                    held.append((ledgers[turn % 3], answer))
        assert len(held) > 900
        for number, (ledger, permit) in enumerate(held[:800]):
            ledger.give_back(permit, now + 250 + number // 4, notice_ms=250)
        left = sum(ledger is ledgers[0] for ledger, _ in held[800:])
        assert ledgers[1].release(1, now + 450, 250) == left


@pytest.mark.parametrize("moving", [0.0, 0.1, 0.5], ids=["faithful", "some", "random"])
def test_hosts_may_change_between_processes(moving: float, say: Callable[[str], None]) -> None:
    """P2: a turn is known where it was given; who comes through another process is let in where there is room."""
    random, granted, seconds = Random(2), 0, 600
    with Table(processes=2) as ledgers:
        events: list[tuple[int, int, AddressPermit | None, int]] = [
            (random.randrange(1000), host, None, host % 2) for host in range(100)
        ]
        heapq.heapify(events)
        while events[0][0] < seconds * 1000:
            now, host, ending, process = heapq.heappop(events)
            if ending is not None:
                ledgers[process].give_back(ending, now)
                heapq.heappush(events, (now + 1001, host, None, host % 2))
                continue
            process = 1 - process if random.random() < moving else process
            answer = ledgers[process].ask(SERVER, f"h{host}", now)
            if isinstance(answer, AddressPermit):
                granted += 1
                heapq.heappush(events, (now + 40, host, answer, process))
            else:
                heapq.heappush(events, (now + answer.wait_ms + random.randrange(12), host, None, host % 2))
    say(f"{granted / seconds:.2f} requests a second")
    assert granted / seconds > 9


def test_without_a_delay_there_is_no_ledger() -> None:
    """P2: --delay 0 lifts the limit per address."""
    assert shared_ledger(PolitenessSettings(delay_s=0), -1, 1) is None
