"""Waiting for what another process comes to, and for no longer than it takes."""

from __future__ import annotations

import time
from collections.abc import Callable

STEP_S = 0.1


def wait_until(condition: Callable[[], object], what: str, seconds: float = 90) -> None:
    """Wait for a condition to hold; `what` is told where it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(STEP_S)
