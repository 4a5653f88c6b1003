"""How many a second, over the last seconds: a count in buckets of time, in constant memory."""

from __future__ import annotations

from collections import deque

_BUCKET_MS = 250
"""Fine enough that the figure moves smoothly, coarse enough that a bucket is found for a thousand pages a second."""


class RollingRate:
    """Counts over a window that moves with `now`, in milliseconds that never run backwards."""

    def __init__(self, window_ms: int, started_at: int) -> None:
        self._window_ms = window_ms
        self._started_at = started_at
        self._buckets: deque[list[int]] = deque()
        self._total = 0

    def add(self, now: int) -> None:
        """Count one."""
        bucket = now // _BUCKET_MS
        if self._buckets and self._buckets[-1][0] == bucket:
            self._buckets[-1][1] += 1
        else:
            self._forget(now)
            self._buckets.append([bucket, 1])
        self._total += 1

    def per_second(self, now: int) -> float:
        """The mean over the window, or over the time since the start while that is shorter (a second at least)."""
        self._forget(now)
        return self._total * 1000 / max(1000, min(self._window_ms, now - self._started_at))

    def _forget(self, now: int) -> None:
        oldest = (now - self._window_ms) // _BUCKET_MS
        while self._buckets and self._buckets[0][0] <= oldest:
            self._total -= self._buckets.popleft()[1]
