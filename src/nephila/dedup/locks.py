"""LMDB's lock file, given its room before LMDB maps it."""

from __future__ import annotations

import os
from pathlib import Path

LOCK_BYTES = 64 * 1024
"""A thousand readers of 64 bytes."""


def reserve_locks(path: Path) -> None:
    """Give the lock file of an environment its blocks: it is mapped sparse, and a full disk makes writing a SIGBUS."""
    descriptor = os.open(path / "lock.mdb", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(descriptor, 0, LOCK_BYTES)
    finally:
        os.close(descriptor)
