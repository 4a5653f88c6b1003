"""A clock that stands until it is moved, and events to tell."""

from __future__ import annotations

import pytest


class StandingClock:
    """Implements `Clock`; time passes when a test says so."""

    def __init__(self) -> None:
        self.now = 5_000_000

    def wall_ms(self) -> int:
        return 1_800_000_000_000 + self.now

    def steady_ms(self) -> int:
        return self.now

    def boot_id(self) -> str:
        return "boot"


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()
