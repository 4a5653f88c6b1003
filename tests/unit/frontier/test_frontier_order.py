"""The comparator, the lifecycle table and the timeline: pure policy."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.frontier import order
from nephila.frontier.lifecycle import TERMINAL, State, after, may_return
from nephila.frontier.timeline import Anchor, Timeline
from nephila.model.errors import FrontierError
from nephila.model.outcome import (
    Dead,
    DeferReason,
    Deferred,
    Done,
    Dropped,
    OriginRules,
    Outcome,
    Respelled,
    Retry,
    RulesKind,
    RulesLearned,
    RulesMoved,
)
from nephila.model.record import RecordRef, SegmentId
from nephila.model.task import Level
from nephila.testing.clock import VirtualClock
from nephila.urls import Address, Fingerprint

LOWER = (Level.HIGH, Level.MEDIUM, Level.LOW)

queue_places = st.builds(
    order.queue_key,
    st.sampled_from(Level),
    st.integers(0, 300),
    st.text(max_size=30),
    st.binary(min_size=16, max_size=16),
    st.just(0),
)
ready_hosts = st.tuples(st.integers(0, 2**33), queue_places)


def rank(host: tuple[int, bytes]) -> tuple[int, int, int, bytes]:
    """The rules of the module as a tuple: level, domain count, depth, tie-break."""
    count, head = host
    return head[0], min(count, 0xFFFF_FFFF), head[1], head[2:]


@settings(max_examples=200, deadline=None)
@given(ready_hosts, ready_hosts)
def test_the_bytes_of_a_ready_key_sort_as_its_rules_do(one: tuple[int, bytes], other: tuple[int, bytes]) -> None:
    """F6: domain count, depth, tie-break, whatever store does the sorting."""
    assert (order.ready_key(*one) < order.ready_key(*other)) == (rank(one) < rank(other))
    assert (order.ready_key(*one) == order.ready_key(*other)) == (rank(one) == rank(other))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 300), st.binary(min_size=16, max_size=16)), unique_by=lambda one: one[1][:8]))
def test_no_two_urls_of_a_host_share_a_place(urls: list[tuple[int, bytes]]) -> None:
    """F6: the order is total, because the fingerprint is the last word; and it is by depth first."""
    places = {order.queue_key(2, depth, "", fingerprint, 0): depth for depth, fingerprint in urls}
    assert len(places) == len(urls)
    assert [min(places[place], 255) for place in sorted(places)] == sorted(min(depth, 255) for depth, _ in urls)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(Level), st.integers(0, 250), st.text(), st.binary(min_size=16, max_size=16), st.integers(0, 9))
def test_a_place_tells_its_level_and_its_fingerprint(
    level: Level, depth: int, url: str, fingerprint: bytes, seed: int
) -> None:
    """F1: what the store needs to find a record again is in the key."""
    place = order.queue_key(level, depth, url, fingerprint, seed)
    assert len(place) == order.QUEUE_KEY_BYTES
    assert (order.level_of(place), order.prefix_of(place)) == (level, fingerprint[:8])
    ready = order.ready_key(7, place)
    assert len(ready) == order.READY_KEY_BYTES
    assert (order.count_in_ready_key(ready), ready[5:]) == (7, place[1:])


def test_the_tie_break_does_not_hang_on_the_crawls_secret() -> None:
    """F6: the same input gives the same order in two crawls, whose fingerprints differ."""
    urls = [f"a.test s/{number}" for number in range(50)]

    def sequence(secret: int) -> list[str]:
        prints = {url: bytes((secret * 31 + index) % 251 for _ in range(16)) for index, url in enumerate(urls)}
        return sorted(urls, key=lambda url: order.queue_key(2, 0, url, prints[url], seed=3))

    assert sequence(1) == sequence(2)
    assert sequence(1) != sorted(urls)


def test_high_medium_and_low_are_drawn_80_15_5() -> None:
    """F1: the shares hold within two points over 10,000 draws."""
    drawn = Counter(order.draw_level(LOWER, seed=0, draw=number) for number in range(10_000))
    for level, share in order.SHARES.items():
        assert abs(drawn[level] / 100 - share) < 2, drawn


def test_an_absent_level_leaves_its_share_to_the_others() -> None:
    """F1: medium and low alone are drawn 75/25."""
    drawn = Counter(order.draw_level(LOWER[1:], seed=1, draw=number) for number in range(10_000))
    assert abs(drawn[Level.MEDIUM] / 100 - 75) < 2, drawn


@settings(max_examples=100, deadline=None)
@given(st.sets(st.sampled_from(Level), min_size=1), st.integers(0, 2**32), st.integers(0, 2**40))
def test_a_draw_is_among_those_present_and_immediate_goes_first(present: set[Level], seed: int, number: int) -> None:
    """F1: immediate is not drawn for, and the same seed and number give the same answer."""
    levels = sorted(present)
    drawn = order.draw_level(levels, seed, number)
    assert drawn in present
    assert drawn is Level.IMMEDIATE or Level.IMMEDIATE not in present
    assert order.draw_level(levels, seed, number) is drawn


# The lifecycle

ADDRESS = Address("http://a.test/", "a.test", "http://a.test/", Fingerprint(bytes(16)))
MOVES: dict[Outcome, State] = {
    Done(RecordRef(SegmentId("s"), 0, 1, 1), 200): State.DONE,
    Retry(1, "timeout"): State.DELAYED,
    Deferred(1, DeferReason.DNS): State.DELAYED,
    Dropped("robots"): State.DROPPED,
    Dead("tls"): State.DEAD,
    Respelled(ADDRESS): State.QUEUED,
}


@pytest.mark.parametrize("outcome", MOVES, ids=lambda outcome: type(outcome).__name__)
def test_an_outcome_moves_a_queued_url_and_no_other(outcome: Outcome) -> None:
    """F2: only the moves of the table exist."""
    assert after(State.QUEUED, outcome) is MOVES[outcome]
    for state in set(State) - {State.QUEUED}:
        with pytest.raises(FrontierError, match=state.name):
            after(state, outcome)


@pytest.mark.parametrize(
    "outcome",
    [
        RulesLearned(OriginRules("http://a.test", RulesKind.ALLOW_ALL, b"", 1, 1)),
        RulesMoved("http://a.test", ADDRESS, 1),
    ],
    ids=["learned", "moved"],
)
def test_the_rules_of_an_origin_are_no_end_of_a_page(outcome: Outcome) -> None:
    """F2: anything else is a bug and raises."""
    with pytest.raises(FrontierError):
        after(State.QUEUED, outcome)


@pytest.mark.parametrize("state", State)
def test_a_url_returns_once_a_cycle_and_only_after_it_has_ended(state: State) -> None:
    """F2: a URL is fetched once a cycle."""
    assert may_return(state, url_cycle=1, cycle=2) == (state in TERMINAL)
    assert not may_return(state, url_cycle=2, cycle=2)


# The timeline

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.integers(0, 10_000_000)),
        st.tuples(st.just("jump"), st.integers(-(10**10), 10**10)),
        st.tuples(st.sampled_from(["commit", "reopen", "reboot"]), st.just(0)),
    ),
    max_size=30,
)


@settings(max_examples=200, deadline=None)
@given(EVENTS)
def test_the_timeline_never_runs_backwards(events: list[tuple[str, int]]) -> None:
    """P2, F10: not under any sequence of reboots, wall clock jumps and reopenings, seen from what was written."""
    clock = VirtualClock()
    timeline = Timeline(clock, None)
    anchor = timeline.anchor()
    assert anchor.last_ms > 0, "0 means never"
    seen = anchor.last_ms
    for kind, amount in events:
        match kind:
            case "pass":
                clock.advance(amount / 1000)
            case "jump":
                clock.jump_wall(amount / 1000)
            case "commit":
                anchor = timeline.anchor()
            case "reopen":
                timeline = Timeline(clock, anchor)
                anchor = timeline.anchor()  # opening a frontier commits
            case "reboot":
                seen = anchor.last_ms  # what was not written did not happen
                clock.reboot()
                timeline = Timeline(clock, anchor)
                assert timeline.rebooted_at == timeline.now()
                anchor = timeline.anchor()
        assert timeline.now() >= seen
        assert timeline.now() >= anchor.last_ms
        seen = timeline.now()


def test_on_the_same_boot_time_goes_on_while_no_crawler_runs() -> None:
    """P2, F10: the delay counts across a restart, and a wall clock jump changes nothing."""
    clock = VirtualClock()
    first = Timeline(clock, None)
    begun, anchor = first.now(), first.anchor()
    clock.advance(5)
    clock.jump_wall(-86_400)
    again = Timeline(clock, anchor)
    assert again.now() == begun + 5000
    assert again.rebooted_at == 0


def test_a_lying_wall_clock_moves_the_timeline_by_a_month_at_most() -> None:
    """P2: after a reboot the wall clock is believed, within reason."""
    clock = VirtualClock()
    anchor = Timeline(clock, None).anchor()
    clock.jump_wall(400 * 86_400)
    clock.reboot()
    assert Timeline(clock, anchor).now() == anchor.last_ms + 31 * 86_400_000
    clock.jump_wall(-800 * 86_400)
    clock.reboot()
    assert Timeline(clock, anchor).now() == anchor.last_ms


def test_a_moment_of_the_timeline_has_a_wall_time() -> None:
    """T8: what people read is UTC."""
    clock = VirtualClock()
    timeline = Timeline(clock, Anchor("another boot", 0, 77_000, clock.wall_ms(), 0))
    assert timeline.now() == 77_000
    assert timeline.wall_of(78_000) == clock.wall_ms() + 1000
