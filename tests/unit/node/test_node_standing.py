"""Pure parts of what an operator is told: ages of the queue, the words for every reason, what a policy may say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.frontier.embedded.book import AGE_STEP_S
from nephila.model.errors import UsageError
from nephila.model.outcome import DeferReason
from nephila.model.policy import DomainPolicy
from nephila.node.circumstances import span
from nephila.node.operating import check_policy
from nephila.node.reasons import REASONS
from nephila.node.standing import AGES, by_age

NOW_STEP = 1000


@pytest.mark.parametrize(
    ("steps_ago", "age"),
    [(0, "under_4h"), (1, "under_1d"), (6, "under_7d"), (40, "under_7d"), (43, "under_30d"), (200, "longer")],
)
def test_queued_urls_are_counted_by_how_long_ago_they_were_found(steps_ago: int, age: str) -> None:
    """F7, C4: in steps of four hours, each counted as its middle."""
    ages = by_age({NOW_STEP - steps_ago: [1, 2, 3, 4]}, NOW_STEP * AGE_STEP_S + AGE_STEP_S // 2)
    assert {level: found[age] for level, found in ages.items()} == {"immediate": 1, "high": 2, "medium": 3, "low": 4}


@given(
    st.dictionaries(st.integers(0, 5000), st.lists(st.integers(0, 99), min_size=4, max_size=4)), st.integers(0, 10**8)
)
def test_no_queued_url_is_lost_between_the_ages(counts: dict[int, list[int]], now_s: int) -> None:
    """F7: whatever the clock says, also where it was set back."""
    ages = by_age(counts, now_s)
    assert sum(sum(found.values()) for found in ages.values()) == sum(map(sum, counts.values()))
    assert all(list(found) == list(AGES) for found in ages.values())


def test_every_reason_to_wait_has_its_words() -> None:
    """T8: a new one cannot be forgotten."""
    assert set(DeferReason) <= set(REASONS)
    for rule in ("scope", "excluded", "extension", "nofollow", "depth", "too_long", "too_many_segments", "robots"):
        assert REASONS[rule]
    for rule in ("repeated_segments", "blocked", "policy_depth", "gone"):
        assert REASONS[rule]


@pytest.mark.parametrize("hours", [((0, 24),), ((22, 6), (12, 14)), ((23, 24),)])
def test_hours_of_a_day_are_taken(hours: tuple[tuple[int, int], ...]) -> None:
    """R4: over midnight too."""
    check_policy(DomainPolicy(hours=hours))


@pytest.mark.parametrize("hours", [((0, 0),), ((24, 2),), ((-1, 3),), ((3, 25),), ((1, 2), (7, 7))])
def test_what_are_no_hours_is_refused(hours: tuple[tuple[int, int], ...]) -> None:
    """R4: told before anything is changed."""
    with pytest.raises(UsageError, match="no hours of a day"):
        check_policy(DomainPolicy(hours=hours))


@pytest.mark.parametrize("seconds", [-1.0, 1e300, float("inf"), float("nan")])
def test_a_time_that_no_record_holds_is_refused(seconds: float) -> None:
    """R4: a crawl would break on it at its next claim, and at every start."""
    for policy in (DomainPolicy(delay_s=seconds), DomainPolicy(recrawl_s=seconds)):
        with pytest.raises(UsageError, match="cannot be kept"):
            check_policy(policy)


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.25, "0.25 s"), (119, "119 s"), (600, "10 min"), (9000, "2.5 h"), (604_800, "7 days")]
)
def test_waits_are_told_in_a_unit_that_fits(seconds: float, said: str) -> None:
    """T8, C4: in few digits."""
    assert span(seconds) == said
