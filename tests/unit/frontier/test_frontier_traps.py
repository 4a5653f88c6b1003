"""Traps by their yield: what is wasted, when a pattern is slowed and stopped, and how it comes back."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.frontier.scope import Scope
from nephila.frontier.traps import (
    FRESH_SHARE,
    HOST,
    RING,
    Observation,
    SkeletonTally,
    TrapState,
    Yield,
    assess,
    count_outside,
    dated,
    held_until_s,
    holding,
    judge,
    needs_links,
    patterns,
    pour_prefix,
    release,
    take_turn,
    tell,
)
from nephila.model.settings import ScopeSettings, TrapSettings
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

RULES = TrapSettings()
NOW_S = 1_900_000_000
URL = "https://h.example/x/17"
NUMBERS = count(1)
IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())
quick = settings(max_examples=100, deadline=None)


def tallies_of(url: str = URL) -> list[SkeletonTally]:
    return [SkeletonTally(pattern) for pattern in patterns(url)]


def fresh() -> Observation:
    mark = next(NUMBERS).to_bytes(8, "little")
    return Observation(URL, text=mark, shape=mark, outlinks=1)


def wasted() -> Observation:
    return Observation(URL, duplicate=True)


def feed(tallies: list[SkeletonTally], *seen: Observation, now_s: int = NOW_S, rules: TrapSettings = RULES) -> None:
    for one in seen:
        judge(tallies, one, rules, now_s)


def state(tallies: list[SkeletonTally]) -> TrapState:
    """Of the narrowest pattern."""
    return tallies[0].state


# Patterns


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", ("/*", HOST)),
        ("/about", ("/*", HOST)),
        ("/docs/intro", ("/docs/*", HOST)),
        ("/docs/17", ("/docs/{n}", "/docs/*", HOST)),
        ("/a?visit=1", ("/a?visit", "*?visit", HOST)),
        ("/a/a/b", ("/(a)+/b", "/*", HOST)),
    ],
)
def test_a_url_is_counted_under_its_skeleton_its_subtree_and_its_host(path: str, expected: tuple[str, ...]) -> None:
    """T2: a URL that is alone in its skeleton needs no tally for it."""
    assert patterns(f"https://h.example{path}") == expected


def test_the_subtree_of_a_page_is_told_by_how_its_urls_begin() -> None:
    """T5: the first segment, or the path before the parameters; a page at the root has no subtree."""
    assert pour_prefix("http://h.example/x/1/2") == "http://h.example/x/"
    assert pour_prefix("http://h.example/list?page=1") == "http://h.example/list?"
    assert pour_prefix("http://h.example/about") == ""


def test_dates_are_known_by_placeholder_and_by_name() -> None:
    """T2: that is where numbers are all that varies."""
    assert dated("/calendar/{date}")
    assert dated("/c?month&year")
    assert not dated("/c?page")


# What is wasted


def test_errors_and_known_bytes_are_wasted_whatever_they_link_to() -> None:
    """T2, D2: both bring nothing."""
    assert assess(tallies_of(), Observation(URL, error=True, outside=9)) is Yield.WASTED
    assert assess(tallies_of(), Observation(URL, duplicate=True, outside=9)) is Yield.WASTED


def test_a_known_text_is_wasted_unless_it_leads_to_something_else() -> None:
    """T2: pages of a maze, and a list whose text is the same on every page."""
    tallies = tallies_of()
    seen = Observation(URL, text=b"t" * 8, shape=b"s" * 8, outlinks=1)
    assert judge(tallies, seen, RULES, NOW_S) is Yield.FRESH
    assert needs_links(tallies, seen)
    assert assess(tallies, seen) is Yield.WASTED
    assert assess(tallies, seen._replace(outside=3)) is Yield.ALIVE


def test_numbers_alone_are_nothing_new_only_on_a_page_that_feeds_itself() -> None:
    """T2: the products of a shop are found on lists; the pages of a trap are found on each other."""
    tallies = tallies_of()
    for number in range(6):
        feed(tallies, Observation(URL, text=bytes([number]) * 8, shape=b"s" * 8))
    another = Observation(URL, text=b"n" * 8, shape=b"s" * 8)
    assert assess(tallies, another) is Yield.FRESH
    assert assess(tallies, another._replace(found_on=("/list?page", "*?page", HOST))) is Yield.FRESH
    assert assess(tallies, another._replace(found_on=patterns(URL))) is Yield.WASTED


def test_nearly_the_same_is_nothing_new_only_on_a_page_that_feeds_itself() -> None:
    """T2, D3: products of one template are found on lists and go on; a maze that changes a word a page does not."""
    tallies = tallies_of()
    for number in range(6):
        feed(tallies, Observation(URL, text=bytes([number]) * 8, shape=bytes([number]) * 8))
    another = Observation(URL, text=b"n" * 8, shape=b"n" * 8, near=True)
    assert assess(tallies, another) is Yield.FRESH
    assert assess(tallies, another._replace(found_on=("/list?page", "*?page", HOST))) is Yield.FRESH
    assert assess(tallies, another._replace(found_on=patterns(URL), near=False)) is Yield.FRESH
    assert assess(tallies, another._replace(found_on=patterns(URL))) is Yield.WASTED
    assert assess(tallies, another._replace(found_on=patterns(URL), outside=3)) is Yield.ALIVE


def test_under_a_date_numbers_alone_are_nothing_new_wherever_it_was_found() -> None:
    """T2: months lead to days."""
    url = "https://h.example/calendar/2031-07-02"
    tallies = tallies_of(url)
    feed(tallies, Observation(url, text=b"a" * 8, shape=b"s" * 8))
    assert assess(tallies, Observation(url, text=b"b" * 8, shape=b"s" * 8)) is Yield.WASTED


def test_pages_without_a_word_are_known_by_that_and_documents_are_not() -> None:
    """T2: a page of links only feeds itself; a PDF has no text that we read."""
    tallies = tallies_of()
    feed(tallies, *[Observation(URL, outlinks=3)] * 6)
    assert assess(tallies, Observation(URL, outlinks=3, found_on=patterns(URL))) is Yield.WASTED
    assert assess(tallies, Observation(URL, outlinks=0, found_on=patterns(URL))) is Yield.FRESH


def test_links_are_a_sign_of_life_where_their_kind_is_worth_it() -> None:
    """T2: untried or good kinds count; the page's own, a barren one, and dates on a dated page do not."""
    good, bad = SkeletonTally("/p/{n}", fetched=9, fresh=9), SkeletonTally("/q/{n}", fetched=9, fresh=1, barren=8)
    known = {tally.pattern: tally for tally in (good, bad)}
    links = [patterns(f"https://h.example{path}") for path in ("/p/1", "/p/2", "/q/1", "/new/1", "/list?page=2")]
    assert count_outside(patterns("https://h.example/list?page=1"), links, known.get) == 3
    days = [patterns("https://h.example/cal/2031-07-02")]
    assert count_outside(patterns("https://h.example/cal/month/2031/07"), days, known.get) == 0


def test_promises_are_believed_for_a_while() -> None:
    """T2: where nothing came of new URLs in twenty fetches, more of them are no life."""
    tallies = tallies_of()
    alive = Observation(URL, text=b"t" * 8, outlinks=1, outside=1)
    results = [judge(tallies, alive, RULES, NOW_S) for _ in range(30)]
    assert results[1:] == [Yield.ALIVE] * 20 + [Yield.WASTED] * 9


# States


def test_slowed_after_twenty_and_stopped_after_fifty() -> None:
    """T2: with the settings as they come."""
    tallies = tallies_of()
    feed(tallies, *[wasted()] * 19)
    assert holding(tallies, RULES) is None
    feed(tallies, wasted())
    assert state(tallies) is TrapState.SLOWED
    assert held_until_s(tallies, RULES) == NOW_S + 60
    feed(tallies, *[wasted()] * 30)
    assert state(tallies) is TrapState.QUARANTINED
    assert held_until_s(tallies, RULES) == NOW_S + 7 * 86_400


@quick
@given(st.lists(st.booleans(), max_size=400), st.sampled_from([0.05, FRESH_SHARE, 0.3]))
def test_a_pattern_with_its_share_of_new_content_is_never_stopped(pattern: list[bool], share: float) -> None:
    """T2: at least `fresh_share` of any `stop_after` fetches are new."""
    tallies, needed = tallies_of(), int(RULES.stop_after * share) + 1
    given_out: list[bool] = []
    for wish in pattern:
        window = given_out[-RULES.stop_after + 1 :]
        is_fresh = wish or (len(window) - sum(window)) >= RULES.stop_after - needed
        given_out.append(is_fresh)
        judge(tallies, fresh() if is_fresh else wasted(), RULES, NOW_S, share)
        assert state(tallies) is not TrapState.QUARANTINED


@quick
@given(st.lists(st.booleans(), max_size=200), st.integers(2, 60), st.sampled_from([URL, "https://h.example/docs/a"]))
def test_what_only_wastes_is_stopped_in_time(before: list[bool], stop: int, url: str) -> None:
    """T2: whatever was before, a skeleton after `stop_after` and a subtree after a fifth more, or sooner."""
    rules = TrapSettings(slow_after=1, stop_after=stop)
    tallies = tallies_of(url)
    feed(tallies, *(fresh() if good else wasted() for good in before), rules=rules)
    feed(tallies, *[wasted()] * (stop * 6 // 5 + 1), rules=rules)
    assert state(tallies) is TrapState.QUARANTINED
    hold = holding(tallies, rules)
    assert hold is not None
    assert hold.state is TrapState.QUARANTINED


def test_one_new_page_in_a_hundred_does_not_save_a_maze_and_two_in_three_save_a_shop() -> None:
    """T2: a fresh page makes nine wasted ones good."""
    maze, shop = tallies_of(), tallies_of()
    for number in range(1000):
        feed(maze, wasted() if number % 100 else fresh())
        feed(shop, wasted() if number % 3 == 0 else fresh())
        assert shop[0].state is TrapState.NORMAL
    assert maze[0].state is TrapState.QUARANTINED


def test_quarantine_is_reversible() -> None:
    """T2: one probe; new content makes it slowed, more of it normal."""
    tallies = tallies_of()
    feed(tallies, *[wasted()] * 50)
    later_s = held_until_s(tallies, RULES)
    take_turn(tallies, RULES, later_s)
    assert held_until_s(tallies, RULES) == later_s + 7 * 86_400
    feed(tallies, wasted(), now_s=later_s)
    assert state(tallies) is TrapState.QUARANTINED
    feed(tallies, fresh(), now_s=later_s)
    assert (state(tallies), tallies[0].since_s) == (TrapState.SLOWED, later_s)
    feed(tallies, fresh(), fresh(), now_s=later_s)
    assert state(tallies) is TrapState.NORMAL


def test_released_by_hand_it_starts_anew() -> None:
    """T2, T7: and wider patterns do not hold it until it is convicted again."""
    tallies = tallies_of()
    feed(tallies, *[wasted()] * 50)
    tallies[1].state = TrapState.QUARANTINED
    release(tallies[0], NOW_S)
    assert holding(tallies, RULES) is None
    feed(tallies, *[wasted()] * 49)
    assert state(tallies) is TrapState.SLOWED
    feed(tallies, wasted())
    assert (state(tallies), tallies[0].released) == (TrapState.QUARANTINED, False)


# Narrow and wide


def test_a_trap_of_many_skeletons_is_stopped_as_a_whole() -> None:
    """T2: each has wasted little, their subtree much."""
    subtree, host = SkeletonTally("/x/*"), SkeletonTally(HOST)
    for number in range(60):
        feed([SkeletonTally(f"/x/word{number}/{{n}}"), subtree, host], wasted())
    assert subtree.state is TrapState.QUARANTINED
    assert holding([SkeletonTally("/x/never/{n}"), subtree, host], RULES) is subtree
    assert host.state is TrapState.SLOWED


def test_the_good_part_of_a_host_neither_hides_its_trap_nor_suffers_from_it() -> None:
    """T2: a proven pattern speaks for itself alone."""
    host = SkeletonTally(HOST)
    shop = [SkeletonTally("/product/{n}"), SkeletonTally("/product/*"), host]
    feed(shop, *(fresh() for _ in range(100)))
    for number in range(130):
        feed([SkeletonTally(f"/w{number}/*"), host], wasted())
        feed(shop, fresh())
    assert host.state is TrapState.QUARANTINED
    assert holding(shop, RULES) is None
    assert holding([SkeletonTally("/other/*"), host], RULES) is host


# Pouring


def test_what_pours_out_urls_is_slowed_and_stopped_when_it_brings_little() -> None:
    """T5: more than 10,000 URLs of its own subtree within an hour."""
    pouring = fresh()._replace(inside=10_001)
    unknown, poor = tallies_of(), tallies_of()
    feed(unknown, pouring)
    assert (unknown[0].state, unknown[0].flagged_s) == (TrapState.SLOWED, NOW_S)
    feed(poor, *[wasted()] * 25, wasted()._replace(inside=10_001))
    assert poor[0].state is TrapState.QUARANTINED


def test_a_proven_shop_may_pour_more_and_the_hour_begins_anew() -> None:
    """T5: nothing is held against yesterday."""
    shop = tallies_of()
    feed(shop, *(fresh() for _ in range(50)), fresh()._replace(inside=20_000))
    assert (shop[0].state, shop[0].flagged_s) == (TrapState.NORMAL, 0)
    feed(shop, fresh()._replace(inside=90_000))
    assert shop[0].state is TrapState.SLOWED
    feed(shop, fresh(), now_s=NOW_S + 3600)
    assert (shop[0].state, shop[0].poured) == (TrapState.NORMAL, 0)


# The record


@quick
@given(st.integers(0, 1000))
def test_a_tally_is_bounded_and_survives_the_store(fetches: int) -> None:
    """T2: a ring of hashes, in which what is met again stays."""
    tallies = tallies_of()
    often = fresh()
    for _ in range(fetches):
        feed(tallies, fresh(), often)
    assert max(len(tally.texts) for tally in tallies) <= 4 * RING
    assert max(len(tally.shapes) for tally in tallies) <= 4 * RING
    assert not fetches or assess(tallies, often) is Yield.WASTED
    packed = msgspec.msgpack.encode(tallies[0])
    assert len(packed) < 1500
    assert msgspec.msgpack.decode(packed, type=SkeletonTally) == tallies[0]


def test_the_evidence_is_told_in_a_sentence() -> None:
    """T8: shape, figures, state, time, example."""
    tallies = tallies_of()
    feed(tallies, *(fresh() for _ in range(3)), *[wasted()] * 50)
    told = tell(tallies[0])
    for part in ("/x/{n}", "50 fetches", "3 fresh and 50 without of 53", "quarantined since 2030-03-17", URL):
        assert part in told


# Repeated segments (T1)


@pytest.mark.parametrize(
    ("path", "times", "refused"),
    [
        ("/2024/2024/", 3, False),
        ("/img/img/x", 3, False),
        ("/a/b/a/b/c", 3, False),
        ("/a/b/a/c/a/d", 3, False),
        ("/a/a/a", 3, True),
        ("/docs/a/b/a/b/a/b/end", 3, True),
        ("/a/b/c/d/a/b/c/d/a/b/c/d", 3, True),
        ("/a//a//a", 3, True),
        ("/a/a/x", 2, True),
        ("/a/a/a/x", 4, False),
    ],
)
def test_a_path_that_repeats_itself_is_refused(path: str, times: int, refused: bool) -> None:
    """T1, T8: one segment, or a short sequence of them, so often in a row."""
    address = IDENTIFIER.identify(f"https://h.example{path}")
    assert isinstance(address, Address)
    verdict = Scope(ScopeSettings(mode="all"), repeated_segments=times).judge(address, 1)
    assert (verdict is not None) == refused
    if verdict:
        assert verdict[0] == "repeated_segments"
        assert f"{times} times in a row" in verdict[1]
