"""How often pages change, estimated from visits at irregular times."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import exp, isfinite, log
from statistics import fmean, median

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.frontier.change import (
    FIRST_SHAPE,
    LONGEST_S,
    Belief,
    after_visit,
    belief_of,
    chance_of_change,
    first_belief,
    outlook_of,
    packed,
    rate_of,
)
from nephila.frontier.embedded.records import Fate
from nephila.frontier.estimated import interval_for
from nephila.frontier.score import freshness_of
from nephila.interfaces.recrawl import History

HOUR, DAY = 3600, 86_400
YEAR = 365 * DAY
gaps = st.integers(0, 3 * YEAR)
beliefs = st.builds(
    lambda shape, period_s: Belief(shape, shape * period_s), st.floats(FIRST_SHAPE, 100), st.floats(1, LONGEST_S)
)
Visits = Sequence[tuple[float, bool]]


def lived(rate: float, gaps_s: Sequence[float], draw: random.Random) -> list[tuple[float, bool]]:
    """Visits of a page that changes by chance at that rate: the gap before each, and whether it found a change."""
    return [(gap_s, draw.random() < 1 - exp(-rate * gap_s)) for gap_s in gaps_s]


def believed(visits: Visits, belief: Belief) -> Belief:
    for gap_s, changed in visits:
        belief = after_visit(belief, gap_s, changed=changed)
    return belief


def most_likely(visits: Visits) -> float:
    """The rate under which all visits are likeliest; one that found a change and one that did not are added."""
    mean_s = fmean(gap_s for gap_s, _ in visits)
    seen = [*visits, (mean_s, True), (mean_s, False)]

    def slope(rate: float) -> float:
        return sum(gap / (exp(min(rate * gap, 500)) - 1) if changed else -gap for gap, changed in seen)

    low, high = 1e-12, 10.0
    for _ in range(200):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return low


@settings(max_examples=300, deadline=None)
@given(beliefs, gaps, st.booleans())
def test_a_change_never_lowers_the_rate_and_none_never_raises_it(belief: Belief, gap_s: int, changed: bool) -> None:
    """R2: whatever was believed, and however early or late the visit came."""
    after = after_visit(belief, gap_s, changed=changed)
    assert isfinite(after.rate)
    assert after.rate > 0
    assert after.shape >= min(belief.shape, FIRST_SHAPE) * 0.999
    if changed:
        assert after.rate >= belief.rate * 0.999
    else:
        assert after.rate <= belief.rate * 1.001


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(gaps, st.booleans()), max_size=40), st.integers(1, YEAR))
def test_what_is_kept_of_a_belief_is_the_belief(visits: list[tuple[int, bool]], period_s: int) -> None:
    """R2: two whole numbers, a second and a hundredth of a change exact, within a hundred years."""
    belief = believed(visits, first_belief(period_s))
    kept = belief_of(History(DAY, 3, 1, 0, 0, 0, *packed(belief)))
    assert kept is not None
    assert kept.shape == pytest.approx(belief.shape, abs=0.006)
    assert 1 / kept.rate == pytest.approx(min(max(1 / belief.rate, 1), LONGEST_S), abs=0.51)


def test_a_visit_at_the_same_moment_is_no_news() -> None:
    """R2: nor one that the clock has put before the last."""
    belief = first_belief(DAY)
    for gap_s in (0, -5):
        assert after_visit(belief, gap_s, changed=True) == after_visit(belief, gap_s, changed=False) == belief


def test_visits_that_follow_each_other_closely_prove_no_stillness() -> None:
    """R2: a hundred within an hour are an hour."""
    belief = believed([(DAY, False)] * 5, first_belief(DAY))
    assert believed([(36, False)] * 100, belief).rate > 0.9 * belief.rate


def test_a_change_after_long_says_little_of_a_fast_page() -> None:
    """R2: that a page which changes hourly has changed within a month is no news."""
    belief = Belief(10, 10 * HOUR)
    assert after_visit(belief, 30 * DAY, changed=True).rate == pytest.approx(belief.rate, rel=0.01)
    assert after_visit(belief, HOUR / 10, changed=True).rate > 1.05 * belief.rate


RATES = [1 / period_s for period_s in (HOUR, 8 * HOUR, 3 * DAY, 30 * DAY, YEAR)]


def about(rate: float) -> Callable[[random.Random], float]:
    """Gaps from a tenth of a page's period to three of them: a thirtieth to nearly one of the chance of a change."""
    return lambda draw: draw.uniform(0.1, 3) / rate if draw.random() < 0.5 else draw.uniform(0.1, 0.5) / rate


@pytest.mark.parametrize("rate", RATES, ids=["hour", "8 hours", "3 days", "month", "year"])
def test_rates_over_four_orders_of_magnitude_are_found_from_irregular_visits(rate: float) -> None:
    """R2: from one belief for all, 100 times off at both ends; half of the pages within a third, 9 in 10 within 2.2."""
    ratios = []
    for seed in range(200):
        draw = random.Random(seed)
        visits = lived(rate, [about(rate)(draw) for _ in range(40)], draw)
        ratios.append(abs(log(believed(visits, first_belief(4 * DAY)).rate / rate)))
    ratios.sort()
    assert exp(median(ratios)) < 1.34
    assert exp(ratios[180]) < 2.2


def test_it_is_as_near_as_the_most_likely_rate_of_all_visits() -> None:
    """R2: though it keeps two numbers and forgets. The mean error over pages, of 8 to 50 irregular visits each."""
    errors, likeliest = [], []
    for seed in range(300):
        draw = random.Random(seed)
        rate = exp(draw.uniform(log(0.05), log(3))) / DAY
        visits = lived(rate, [draw.expovariate(1 / DAY) + 1 for _ in range(draw.randint(8, 50))], draw)
        errors.append(abs(believed(visits, first_belief(2 * DAY)).rate / rate - 1))
        likeliest.append(abs(most_likely(visits) / rate - 1))
    assert fmean(errors) < 1.15 * fmean(likeliest)
    assert fmean(errors) < 0.5


SHIFTS = [(HOUR, 30 * DAY), (300 * DAY, DAY), (DAY, 100 * DAY), (60 * DAY, 2 * DAY), (2 * DAY, 60 * DAY)]


@pytest.mark.parametrize(("before_s", "after_s"), SHIFTS)
def test_a_rate_that_shifts_is_followed(before_s: float, after_s: float) -> None:
    """R2: within thirty visits of the default policy to a factor of 3.5, for nine pages in ten."""
    off = []
    for seed in range(100):
        draw, belief = random.Random(seed), first_belief(42 * DAY)
        for period_s, visits in ((before_s, 40), (after_s, 30)):
            for _ in range(visits):
                gap_s = min(max(interval_for(belief.rate, DAY), 900), 30 * DAY) * draw.uniform(1, 1.3)
                belief = after_visit(belief, gap_s, changed=draw.random() < 1 - exp(-gap_s / period_s))
        off.append(abs(log(belief.rate * after_s)))
    off.sort()
    assert exp(off[90]) < 3.5


def test_nothing_is_told_of_changes_before_two_visits_were_compared() -> None:
    """R2, W3: what is believed at first is no estimate."""
    first = History(7 * DAY, 1, 0, 1000, 0, 0, *packed(first_belief(DAY)))
    assert rate_of(first) is None
    outlook = outlook_of(first)
    assert outlook == ((1000 + 7 * DAY) * 1000, None)
    assert outlook_of(History()) is None
    second = first._replace(visits=2)
    assert rate_of(second) == pytest.approx(1 / DAY)
    known = outlook_of(second)
    assert known is not None
    assert known.change_rate == pytest.approx(1.0)


@pytest.mark.parametrize(("visits", "changes", "least", "most"), [(2, 0, 0.02, 0.1), (11, 5, 0.5, 0.8), (51, 50, 2, 6)])
def test_a_history_of_an_earlier_version_is_believed_by_its_share_of_changes(
    visits: int, changes: int, least: float, most: float
) -> None:
    """R2: as if the visits had been an interval apart; the crawl goes on from there."""
    old = History(DAY if changes else 7 * DAY, visits, changes, 1000)
    rate = rate_of(old)
    assert rate is not None
    assert least < rate * DAY < most
    belief = belief_of(old)
    assert belief is not None
    assert FIRST_SHAPE <= belief.shape <= 20
    assert rate_of(History(DAY, 5, 0, 1000, gone=3, gone_since_s=10)) is None, "missing answers were no comparisons"


def test_records_of_an_earlier_version_are_read() -> None:
    """R2, F10: a history of six numbers, as a crawl directory may hold it."""
    old = msgspec.msgpack.encode((1, "", "", None, (), (DAY, 3, 1, 1000, 0, 0), 3, False))
    fate = msgspec.msgpack.decode(old, type=Fate)
    assert fate.history == History(DAY, 3, 1, 1000)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(fate), type=Fate) == fate


@settings(max_examples=100, deadline=None)
@given(beliefs, st.integers(0, YEAR))
def test_the_need_to_look_again_is_the_chance_that_the_page_has_changed(belief: Belief, elapsed_s: int) -> None:
    """R1, R2: points for freshness follow the same belief."""
    history = History(DAY, 4, 2, 1000, 0, 0, *packed(belief))
    kept = belief_of(history)
    assert kept is not None
    assert freshness_of(history, 1000 + elapsed_s) == pytest.approx(chance_of_change(kept, elapsed_s), abs=1e-9)
    assert freshness_of(history._replace(gone=1), 1000 + elapsed_s) == 0.0
