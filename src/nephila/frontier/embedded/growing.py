"""The store's file grows ahead of its writer, one page of the system's cache at a time.

What LMDB writes behind the end of its file comes in long runs, and for a long run the system takes large pieces of
cache (folios). They stay, and each page that is changed in one later costs a walk over the whole piece, twice: when it
is written and when it is synced. In a store that is changed at random places that is a third to a half of what a write
costs the system (docs/decisions/0048). A page that is in the cache already, by itself, stays by itself: so the file is
made longer before LMDB comes to its end, and the new pages, which are a hole and take no room on the disk, are read one
by one.

What must stay true: only whoever holds LMDB's lock for writing makes the file longer, and nobody ever makes it shorter.
What lies behind the pages that LMDB uses means nothing to it.
"""

from __future__ import annotations

import os
from pathlib import Path

import lmdb

from nephila.model.errors import StorageError

LEAST_AHEAD = 64
MOST_AHEAD = 16_384
"""Pages: 256 KB and 64 MB. A commit that takes more than that at once is written as it comes."""


class Growth:
    """Prepares the end of a store's file."""

    def __init__(self, env: lmdb.Environment, path: Path) -> None:
        self._env = env
        self._descriptor = os.open(path / "data.mdb", os.O_RDWR | os.O_CLOEXEC)
        os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        self._page_bytes = int(env.stat()["psize"])
        self._used = self._pages_used()
        self._prepared = self._used
        self._ahead = LEAST_AHEAD

    def prepare(self) -> None:
        """Let there be room for twice what the commits of late have taken. Called inside a write transaction."""
        used = self._pages_used()
        self._ahead = min(max(LEAST_AHEAD, 2 * (used - self._used), self._ahead * 7 // 8), MOST_AHEAD)
        self._used = used
        if self._prepared - used >= self._ahead // 2:
            return
        try:
            self._lengthen(max(used, self._prepared), used + self._ahead)
        except OSError as error:
            raise StorageError(f"the frontier's file cannot grow: {error.strerror}", "make room") from error

    def _lengthen(self, first: int, last: int) -> None:
        """Let there be pages up to the last, and those from the first on be in the cache, each by itself."""
        if os.fstat(self._descriptor).st_size < last * self._page_bytes:
            os.ftruncate(self._descriptor, last * self._page_bytes)
        read = [bytearray(self._page_bytes)]
        for page in range(first, last):
            os.preadv(self._descriptor, read, page * self._page_bytes)
        self._prepared = last

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)

    def _pages_used(self) -> int:
        return int(self._env.info()["last_pgno"]) + 1
