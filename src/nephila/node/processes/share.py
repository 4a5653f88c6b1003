"""How many workers, and what each of them gets of the settings that hold for all together."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from nephila.model.settings import Settings

MAX_LINGER_MS = 20.0

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often who looks at what, in seconds. Under virtual time looking is all that costs: less often."""

    worker_s: float = 0.025
    """A worker with places free looks for what others may have brought."""
    supervisor_s: float = 0.1
    """The supervisor looks whether it is over."""
    beat_s: float = 0.2
    """A worker tells how far it is."""


USUAL = Rhythm()


def process_count(settings: Settings, cores: int | None = None) -> int:
    """How many processes are to crawl. With one exchange at a time it is one, for then the order is promised (F6)."""
    return 1 if settings.fetch.concurrency == 1 else settings.processes or cores or usable_cores()


def usable_cores(quota: Path = CPU_QUOTA) -> int:
    """The cores that this process may use: those it may run on, or what its control group pays for if that is less."""
    cores = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):  # no such control group, or no quota: "max 100000"
        amount, period = quota.read_text(encoding="ascii").split()
        cores = min(cores, -(-int(amount) // int(period)))
    return max(1, cores)


def share_of(settings: Settings, among: int) -> Settings:
    """The settings of one of `among` workers: a bound on the machine's memory is divided, the rest is the same for all.

    The number of exchanges in flight is each worker's own: it bounds what one loop has to do. A group commit waits
    longer for company, because there are more of them: a commit costs the same whether one page or ten are in it, and
    the engine lets one process at a time write.
    """
    fetch, frontier, render = settings.fetch, settings.frontier, settings.render
    linger_ms = max(frontier.linger_ms, min(frontier.linger_ms * among, MAX_LINGER_MS))
    return replace(
        settings,
        fetch=replace(
            fetch,
            max_in_flight_bytes=max(1_000_000, fetch.max_in_flight_bytes // among),
            kept_connections=-(-fetch.kept_connections // among),
        ),
        frontier=replace(frontier, linger_ms=linger_ms),
        render=replace(render, browsers=-(-render.browsers // among), cache_bytes=render.cache_bytes // among),
    )
