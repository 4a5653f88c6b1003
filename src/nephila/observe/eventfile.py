"""Numbered files that grow by whole blocks of lines: events-000001.jsonl, events-000002.jsonl, ...

What must stay true:

- A block is in a file wholly or not at all: when the disk refuses half of it, the half is taken back.
- No two processes write to the same file: each holds a lock on its own, which ends with the process. So any number of
  workers may share the directory.
- Numbers only grow. A new process goes on in the last file when that is nobody's and has room, else in the next; a line
  that kill -9 left torn there is ended first, so that it spoils itself only.
- Lines never span files: a file is left when the next block would make it too large.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable
from pathlib import Path

_NAME = re.compile(r"events-([0-9]{6,})\.jsonl")


def event_files(directory: Path) -> list[Path]:
    """The event files of a directory in the order of their numbers; none when there is no such directory."""
    if not directory.is_dir():
        return []
    numbered = [(int(match[1]), path) for path in directory.iterdir() if (match := _NAME.fullmatch(path.name))]
    return [path for _, path in sorted(numbered)]


def number_of(name: str) -> int:
    """The number of an event file; 0 for what is none."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else 0


class EventFile:
    """The file that is being written. Every method may raise OSError, after which it can be called again."""

    def __init__(
        self, directory: Path, max_bytes: int, opening: Callable[[], bytes] = bytes, *, after: int | None = None
    ) -> None:
        """`opening` gives the line with which this process begins in a file.

        `after`: files that are there, and numbers up to this one, are left as they are, because they may lie elsewhere
        already.
        """
        self._after = after
        self._opening = opening
        self._begun = False
        self._grown: dict[str, int] = {}
        self._directory = directory
        self._max_bytes = max_bytes
        self._descriptor = -1
        self._number = 0
        self._size = 0
        directory.mkdir(parents=True, exist_ok=True)
        self._open_last()

    def append(self, block: bytes | bytearray) -> None:
        """Add whole lines; when it raises, nothing of them is in the file."""
        if self._descriptor < 0:
            self._open_last()
        if self._size and self._size + len(block) > self._max_bytes:
            self._open_next(self._number + 1)
        if not self._begun:
            block = self._opening() + block
        try:
            written = 0
            with memoryview(block) as view:
                while written < len(block):
                    written += os.write(self._descriptor, view[written:])
        except OSError:
            self._take_back()
            raise
        self._size += written
        self._begun = True
        self._grown[self._name(self._number)] = self._size

    def marks(self) -> list[tuple[str, int]]:
        """Names and lengths of the files that have grown since this was last asked."""
        grown, self._grown = self._grown, {}
        return list(grown.items())

    @property
    def size(self) -> int:
        """Bytes of the file that is being written."""
        return self._size

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name(self._number)

    def roll(self) -> None:
        """Leave the file for the next one, empty or not: whoever waits for that sees that it is nobody's."""
        if self._descriptor >= 0:
            self._open_next(self._number + 1)

    def close(self) -> None:
        """Let go of the file; a later `append` opens one again."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def _take_back(self) -> None:
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            self.close()  # opening it again ends the torn line

    def _open_last(self) -> None:
        files = event_files(self._directory)
        number = number_of(files[-1].name) if files else 0
        if self._after is not None or not files:
            self._open_next(max(number, self._after or 0) + 1)
            return
        descriptor = os.open(files[-1], os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            size = _end_torn_line(descriptor) if _lock(descriptor) else self._max_bytes
        except OSError:
            os.close(descriptor)
            raise
        if size < self._max_bytes:
            self._use(descriptor, number, size)
        else:
            os.close(descriptor)
            self._open_next(number + 1)

    def _open_next(self, number: int) -> None:
        """A file of our own, from `number` on: numbers that others have taken meanwhile are passed over."""
        while True:
            path = self._directory / self._name(number)
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL, 0o644)
            except FileExistsError:
                number += 1
                continue
            if _lock(descriptor):
                self._use(descriptor, number, 0)
                return
            os.close(descriptor)  # a process that looked for the last file was faster than our lock: it is theirs
            number += 1

    def _use(self, descriptor: int, number: int, size: int) -> None:
        self.close()
        self._descriptor, self._number, self._size = descriptor, number, size
        self._begun = False

    @staticmethod
    def _name(number: int) -> str:
        return f"events-{number:06d}.jsonl"


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end_torn_line(descriptor: int) -> int:
    """Make the file end with a line end; its size afterwards."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        size += os.write(descriptor, b"\n")
    return size
