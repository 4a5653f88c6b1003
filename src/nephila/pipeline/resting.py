"""A host's rest begins when its answer has come: what is left of it when somebody has looked at the answer."""

from __future__ import annotations

from nephila.model.exchange import Answer
from nephila.model.outcome import Release


def left_of(release: Release, answer: Answer, steady_ms: int, rounded_ms: int) -> Release:
    """What is left of a rest now, on the clock that does not jump: the answer may have waited to be looked at.

    Moments are rounded down, so that a difference of two may be too large by `rounded_ms` (see `Conduct`).
    """
    passed_ms = steady_ms - answer.sent_ms - answer.elapsed_ms - rounded_ms
    if passed_ms <= 0 or not release.wait_ms or not answer.sent_ms:
        return release
    return Release(max(1, release.wait_ms - passed_ms), release.pace, release.elapsed_ms, release.reason)
