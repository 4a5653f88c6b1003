"""When a failed URL is tried again (H5)."""

from __future__ import annotations

from nephila.model.settings import FrontierSettings

JITTER = 0.2
"""Each wait varies by so much of itself, so that what failed together does not come back together."""


def retry_wait_ms(retries: int, settings: FrontierSettings, draw: float) -> int | None:
    """Milliseconds before the next try of a URL that has been retried `retries` times; None when it has had its tries.

    `draw` is a random number of [0, 1). Where more retries are allowed than waits are set, the last wait is used again.
    """
    if retries >= settings.max_retries:
        return None
    waits = settings.retry_waits_s or (0.0,)
    wait_s = waits[min(retries, len(waits) - 1)]
    return round(wait_s * 1000 * (1 + JITTER * (2 * draw - 1)))
