"""How a full disk, and a lack of memory, look to whoever writes through LMDB."""

from __future__ import annotations

import errno

import lmdb

HINT = "Make room and start the same command again: it goes on where it was."


def full_disk(error: Exception) -> str:
    """What is wrong, where it is (or may be) that there is no room; nothing where it is something else.

    A write that a full disk cuts short is an input/output error to LMDB, as one that fails is.
    """
    if isinstance(error, lmdb.DiskError) or (
        isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}
    ):
        return "no space left on the disk"
    cut_short = isinstance(error, lmdb.Error) and "Input/output error" in str(error)
    return f"the disk is full or fails ({error})" if cut_short else ""


def is_memory_short(error: Exception) -> bool:
    """Whether there was no memory for it: nothing is wrong with what is stored."""
    return isinstance(error, lmdb.MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
