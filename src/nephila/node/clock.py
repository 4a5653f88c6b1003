"""The machine's clocks."""

from __future__ import annotations

import time
from pathlib import Path

from nephila.native import AVAILABLE, native

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def plain_wall_ms() -> int:
    """UTC milliseconds."""
    return time.time_ns() // 1_000_000


def plain_steady_ms() -> int:
    """Milliseconds since boot; goes on while the machine sleeps, unlike the monotonic clock."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class SystemClock:
    """Implements `interfaces.clock.Clock` on Linux."""

    def __init__(self) -> None:
        self._boot_id = _BOOT_ID.read_text(encoding="ascii").strip()

    wall_ms = staticmethod(native.wall_ms if AVAILABLE else plain_wall_ms)
    steady_ms = staticmethod(native.steady_ms if AVAILABLE else plain_steady_ms)

    def boot_id(self) -> str:
        """The kernel's name for this boot."""
        return self._boot_id
