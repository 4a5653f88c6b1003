"""File descriptors: the limit raised at start, and concurrency sized from what was granted (H1)."""

from __future__ import annotations

import resource

DESCRIPTORS_PER_EXCHANGE = 2
"""The connection in use, and one idle or one socket to a name server."""

RESERVED_DESCRIPTORS = 128
"""For the frontier, archives, catalogue, logs, the loop itself and the control API."""


def raise_descriptor_limit(wanted: int) -> int:
    """Raise the soft limit as far as `wanted` exchanges at once need; how many of them the limit really allows."""
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
    return max(1, min(wanted, (soft - RESERVED_DESCRIPTORS) // DESCRIPTORS_PER_EXCHANGE))
