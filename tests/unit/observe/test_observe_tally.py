"""The running figures of a crawl."""

from __future__ import annotations

from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.interfaces.clock import Clock
from nephila.model.events import Event, EventKind
from nephila.model.settings import LimitSettings
from nephila.observe import Tally
from nephila.observe.limit import NearestLimit, Used, nearest_limit
from nephila.observe.rate import RollingRate


class MovingClock(Clock, Protocol):
    now: int


def told(clock: Clock, *events: Event, limits: LimitSettings = LimitSettings()) -> Tally:  # noqa: B008 - frozen
    tally = Tally(clock, limits)
    for event in events:
        tally.emit(event)
    return tally


def fetched(status: int, host: str = "example.org", size: int = 100) -> Event:
    return Event(EventKind.FETCH_OK, 0, host=host, status=status, bytes=size)


def test_answers_pages_statuses_and_bytes_are_counted(clock: MovingClock) -> None:
    """O1: a page is a 2xx or a 304; robots.txt is an answer and no page; an unanswered one is neither."""
    robots = Event(EventKind.ROBOTS_FETCHED, 0, host="example.org", status=404, bytes=7)
    unanswered = Event(EventKind.ROBOTS_FETCHED, 0, host="silent.org", reason="timeout")
    tally = told(clock, *map(fetched, (200, 206, 304, 301, 404, 500)), robots, unanswered)
    seen = tally.snapshot(in_flight=4, queued=9, slow_hosts=2, stopping=True)
    assert (seen.pages, seen.responses, seen.bytes) == (3, 7, 607)
    assert seen.statuses == {200: 1, 206: 1, 304: 1, 301: 1, 404: 2, 500: 1}
    assert (seen.in_flight, seen.queued, seen.slow_hosts, seen.stopping) == (4, 9, 2, True)


def test_hosts_are_those_asked_and_domains_those_that_gave_a_page(clock: MovingClock) -> None:
    """O1, S4: unique hosts and registrable domains, each once."""
    tally = told(
        clock,
        fetched(200, "a.example.org"),
        fetched(200, "b.example.org"),
        fetched(200, "b.example.org"),
        fetched(404, "example.com"),
        Event(EventKind.ERROR, 0, host="slow.org", reason="timeout"),
        Event(EventKind.ERROR, 0, host="no-such.org", reason="no_such_name"),
        Event(EventKind.ERROR, 0, host="inside.org", reason="address"),
    )
    seen = tally.snapshot()
    assert (seen.hosts, seen.domains) == (4, 1)


def test_errors_are_counted_by_kind_and_only_once(clock: MovingClock) -> None:
    """O1, H5: what becomes of an error is no further error."""
    timeout = Event(EventKind.ERROR, 0, host="a.org", reason="timeout")
    tally = told(
        clock,
        timeout,
        Event(EventKind.RETRY, 0, reason="timeout"),
        timeout,
        Event(EventKind.DEAD_LETTER, 0, reason="timeout"),
        Event(EventKind.ERROR, 0, reason="tls"),
        Event(EventKind.ERROR, 0),
    )
    assert tally.snapshot().errors == {"timeout": 2, "tls": 1, "unknown": 1}


def test_refusals_are_counted_by_reason_one_by_one_or_a_page_at_a_time(clock: MovingClock) -> None:
    """O1, T8, D3: refused by reason; duplicates and near-duplicates apart."""
    tally = told(
        clock,
        Event(EventKind.EXCLUDED_BY_RULE, 0, reason="scope"),
        Event(EventKind.EXCLUDED_BY_RULE, 0, counts=(("scope", 10), ("extension", 3))),
        Event(EventKind.ROBOTS_DISALLOW, 0),
        Event(EventKind.COOLDOWN_SKIP, 0),
        Event(EventKind.TRAP, 0, reason="redirect_loop"),
        Event(EventKind.DUPLICATE, 0),
        Event(EventKind.DUPLICATE, 0, reason="near"),
        Event(EventKind.DUPLICATE, 0, reason="near"),
        Event(EventKind.HEARTBEAT, 0, counts=(("scope", 99),)),
    )
    seen = tally.snapshot()
    assert seen.refused == {"scope": 11, "extension": 3, "robots": 1, "cooling": 1, "redirect_loop": 1}
    assert (seen.duplicates, seen.near_duplicates) == (1, 2)


def test_a_snapshot_does_not_change_afterwards(clock: MovingClock) -> None:
    """O1: frozen, for other threads and tests."""
    tally = told(clock, fetched(200))
    before = tally.snapshot()
    tally.emit(fetched(404))
    assert before.statuses == {200: 1}


def test_the_rate_is_over_the_last_ten_seconds(clock: MovingClock) -> None:
    """O3: pages/s as of now, not since the start."""
    tally = told(clock)
    for _ in range(20):
        clock.now += 1000
        for _ in range(5):
            tally.emit(fetched(200))
    assert tally.snapshot().pages_per_s == pytest.approx(5.0)
    assert tally.snapshot().elapsed_s == 20.0
    clock.now += 5000
    assert tally.snapshot().pages_per_s == pytest.approx(2.5, abs=0.5)
    clock.now += 10_000
    assert tally.snapshot().pages_per_s == 0.0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 3000), max_size=60), st.integers(0, 20_000))
def test_the_rolling_count_is_the_true_one_but_for_the_edge_of_the_window(gaps: list[int], wait: int) -> None:
    """O3: at most the events of one bucket off, and in constant memory."""
    rate, now, times = RollingRate(10_000, 0), 20_000, []
    for gap in gaps:
        now += gap
        rate.add(now)
        times.append(now)
    now += wait
    counted = round(rate.per_second(now) * 10)
    assert sum(at > now - 9750 for at in times) <= counted <= sum(at > now - 10_000 for at in times)
    assert len(rate._buckets) <= 41


def test_the_limit_that_is_nearest_is_shown(clock: MovingClock) -> None:
    """S3: which limit, how much of it, how long to go."""
    limits = LimitSettings(max_pages=100, max_total_bytes=1_000_000, max_time_s=1000)
    tally = told(clock, *[fetched(200)] * 25, limits=limits)
    clock.now += 10_000
    seen = tally.snapshot()
    assert (seen.limit, seen.limit_share, seen.limit_left_s) == ("max-pages", 0.25, 30.0)


@pytest.mark.parametrize(
    ("limits", "used", "nearest"),
    [
        (LimitSettings(), Used(10, 10, 10, 10), None),
        (LimitSettings(max_pages=10), Used(0, 0, 0, 5), NearestLimit("max-pages", 0.0, None)),
        (LimitSettings(max_pages=10), Used(20, 0, 0, 5), NearestLimit("max-pages", 1.0, 0.0)),
        (LimitSettings(max_pages=10, max_time_s=8), Used(2, 0, 0, 4), NearestLimit("max-time", 0.5, 4.0)),
        (LimitSettings(max_domains=4, max_total_bytes=8), Used(0, 1, 4, 3), NearestLimit("max-total-bytes", 0.5, 3.0)),
    ],
)
def test_nearest_is_the_largest_share(limits: LimitSettings, used: Used, nearest: NearestLimit | None) -> None:
    """S3: no limit set, none shown."""
    assert nearest_limit(limits, used) == nearest


def test_what_is_left_to_go_is_told_by_the_pace_of_this_run() -> None:
    """S3: what earlier runs have used is no pace."""
    limits = LimitSettings(max_pages=100)
    assert nearest_limit(limits, Used(90, 1, 0, 10), Used(5, 1, 0, 10)) == NearestLimit("max-pages", 0.9, 20.0)
    assert nearest_limit(limits, Used(90, 1, 0, 10), Used(0, 0, 0, 10)) == NearestLimit("max-pages", 0.9, None)
