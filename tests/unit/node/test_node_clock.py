"""The machine's clocks, in C and in Python."""

from __future__ import annotations

import pytest

from nephila.native import AVAILABLE, native
from nephila.node.clock import SystemClock, plain_steady_ms, plain_wall_ms


@pytest.mark.skipif(not AVAILABLE, reason="the extension is not built")
def test_the_clocks_of_the_extension_are_those_of_python() -> None:
    """Q1: both clocks tell the same milliseconds, asked in C or in Python."""
    for plain, fast in ((plain_wall_ms, native.wall_ms), (plain_steady_ms, native.steady_ms)):
        moments = [plain(), fast(), plain(), fast(), plain()]
        assert moments == sorted(moments)
        assert all(isinstance(moment, int) for moment in moments)


def test_the_system_clock_tells_two_clocks_and_the_boot() -> None:
    """Q1: wall time is since 1970, steady time since the machine booted, which has a name."""
    clock = SystemClock()
    assert clock.wall_ms() > 1_700_000_000_000 > clock.steady_ms() > 0
    assert clock.boot_id() == SystemClock().boot_id() != ""
