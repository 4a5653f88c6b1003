"""File descriptors: the limit raised at start, and concurrency sized from what was granted (H1).

Exchanges come first, with two descriptors each. Idle connections get what is left over, and those of the second
descriptors that nobody uses.
"""

from __future__ import annotations

import resource
from typing import NamedTuple

from nephila.model.errors import NephilaError

DESCRIPTORS_PER_EXCHANGE = 2
"""The connection in use, and one idle or one socket to a name server."""

RESERVED_DESCRIPTORS = 128
"""For the frontier, archives, catalogue, logs, the loop itself and the control API; half of all where there are few."""

LEAST_DESCRIPTORS = 48
"""A crawl of one exchange at a time has some thirty files open."""

MOST_ARCHIVE_FILES = 64


class Granted(NamedTuple):
    """What the limit allows."""

    exchanges: int
    idle: int
    """Connections that are kept beside them."""


def raise_descriptor_limit(exchanges: int, idle: int = 0) -> Granted:
    """Raise the soft limit as far as so many exchanges at once and idle connections need; what of it is allowed.

    Raises `NephilaError` where not even one exchange could work.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = exchanges + max(exchanges * (DESCRIPTORS_PER_EXCHANGE - 1), idle) + RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        granted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        if granted > soft:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
            except (OSError, ValueError):  # a sandbox may forbid it: go on with what there is
                granted = soft
        soft = max(soft, granted)
    if soft == resource.RLIM_INFINITY:
        return Granted(exchanges, idle)
    if soft < LEAST_DESCRIPTORS:
        raise NephilaError(
            f"this process may open {soft} files at once, and a crawl needs at least {LEAST_DESCRIPTORS}",
            hint="raise the limit, for example with ulimit -n 1024",
        )
    free = soft - min(RESERVED_DESCRIPTORS, soft // 2)
    possible = min(exchanges, free // DESCRIPTORS_PER_EXCHANGE)
    return Granted(possible, min(idle, free - possible))


def archive_files() -> int:
    """How many archive files may be open at once beside all the rest."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_ARCHIVE_FILES if soft == resource.RLIM_INFINITY else max(1, min(MOST_ARCHIVE_FILES, soft // 8))
