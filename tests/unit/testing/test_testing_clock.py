from __future__ import annotations

import pytest

from nephila.interfaces.clock import Clock
from nephila.testing.clock import VirtualClock


def test_time_passes_only_when_told() -> None:
    clock: Clock = VirtualClock(wall_ms=5000)
    assert [clock.wall_ms(), clock.wall_ms()] == [5000, 5000]


def test_both_kinds_of_time_advance_together() -> None:
    clock = VirtualClock()
    wall, steady = clock.wall_ms(), clock.steady_ms()
    clock.advance(1.5)
    assert (clock.wall_ms() - wall, clock.steady_ms() - steady) == (1500, 1500)


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_wall_clock_jump_is_not_seen_by_steady_time(seconds: int) -> None:
    clock = VirtualClock()
    wall, steady, boot = clock.wall_ms(), clock.steady_ms(), clock.boot_id()
    clock.jump_wall(seconds)
    assert clock.wall_ms() - wall == seconds * 1000
    assert (clock.steady_ms(), clock.boot_id()) == (steady, boot)


def test_a_reboot_starts_steady_time_anew_under_another_name() -> None:
    clock = VirtualClock()
    clock.advance(100)
    wall, boot = clock.wall_ms(), clock.boot_id()
    clock.reboot()
    assert clock.steady_ms() == 0
    assert clock.boot_id() != boot
    assert clock.wall_ms() == wall
    assert clock.elapsed_s() == 100


def test_steady_time_does_not_begin_at_zero() -> None:
    assert VirtualClock().steady_ms() > 0


def test_time_cannot_go_back() -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        VirtualClock().advance(-1)


def test_many_small_steps_come_to_whole_milliseconds() -> None:
    clock = VirtualClock()
    steady = clock.steady_ms()
    for _ in range(10):
        clock.advance(0.1)
    assert clock.elapsed_s() < 1
    assert clock.steady_ms() - steady == 1000
