"""The comparator of F6, rule by rule and as a whole: immediate, draws, domain count, score, depth, ties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.frontier import order
from nephila.frontier.order import Supply
from nephila.frontier.score import level_of, lowered
from nephila.model.settings import PrioritySettings
from nephila.model.task import Level

DEFAULTS = PrioritySettings()
DRAWS = 100_000
DAY_MS = 86_400_000
STEP_MS = order.step_ms(DEFAULTS)

lanes = st.integers(0, order.LANES - 1)
steps = st.integers(0, 0xFF_FFFF)
ties = st.binary(min_size=4, max_size=4)
places = st.builds(order.pack_place, lanes, steps, st.integers(0, 300), ties)
ready_hosts = st.tuples(lanes, st.integers(0, 2**33), places, st.integers(0, 2**40))


def shares(present: Sequence[int], settings: PrioritySettings = DEFAULTS, seed: int = 0) -> dict[int, float]:
    """The share of each lane over many draws, in points."""
    drawn = Counter(order.draw_lane(present, number, seed, settings) for number in range(DRAWS))
    return {lane: drawn[lane] * 100 / DRAWS for lane in present}


# Lanes


def test_every_class_of_every_supply_has_a_lane_and_immediate_one_for_both() -> None:
    """F1, F4: seven lanes, and each tells its class and supply again."""
    found = {order.lane_of(supply, level) for supply in Supply for level in Level}
    assert found == set(range(order.LANES))
    for supply in Supply:
        assert order.lane_of(supply, Level.IMMEDIATE) == 0
        for level in (Level.HIGH, Level.MEDIUM, Level.LOW):
            lane = order.lane_of(supply, level)
            assert (order.supply_of_lane(lane), order.level_of_lane(lane)) == (supply, level)


# Places in a queue


@settings(max_examples=200, deadline=None)
@given(lanes, steps, st.integers(0, 300), ties)
def test_a_place_is_read_as_it_was_packed(lane: int, step: int, depth: int, tie: bytes) -> None:
    """F6: depths beyond a byte count as the deepest."""
    place = order.pack_place(lane, step, depth, tie)
    assert len(place) == order.PLACE_BYTES
    assert order.read_place(place) == (lane, step, min(depth, 255), tie)


@settings(max_examples=200, deadline=None)
@given(places, places)
def test_places_sort_by_lane_score_depth_and_tie(one: bytes, other: bytes) -> None:
    """F6: whatever store does the sorting."""
    assert (one < other) == (order.read_place(one) < order.read_place(other))
    assert (one == other) == (order.read_place(one) == order.read_place(other))


# Rules 5 to 8: ready hosts


def rank(host: tuple[int, int, bytes, int]) -> tuple[int, int, int, int, int, bytes]:
    """The rules as a tuple: lane, domain count, step (the highest score first), depth, since when it has work, tie."""
    lane, count, place, since = host
    _, step, depth, tie = order.read_place(place)
    return lane, min(count, 0xFFFF_FFFF), step, depth, since or int.from_bytes(tie, "big"), tie


@settings(max_examples=300, deadline=None)
@given(ready_hosts, ready_hosts)
def test_the_bytes_of_a_ready_key_sort_as_its_rules_do(
    one: tuple[int, int, bytes, int], other: tuple[int, int, bytes, int]
) -> None:
    """F6: domain count, score, depth, waiting, tie-break."""
    first, second = order.ready_key(*one), order.ready_key(*other)
    assert len(first) == order.READY_KEY_BYTES
    assert (first < second) == (rank(one) < rank(other))
    assert (first == second) == (rank(one) == rank(other))


BASE = (1, 5, order.pack_place(1, 100, 3, b"mmmm"), 1000)
BETTER: dict[str, tuple[int, int, bytes, int]] = {
    "fewer pages of its domain": (1, 4, order.pack_place(1, 900, 9, b"zzzz"), 9000),
    "a higher score": (1, 5, order.pack_place(1, 99, 9, b"zzzz"), 9000),
    "less depth": (1, 5, order.pack_place(1, 100, 2, b"zzzz"), 9000),
    "work for longer": (1, 5, order.pack_place(1, 100, 3, b"zzzz"), 999),
    "a smaller hash": (1, 5, order.pack_place(1, 100, 3, b"mmma"), 1000),
}


@pytest.mark.parametrize("rule", BETTER)
def test_each_rule_decides_where_those_before_it_are_equal(rule: str) -> None:
    """F6: one rule at a time, all later ones against it."""
    assert order.ready_key(*BETTER[rule]) < order.ready_key(*BASE)


def test_the_count_of_a_domain_is_in_the_ready_key() -> None:
    """F6: so that a key made before its domain was asked again is known to be old."""
    assert order.count_in_ready_key(order.ready_key(*BASE)) == 5
    assert order.count_in_ready_key(order.ready_key(1, 2**40, BASE[2], 0)) == 0xFFFF_FFFF


def test_the_tie_break_does_not_hang_on_the_crawls_secret() -> None:
    """F6: it is a hash of the spelling and of the random seed, so the same input gives the same order in two crawls."""
    urls = [f"a.test s/{number}".encode() for number in range(50)]
    assert [order.tie_of(url, 3) for url in urls] == [order.tie_of(url, 3) for url in urls]
    assert sorted(urls, key=lambda url: order.tie_of(url, 3)) != sorted(urls, key=lambda url: order.tie_of(url, 4))
    assert len({order.tie_of(url, 3) for url in urls}) == 50


# Rules 1, 3 and 4: draws


@settings(max_examples=200, deadline=None)
@given(st.sets(lanes, min_size=1), st.integers(0, 2**40), st.integers(0, 2**32))
def test_a_draw_is_among_those_present_and_immediate_goes_first(present: set[int], number: int, seed: int) -> None:
    """F1, F6: immediate is not drawn for, and the same seed and number give the same answer."""
    ordered = sorted(present)
    drawn = order.draw_lane(ordered, number, seed, DEFAULTS)
    assert drawn in present
    assert (drawn == 0) == (0 in present)
    assert order.draw_lane(ordered, number, seed, DEFAULTS) == drawn


def test_high_medium_and_low_are_drawn_80_15_5(say: Callable[[str], None]) -> None:
    """F1: within two points, in either supply."""
    for present in ((1, 2, 3), (4, 5, 6)):
        found = shares(present)
        say(f"lanes {present}: {[round(share, 2) for share in found.values()]} of 80/15/5")
        for lane, share in zip(present, (80, 15, 5), strict=True):
            assert abs(found[lane] - share) < 2, found


def test_new_and_due_are_drawn_30_70_and_their_classes_80_15_5_within(say: Callable[[str], None]) -> None:
    """F4, F1: both draws at once, and the one does not bend the other."""
    found = shares((1, 2, 3, 4, 5, 6))
    new = sum(found[lane] for lane in (1, 2, 3))
    say(f"new {new:.2f} of 30, lanes {[round(share, 2) for share in found.values()]}")
    assert abs(new - 30) < 2
    for supply, whole in ((0, 30), (3, 70)):
        for level, share in ((1, 0.80), (2, 0.15), (3, 0.05)):
            assert abs(found[supply + level] - whole * share) < 2, found


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        ((2, 3), {2: 75, 3: 25}),
        ((1, 3), {1: 94.1, 3: 5.9}),
        ((1, 6), {1: 30, 6: 70}),
        ((1, 2, 6), {1: 25.3, 2: 4.7, 6: 70}),
        ((3, 4), {3: 30, 4: 70}),
        ((5,), {5: 100}),
        ((0, 1, 4), {0: 100, 1: 0, 4: 0}),
    ],
    ids=str,
)
def test_an_absent_lane_leaves_its_share_to_the_others_of_its_supply(
    present: tuple[int, ...], wanted: dict[int, float]
) -> None:
    """F1, F4: shares are only among those that have a ready host; unused share goes to the others."""
    found = shares(present, seed=1)
    assert all(abs(found[lane] - share) < 2 for lane, share in wanted.items()), found


def test_the_weights_are_settings() -> None:
    """F1, F4: other weights, other shares."""
    other = PrioritySettings(high_share=1, medium_share=1, low_share=2, new_share=9, due_share=1)
    found = shares((1, 2, 3, 4), other)
    assert all(abs(found[lane] - share) < 2 for lane, share in {1: 22.5, 2: 22.5, 3: 45, 4: 10}.items()), found


# Rule 2: the starving reserve


def test_a_fifth_of_the_fetches_is_reserved_for_the_starving(say: Callable[[str], None]) -> None:
    """F7: up to 20 %, and it does not go along with the other draws."""
    taken = [order.reserved(number, 0, DEFAULTS) for number in range(DRAWS)]
    say(f"{sum(taken) * 100 / DRAWS:.2f} % reserved")
    assert abs(sum(taken) * 100 / DRAWS - 20) < 2
    high = sum(order.draw_lane((1, 2, 3), number, 0, DEFAULTS) == 1 for number in range(DRAWS) if taken[number]) / sum(
        taken
    )
    assert abs(high * 100 - 80) < 2, "what is left to the draws is drawn as ever"


@pytest.mark.parametrize(("reserve", "wanted"), [(0.0, 0), (1.0, 100), (0.05, 5)])
def test_the_reserve_is_a_setting(reserve: float, wanted: float) -> None:
    """F7: none, all or a twentieth."""
    taken = sum(order.reserved(number, 3, PrioritySettings(reserve=reserve)) for number in range(20_000))
    assert abs(taken / 200 - wanted) < 2


# Ageing


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 100), st.integers(0, 1_000_000), st.integers(0, 150))
def test_a_score_grows_by_a_point_each_hundredth_of_thirty_days(score: int, queued_at: int, waited: int) -> None:
    """F7: linearly, and it is maximal after 30 days whatever it began with."""
    step = order.step_for(queued_at, score)
    assert order.score_at(step, queued_at) == score
    assert order.score_at(step, queued_at + waited) == min(100, score + waited)
    assert order.score_at(step, queued_at + 30 * DAY_MS // STEP_MS) == 100


@settings(max_examples=200, deadline=None)
@given(
    st.tuples(st.integers(0, 100), st.integers(0, 100_000), st.integers(0, 20), ties),
    st.tuples(st.integers(0, 100), st.integers(0, 100_000), st.integers(0, 20), ties),
    st.integers(0, 200),
)
def test_waiting_never_changes_the_order_of_two_that_wait(
    one: tuple[int, int, int, bytes], other: tuple[int, int, int, bytes], later: int
) -> None:
    """F7: what one gains by waiting so does the other, which is why nothing has to be touched."""
    first, second = (order.step_for(queued_at, score) for score, queued_at, _, _ in (one, other))
    now = max(one[1], other[1]) + later
    before, after = order.score_at(first, now), order.score_at(second, now)
    if before != after:
        assert (first < second) == (before > after)
    place, its = order.pack_place(2, first, *one[2:]), order.pack_place(2, second, *other[2:])
    if first != second:
        assert (place < its) == (first < second)


def test_the_class_of_a_url_rises_as_it_waits(say: Callable[[str], None]) -> None:
    """F7, F1: a score of 10 is low, medium from 20 on, high from 45 on: after 3 and after 10.5 days."""
    lane, step = order.lane_of(Supply.NEW, Level.LOW), order.step_for(0, 10)
    found = [order.effective_lane(lane, step, now, DEFAULTS) for now in range(101)]
    medium, high = found.index(2), found.index(1)
    say(f"low becomes medium after {medium * STEP_MS / DAY_MS} days, high after {high * STEP_MS / DAY_MS}")
    assert found == sorted(found, reverse=True)
    assert (medium, high) == (10, 35)
    assert order.effective_lane(6, step, 35, DEFAULTS) == 4, "in its own supply"


@settings(max_examples=200, deadline=None)
@given(lanes, st.integers(0, 100), st.integers(0, 120), st.integers(0, 2))
def test_the_effective_class_is_the_better_of_score_and_given_one_lowered_by_errors(
    lane: int, score: int, waited: int, down: int
) -> None:
    """F7, P4: immediate stays immediate, the supply stays, and errors of the domain take levels away again."""
    found = order.effective_lane(lane, order.step_for(50, score), 50 + waited, DEFAULTS, down)
    if lane == 0:
        assert found == 0
        return
    assert order.supply_of_lane(found) is order.supply_of_lane(lane)
    by_score = level_of(DEFAULTS, min(100, score + waited))
    assert order.level_of_lane(found) is lowered(min(by_score, order.level_of_lane(lane)), down)


def test_a_step_beyond_its_bytes_is_the_last_one() -> None:
    """F7: after three centuries time stands still, and nothing breaks."""
    assert order.step_for(2**24, 0) == 0xFF_FFFF
    assert order.read_place(order.pack_place(6, order.step_for(2**30, 0), 0, b"tttt")).lane == 6
