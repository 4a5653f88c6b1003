"""The frontier's own time: milliseconds that never run backwards and that no wall clock can hurry.

It is the boot-time clock plus an offset that is stored with the frontier. On the same boot the offset stays, so that
time goes on while no crawler runs. After a reboot the clock starts anew: the offset is then chosen so that the timeline
goes on where it was last written, plus the time that the wall clock says has passed (never less than nothing). As the
wall clock may lie, `rebooted_at` and what was added on its word (`slept_ms`, over all reboots) are remembered: a host
that was last asked before waits one full delay from then on, and the whole rest of what it was promised (DESIGN
section 11).
"""

from __future__ import annotations

from dataclasses import dataclass

from nephila.interfaces.clock import Clock

_MONTH_MS = 31 * 86_400_000
"""A wall clock that says more than this passed during a reboot is not believed further."""

_BEGIN_MS = 1_000
"""The timeline does not begin at 0, so that 0 can mean never."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """What is stored: enough to continue the timeline in another process or after a reboot."""

    boot_id: str
    offset_ms: int
    last_ms: int
    last_wall_ms: int
    rebooted_at: int
    slept_ms: int = 0


class Timeline:
    """Timeline milliseconds from a clock and an anchor."""

    def __init__(self, clock: Clock, anchor: Anchor | None) -> None:
        self._clock = clock
        steady, wall, boot_id = clock.steady_ms(), clock.wall_ms(), clock.boot_id()
        self.slept_ms = anchor.slept_ms if anchor else 0
        """Time that has passed by the wall clock's word alone."""
        if anchor is None:
            self._offset, self.rebooted_at = _BEGIN_MS - steady, 0
        elif anchor.boot_id == boot_id:
            self._offset, self.rebooted_at = anchor.offset_ms, anchor.rebooted_at
        else:
            away = min(max(0, wall - anchor.last_wall_ms), _MONTH_MS)
            self.slept_ms += away
            self.rebooted_at = anchor.last_ms + away
            self._offset = self.rebooted_at - steady
        self._boot_id = boot_id

    def now(self) -> int:
        """The present moment on the timeline."""
        return self._clock.steady_ms() + self._offset

    @property
    def is_of_this_boot(self) -> bool:
        """Whether the clock has not begun anew since: in a simulation a machine may reboot under what it runs."""
        return self._clock.boot_id() == self._boot_id

    def wall_of(self, moment: int) -> int:
        """The UTC milliseconds that a moment of the timeline corresponds to, by today's wall clock."""
        return self._clock.wall_ms() + moment - self.now()

    def anchor(self) -> Anchor:
        """What to store with every commit."""
        wall_ms = self._clock.wall_ms()
        return Anchor(self._boot_id, self._offset, self.now(), wall_ms, self.rebooted_at, self.slept_ms)
