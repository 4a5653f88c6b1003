"""The end of a growing file, put into the system's cache page by page before anything is written there.

A file system that keeps files in large pieces (ext4 since Linux 6.16) makes them as large as the writes by which a file
grows. Whoever writes one page into such a piece later pays for all of it, at the write and again at the sync: 9 us
instead of 3 for a page of 4 KiB in pieces of 64 (docs/decisions/0044). LMDB grows a store in long runs and then writes
single pages all over it. So the file is made longer ahead of that, as a hole that takes no room on the disk, and the
system is asked to read the hole: what it reads by request it keeps in pieces of one page, and a later write finds them.

What must stay true: a file only grows here, by whoever may write to it; what fails is left, for nothing depends on it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LEAST_BYTES = 1 << 20
"""How far the file is ahead at least."""

MOST_BYTES = 64 << 20
"""And at most: what lies ahead is memory that the system could use for something else."""

SMALL_BYTES = 32 << 20
"""Of a file that is no larger most pages are written together, in rows, which large pieces make cheaper."""


class RoomAhead:
    """The room after what is used of a file."""

    __slots__ = ("_descriptor", "_used")

    def __init__(self, path: Path) -> None:
        self._descriptor = -1
        self._used = 0
        with suppress(OSError):  # a store that is only read
            self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def used(self, used_bytes: int) -> None:
        """So much of the file is in use; next time it will have grown by about as much as since the last time."""
        grown = used_bytes - self._used if self._used else 0
        self._used = used_bytes
        self.take(2 * grown)

    def take(self, bytes_more: int) -> None:
        """So much more is about to be written."""
        if self._descriptor < 0 or self._used < SMALL_BYTES:
            return
        end = self._used + min(LEAST_BYTES + max(0, bytes_more), MOST_BYTES)
        try:
            size = os.fstat(self._descriptor).st_size
            if size < end:
                end += LEAST_BYTES
                os.ftruncate(self._descriptor, end)
                os.posix_fadvise(self._descriptor, size, end - size, os.POSIX_FADV_WILLNEED)
        except OSError:  # a limit on the size of files, a file system that cannot: then it is as it would be without
            self.close()

    def close(self) -> None:
        """Let go of the file; nothing is done from here on."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
