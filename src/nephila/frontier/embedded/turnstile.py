"""How a process that keeps the store's transaction open lets others in.

One process at a time may write to the store, and LMDB's lock for that is not fair: whoever gives it back and takes it
again at once is always first. So whoever wants to write passes a turnstile: it takes the lock of this file, then the
store's, and gives the first one back. The process that holds the store's lock for long sees that somebody stands in the
turnstile, commits, and cannot begin anew before that somebody has begun.

Workers that share a crawl all want to write all the time. If each were let in as soon as it comes, each group of verbs
would be a commit, which is what keeping a transaction open is to avoid. So they wait in a line of their own, outside
the turnstile, for their turn: whoever has the store goes on to the end of its own (`writing.Turns`). Who is not one of
them does not stand in that line, and is let in at once as before.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_NAME = "turnstile"
LINE_NAME = "line"


class Turnstile:
    """The turnstile of one store, as one handle passes it. `in_line`: as one of several workers."""

    def __init__(self, folder: Path, *, in_line: bool = False) -> None:
        self._in_line = in_line
        self._descriptor = _opened(folder / FILE_NAME)
        try:
            self._line = _opened(folder / LINE_NAME)
        except OSError:
            os.close(self._descriptor)
            raise

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Inside, the store's lock is taken; others wait outside."""
        if self._in_line:
            with _locked(self._line):
                with _locked(self._descriptor):
                    pass  # whoever stands there goes first
                yield
        else:
            with _locked(self._descriptor):
                yield

    def is_taken(self) -> bool:
        """Whether somebody waits for the store who is to be let in at once."""
        return _is_locked(self._descriptor)

    def is_waited_at(self) -> bool:
        """Whether a worker, another than this one, waits for its turn."""
        return _is_locked(self._line)

    def close(self) -> None:
        """Give the descriptors back."""
        os.close(self._descriptor)
        os.close(self._line)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _is_locked(descriptor: int) -> bool:
    """Whether somebody else has the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False
