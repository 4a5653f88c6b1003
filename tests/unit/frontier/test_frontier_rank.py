"""The rank of a URL: one byte, moved by chance so that the expected cash is right."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from statistics import mean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.frontier import rank

WHOLE = 1 << 32
ROUNDING = 2 ** (1 / 16) * 1.000001
"""The part of a page is rounded to an eighth of a doubling."""

ranks = st.integers(0, rank.RANKS - 1)
middling = st.integers(20, 90)
chances = st.integers(0, WHOLE - 1)
outlinks = st.integers(0, 500)
domain_pages = st.integers(1, 10**8)
weights = st.floats(0, 1)


def cash(of_rank: int) -> float:
    return float(2.0 ** ((of_rank - rank.SEED_RANK) / 2))


def part_of(page_rank: int, links: int, pages: int, times: float) -> float:
    """What a link brings, as the module's docstring says it."""
    return (cash(page_rank) / 2 + times / sqrt(pages)) / links


def expected_cash(entry: int) -> float:
    """Over all chances."""
    low, up = divmod(entry, WHOLE)
    return cash(low) + (cash(low + 1) - cash(low)) * up / WHOLE


@settings(max_examples=300, deadline=None)
@given(ranks, ranks, outlinks, domain_pages, weights, chances)
def test_a_link_never_lowers_a_rank_and_a_rank_stays_a_rank(
    source: int, target: int, links: int, pages: int, weight: float, chance: int
) -> None:
    """R1: whatever the page and its visit."""
    for part in rank.share(source, links, pages, weight):
        assert 0 <= rank.first(part, chance) < rank.RANKS
        assert target <= rank.raised(part, target, chance) < rank.RANKS


@settings(max_examples=300, deadline=None)
@given(middling, middling, st.integers(1, 500), st.integers(1, 10**6), st.floats(0.01, 1))
def test_the_expected_cash_grows_by_the_part_of_the_page(
    source: int, target: int, links: int, pages: int, weight: float
) -> None:
    """R1: no exact sum is stored, and none is needed."""
    share = rank.share(source, links, pages, weight)
    for part, times in ((share.inside, 1), (share.abroad, 4)):
        whole = part_of(source, links, pages, times)
        assert whole / ROUNDING < expected_cash(part.new) < whole * ROUNDING
        brought = expected_cash(part.known[target]) - cash(target)
        smallest_step = cash(target) / WHOLE  # chances have 32 bits
        assert abs(brought - weight * whole) < (ROUNDING**2 - 1) * weight * whole + smallest_step


@settings(max_examples=200, deadline=None)
@given(ranks, chances, st.integers(1, 500), domain_pages)
def test_more_links_or_a_larger_domain_bring_less_and_a_better_page_more(
    source: int, chance: int, links: int, pages: int
) -> None:
    """R1: the voice of a domain grows with the square root of its pages."""
    here = rank.first(rank.share(source, links, pages).inside, chance)
    assert rank.first(rank.share(source, 2 * links, pages).inside, chance) <= here
    assert rank.first(rank.share(source, links, 4 * pages).inside, chance) <= here
    assert rank.first(rank.share(min(source + 2, 127), links, pages).inside, chance) >= here
    assert rank.first(rank.share(source, links, pages).abroad, chance) >= here
    lone = rank.share(0, links, pages).inside.new, rank.share(0, links, 4 * pages).inside.new
    assert expected_cash(lone[0]) / expected_cash(lone[1]) == pytest.approx(2, rel=0.1)


def test_many_small_parts_add_up_with_the_scatter_that_is_documented() -> None:
    """R1: a thousand links of a thousandth each, drawn 1,000 times: the mean is right, the deviation near 46 %."""
    part = rank.share(0, 1000, 1).inside
    first, *others = [rank.salt_of(b"%d" % source, 1) for source in range(1000)]
    sums = []
    for target in (b"%d" % number for number in range(1000)):
        reached = rank.first(part, rank.chance_of(target, first))
        for salt in others:
            reached = rank.raised(part, reached, rank.chance_of(target, salt))
        sums.append(cash(reached))
    assert mean(sums) == pytest.approx(1, rel=0.08)
    assert stdev(sums) / mean(sums) == pytest.approx(sqrt((sqrt(2) - 1) / 2), rel=0.15)


def test_a_known_url_is_seldom_written_again() -> None:
    """R1: the hundredth link of a kind moves a rank about once in forty times."""
    share = rank.share(0, 64, 1)
    target = rank.first(share.inside, 0) + 2 * 6 + 1  # about a hundred such parts
    moved = sum(
        rank.raised(share.inside, target, rank.chance_of(b"%d" % number, rank.salt_of(b"page", 1))) != target
        for number in range(20_000)
    )
    assert 1 / 50 < moved / 20_000 < 1 / 30


def test_a_draw_hangs_on_source_target_and_visit_and_on_nothing_else() -> None:
    """R1, F10: a page that is settled again from the archive comes to the same ranks."""
    draws = {
        rank.chance_of(target, rank.salt_of(source, visit))
        for source in (b"a", b"b")
        for target in (b"x", b"y")
        for visit in (1, 2)
    }
    assert len(draws) == 8
    assert rank.chance_of(b"x", rank.salt_of(b"a", 1)) == 74_337_757, "the same in every process and on every machine"
    assert all(0 <= draw < WHOLE for draw in draws)


@settings(max_examples=200, deadline=None)
@given(middling, weights, chances)
def test_a_page_that_is_fetched_again_forgets_what_it_hands_on(page: int, weight: float, chance: int) -> None:
    """R1: in the expectation just the weight, so that its rank does not grow with the number of visits."""
    left = rank.kept(page, weight, chance)
    assert 0 <= left <= page
    if weight <= 0.5:
        assert left >= page - 2
        odds = [rank.kept(page, weight, (WHOLE // 1000) * step) for step in range(1000)]
        assert mean(cash(one) for one in odds) == pytest.approx(cash(page) * (1 - weight), rel=0.01)


def test_visits_count_by_the_time_between_them() -> None:
    """R1: thirty daily visits are as much of a vote as one after a month; none is more than half a vote."""
    month, day = 30 * 86_400.0, 86_400.0
    assert 30 * rank.weight_of(day, month) == pytest.approx(rank.weight_of(month, month))
    assert rank.weight_of(month, month) == rank.weight_of(9 * month, month) == 0.5
    assert rank.weight_of(-day, month) == 0


def settled_ranks(visits_in_cycle: tuple[int, ...], cycles: int) -> list[float]:
    """Three pages in a ring and a fourth that all link to, each visited so often a cycle: their cash before a visit."""
    links = ((1, 3), (2, 3), (0, 3), (0,))
    now = [rank.SEED_RANK] * 4
    seen: list[list[float]] = [[] for _ in links]
    for cycle in range(cycles):
        for page, visits in enumerate(visits_in_cycle):
            weight = rank.weight_of(1 / visits, 1)
            if cycle > 100:
                seen[page].append(cash(now[page]))
            for visit in range(visits):
                salt = rank.salt_of(b"%d" % page, cycle * 100 + visit)
                share = rank.share(now[page], len(links[page]), 4, weight)
                now[page] = rank.kept(now[page], weight, rank.chance_of(b"kept", salt))
                for target in links[page]:
                    now[target] = rank.raised(share.inside, now[target], rank.chance_of(b"%d" % target, salt))
    return [mean(cashes) for cashes in seen]


def test_ranks_of_a_crawl_that_goes_on_neither_grow_nor_favour_what_is_visited_often() -> None:
    """R1: they are what the links say, after thousands of visits, of which one page may have had most."""
    exact = [1.0] * 4
    for _ in range(100):
        half = [one / 2 + 1 / sqrt(4) for one in exact]
        exact = [half[2] / 2 + half[3], half[0] / 2, half[1] / 2, (half[0] + half[1] + half[2]) / 2]
    for visits in ((1, 1, 1, 1), (1, 1, 1, 10), (10, 1, 1, 1)):
        assert settled_ranks(visits, 4_000) == pytest.approx(exact, rel=0.3), visits


def test_two_domains_that_link_only_to_each_other_do_not_raise_themselves_for_ever() -> None:
    """R1: half of their cash and four times their base go round, so each tends to eight times its base."""
    now, seen = [rank.SEED_RANK, rank.SEED_RANK], []
    for visit in range(4_000):
        page = visit % 2
        salt = rank.salt_of(b"%d" % page, visit)
        part = rank.share(now[page], 1, 1, 0.5).abroad
        now[page] = rank.kept(now[page], 0.5, rank.chance_of(b"kept", salt))
        now[1 - page] = rank.raised(part, now[1 - page], rank.chance_of(b"link", salt))
        seen.append(cash(now[1 - page]))
    assert mean(seen[200:]) == pytest.approx(8, rel=0.15)
    assert max(seen) < 8 * 16


@settings(max_examples=200, deadline=None)
@given(ranks, st.integers(0, 127 << 16), st.floats(0, 300))
def test_authority_lies_between_none_and_all_and_grows_with_rank_and_referrers(
    page: int, mean_rank: int, referrers: float
) -> None:
    """R1: 0 to 1 of the points."""
    here = rank.authority(page, mean_rank, referrers)
    assert 0 <= here <= 1
    assert rank.authority(min(page + 1, 127), mean_rank, referrers) >= here
    assert rank.authority(page, mean_rank, referrers + 1) >= here
    assert rank.authority(page, min(mean_rank + 1000, 127 << 16), referrers) <= here


def test_a_doubling_of_cash_is_worth_two_to_five_points_of_forty() -> None:
    """R1: a URL changes its place when its importance changes, and not for every link."""
    steps = [40 * rank.authority(rank.SEED_RANK + step, rank.SEED_RANK << 16, 3) for step in range(-8, 9, 2)]
    assert all(2 <= above - below <= 5 for below, above in pairwise(steps))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 127 << 16), ranks)
def test_the_mean_follows_what_is_met(mean_rank: int, met: int) -> None:
    """R1: in whole numbers, within a quarter of a rank after 200,000 URLs of the same."""
    for _ in range(200_000):
        following = rank.next_mean(mean_rank, met)
        if following == mean_rank:
            break
        mean_rank = following
    assert abs(mean_rank - (met << 16)) <= 1 << 14
