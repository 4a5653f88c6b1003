"""The machine's clocks."""

from __future__ import annotations

import time
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class SystemClock:
    """Implements `interfaces.clock.Clock` on Linux."""

    def __init__(self) -> None:
        self._boot_id = _BOOT_ID.read_text(encoding="ascii").strip()

    def wall_ms(self) -> int:
        """UTC milliseconds."""
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """Milliseconds since boot; goes on while the machine sleeps, unlike the monotonic clock."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

    def boot_id(self) -> str:
        """The kernel's name for this boot."""
        return self._boot_id
