"""The lifecycle table and the timeline: pure policy. The comparator has a file of its own."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from nephila.testing.clock import VirtualClock
from nephila.urls import Address, Fingerprint

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
