"""What a URL's score is made of, and the class that follows from it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.frontier.score import bonus_of, freshness_of, level_of, lowered, score
from nephila.interfaces.recrawl import History
from nephila.model.policy import Tier
from nephila.model.settings import PrioritySettings
from nephila.model.task import Level

STANDARD = PrioritySettings()
DAY = 86_400

weights = st.builds(
    PrioritySettings,
    authority=st.integers(0, 100),
    depth=st.integers(0, 100),
    depth_step=st.integers(0, 100),
    freshness=st.integers(0, 100),
    news=st.integers(0, 100),
    high_from=st.integers(0, 101),
    medium_from=st.integers(0, 101),
)
shares = st.floats(0, 1)
depths = st.integers(0, 250)
bonuses = st.integers(-100, 300)
tiers = st.sampled_from(Tier)
histories = st.builds(
    History,
    interval_s=st.integers(0, 180 * DAY),
    visits=st.integers(0, 1000),
    changes=st.integers(0, 1000),
    last_s=st.integers(0, 2**31),
    gone=st.integers(0, 3),
)


@settings(max_examples=300, deadline=None)
@given(weights, st.floats(allow_nan=True), depths, bonuses, st.floats(allow_nan=True), tiers)
def test_a_score_is_a_whole_number_from_0_to_100(
    wanted: PrioritySettings, authority: float, depth: int, bonus: int, freshness: float, tier: Tier
) -> None:
    """R1: whatever the weights are and however odd the terms."""
    points = score(wanted, authority, depth, bonus, freshness, tier)
    assert type(points) is int
    assert 0 <= points <= 100


@settings(max_examples=300, deadline=None)
@given(weights, shares, shares, depths, depths, bonuses, shares, tiers)
def test_authority_raises_a_score_and_depth_lowers_it(
    wanted: PrioritySettings,
    one: float,
    other: float,
    depth: int,
    deeper: int,
    bonus: int,
    freshness: float,
    tier: Tier,
) -> None:
    """R1: never the other way round."""
    less, more = sorted((one, other))
    near, far = sorted((depth, deeper))
    best = score(wanted, more, near, bonus, freshness, tier)
    assert best >= score(wanted, less, near, bonus, freshness, tier)
    assert best >= score(wanted, more, far, bonus, freshness, tier)
    assert best >= score(wanted, more, near, bonus, 0.0, tier)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (score(STANDARD, 0.0, 0), 20),
        (score(STANDARD, 0.0, 3), 14),
        (score(STANDARD, 0.0, 10), 0),
        (score(STANDARD, 0.0, 11), 0),
        (score(STANDARD, 1.0, 10), 40),
        (score(STANDARD, 0.5, 1), 38),
        (score(STANDARD, 0.0, 10, freshness=1.0), 20),
        (score(STANDARD, 0.0, 10, tier=Tier.NEWS), 20),
        (score(STANDARD, 0.0, 10, tier=Tier.HIGH), 20),
        (score(STANDARD, 0.0, 0, tier=Tier.LOW), 0),
        (score(STANDARD, 0.5, 0, bonus=15, tier=Tier.LOW), 35),
        (score(STANDARD, 1.0, 0, bonus=35, freshness=1.0, tier=Tier.NEWS), 100),
    ],
)
def test_the_default_weights_are_those_of_the_specification(points: int, expected: int) -> None:
    """R1: authority 0-40, depth max(0, 20 - 2 x depth), freshness 0-20, news 20, capped at 100."""
    assert points == expected


@settings(max_examples=200, deadline=None)
@given(weights, st.integers(0, 100), st.integers(0, 100))
def test_a_higher_score_is_never_of_a_lower_class_and_none_is_immediate(
    wanted: PrioritySettings, one: int, other: int
) -> None:
    """F1, R1: immediate is somebody's order, not the web's."""
    less, more = sorted((one, other))
    assert Level.IMMEDIATE < level_of(wanted, more) <= level_of(wanted, less)


def test_the_borders_of_the_classes_belong_to_the_higher_one() -> None:
    """R1: from 45 on high, from 20 on medium."""
    assert [level_of(STANDARD, points) for points in (100, 45, 44, 20, 19, 0)] == [
        *(Level.HIGH, Level.HIGH, Level.MEDIUM, Level.MEDIUM, Level.LOW, Level.LOW),
    ]


def test_a_class_drops_to_low_and_no_further() -> None:
    """P4: one level or two; immediate is untouched."""
    assert [lowered(level, 1) for level in Level] == [Level.IMMEDIATE, Level.MEDIUM, Level.LOW, Level.LOW]
    assert [lowered(level, 2) for level in Level] == [Level.IMMEDIATE, Level.LOW, Level.LOW, Level.LOW]
    assert [lowered(level, 0) for level in Level] == list(Level)


@settings(max_examples=300, deadline=None)
@given(histories, st.integers(0, 2**32), st.integers(0, 2**32))
def test_the_need_for_a_visit_grows_with_the_wait_from_0_towards_1(history: History, one: int, other: int) -> None:
    """R1: estimated change rate x time since the last fetch, for any history and under a clock that jumps."""
    early, late = sorted((one, other))
    assert 0.0 <= freshness_of(history, early) <= freshness_of(history, late) <= 1.0
    assert freshness_of(history, history.last_s) == 0.0


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 1000), st.integers(1, 999), st.integers(1, 30 * DAY))
def test_a_page_that_changed_more_often_needs_a_visit_more(visits: int, changes: int, elapsed_s: int) -> None:
    """R1: at the same interval and the same age."""
    changes = min(changes, visits)
    often = History(DAY, visits, changes, 1000)
    seldom = History(DAY, visits, changes - 1, 1000)
    assert freshness_of(often, 1000 + elapsed_s) >= freshness_of(seldom, 1000 + elapsed_s)


def test_little_history_is_read_with_caution() -> None:
    """R1: one visit, or one change in one, proves neither a dead page nor one that always changes."""
    due = 1000 + DAY
    assert freshness_of(History(DAY, 1, 0, 1000), due) == pytest.approx(0.5)
    assert freshness_of(History(DAY, 2, 0, 1000), due) == pytest.approx(0.25)
    assert freshness_of(History(DAY, 2, 1, 1000), due) == pytest.approx(0.75)
    assert freshness_of(History(DAY, 101, 50, 1000), due) == pytest.approx(0.5, abs=0.01)
    assert freshness_of(History(DAY, 101, 0, 1000), due) < 0.01


def test_what_was_never_fetched_or_is_missing_is_not_out_of_date() -> None:
    """R1, R5: there is no content that could have changed."""
    assert freshness_of(History(), 10**9) == 0.0
    assert freshness_of(History(DAY, 5, 2, 1000, gone=1, gone_since_s=1000), 10**9) == 0.0


@pytest.mark.parametrize(
    ("path", "points"),
    [
        ("/", 0),
        ("", 0),
        ("/page", 0),
        ("/page.html", 0),
        ("/page.php", 0),
        ("/a.b/page", 0),
        ("/v1.zip/readme", 0),
        ("/paper.pdf", -10),
        ("/PAPER.PDF", -10),
        ("/paper.pdf?download=1", -10),
        ("/view?file=paper.pdf", 0),
        ("/photo.jpeg", -20),
        ("/site.webmanifest", -20),
        ("/data.tar.gz", -20),
        ("https://files.zip/", 0),
        ("https://files.test/all.zip", -20),
        ("/wiki/Node.js", 0),
        ("/en/File:Map.png", 0),
    ],
)
def test_html_stands_above_pdf_above_the_rest(path: str, points: int) -> None:
    """R1: by the end of the path, since nothing was fetched yet."""
    assert bonus_of(STANDARD, path) == points


def test_news_and_sitemaps_add_their_points() -> None:
    """R1: sitemap +15, news +20, a file that is no page less."""
    assert bonus_of(STANDARD, "/a", sitemap=True) == 15
    assert bonus_of(STANDARD, "/a", news=True) == 20
    assert bonus_of(STANDARD, "/a.pdf", sitemap=True, news=True) == 25


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="/.?:aPdfzip", max_size=40))
def test_any_path_has_one_of_three_bonuses(path: str) -> None:
    """R1, Q5: whatever the web writes."""
    assert bonus_of(STANDARD, path) in {0, STANDARD.document, STANDARD.other}
