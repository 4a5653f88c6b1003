"""A host's rest begins when its answer has come: what is left of it when somebody has looked at the answer."""

from __future__ import annotations

from nephila.model.exchange import Answer
from nephila.model.outcome import Release

ROUNDED_MS = 1
"""By so much a difference of two moments may be too large: each of them is rounded down."""


def left_of(release: Release, answer: Answer, steady_ms: int) -> Release:
    """What is left of a rest now, on the clock that does not jump: the answer may have waited to be looked at."""
    passed_ms = steady_ms - answer.sent_ms - answer.elapsed_ms - ROUNDED_MS
    if passed_ms <= 0 or not release.wait_ms or not answer.sent_ms:
        return release
    return Release(max(1, release.wait_ms - passed_ms), release.pace, release.elapsed_ms, release.reason)
