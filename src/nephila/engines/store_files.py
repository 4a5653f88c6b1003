"""The files of an LMDB environment, seen to before LMDB opens them: a full disk must not spoil them for good."""

from __future__ import annotations

import os
from pathlib import Path

LOCK_BYTES = 64 * 1024
"""A thousand readers of 64 bytes."""
_HEADS = 2
"""Pages that LMDB writes first of all, at once."""


def prepare_files(path: Path) -> None:
    """Make the files of an environment ready for whoever writes to it. Raises OSError.

    The lock file is given its blocks: it is mapped sparse, and a full disk makes writing a SIGBUS. A store that a full
    disk cut off while it was being made holds nothing, and cannot be opened ever: it is made anew.
    """
    descriptor = os.open(path / "lock.mdb", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(descriptor, 0, LOCK_BYTES)
    finally:
        os.close(descriptor)
    store = path / "data.mdb"
    if store.exists() and 0 < store.stat().st_size < _HEADS * os.sysconf("SC_PAGE_SIZE"):
        store.unlink()
