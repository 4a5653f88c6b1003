"""Time, passed in: no policy and no adapter reads a clock of its own."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Two kinds of time. Sleeping is the event loop's business: under virtual time the loop itself is virtual."""

    def wall_ms(self) -> int:
        """UTC milliseconds, for what people and archives read. May jump."""

    def steady_ms(self) -> int:
        """Milliseconds since the machine booted, sleep included. Never jumps, starts anew after a reboot."""

    def boot_id(self) -> str:
        """Names this boot of the machine: `steady_ms` of two different boots cannot be compared."""
