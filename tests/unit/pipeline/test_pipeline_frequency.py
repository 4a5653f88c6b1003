"""What changefreq and priority of a sitemap are worth: learned, and only then acted on."""

from __future__ import annotations

import pytest

from nephila.frontier.schedule import SimpleRecrawl
from nephila.interfaces.recrawl import History, Visit
from nephila.model.listing import ListedNote, SiteTrust
from nephila.model.policy import Tier
from nephila.model.settings import RecrawlSettings, SitemapSettings
from nephila.pipeline.frequency import (
    DAY_S,
    EVERY_S,
    PRIORITIES_KEPT,
    Priorities,
    finding_of,
    is_frequency_believed,
    weigh_frequency,
)
from nephila.pipeline.trust import FADES_AT, FALSE, MISSED, RIGHT

SETTINGS = SitemapSettings()
NOW = 100 * DAY_S


@pytest.mark.parametrize(
    ("elapsed_s", "changed", "finding"),
    [
        (2 * DAY_S, True, RIGHT),
        (2 * DAY_S, False, FALSE),
        (DAY_S // 4, True, MISSED),
        (DAY_S // 4, False, ""),
        (DAY_S * 3 // 4, True, ""),
        (DAY_S * 3 // 4, False, ""),
    ],
)
def test_a_visit_against_what_was_claimed(elapsed_s: int, changed: bool, finding: str) -> None:
    """X3, R2: after the time that was claimed a change is due; long before it, none is."""
    note = ListedNote(0, text=b"old", every_s=DAY_S, visited_s=NOW - elapsed_s)
    assert finding_of(note, NOW, changed=changed) == finding


@pytest.mark.parametrize(
    "note",
    [
        ListedNote(0, text=b"x", visited_s=1),
        ListedNote(0, text=b"x", every_s=DAY_S),
        ListedNote(0, every_s=DAY_S, visited_s=1),
    ],
)
def test_nothing_is_shown_by_what_cannot_be_compared(note: ListedNote) -> None:
    """X3: without a claim, a visit before, or a text."""
    assert finding_of(note, NOW, changed=True) == ""


def test_beliefs_follow_the_evidence_both_ways() -> None:
    """X3: a site that lies is not believed, and is again when it has mended its ways."""
    site = SiteTrust()
    for _ in range(4):
        site = weigh_frequency(site, FALSE)
        assert is_frequency_believed(site, SETTINGS)
    site = weigh_frequency(site, MISSED)
    assert not is_frequency_believed(site, SETTINGS)
    for _ in range(2 * FADES_AT):
        site = weigh_frequency(site, RIGHT)
    assert is_frequency_believed(site, SETTINGS)
    assert site.often_right + site.often_wrong <= FADES_AT
    assert (site.right, site.false, site.missed) == (0, 0, 0), "its dates are another matter"


def test_the_first_interval_is_what_the_site_says_and_no_other() -> None:
    """X3, R2: within the bounds, before there is a history; a fixed interval and news come first."""
    policy = SimpleRecrawl(RecrawlSettings())

    def wait_s(history: History = History(), **more: object) -> int:  # noqa: B008 - frozen
        return policy.plan(history, Visit(NOW, 200, changed=True, **more)).wait_s  # type: ignore[arg-type]

    assert wait_s() == 7 * DAY_S
    assert wait_s(expected_s=EVERY_S["daily"]) == DAY_S
    assert wait_s(expected_s=EVERY_S["always"]) == 900
    assert wait_s(expected_s=EVERY_S["never"]) == 30 * DAY_S
    assert wait_s(expected_s=DAY_S, fixed_s=5_000.0) == 5_000
    assert wait_s(expected_s=DAY_S, tier=Tier.NEWS, home=True) == 900
    assert wait_s(History(4 * DAY_S, 3, 1, NOW - 4 * DAY_S), expected_s=DAY_S) == 2 * DAY_S


def test_a_site_that_calls_everything_important_says_nothing() -> None:
    """X3, R1: what counts is how far a page stands above the others of its host."""
    same, apart = Priorities(SiteTrust()), Priorities(SiteTrust())
    for number in range(1_000):
        same.heard(1.0)
        apart.heard(0.9 if number % 10 == 0 else 0.1)
    assert abs(same.above(1.0)) < 0.01
    assert apart.above(0.9) > 0.6
    assert apart.above(0.1) < 0
    assert Priorities(SiteTrust()).above(1.0) == pytest.approx(0.5), "at first it is believed"
    again = Priorities(apart.kept(SiteTrust()))
    assert again.mean == pytest.approx(apart.mean, abs=0.001)
    for _ in range(2 * PRIORITIES_KEPT):
        again.heard(0.5)
    assert again.count <= PRIORITIES_KEPT
