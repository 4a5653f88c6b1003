"""Who speaks for a domain: what was counted online, and what the link graph says where it was computed."""

from __future__ import annotations

from math import log2
from pathlib import Path

import pytest
from frontier_world import Brought, FrontierWorld, play
from hypothesis import given
from hypothesis import strategies as st

from nephila.frontier import budget, order
from nephila.frontier.rank import FIRST_MEAN, authority
from nephila.frontier.referral import HIGHEST_GRADE, doublings, heard
from nephila.model.task import Level
from nephila.ranking.results import GRADES_PER_DOUBLING, grade_of
from nephila.ranking.results import HIGHEST_GRADE as HIGHEST_COMPUTED
from nephila.testing.repute import GivenRepute

BITMAPS = st.integers(0, 2**64 - 1)
REPUTE = GivenRepute({"a.test": 40})


@given(BITMAPS)
def test_without_ranks_the_count_of_referring_domains_speaks(bitmap: int) -> None:
    """R1, R3: as it does where nothing was ever computed."""
    for repute in (None, GivenRepute({"a.test": 40}, turn=0)):
        assert heard(repute, "www.a.test", bitmap) == bitmap.bit_count()
        assert doublings(heard(repute, "www.a.test", bitmap)) == log2(1.0 + budget.referrers(bitmap))


@given(BITMAPS)
def test_a_domain_that_has_a_grade_is_judged_by_it(bitmap: int) -> None:
    """R3: whatever was counted; one that has none, by the count."""
    assert doublings(heard(REPUTE, "www.a.test", bitmap)) == 5
    assert doublings(heard(REPUTE, "www.b.test", bitmap)) == log2(1.0 + budget.referrers(bitmap))


@given(BITMAPS, st.integers(0, HIGHEST_GRADE))
def test_beside_grades_nothing_is_called_by_the_count_of_bits(bitmap: int, grade: int) -> None:
    """R3: the extension looks scores up by that, and must ask where there are grades."""
    repute = GivenRepute({"a.test": grade})
    counts = range(budget.BITS + 1)
    assert heard(repute, "a.test", bitmap) not in counts
    assert heard(repute, "b.test", bitmap) not in counts
    assert heard(repute, "a.test", bitmap) != heard(repute, "b.test", bitmap)


def test_the_share_of_the_points_is_the_same() -> None:
    """R1, R3: 0.12 of the authority at most, and nothing for a domain that nobody links to."""
    page = authority(0, FIRST_MEAN, 0)
    shares = [authority(0, FIRST_MEAN, doublings(~grade)) - page for grade in range(HIGHEST_GRADE + 1)]
    assert shares[0] == 0.0
    assert shares[-1] == pytest.approx(0.12)
    assert shares == sorted(shares)


def test_grades_are_what_the_computation_writes() -> None:
    """R3: two stages that do not know each other agree on the scale."""
    assert HIGHEST_GRADE == HIGHEST_COMPUTED
    assert doublings(~grade_of(0.08, 0.01)) == 3
    assert GRADES_PER_DOUBLING == 8


def scores(world: FrontierWorld, *urls: str) -> list[int]:
    """How high they are queued."""
    found = [world.frontier.view.story(world.address(url).host, world.address(url).fingerprint) for url in urls]
    return [order.score_at(story.step, 0) for story in found if story is not None]


def test_links_to_a_domain_of_high_rank_are_queued_higher(tmp_path: Path) -> None:
    """R3: what was computed counts for URLs that are admitted from then on, with one look for each host."""
    repute = GivenRepute({"high.test": 64, "low.test": 0}, turn=0)
    names = ("high", "low", "new")

    async def bring(world: FrontierWorld, number: int) -> list[int]:
        """Fetch a page with a link to each of them."""
        await world.admit(f"https://seed.test/{number}", level=Level.IMMEDIATE)
        urls = [f"https://{name}.test/{number}" for name in names]
        links = [world.candidate(url, 1) for url in urls]
        await world.work(await world.frontier.claim(1, 300), lambda _: Brought(links=links))
        return scores(world, *urls)

    async def story(world: FrontierWorld) -> None:
        assert len(set(await bring(world, 1))) == 1, "nothing is known of any of them"
        repute.turn = 1
        high, low, new = await bring(world, 2)
        assert high > new >= low
        repute.turn = 0
        assert len(set(await bring(world, 3))) == 1, "the ranks were deleted"

    play(tmp_path / "frontier", story, delay_s=0.0, repute=repute)


def test_what_is_admitted_by_itself_is_scored_alike(tmp_path: Path) -> None:
    """R3: seeds and entries of lists."""

    async def story(world: FrontierWorld) -> None:
        await world.admit("https://high.test/", "https://low.test/", depth=1)
        high, low = scores(world, "https://high.test/", "https://low.test/")
        assert high > low

    play(tmp_path / "frontier", story, repute=GivenRepute({"high.test": 64, "low.test": 0}))
