"""How much one caller may ask: sizes, rates, streams."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from .problems import ProblemError

CALLERS_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """Numbers for a busy dashboard and some scripts; a crawl that shares the process must not feel them."""

    body_bytes: int = 1_000_000
    reads_per_s: float = 50.0
    reads_at_once: float = 200.0
    changes_per_s: float = 10.0
    changes_at_once: float = 50.0
    streams: int = 16
    stream_s: float = 3600.0
    """A stream of events ends after so long; who wants more asks again, from where it ended."""
    connections: int = 200
    head_s: float = 10.0
    body_s: float = 60.0
    """How long the head of a request may take, from connecting or from the answer before, and then its body."""


class Bucket:
    """Lets so many through at once, and so many a second in the long run."""

    __slots__ = ("_at", "_left")

    def __init__(self, most: float, now: float) -> None:
        self._left = most
        self._at = now

    def take(self, now: float, per_s: float, most: float) -> float:
        """0 when one more may pass; else the seconds until one may."""
        self._left = min(most, self._left + (now - self._at) * per_s)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / per_s


class RateLimit:
    """A bucket for each caller and kind of request."""

    def __init__(self, bounds: Bounds, now: Callable[[], float] = time.monotonic) -> None:
        self._bounds = bounds
        self._now = now
        self._buckets: dict[tuple[str, bool], Bucket] = {}

    def take(self, caller: str, *, change: bool) -> None:
        """Count one request; `ProblemError` when it is one too many."""
        bounds, now = self._bounds, self._now()
        per_s, most = (
            (bounds.changes_per_s, bounds.changes_at_once) if change else (bounds.reads_per_s, bounds.reads_at_once)
        )
        bucket = self._buckets.get((caller, change))
        if bucket is None:
            if len(self._buckets) >= CALLERS_REMEMBERED:
                self._buckets.clear()
            bucket = self._buckets[caller, change] = Bucket(most, now)
        wait_s = bucket.take(now, per_s, most)
        if wait_s:
            raise ProblemError(429, "too many requests", "ask less often", {"Retry-After": str(max(1, round(wait_s)))})
