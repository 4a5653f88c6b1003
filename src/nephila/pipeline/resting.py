"""A host's rest begins when its answer has come: what is left of it when somebody has looked at the answer."""

from __future__ import annotations

from nephila.model.exchange import Answer
from nephila.model.outcome import Release

ANOTHERS_CLOCK_MS = 2
"""What rounding may take off a rest that the frontier counts by a clock of its own: one for the difference of two
moments of ours, each rounded down, and one for what we take for its time."""


def left_of(release: Release, answer: Answer, steady_ms: int, rounded_ms: int) -> Release:
    """What is left of a rest now, on the clock that does not jump: the answer may have waited to be looked at.

    `rounded_ms` is added for what rounding may take off: 0 where the frontier counts by our own clock, as what was
    rounded down when the answer came is so by as much when its rest begins, and the frontier rounds up.
    """
    passed_ms = steady_ms - answer.sent_ms - answer.elapsed_ms - rounded_ms
    if not passed_ms or not release.wait_ms or not answer.sent_ms:
        return release
    return Release(max(1, release.wait_ms - passed_ms), release.pace, release.elapsed_ms, release.reason)
