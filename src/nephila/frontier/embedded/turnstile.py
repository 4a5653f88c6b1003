"""How a process that keeps the store's transaction open lets others in.

One process at a time may write to the store, and LMDB's lock for that is not fair: whoever gives it back and takes it
again at once is always first. So whoever wants to write passes a turnstile: it takes the lock of this file, then the
store's, and gives the first one back. The process that holds the store's lock for long sees that somebody stands in the
turnstile, commits, and cannot begin anew before that somebody has begun.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_NAME = "turnstile"


class Turnstile:
    """The turnstile of one store, as one handle passes it."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Inside, the store's lock is taken; others wait outside."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def is_taken(self) -> bool:
        """Whether somebody waits for the store."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return False

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)
