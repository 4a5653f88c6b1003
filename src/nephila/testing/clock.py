"""Time that passes only when it is told to.

A virtual clock counts the milliseconds of a simulation and shows them as the two kinds of time of `interfaces.clock`:
wall time, which a test may make jump, and steady time, which starts anew with every reboot. What must stay true:
`elapsed_s` never runs backwards and never jumps, whatever happens to the other two, because timers hang on it.
"""

from __future__ import annotations

SIMULATION_START_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z: an arbitrary instant that makes archives of simulated crawls equal from run to run."""

UPTIME_AT_START_MS = 1_000_000
"""The machine has been up for a while: code that takes a steady time of 0 for "never" must not get away with it."""


class VirtualClock:
    """Implements `interfaces.clock.Clock`; moved by `VirtualLoop`, or by hand with `advance`."""

    def __init__(self, wall_ms: int = SIMULATION_START_MS) -> None:
        self._elapsed_s = 0.0
        self._wall_origin_ms = wall_ms
        self._booted_at_s = -UPTIME_AT_START_MS / 1000
        self._boots = 1

    def wall_ms(self) -> int:
        """UTC milliseconds; jumps when `jump_wall` is called."""
        return self._wall_origin_ms + _whole_ms(self._elapsed_s)

    def steady_ms(self) -> int:
        """Milliseconds since the last boot."""
        return _whole_ms(self._elapsed_s - self._booted_at_s)

    def boot_id(self) -> str:
        """Another name after every reboot."""
        return f"boot-{self._boots}"

    def elapsed_s(self) -> float:
        """Seconds since the simulation began: what the event loop calls time."""
        return self._elapsed_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.advance_to(self._elapsed_s + seconds)

    def advance_to(self, elapsed_s: float) -> None:
        """Let time pass up to exactly that instant of `elapsed_s`."""
        if elapsed_s < self._elapsed_s:
            message = f"time cannot go back from {self._elapsed_s} s to {elapsed_s} s"
            raise ValueError(message)
        self._elapsed_s = elapsed_s

    def jump_wall(self, seconds: float) -> None:
        """Somebody set the wall clock, forwards or backwards; steady time does not notice."""
        self._wall_origin_ms += round(seconds * 1000)

    def reboot(self) -> None:
        """The machine started anew: steady time begins at 0 under another boot id, wall time goes on."""
        self._booted_at_s = self._elapsed_s
        self._boots += 1


def _whole_ms(seconds: float) -> int:
    """Milliseconds that have wholly passed; a sum of floats that misses a whole one by a hair has reached it."""
    return int(seconds * 1000 + 1e-6)
