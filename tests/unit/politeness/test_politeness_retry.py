"""When a failed URL is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.settings import FrontierSettings
from nephila.politeness import retry_wait_ms


@pytest.mark.parametrize(("retries", "wait"), [(0, 5_000), (1, 30_000), (2, 180_000), (3, None), (9, None)])
def test_waits_grow_and_then_the_tries_are_used_up(retries: int, wait: int | None) -> None:
    """H5: 5, 30, 180 s, then no more."""
    assert retry_wait_ms(retries, FrontierSettings(), 0.5) == wait


def test_the_waits_are_settings() -> None:
    """H5: fewer waits than retries repeat the last one; none means at once."""
    several = FrontierSettings(max_retries=4, retry_waits_s=(1.0, 2.0))
    assert [retry_wait_ms(retries, several, 0.5) for retries in range(5)] == [1000, 2000, 2000, 2000, None]
    assert retry_wait_ms(0, FrontierSettings(retry_waits_s=()), 0.5) == 0
    assert retry_wait_ms(0, FrontierSettings(max_retries=0), 0.5) is None


@given(st.integers(0, 2), st.floats(0, 1, exclude_max=True))
@settings(max_examples=100, deadline=None)
def test_jitter_is_a_fifth_each_way(retries: int, draw: float) -> None:
    """H5: what failed together does not come back together."""
    plain = retry_wait_ms(retries, FrontierSettings(), 0.5)
    wait = retry_wait_ms(retries, FrontierSettings(), draw)
    assert plain is not None
    assert wait is not None
    assert 0.8 * plain <= wait <= 1.2 * plain
