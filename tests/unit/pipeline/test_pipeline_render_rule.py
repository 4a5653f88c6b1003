"""When a page is shown to a browser, and what is kept at hand for the next (J1, J3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.model.page import Directives, Link, Page
from nephila.model.rendering import PartKind, RenderMode, Sign, SiteRendering, Supplied
from nephila.pipeline.part_cache import LONGEST_MS, SCRIPT_MS, PartCache, lasts_ms
from nephila.pipeline.render_rule import (
    FIRST_RECHECK,
    UNKNOWN,
    after_passing,
    after_try,
    expects,
    has_gained,
    is_tried,
)

AUTO = RenderMode.AUTO


def page(*links: str, words: int = 0) -> Page:
    made = tuple(Link(url, "a", "", "") for url in links)
    return Page("http://a.test/", "http://a.test/", "UTF-8", "", made, Directives(), words=words)


def crawl(gains: list[bool], sign: Sign = Sign.MARK, known: SiteRendering = UNKNOWN) -> tuple[int, SiteRendering]:
    """Pages of one class, one after the other; how many were tried, and what is known then."""
    tried = 0
    for gained in gains:
        if is_tried(known, sign, AUTO):
            tried += 1
            known = after_try(known, sign, gained=gained)
        else:
            known = after_passing(known, sign)
    return tried, known


def test_a_site_that_gains_nothing_is_let_go_within_five_pages() -> None:
    """J1: three tries, then one after fifty pages, then one after a hundred."""
    assert crawl([False] * 5)[0] == 3
    assert crawl([False] * (3 + FIRST_RECHECK + 1))[0] == 4
    assert crawl([False] * 2000)[0] <= 9


def test_a_site_that_gains_is_always_shown() -> None:
    """J1: and one page in between that gained nothing changes nothing."""
    assert crawl([True] * 50)[0] == 50
    assert crawl([True, False, True, False, False, True] * 10)[0] == 60


def test_a_site_that_begins_to_need_a_browser_is_found_at_the_next_look() -> None:
    """J1: re-checked now and then."""
    _, known = crawl([False] * 60)
    tried, known = crawl([True] * 200, known=known)
    assert tried > 90
    assert expects(known, AUTO)


def test_pages_without_a_sign_are_tried_only_beside_others_that_gained() -> None:
    """J1: a host without signs costs no browser anything."""
    assert crawl([True] * 100, Sign.NONE)[0] == 0
    _, known = crawl([True])
    assert crawl([False] * 40, Sign.NONE, known)[0] == 2
    assert crawl([True] * 40, Sign.NONE, known)[0] == 40


def test_a_policy_decides_for_itself() -> None:
    """J1, R4: always and never, whatever was learned."""
    _, known = crawl([True])
    assert not is_tried(known, Sign.SHELL, RenderMode.NEVER)
    assert is_tried(UNKNOWN, Sign.NONE, RenderMode.ALWAYS)
    assert expects(None, RenderMode.ALWAYS)
    assert not expects(known, RenderMode.NEVER)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(list(Sign)))))
def test_counts_never_contradict_each_other(visits: list[tuple[bool, Sign]]) -> None:
    """J1: whatever comes in whatever order."""
    known = UNKNOWN
    for gained, sign in visits:
        known = after_try(known, sign, gained=gained) if is_tried(known, sign, AUTO) else after_passing(known, sign)
        for record in (known.signed, known.plain):
            assert 0 <= record.misses <= record.tried
            assert record.gained + record.misses <= record.tried
            assert record.tried or not record.passed


@pytest.mark.parametrize(
    ("raw", "rendered", "gained"),
    [
        (page(), page("http://a.test/x"), True),
        (page("http://a.test/x"), page("http://a.test/x"), False),
        (page(), page("http://adverts.test/x"), False),
        (page(), page("http://www.a.test/x"), True),
        (page(words=5), page(words=24), False),
        (page(words=5), page(words=25), True),
        (page("http://a.test/x"), page(), False),
        (page(), None, False),
    ],
)
def test_what_counts_as_gained(raw: Page, rendered: Page | None, gained: bool) -> None:
    """J1: links of the same site, or twenty words more; not a link to an advertisement."""
    assert has_gained(raw, rendered) is gained


def answer(control: str = "", status: int = 200, size: int = 10) -> Supplied:
    return Supplied(status, (("cache-control", control),) if control else (), b"x" * size)


@pytest.mark.parametrize(
    ("kind", "given", "lasts"),
    [
        (PartKind.SCRIPT, answer(), SCRIPT_MS),
        (PartKind.SCRIPT, answer("public, max-age=60"), 60_000),
        (PartKind.SCRIPT, answer("max-age=31536000, immutable"), LONGEST_MS),
        (PartKind.SCRIPT, answer("no-store"), 0),
        (PartKind.SCRIPT, answer("private, max-age=60"), 0),
        (PartKind.SCRIPT, answer("no-cache"), 0),
        (PartKind.SCRIPT, answer(status=404), 0),
        (PartKind.DATA, answer(), 0),
        (PartKind.DATA, answer("max-age=5"), 5_000),
    ],
)
def test_how_long_an_answer_stands_for_a_new_one(kind: PartKind, given: Supplied, lasts: int) -> None:
    """J3: scripts an hour, or as their server says; data only as it says."""
    assert lasts_ms(kind, given) == lasts


def test_the_cache_is_bounded_and_forgets_the_oldest() -> None:
    """J3, Q5: by bytes; what is used stays."""
    cache = PartCache(20_000)
    for number in range(30):
        cache.keep(f"http://a.test/{number}.js", PartKind.SCRIPT, answer(size=2_000), 0)
        assert cache.find("http://a.test/0.js", 1) is not None or number == 0
    assert len(cache) <= 8
    assert cache.find("http://a.test/5.js", 1) is None
    cache.keep("http://a.test/large.js", PartKind.SCRIPT, answer(size=9_000), 0)
    assert cache.find("http://a.test/large.js", 1) is None
    assert cache.find("http://a.test/0.js", SCRIPT_MS) is None
