"""When a page is visited again, and when it is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.frontier.estimated import EstimatedRecrawl
from nephila.frontier.schedule import SimpleRecrawl, is_gone
from nephila.interfaces.recrawl import History, Planned, RecrawlPolicy, Visit
from nephila.model.listing import ListKind
from nephila.model.policy import Tier
from nephila.model.settings import RecrawlSettings

STANDARD = RecrawlSettings()
POLICY: RecrawlPolicy = SimpleRecrawl(STANDARD)
START = 1_800_000_000
MINUTE, HOUR, DAY = 60, 3600, 86_400
WEEK = 7 * DAY

statuses = st.sampled_from([0, 200, 200, 200, 204, 301, 304, 403, 404, 404, 404, 410, 429, 451, 500, 503])
failures = st.sampled_from([0, 429, 500, 502, 503, 504, 599])
limits = st.builds(
    RecrawlSettings,
    first_s=st.floats(1, 60 * DAY),
    news_home_s=st.floats(1, DAY),
    min_s=st.floats(1, HOUR),
    max_s=st.floats(HOUR, 60 * DAY),
    factor=st.floats(1, 10),
    gone_after=st.integers(1, 10),
    gone_over_s=st.floats(0, 10 * DAY),
    gone_max_s=st.floats(HOUR, 365 * DAY),
    price_s=st.floats(1, 30 * DAY),
)
policies = st.sampled_from([SimpleRecrawl, EstimatedRecrawl])
visits = st.lists(
    st.tuples(st.integers(-DAY, 90 * DAY), statuses, st.booleans(), st.booleans(), st.sampled_from(Tier)), max_size=25
)


def lived(answers: Sequence[tuple[int, int, bool]], policy: RecrawlPolicy = POLICY) -> Planned:
    """The plan after visits given as (seconds since the last one, status, changed)."""
    plan, now = Planned(History(), 0), START
    for gap_s, status, changed in answers:
        now += gap_s
        plan = policy.plan(plan.history, Visit(now, status, changed))
    return plan


def on_time(status: int, times: int, plan: Planned, changed: bool = False) -> list[Planned]:
    """The plans of so many visits, each just when it was planned."""
    found = []
    now = plan.history.last_s or START
    for _ in range(times):
        now += plan.wait_s
        plan = POLICY.plan(plan.history, Visit(now, status, changed))
        found.append(plan)
    return found


def waits(plans: Sequence[Planned]) -> list[int]:
    return [plan.wait_s for plan in plans]


@settings(max_examples=300, deadline=None)
@given(policies, limits, visits)
def test_a_wait_is_always_within_its_bounds(
    kind: type[SimpleRecrawl], wanted: RecrawlSettings, answers: list[tuple[int, int, bool, bool, Tier]]
) -> None:
    """R2: whatever is answered, however late or early, and when the clock jumps back."""
    policy = kind(wanted)
    history, now = History(), START
    for gap_s, status, changed, home, tier in answers:
        now += gap_s
        plan = policy.plan(history, Visit(now, status, changed, home, tier))
        history = plan.history
        longest = wanted.gone_max_s if history.gone else wanted.max_s
        assert wanted.min_s <= plan.wait_s <= longest
        assert 0 <= history.changes <= max(0, history.visits - 1)
        assert plan.gone == is_gone(history, wanted)


@pytest.mark.parametrize(
    ("tier", "home", "expected"),
    [
        (Tier.NORMAL, False, WEEK),
        (Tier.NORMAL, True, WEEK),
        (Tier.NEWS, True, 15 * MINUTE),
        (Tier.NEWS, False, WEEK),
        (Tier.HIGH, False, 42 * HOUR),
        (Tier.LOW, True, 2 * WEEK),
    ],
)
def test_the_first_interval_is_by_kind_and_tier(tier: Tier, home: bool, expected: int) -> None:
    """R2: a news home page after 15 minutes, an ordinary page after a week."""
    plan = POLICY.plan(History(), Visit(START, 200, changed=True, home=home, tier=tier))
    assert plan.history[:6] == (expected, 1, 0, START, 0, 0)
    assert plan[1:] == (expected, False)


def test_the_interval_is_halved_by_changes_down_to_15_minutes() -> None:
    """R2: interval /2 when changed."""
    found = on_time(200, 12, lived([(0, 200, True)]), changed=True)
    assert waits(found[:3]) == [WEEK // 2, WEEK // 4, WEEK // 8]
    assert waits(found[-2:]) == [15 * MINUTE, 15 * MINUTE]
    assert found[-1].history.changes == 12
    assert found[-1].history.visits == 13


@pytest.mark.parametrize("status", [200, 304, 403])
def test_the_interval_is_doubled_without_changes_up_to_30_days(status: int) -> None:
    """R2: x2 when not changed; an answer of 4xx is no change."""
    assert waits(on_time(status, 4, lived([(0, 200, True)]))) == [2 * WEEK, 4 * WEEK, 30 * DAY, 30 * DAY]


def test_a_refusal_is_no_change_although_its_body_differs() -> None:
    """R2: what counts is the page's content, and a 403 has none of it."""
    plan = lived([(0, 200, False), (WEEK, 403, True)])
    assert (plan.wait_s, plan.history.changes) == (2 * WEEK, 0)


def test_a_late_visit_without_a_change_proves_stillness_for_as_long() -> None:
    """R2: irregular gaps; the longer wait is what doubles."""
    assert lived([(0, 200, False), (10 * DAY, 200, False)]).wait_s == 20 * DAY


@pytest.mark.parametrize(("late_s", "expected"), [(WEEK, WEEK // 2), (10 * DAY, 5 * DAY), (60 * DAY, WEEK)])
def test_a_change_found_late_shortens_less_and_never_lengthens(late_s: int, expected: int) -> None:
    """R2: irregular gaps; a change within two months says nothing about a week."""
    assert lived([(0, 200, False), (late_s, 200, True)]).wait_s == expected


def test_visits_that_come_much_too_early_do_not_lengthen_the_interval() -> None:
    """R2: twenty cycles within an hour are no proof that a page is still."""
    plan = lived([(0, 200, False), *[(180, 200, False)] * 20])
    assert (plan.wait_s, plan.history.visits) == (WEEK, 21)
    assert lived([(0, 200, False), (180, 200, True)]).wait_s == WEEK // 2


def test_a_policys_interval_is_kept_whatever_happens_to_the_page() -> None:
    """R4: fixed by hand, outside of the bounds too, while the page is there."""
    fixed = Visit(START, 200, changed=True, fixed_s=60)
    plan = POLICY.plan(History(), fixed)
    for status, changed in ((200, True), (200, False), (403, False), (503, False)):
        plan = POLICY.plan(plan.history, replace(fixed, at_s=START + 60, status=status, changed=changed))
        assert plan.wait_s == 60
    free = POLICY.plan(plan.history, Visit(START + 120, 200, changed=False))
    assert free.wait_s == STANDARD.min_s, "back within the bounds when it is lifted"


@settings(max_examples=200, deadline=None)
@given(policies, limits, visits, st.lists(failures, min_size=1, max_size=30), st.integers(1, 90 * DAY))
def test_failures_are_no_visits_and_never_make_a_page_gone(
    kind: type[SimpleRecrawl],
    wanted: RecrawlSettings,
    before: list[tuple[int, int, bool, bool, Tier]],
    errors: list[int],
    gap_s: int,
) -> None:
    """R5: the history stays as it was, over any time."""
    policy = kind(wanted)
    known = lived([(gap, status, changed) for gap, status, changed, _, _ in before], policy)
    now = START + 10**9
    for status in errors:
        now += gap_s
        plan = policy.plan(known.history, Visit(now, status, changed=True))
        assert plan.history == known.history
        assert plan.gone == is_gone(known.history, wanted)


@settings(max_examples=300, deadline=None)
@given(policies, limits, visits)
def test_gone_is_proven_by_repeated_answers_over_the_whole_time(
    kind: type[SimpleRecrawl], wanted: RecrawlSettings, answers: list[tuple[int, int, bool, bool, Tier]]
) -> None:
    """R5: never after one 404, never within the time that is asked for, and always after both."""
    policy = kind(wanted)
    history, now, missing_at = History(), START, list[int]()
    for gap_s, status, changed, _, _ in answers:
        now += abs(gap_s)
        plan = policy.plan(history, Visit(now, status, changed))
        history = plan.history
        if status in {404, 410}:
            missing_at.append(now)
        elif status not in {0, 429} and status < 500:
            missing_at.clear()
        proven = len(missing_at) >= max(2, wanted.gone_after) and missing_at[-1] - missing_at[0] >= wanted.gone_over_s
        assert plan.gone == proven


def test_one_404_is_never_enough() -> None:
    """R5: not even when the settings ask for no more."""
    hasty = SimpleRecrawl(RecrawlSettings(gone_after=1, gone_over_s=0))
    assert not lived([(0, 200, False), (WEEK, 404, True)], hasty).gone
    assert lived([(0, 200, False), (WEEK, 404, True), (1, 404, True)], hasty).gone


def test_many_answers_of_404_within_days_are_not_enough() -> None:
    """R5: three days by default."""
    assert not lived([(HOUR, 404, True)] * 72).gone
    assert lived([(HOUR, 404, True)] * 73).gone


def test_a_gone_page_is_asked_for_ever_more_rarely() -> None:
    """R5: x2 each time up to 180 days; gone with the third answer; a failure in between changes nothing."""
    plans = on_time(404, 6, lived([(0, 200, True)]))
    assert waits(plans) == [2 * WEEK, 4 * WEEK, 8 * WEEK, 16 * WEEK, 180 * DAY, 180 * DAY]
    assert [plan.gone for plan in plans] == [False, False, True, True, True, True]
    failed = on_time(503, 1, plans[-1])[0]
    assert (failed.wait_s, failed.gone) == (180 * DAY, True)


def test_one_404_after_a_long_pause_does_not_hide_a_page() -> None:
    """R5: the interval doubles, not the month in which nobody asked."""
    assert lived([(0, 200, False), (60 * DAY, 404, True)]).wait_s == 2 * WEEK
    assert lived([(0, 404, False), (60, 404, True)]).wait_s == WEEK, "and asking at once proves nothing"


def test_a_page_with_a_fixed_interval_can_be_gone_too() -> None:
    """R4, R5: what is missing is asked for more and more rarely, whatever the policy of its domain says."""
    now, history, found = START, History(), list[int]()
    for _ in range(4):
        plan = POLICY.plan(history, Visit(now, 410, changed=True, fixed_s=DAY))
        history, now = plan.history, now + plan.wait_s
        found.append(plan.wait_s)
    assert found == [DAY, 2 * DAY, 4 * DAY, 8 * DAY]
    assert is_gone(history, STANDARD)
    assert POLICY.plan(history, Visit(now, 200, changed=True, fixed_s=DAY)).wait_s == DAY


def test_a_gone_page_comes_back_when_it_comes_back() -> None:
    """R5: with a first interval at most, counted as a change, and its missing answers forgotten."""
    gone = on_time(404, 6, lived([(0, 200, True)]))[-1]
    back = on_time(200, 1, gone)[0]
    assert (back.wait_s, back.gone) == (WEEK, False)
    assert back.history.changes == gone.history.changes + 1
    assert (back.history.gone, back.history.gone_since_s) == (0, 0)
    assert not on_time(404, 1, back)[0].gone, "and must be proven gone anew"


def test_an_often_changing_page_that_was_missing_once_keeps_its_pace() -> None:
    """R5: coming back counts as a change of the interval it had, not as a new page."""
    busy = on_time(200, 12, lived([(0, 200, True)]), changed=True)[-1]
    missing = on_time(404, 1, busy)[0]
    assert (missing.wait_s, missing.gone) == (30 * MINUTE, False)
    assert on_time(200, 1, missing)[0].wait_s == 15 * MINUTE


@pytest.mark.parametrize(
    ("listing", "first", "least", "most"),
    [(ListKind.FEED, HOUR, 15 * MINUTE, DAY), (ListKind.SITEMAP, DAY, HOUR, WEEK), (ListKind.INDEX, DAY, HOUR, WEEK)],
)
def test_lists_come_round_within_bounds_of_their_own(listing: str, first: int, least: int, most: int) -> None:
    """X3, R2: a feed is asked for in an hour and then as often as it changes; a sitemap a day later."""
    visit = Visit(START, 200, changed=True, listing=listing)
    planned = POLICY.plan(History(), visit)
    assert planned.wait_s == first
    for changed, bound in ((True, least), (False, most)):
        history, at = planned.history, START
        for _ in range(20):
            at += history.interval_s
            history = POLICY.plan(history, replace(visit, at_s=at, changed=changed)).history
        assert history.interval_s == bound


@pytest.mark.parametrize(("status", "remembered"), [(200, False), (204, False), (301, True), (307, True)])
def test_where_a_redirect_leads_is_remembered_where_bytes_count(status: int, remembered: bool) -> None:
    """R2: it has none that could be compared."""
    policy = SimpleRecrawl(replace(STANDARD, changed="bytes"))
    plan = policy.plan(History(), Visit(START, status, changed=True, said=7))
    plan = policy.plan(plan.history, Visit(START + DAY, status, changed=False, said=7))
    assert bool(plan.history.said) is remembered
    assert SimpleRecrawl(STANDARD).plan(History(), Visit(START, status, changed=True, said=7)).history.said == 7


@pytest.mark.parametrize("kind", [SimpleRecrawl, EstimatedRecrawl])
def test_what_a_site_said_of_a_first_interval_stays_when_the_rules_change(kind: type[SimpleRecrawl]) -> None:
    """R2, X3: it is no ordinary first interval; within the new bounds."""
    told = kind(STANDARD).plan(History(), Visit(START, 200, True, expected_s=20 * DAY)).history
    ordinary = kind(STANDARD).plan(History(), Visit(START, 200, True)).history

    def revised(history: History, **others: float) -> int:
        rules = kind(replace(STANDARD, **others))
        return rules.revised(history, home=False, tier=Tier.NORMAL, fixed_s=None)

    assert revised(told, first_s=DAY) == 20 * DAY
    assert revised(told, first_s=DAY, max_s=10 * DAY) == 10 * DAY
    assert revised(ordinary, first_s=DAY) == DAY
    assert revised(ordinary, first_s=10 * DAY) == WEEK
    assert revised(History()) == 0, "nothing was planned"
