"""F1, F2, F3, F4, F5, F6, F7, F9, F10, R1, R2, R3, R4, R5, S4, S5, P1, P2, P4, T2, T7, T8, N2: two engines, one answer.

Both are given the same verbs under the same virtual clock, in any order: they must give the same answers, lease the
same hosts and URLs in the same order, count the same and tell the same stories.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from frontier_pairs import some_deed, some_rules
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis_pairs import RedisPair
from valkey_servers import ValkeySingle

from nephila.testing.repute import GivenRepute

DEEDS = 60
GRADES = ({"a.test": 40, "b.test": 0}, {"a.test": 20, "c.test": 64})
"""What two computations over the link graph say; before the first, and after the last, there are no ranks."""
RANKED_ANEW = 0.05


@pytest.fixture(scope="module")
def single() -> Iterator[list[str]]:
    with ValkeySingle() as valkey:
        yield valkey.names


def live_through(names: list[str], seed: int, *, robots: bool) -> None:
    random, turns = Random(seed), Random(seed ^ 1)
    repute = GivenRepute(*GRADES, turn=turns.choice([0, 0, 1]))
    pair = RedisPair(replace(some_rules(random, robots=robots), repute=repute), names)
    try:
        pair.do(some_deed(random, "admit"))
        for _ in range(DEEDS):
            repute.turn += turns.random() < RANKED_ANEW
            pair.do(some_deed(random))
    finally:
        pair.close()


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False)
@given(seed=st.integers(0, 2**32 - 1), robots=st.booleans())
def test_valkey_and_the_plain_engine_answer_alike(single: list[str], seed: int, robots: bool) -> None:
    """F1, F2, F3, F4, F5, F6, F7, F9, F10, R1, R2, R3, R4, R5, S4, S5, P1, P2, P4, T2, T7, T8, N2: see the module."""
    live_through(single, seed, robots=robots)


def test_retries_wait_for_a_host_that_lacks_patterns(single: list[str]) -> None:
    """F6, F10, T2: with one exchange at a time they come when there is nothing else, and such a host is."""
    live_through(single, 1975154285, robots=False)


def test_a_page_that_another_of_its_call_links_to_has_the_rank_that_this_brings(single: list[str]) -> None:
    """R1, F2: pages that are settled together count as if one had been settled after the other."""
    live_through(single, 212121974, robots=False)


@pytest.mark.long
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False)
@given(seed=st.integers(0, 2**32 - 1), robots=st.booleans())
def test_valkey_and_the_plain_engine_answer_alike_for_long(single: list[str], seed: int, robots: bool) -> None:
    """F1, F2, F3, F4, F5, F6, F7, F9, F10, R1, R2, R3, R4, R5, S4, S5, P1, P2, P4, T2, T7, T8, N2: see the module."""
    live_through(single, seed, robots=robots)
