"""How far back a promise of a process reaches that was frozen meanwhile."""

from __future__ import annotations

import pytest

from nephila.testing.sim.naps import Naps


@pytest.mark.parametrize(
    ("naps", "at_ms", "span_ms", "moment"),
    [
        ([], 1000.0, 100.0, 900.0),
        ([(100.0, 500.0)], 1000.0, 100.0, 900.0),
        ([(100.0, 950.0)], 1000.0, 100.0, 50.0),
        ([(100.0, 1000.0)], 1000.0, 100.0, 0.0),
        ([(100.0, 300.0), (350.0, 1000.0)], 1000.0, 100.0, 50.0),
        ([(100.0, 800.0), (700.0, 1000.0)], 1000.0, 100.0, 0.0),
        ([(2000.0, 3000.0)], 1000.0, 100.0, 900.0),
    ],
)
def test_time_asleep_does_not_count(
    naps: list[tuple[float, float]], at_ms: float, span_ms: float, moment: float
) -> None:
    """Q4: what was to be done within a hundred milliseconds is late by as long as nobody could do it."""
    spans = Naps()
    for began_ms, ended_ms in naps:
        spans.add(began_ms, ended_ms)
    assert spans.awake_before(at_ms, span_ms) == moment
