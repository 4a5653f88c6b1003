"""What is left of a rest, in whole milliseconds: never less than was promised, by whichever clock it is counted."""

from __future__ import annotations

from math import floor

from hypothesis import example, given
from hypothesis import strategies as st

from nephila.model.exchange import Fetched
from nephila.model.outcome import Release
from nephila.model.task import Pace
from nephila.pipeline.resting import ANOTHERS_CLOCK_MS, left_of

WAIT_MS = 1_000
SENT_MS = 100
Moment = st.floats(0, 30, allow_nan=False)


def left(ended_ms: float, looked_ms: float, rounded_ms: int) -> int:
    """What is left of a rest when somebody looks at the answer."""
    answer = Fetched("", b"", b"", b"", 200, (), b"", "", 0, 0, floor(ended_ms) - SENT_MS, sent_ms=SENT_MS)
    return left_of(Release(WAIT_MS, Pace(WAIT_MS)), answer, floor(looked_ms), rounded_ms).wait_ms


@given(Moment, Moment, Moment)
@example(0.999, 0.001, 0.0)
@example(0.001, 0.998, 0.0)
def test_by_our_own_clock(came: float, until_looked: float, until_settled: float) -> None:
    """P1, Q2: nothing is taken off and at most a millisecond added, however long it took to look and to settle."""
    ended = 1_000 + came
    looked = ended + until_looked
    settled = looked + until_settled
    wait_ms = left(ended, looked, 0) - (floor(settled) - floor(looked))
    free_at = floor(settled) + wait_ms + 1  # as the frontier on disk does it
    assert ended + WAIT_MS <= free_at <= ended + WAIT_MS + 1


@given(Moment, Moment, Moment, st.floats(-5_000, 5_000), Moment, st.floats(0, 3))
@example(0.999, 0.001, 0.0, 0.5, 0.999, 0.0)
def test_by_the_clock_of_another_machine(
    came: float, until_looked: float, until_settled: float, ahead: float, heard: float, way: float
) -> None:
    """P1, N4: its time is known to us by what it said once, rounded down, as long ago as the answer was on its way."""
    ended = 10_000 + came
    looked = ended + until_looked
    settled = looked + until_settled
    free_at = floor(settled + ahead) + left(ended, looked, ANOTHERS_CLOCK_MS) + 1  # as the functions in Lua do it
    offset = floor(heard + ahead) - floor(heard + way)
    first = free_at - offset  # our clock shows this when we take it for `free_at`
    assert first >= ended + WAIT_MS
