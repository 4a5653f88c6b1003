"""The ledger of addresses: limits that hold whatever happens, and turns that make waiting cheap."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.interfaces.addresses import AddressBusy, AddressLedger, AddressPermit
from nephila.model.errors import UsageError
from nephila.model.settings import PolitenessSettings
from nephila.politeness import AddressLimit, AddressLimits, MemoryAddressLedger, address_ledger, addresses

SERVER = "192.0.2.1"


def ledger(concurrency: int = 4, rate: float = 10.0, *ranges: str) -> MemoryAddressLedger:
    return MemoryAddressLedger(AddressLimits(AddressLimit(concurrency, rate), ranges))


def permit(answer: AddressPermit | AddressBusy) -> AddressPermit:
    assert isinstance(answer, AddressPermit), answer
    return answer


def wait(answer: AddressPermit | AddressBusy) -> int:
    assert isinstance(answer, AddressBusy), answer
    return answer.wait_ms


def is_granted(answer: AddressPermit | AddressBusy) -> bool:
    return isinstance(answer, AddressPermit)


# The limits


def test_four_at_once_and_no_more() -> None:
    """P2: whatever their names; a permit that is given back makes room."""
    book: AddressLedger = ledger(rate=1000)
    held = [permit(book.ask(SERVER, f"h{number}", 0)) for number in range(4)]
    assert wait(book.ask(SERVER, "h4", 0)) > 0
    assert is_granted(book.ask("192.0.2.2", "h4", 0))
    book.give_back(held[0], 10)
    assert is_granted(book.ask(SERVER, "h5", 10))


def test_ten_within_a_second_and_no_more() -> None:
    """P2: over any second, not by the clock's seconds."""
    book = ledger(concurrency=100)
    times = [at for at in range(0, 3000, 10) if is_granted(book.ask(SERVER, f"h{at}", at))]
    assert len(times) >= 20
    assert all(later - earlier >= 1000 for earlier, later in zip(times, times[10:], strict=False))


@given(
    concurrency=st.integers(1, 5),
    rate=st.sampled_from([0.5, 1.0, 2.5, 3.0, 10.0, 12.5]),
    calls=st.lists(
        st.tuples(st.integers(0, 700), st.integers(0, 12), st.booleans(), st.sampled_from([0, 250])), max_size=150
    ),
)
def test_the_limits_hold_whatever_the_order_of_calls(
    concurrency: int, rate: float, calls: list[tuple[int, int, bool, int]]
) -> None:
    """P2: early, late, twice, never; the turns are a plan, the limits are not."""
    book, now = ledger(concurrency, rate), 0
    held: list[AddressPermit] = []
    until: list[int] = []
    granted: list[int] = []
    for step_ms, host, ends, notice_ms in calls:
        now += step_ms
        if ends and held:
            book.give_back(held.pop(0), now, notice_ms=notice_ms)
            until.append(now + notice_ms)
        answer = book.ask(SERVER, f"h{host}", now)
        if isinstance(answer, AddressPermit):
            held.append(answer)
            granted.append(now)
        else:
            assert answer.wait_ms >= 1
        assert len(held) + sum(end > now for end in until) <= concurrency
    whole = -int(-rate // 1)
    span_ms = 1000 * whole / rate
    assert all(later - earlier >= span_ms for earlier, later in zip(granted, granted[whole:], strict=False))


def test_an_exchange_that_we_broke_off_holds_its_slot_until_the_server_notices() -> None:
    """P2, P5: at once means for the server, too."""
    book = ledger(concurrency=1, rate=1000)
    book.give_back(permit(book.ask(SERVER, "a", 0)), 100, notice_ms=250)
    assert not is_granted(book.ask(SERVER, "b", 349))
    other = ledger(concurrency=1, rate=1000)
    other.give_back(permit(other.ask(SERVER, "a", 0)), 100, notice_ms=250)
    assert is_granted(other.ask(SERVER, "b", 350))


def test_a_crawl_that_goes_on_assumes_that_all_was_granted_before() -> None:
    """P2, F10: a restart within a second gives an address nothing extra."""
    limits = AddressLimits(AddressLimit(4, 10))
    book = MemoryAddressLedger(limits, resumed_at=5000)
    assert wait(book.ask(SERVER, "a", 5100)) >= 900
    assert is_granted(book.ask("192.0.2.2", "a", 6000))


# The turns


def test_a_refusal_names_a_turn_and_who_comes_then_is_let_through_in_order() -> None:
    """P2, F2: turns stand a tenth of a second apart and a little more; nobody else gets them."""
    book = ledger()
    for number in range(4):
        book.give_back(permit(book.ask(SERVER, f"first{number}", 0)), 20)
    for number in range(4, 10):
        book.give_back(permit(book.ask(SERVER, f"first{number}", 30)), 50)
    turns = [60 + wait(book.ask(SERVER, f"h{number}", 60)) for number in range(30)]
    assert all(105 <= later - earlier <= 106 for earlier, later in itertools.pairwise(turns))
    for number, turn in enumerate(turns):
        assert not is_granted(book.ask(SERVER, f"pushing{number}", turn))
        book.give_back(permit(book.ask(SERVER, f"h{number}", turn)), turn + 20)


def test_asking_again_too_early_changes_no_turn() -> None:
    """P2: impatience gains nothing and loses nothing."""
    book = ledger(concurrency=1, rate=1)
    permit(book.ask(SERVER, "a", 0))
    turn = wait(book.ask(SERVER, "b", 0))
    assert wait(book.ask(SERVER, "b", 300)) == turn - 300


def closed_loop(
    book: MemoryAddressLedger, hosts: int, seconds: int, held: Callable[[Random], int], late: Callable[[Random], int]
) -> tuple[int, int, int]:
    """Hosts that rest a second after each answer: permits granted, refusals, and the longest row of refusals."""
    random, refused, granted, worst = Random(1), 0, 0, 0
    row = dict.fromkeys(range(hosts), 0)
    events: list[tuple[int, int, AddressPermit | None]] = [
        (random.randrange(1000), host, None) for host in range(hosts)
    ]
    heapq.heapify(events)
    while events[0][0] < seconds * 1000:
        now, host, ending = heapq.heappop(events)
        if ending is not None:
            book.give_back(ending, now)
            heapq.heappush(events, (now + 1001, host, None))
            continue
        answer = book.ask(SERVER, f"h{host}", now)
        if isinstance(answer, AddressPermit):
            granted, row[host] = granted + 1, 0
            heapq.heappush(events, (now + held(random), host, answer))
        else:
            refused, row[host] = refused + 1, row[host] + 1
            worst = max(worst, row[host])
            heapq.heappush(events, (now + answer.wait_ms + late(random), host, None))
    return granted, refused, worst


@pytest.mark.parametrize(
    ("held", "served", "refusals", "streak"),
    [
        (lambda _: 40, 9.3, 1.2, 2),
        (lambda _: 1500, 2.1, 1.5, 4),
        (lambda random: random.randrange(750, 3000), 1.6, 1.6, 6),
        (lambda random: 30_000 if random.random() < 0.2 else 40, 0.45, 2.5, 10),
    ],
    ids=["fast", "slow", "uneven", "hanging"],
)
def test_a_host_is_refused_about_once_a_request(
    say: Callable[[str], None], held: Callable[[Random], int], served: float, refusals: float, streak: int
) -> None:
    """P2: three hundred hosts behind one address, however it answers; most of what it may be asked is asked."""
    granted, refused, worst = closed_loop(ledger(), 300, 1200, held, lambda random: random.randrange(12))
    say(f"{granted / 1200:.2f} requests a second, {refused / granted:.2f} refusals a request, {worst} in a row at most")
    assert granted / 1200 > served
    assert refused / granted < refusals
    assert worst <= streak


def test_few_hosts_on_an_address_are_not_refused_at_all() -> None:
    """P2: the limit is the looser one."""
    granted, refused, _ = closed_loop(ledger(), 7, 600, lambda _: 40, lambda _: 0)
    assert (refused, granted > 6 * 600) == (0, True)


@pytest.mark.parametrize("limits", [(4, 10.0), (1, 1.0)], ids=["standard", "narrow"])
def test_a_plan_that_nobody_keeps_shuts_nobody_out(limits: tuple[int, float]) -> None:
    """P2, F7: a worker that comes minutes late to every turn still gets most of what may be had."""
    late = addresses.LAPSE_MS + 100_000
    granted, _, _ = closed_loop(ledger(*limits), 300, 6000, lambda _: 40, lambda _: late)
    assert granted > 0.7 * 6000 * min(limits[1], 300 / (1 + late / 1000))


# What is remembered


def test_idle_addresses_and_missed_turns_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """F8, P2: memory is bounded by what happened in the last minutes."""
    monkeypatch.setattr(addresses, "SWEEP_FROM", 50)
    book = ledger()
    for number in range(2000):
        given = permit(book.ask(f"10.0.{number // 250}.{number % 250}", "h", number * 100))
        book.give_back(given, number * 100 + 10)
        assert book.snapshot().addresses <= 100
    start = 10_000_000
    for answer in [book.ask(SERVER, f"h{number}", start) for number in range(200)]:
        if isinstance(answer, AddressPermit):
            book.give_back(answer, start + 10)
    assert book.snapshot().reserved == 196
    later = start + addresses.LAPSE_MS + 60_000
    book.ask(SERVER, "h", later)
    assert book.snapshot().reserved == 0
    assert (book.snapshot().granted, book.snapshot().refused) == (2005, 196)


def test_an_address_with_a_permit_out_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """P2: however long the answer takes."""
    monkeypatch.setattr(addresses, "SWEEP_FROM", 2)
    book = ledger(concurrency=1)
    held = permit(book.ask(SERVER, "a", 0))
    for number in range(20):
        book.give_back(permit(book.ask(f"10.0.0.{number}", "h", 10**6)), 10**6)
    assert not is_granted(book.ask(SERVER, "b", 10**6))
    book.give_back(held, 10**6)
    assert book.snapshot().in_flight == 0


# Which address, which limit


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "::ffff:c000:201", True),
        ("192.0.2.1", "64:ff9b::192.0.2.1", True),
        ("64:ff9b::192.0.2.1", "64:ff9b::192.0.2.2", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
    ],
)
def test_what_counts_as_one_address(one: str, other: str, same: bool) -> None:
    """P2, H6: IPv6 by its /64, IPv4 inside IPv6 as itself."""
    limits = AddressLimits(AddressLimit(4, 10))
    assert (limits.of(one).key == limits.of(other).key) == same


def test_the_most_specific_range_gives_each_of_its_addresses_its_limit() -> None:
    """P2: content networks serve many hosts from one address."""
    limits = AddressLimits(
        AddressLimit(4, 10),
        [
            "198.51.0.0/16=8/20",
            "198.51.100.0/24=64/500",
            "2001:db8::/32=2/0.5",
            "2001:db8::7/128=9/9",
            "::ffff:203.0.113.0/120=1/1",
        ],
    )
    expected = {
        "198.51.1.1": (8, 20),
        "198.51.100.1": (64, 500),
        "198.52.0.1": (4, 10),
        "2001:db8::1": (2, 0.5),
        "2001:db8::7": (9, 9),
        "2001:db9::1": (4, 10),
        "203.0.113.9": (1, 1),
    }
    found = {address: (limits.of(address).limit.concurrency, limits.of(address).limit.rate) for address in expected}
    assert found == expected
    assert limits.of("2001:db8::1").key != limits.of("2001:db8::7").key
    assert limits.of("198.51.100.1").key != limits.of("198.51.100.2").key


@pytest.mark.parametrize(
    "text",
    [
        *("", "10.0.0.0/8", "10.0.0.0/8=4", "=4/10", "10.0.0/8=4/10", "x=4/10", "10.0.0.0/8=0/10", "10.0.0.0/8=4/0"),
        *("10.0.0.0/8=4/-1", "10.0.0.0/8=4/inf", "10.0.0.0/8=4/nan", "10.0.0.0/8=4.5/10", "10.0.0.0/8=a/b"),
        "10.0.0.0/8=4/",
    ],
)
def test_a_range_that_makes_no_sense_is_refused_with_a_hint(text: str) -> None:
    """P2, C4: named, and how to write it; also where the limit is lifted."""
    with pytest.raises(UsageError) as caught:
        address_ledger(PolitenessSettings(address_limits=(text,), delay_s=0))
    assert "politeness.address_limits" in str(caught.value)
    assert repr(text) in str(caught.value)
    assert "CIDR=CONCURRENCY/RATE" in caught.value.hint


def test_without_a_delay_there_is_no_limit() -> None:
    """P2: `--delay 0` is for one's own server."""
    assert address_ledger(PolitenessSettings(delay_s=0)) is None
    book = address_ledger(PolitenessSettings(address_concurrency=2))
    assert book is not None
    assert [is_granted(book.ask(SERVER, f"h{number}", 0)) for number in range(3)] == [True, True, False]
