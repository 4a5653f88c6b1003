"""Bytes in flight over all exchanges."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.fetch.budget import ByteBudget


class Source:
    def __init__(self) -> None:
        self.paused = False

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False


def test_over_the_limit_the_younger_ones_wait_and_the_oldest_never() -> None:
    """Q5: back-pressure without deadlock."""
    budget = ByteBudget(100)
    old, young = Source(), Source()
    budget.grow(old, 80)
    budget.grow(young, 30)
    assert young.paused
    budget.grow(old, 500)
    assert not old.paused


def test_an_ended_exchange_lets_the_others_go_on() -> None:
    """Q5: what is released is free for those that wait."""
    budget = ByteBudget(100)
    first, second, third = Source(), Source(), Source()
    budget.grow(first, 90)
    budget.grow(second, 90)
    budget.grow(third, 5)
    assert second.paused
    assert third.paused
    budget.release(first)
    assert not second.paused
    assert not third.paused
    assert budget.total == 95


def test_the_new_oldest_goes_on_even_while_there_is_too_much() -> None:
    """Q5: somebody can always finish."""
    budget = ByteBudget(100)
    first, second, third = Source(), Source(), Source()
    budget.grow(first, 10)
    budget.grow(second, 200)
    budget.grow(third, 200)
    budget.release(first)
    assert not second.paused
    assert third.paused


def test_who_has_ended_is_held_back_no_longer() -> None:
    """Q5, H1: an answer may end while its source is paused, and whoever asks there next must be heard."""
    budget = ByteBudget(100)
    old, young = Source(), Source()
    budget.grow(old, 200)
    budget.grow(young, 10)
    assert young.paused
    budget.release(young)
    assert not young.paused


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 120)), max_size=60))
def test_there_is_always_one_that_may_read(moves: list[tuple[int, int]]) -> None:
    """Q5: whatever grows and ends in whatever order; at the end nothing is held."""
    budget = ByteBudget(100)
    sources = [Source() for _ in range(6)]
    holding: dict[int, int] = {}
    for who, count in moves:
        if count and not sources[who].paused:
            budget.grow(sources[who], count)
            holding[who] = holding.get(who, 0) + count
        elif not count:
            budget.release(sources[who])
            assert not sources[who].paused
            holding.pop(who, None)
        assert budget.total == sum(holding.values())
        assert not holding or not all(sources[one].paused for one in holding)
    for source in sources:
        budget.release(source)
    assert budget.total == 0
