"""How many workers, and what each of them gets of the settings that hold for all together."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from nephila.model.settings import Settings

MAX_LINGER_MS = 20.0

CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def process_count(settings: Settings, cores: int | None = None) -> int:
    """How many processes are to crawl: no more than there may be exchanges at once."""
    wanted = settings.processes or cores or usable_cores()
    return max(1, min(wanted, settings.fetch.concurrency))


def usable_cores(quota: Path = CPU_QUOTA) -> int:
    """The cores that this process may use: those it may run on, or what its control group pays for if that is less."""
    cores = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):  # no such control group, or no quota: "max 100000"
        amount, period = quota.read_text(encoding="ascii").split()
        cores = min(cores, -(-int(amount) // int(period)))
    return max(1, cores)


def share_of(settings: Settings, number: int, among: int) -> Settings:
    """The settings of worker `number` (from 1 on) of `among`: what is a bound on the whole is divided.

    A group commit waits longer for company, because there are more of them: a commit costs the same whether one page
    or ten are in it, and the engine lets one process at a time write.
    """
    fetch, frontier = settings.fetch, settings.frontier
    concurrency = fetch.concurrency // among + (number <= fetch.concurrency % among)
    linger_ms = max(frontier.linger_ms, min(frontier.linger_ms * among, MAX_LINGER_MS))
    return replace(
        settings,
        fetch=replace(
            fetch,
            concurrency=max(1, concurrency),
            max_in_flight_bytes=max(1_000_000, fetch.max_in_flight_bytes // among),
        ),
        frontier=replace(frontier, linger_ms=linger_ms),
    )
