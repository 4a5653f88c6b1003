"""Which pages are asked for in full although they could be asked for conditionally."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.frontier.order import is_sample

URLS = [f"h{number % 50}.test s/{number}" for number in range(20_000)]


@given(st.text(max_size=20), st.integers(1, 100), st.integers(1, 64), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_every_page_has_its_turn_once_in_so_many_cycles(url: str, first: int, every: int, seed: int) -> None:
    """H3: no page is trusted for ever, none is asked for in full more often than it must."""
    turns = [is_sample(url, cycle, every, seed) for cycle in range(first, first + every)]
    assert sum(turns) == 1


def test_a_cycle_looks_at_about_one_page_in_so_many() -> None:
    """H3: so that the bytes moved stay few."""
    for cycle in (2, 3):
        assert 0.8 < sum(is_sample(url, cycle, 32, 0) for url in URLS) / (len(URLS) / 32) < 1.2
