"""File descriptors: the limit raised at start, and concurrency sized from what was granted (H1)."""

from __future__ import annotations

import resource

from nephila.model.errors import NephilaError

DESCRIPTORS_PER_EXCHANGE = 2
"""The connection in use, and one idle or one socket to a name server."""

RESERVED_DESCRIPTORS = 128
"""For the frontier, archives, catalogue, logs, the loop itself and the control API; half of all where there are few."""

LEAST_DESCRIPTORS = 48
"""A crawl of one exchange at a time has some thirty files open."""

MOST_ARCHIVE_FILES = 64


def raise_descriptor_limit(wanted: int) -> int:
    """Raise the soft limit as far as `wanted` exchanges at once need; how many of them the limit really allows.

    Raises `NephilaError` where not even one could work.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted * DESCRIPTORS_PER_EXCHANGE + RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        granted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        if granted > soft:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
            except (OSError, ValueError):  # a sandbox may forbid it: go on with what there is
                granted = soft
        soft = granted
    if soft == resource.RLIM_INFINITY:
        return wanted
    if soft < LEAST_DESCRIPTORS:
        raise NephilaError(
            f"this process may open {soft} files at once, and a crawl needs at least {LEAST_DESCRIPTORS}",
            hint="raise the limit, for example with ulimit -n 1024",
        )
    return min(wanted, (soft - min(RESERVED_DESCRIPTORS, soft // 2)) // DESCRIPTORS_PER_EXCHANGE)


def archive_files() -> int:
    """How many archive files may be open at once beside all the rest."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_ARCHIVE_FILES if soft == resource.RLIM_INFINITY else max(1, min(MOST_ARCHIVE_FILES, soft // 8))
