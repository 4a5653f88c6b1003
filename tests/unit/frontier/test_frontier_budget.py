"""What a host and a domain may have, and how they earn more."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from nephila.frontier.budget import host_allowance, mark_referrer, referrers, url_allowance
from nephila.model.settings import BudgetSettings

STANDARD = BudgetSettings()

hashes = st.integers(0, 2**64 - 1)
bitmaps = st.integers(0, 2**64 - 1)
counts = st.integers(0, 10**7)
qualities = st.floats(0, 10)
budgets = st.builds(
    BudgetSettings,
    first_urls=st.integers(1, 10**5),
    urls_per_page=st.integers(0, 1000),
    urls_per_referrer=st.integers(0, 10**4),
    first_hosts=st.integers(1, 1000),
    hosts_per_useful_host=st.integers(0, 100),
    hosts_per_referrer=st.integers(0, 100),
)
either = st.sampled_from([url_allowance, host_allowance])
Allowance = Callable[[BudgetSettings, int, int, float], int]


def marked(domains: list[int]) -> int:
    bitmap = 0
    for domain in domains:
        bitmap = mark_referrer(bitmap, domain)
    return bitmap


@settings(max_examples=300, deadline=None)
@given(st.lists(hashes, max_size=80), st.randoms(use_true_random=False))
def test_a_domain_counts_once_in_whatever_order(domains: list[int], chance: random.Random) -> None:
    """F5: a page that is settled twice earns nothing twice."""
    bitmap = marked(domains)
    again = domains * 2
    chance.shuffle(again)
    assert marked(again) == bitmap
    assert 0 <= bitmap < 2**64


@settings(max_examples=300, deadline=None)
@given(bitmaps, hashes)
def test_a_further_domain_never_lowers_the_count(bitmap: int, domain: int) -> None:
    """F5: and the count has an end."""
    assert referrers(bitmap) <= referrers(mark_referrer(bitmap, domain)) <= referrers(2**64 - 1) < 320


def test_no_referrer_is_none_and_the_first_one_counts_as_one() -> None:
    """F5: small counts are close to exact."""
    assert referrers(0) == 0
    assert referrers(mark_referrer(0, 77)) == pytest.approx(1, abs=0.01)


def test_the_count_is_within_15_percent_on_average_up_to_100_domains(say: Callable[[str], None]) -> None:
    """F5: at each size, over 300 crowds of domains."""
    chance = random.Random(5)
    for size in (1, 2, 5, 10, 20, 50, 75, 100):
        off = 0.0
        for _ in range(300):
            crowd = [xxh3_64_intdigest(chance.randbytes(12)) for _ in range(size)]
            off += abs(referrers(marked(crowd)) - size) / size / 300
        assert off < 0.15, size
        if size in {10, 50, 100}:
            say(f"{size} domains are counted with a mean error of {off:.1%}")


@settings(max_examples=300, deadline=None)
@given(either, budgets, counts, counts, bitmaps, hashes, qualities, qualities)
def test_an_allowance_only_grows_with_what_was_earned(
    allowance: Allowance,
    wanted: BudgetSettings,
    one: int,
    other: int,
    bitmap: int,
    domain: int,
    bad: float,
    good: float,
) -> None:
    """F5: new content, referrers, quality; and a host can always show something."""
    less, more = sorted((one, other))
    bad, good = sorted((bad, good))
    least = allowance(wanted, less, bitmap, bad)
    assert least >= 1
    assert least <= allowance(wanted, more, bitmap, bad)
    assert least <= allowance(wanted, less, mark_referrer(bitmap, domain), bad)
    assert least <= allowance(wanted, less, bitmap, good)


@settings(max_examples=200, deadline=None)
@given(budgets, counts, bitmaps, st.floats(1, 10))
def test_nobody_in_good_standing_has_less_than_at_the_start(
    wanted: BudgetSettings, earned: int, bitmap: int, quality: float
) -> None:
    """F5: an unknown host starts with its first URLs, an unknown domain with its first hosts."""
    assert url_allowance(wanted, 0, 0, quality) == wanted.first_urls <= url_allowance(wanted, earned, bitmap, quality)
    assert host_allowance(wanted, 0, 0, quality) == wanted.first_hosts
    assert wanted.first_hosts <= host_allowance(wanted, earned, bitmap, quality)


def test_what_a_host_earns() -> None:
    """F5: 1,000 URLs to begin with, 50 a page with new content, 1,000 a referring domain."""
    assert url_allowance(STANDARD, 0, 0, 1.0) == 1000
    assert url_allowance(STANDARD, 200, 0, 1.0) == 11_000
    assert url_allowance(STANDARD, 0, marked([1, 2, 3]), 1.0) == pytest.approx(4000, rel=0.05)


def test_what_a_domain_earns() -> None:
    """F5: 50 hosts to begin with, 2 a useful host, 10 a referring domain."""
    assert host_allowance(STANDARD, 30, 0, 1.0) == 110
    assert host_allowance(STANDARD, 0, marked([1]), 1.0) == 60


def test_the_opinion_downstream_is_a_factor() -> None:
    """F5: a good one multiplies what pages earned, a bad one shrinks everything, and none is left with nothing."""
    assert url_allowance(STANDARD, 100, 0, 3.0) == 16_000
    assert url_allowance(STANDARD, 100, 0, 0.5) == 3000
    assert url_allowance(STANDARD, 100, 2**64 - 1, 0.0) == 1
    assert host_allowance(STANDARD, 100, 0, -1.0) == 1
