"""When a page is visited again by the policy that estimates how often it changes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.frontier.change import rate_of
from nephila.frontier.estimated import EstimatedRecrawl, interval_for, recrawl_of
from nephila.frontier.schedule import SimpleRecrawl
from nephila.interfaces.recrawl import History, Planned, RecrawlPolicy, Visit
from nephila.model.listing import ListKind
from nephila.model.policy import Tier
from nephila.model.settings import RecrawlSettings

STANDARD = RecrawlSettings()
POLICY = EstimatedRecrawl(STANDARD)
START = 1_800_000_000
MINUTE, HOUR, DAY = 60, 3600, 86_400
WEEK = 7 * DAY


def visited(times: int, *, changed: bool, first: Visit | None = None) -> list[Planned]:
    """The plans of so many visits, each just when it was planned."""
    visit = first or Visit(START, 200, changed=True)
    plans = [POLICY.plan(History(), visit)]
    while len(plans) < times:
        visit = replace(visit, at_s=visit.at_s + plans[-1].wait_s, changed=changed)
        plans.append(POLICY.plan(plans[-1].history, visit))
    return plans


def test_it_is_the_default_and_the_simple_policy_can_be_asked_for() -> None:
    """R2: and none, where nothing is visited again."""
    assert type(recrawl_of(STANDARD)) is EstimatedRecrawl
    assert type(recrawl_of(replace(STANDARD, policy="simple"))) is SimpleRecrawl
    assert recrawl_of(replace(STANDARD, enabled=False)) is None


@given(st.floats(HOUR, 3650 * DAY), st.floats(MINUTE, 30 * DAY))
def test_another_visit_just_pays_at_the_interval(period_s: float, price_s: float) -> None:
    """R2: what a visit more buys, rate / (f (f + rate)), is its price (Kolobov et al. 2019)."""
    rate, frequency = 1 / period_s, 1 / interval_for(1 / period_s, price_s)
    assert rate / (frequency * (frequency + rate)) == pytest.approx(price_s, rel=1e-6)
    assert interval_for(rate, price_s) >= price_s


@pytest.mark.parametrize(
    ("tier", "home", "expected"),
    [
        (Tier.NORMAL, False, WEEK),
        (Tier.NEWS, True, 15 * MINUTE),
        (Tier.NEWS, False, WEEK),
        (Tier.HIGH, False, 42 * HOUR),
        (Tier.LOW, True, 2 * WEEK),
    ],
)
def test_the_first_interval_is_by_kind_and_tier(tier: Tier, home: bool, expected: int) -> None:
    """R2: until there is history, as with the simple policy."""
    assert POLICY.plan(History(), Visit(START, 200, changed=True, home=home, tier=tier)).wait_s == expected


def test_a_page_that_is_still_is_visited_ever_more_rarely_up_to_30_days() -> None:
    """R2: no interval is shorter than the one before, from the first on."""
    waits = [plan.wait_s for plan in visited(60, changed=False)]
    assert waits == sorted(waits)
    assert waits[0] == WEEK
    assert waits[-1] == 30 * DAY


def test_a_page_that_changes_each_time_is_visited_about_once_a_day_and_never_given_up() -> None:
    """R2: the price is the shortest interval of an ordinary page, however fast it changes."""
    waits = [plan.wait_s for plan in visited(80, changed=True)]
    assert waits == sorted(waits, reverse=True)
    assert DAY <= waits[-1] < 1.5 * DAY
    assert waits[4] < WEEK / 2


@pytest.mark.parametrize(
    ("tier", "home", "least", "most"),
    [
        (Tier.HIGH, False, 90 * MINUTE, 2.5 * HOUR),
        (Tier.NEWS, False, 90 * MINUTE, 2.5 * HOUR),
        (Tier.NEWS, True, 15 * MINUTE, 20 * MINUTE),
        (Tier.LOW, False, 4 * DAY, 6 * DAY),
    ],
)
def test_what_matters_more_costs_less(tier: Tier, home: bool, least: float, most: float) -> None:
    """R2: a sixteenth of the price for news and the high tier; the home page of news is asked for every 15 minutes."""
    first = Visit(START, 200, changed=True, home=home, tier=tier)
    assert least <= visited(120, changed=True, first=first)[-1].wait_s <= most


def test_a_higher_price_makes_fewer_visits() -> None:
    """R2: of every page, whatever its rate."""
    for price_s in (HOUR, 6 * HOUR, DAY):
        cheap, dear = (EstimatedRecrawl(replace(STANDARD, price_s=price)) for price in (price_s, 4 * price_s))
        for period_s in (HOUR, DAY, 30 * DAY):
            history = History(DAY, 9, 4, START, 0, 0, period_s, 500)
            visit = Visit(START + DAY, 200, changed=True)
            assert cheap.plan(history, visit).wait_s < dear.plan(history, visit).wait_s


def test_early_and_late_visits_say_what_they_say() -> None:
    """R2: twenty visits within an hour are an hour; a month without crawling hides nothing."""
    plan = POLICY.plan(History(), Visit(START, 200, changed=True))
    for number in range(1, 21):
        plan = POLICY.plan(plan.history, Visit(START + 180 * number, 200, changed=False))
    assert plan.wait_s == pytest.approx(WEEK, rel=0.03)
    late = POLICY.plan(plan.history, Visit(START + 60 * DAY, 200, changed=True)).wait_s
    soon = POLICY.plan(plan.history, Visit(START + DAY, 200, changed=True)).wait_s
    assert soon < late < WEEK, "a change may lie anywhere in two months"


def test_a_refusal_is_no_visit_to_the_page() -> None:
    """R2: nothing was seen of its content, and what is believed of it stays."""
    known = visited(6, changed=True)[-1]
    refused = POLICY.plan(known.history, Visit(START + 90 * DAY, 403, changed=True))
    assert rate_of(refused.history) == rate_of(known.history)
    assert refused.history.changes == known.history.changes


def test_a_missing_page_is_asked_for_more_rarely_and_comes_back_at_its_pace() -> None:
    """R5: as with the simple policy; what was believed of its changes is not forgotten."""
    busy = visited(40, changed=True)[-1]
    missing = POLICY.plan(busy.history, Visit(START + 400 * DAY, 404, changed=True))
    assert missing.wait_s == 2 * busy.wait_s
    assert not missing.gone
    back = POLICY.plan(missing.history, Visit(START + 410 * DAY, 200, changed=True))
    assert back.wait_s == busy.wait_s
    assert rate_of(back.history) == rate_of(busy.history)
    new = POLICY.plan(History(), Visit(START, 404, changed=True))
    again = POLICY.plan(
        POLICY.plan(new.history, Visit(START + WEEK, 404, changed=True)).history, Visit(START + 30 * DAY, 200, True)
    )
    assert again.wait_s == WEEK


def test_a_fixed_interval_is_kept_and_the_rate_learned_meanwhile() -> None:
    """R4, R2: when the policy of its domain is lifted, the page is visited as it changes."""
    visit = Visit(START, 200, changed=True, fixed_s=HOUR)
    plan = POLICY.plan(History(), visit)
    for number in range(1, 200):
        plan = POLICY.plan(plan.history, replace(visit, at_s=START + HOUR * number, changed=number % 24 == 0))
        assert plan.wait_s == HOUR
    rate = rate_of(plan.history)
    assert rate is not None
    assert 0.4 < rate * DAY < 2.5
    free = POLICY.plan(plan.history, Visit(START + 200 * HOUR, 200, changed=False))
    assert free.wait_s == pytest.approx(interval_for(1 / DAY, DAY), rel=0.4)


def test_lists_are_halved_and_doubled() -> None:
    """X3, R2: what a list is worth is what it names."""
    simple = SimpleRecrawl(STANDARD)
    for changed in (True, False):
        visit = Visit(START, 200, changed=True, listing=ListKind.FEED)
        one, other = POLICY.plan(History(), visit), simple.plan(History(), visit)
        for number in range(1, 8):
            visit = replace(visit, at_s=START + 5 * HOUR * number, changed=changed)
            one, other = POLICY.plan(one.history, visit), simple.plan(other.history, visit)
            assert one == other


def test_a_crawl_of_an_earlier_version_goes_on_with_what_its_visits_have_shown() -> None:
    """R2: histories without a belief, of six numbers."""
    busy, still = History(DAY, 30, 28, START), History(14 * DAY, 5, 0, START)
    assert POLICY.plan(busy, Visit(START + DAY, 200, changed=True)).wait_s < 2 * DAY
    assert POLICY.plan(still, Visit(START + 14 * DAY, 200, changed=False)).wait_s > 6 * DAY


# What it buys


class Bought(NamedTuple):
    """What came of a year of visits."""

    freshness: float
    """The share of the time in which copies were up to date, over all pages."""
    visits: int


def live(policy: RecrawlPolicy, rates: Sequence[float], seed: int, days: int = 365, warm: int = 100) -> Bought:
    """Visit pages that change by chance at these rates, each visit up to a third late; the first days do not count."""
    fresh_s, visits, begin, end = 0.0, 0, START + warm * DAY, START + (warm + days) * DAY
    for number, rate in enumerate(rates):
        draw = random.Random(seed * 1_000_003 + number)
        at, plan, changes_at = float(START), policy.plan(History(), Visit(START, 200, changed=True)), 0.0
        changes_at = START + draw.expovariate(rate)
        while at < end:
            due = round(at + plan.wait_s * draw.uniform(1, 1.33))
            fresh_s += max(0.0, min(changes_at, due, end) - max(at, begin))
            visits += begin <= due < end
            changed = changes_at <= due
            if changed:
                changes_at = due + draw.expovariate(rate)
            at, plan = due, policy.plan(plan.history, Visit(due, 200, changed))
    return Bought(fresh_s / (len(rates) * days * DAY), visits)


def population(seed: int, pages: int = 250) -> list[float]:
    """Rates as they are found on the web: about a month in the middle, over five orders of magnitude in all."""
    draw = random.Random(seed)
    return [1 / (30 * DAY * exp(draw.gauss(0, 2))) for _ in range(pages)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_buys_more_freshness_than_halving_and_doubling_with_fewer_visits(seed: int) -> None:
    """R2: the budget goes where it buys most."""
    rates = population(seed)
    simple, estimated = live(SimpleRecrawl(STANDARD), rates, seed), live(POLICY, rates, seed)
    assert estimated.visits < 0.95 * simple.visits
    assert estimated.freshness > 1.1 * simple.freshness


def test_it_comes_near_to_what_could_be_had_if_all_rates_were_known() -> None:
    """R2: the same price, with the true rates and none to be found out."""

    class Knowing:
        """A policy that knows the rate of the page that is visited."""

        rate = 0.0

        def plan(self, history: History, visit: Visit) -> Planned:
            wait_s = round(min(max(interval_for(self.rate, DAY), 900), 30 * DAY))
            return Planned(history._replace(interval_s=wait_s, last_s=visit.at_s), wait_s)

    rates, knowing = population(7), Knowing()
    estimated, best = live(POLICY, rates, 7), 0.0
    for number, rate in enumerate(rates):
        knowing.rate = rate
        best += live(knowing, [rate], 7 + number).freshness / len(rates)
    assert estimated.freshness > 0.96 * best


def test_every_rate_gets_its_part() -> None:
    """R2: of pages that change a hundred times as often, visits are more, and far from a hundred times as many."""
    visits = [live(POLICY, [1 / (period * DAY)] * 30, 5).visits for period in (0.1, 1, 10, 100)]
    assert visits == sorted(visits, reverse=True)
    assert 3 < visits[1] / visits[3] < 12
    assert visits[0] < 1.7 * visits[1], "what cannot be followed is not hunted"
    assert log(visits[0] / visits[3]) < log(20)
