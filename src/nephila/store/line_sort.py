"""Sorts more lines than memory should hold: what is held is bounded by bytes, whatever the size of a segment.

A segment of a gigabyte has half a million captures, and its index 200 MB of lines. Lines are gathered up to a bound,
sorted, and laid down as one run after another in a file beside the index; at the end the runs are merged as they are
read, a block of each at a time. Lines that stay below the bound never touch the disk.

What must stay true: the file is for nobody else and of no worth afterwards, so it is never synced, and it is removed on
closing. What a killed process left of it is removed by the next one to sort under the same name.
"""

from __future__ import annotations

import errno
import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

from nephila.engines.disk import Disk, DiskFile

HELD_BYTES = 4_000_000
"""Of lines in memory, about; sorting them and laying them down takes a tenth of that again."""
LINE_BYTES = 48
"""What a line takes besides its characters: the object and its place in a list."""
BLOCK_LINES = 500
"""Written with one call: some 200 KB."""
MIN_BLOCK_BYTES = 4096
MAX_BLOCK_BYTES = 64 * 1024
"""Read of a run at a time; less where runs are many, so that all blocks together stay within `HELD_BYTES`."""


class LineSort:
    """Takes lines in any order, each with its line end and with no other in it, and gives them back sorted by bytes.

    A context manager: leaving it removes the file. Every call may raise OSError.
    """

    def __init__(self, disk: Disk, spill: Path, held_bytes: int = HELD_BYTES) -> None:
        """`spill` is the file to lay runs down in."""
        self._disk = disk
        self._spill = spill
        self._limit = held_bytes
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._file: DiskFile | None = None
        self._runs: list[tuple[int, int]] = []
        """Where each begins and ends."""

    def __enter__(self) -> Self:
        """Begin, without what another left."""
        self._disk.remove(self._spill)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of everything."""
        self._held = []
        if self._file is not None:
            self._file.close()
            self._disk.remove(self._spill)

    def add(self, line: bytes) -> None:
        """One more."""
        self._held.append(line)
        self._held_bytes += len(line) + LINE_BYTES
        if self._held_bytes >= self._limit:
            self._lay_down()

    def blocks(self) -> Iterator[bytes]:
        """All lines in order, many at a time. Nothing may be added afterwards."""
        self._held.sort()
        if self._file is None:
            return _joined(self._held)
        size = min(MAX_BLOCK_BYTES, max(MIN_BLOCK_BYTES, self._limit // (2 * len(self._runs))))
        runs = [_read(self._file, start, end, size) for start, end in self._runs]
        return _joined(heapq.merge(*runs, self._held))

    def _lay_down(self) -> None:
        if self._file is None:
            self._file = self._disk.create(self._spill)
        start = end = self._runs[-1][1] if self._runs else 0
        self._held.sort()
        for block in _joined(self._held):
            self._file.append(block)
            end += len(block)
        self._runs.append((start, end))
        self._held = []
        self._held_bytes = 0


def _joined(lines: Iterable[bytes]) -> Iterator[bytes]:
    source = iter(lines)
    while block := b"".join(islice(source, BLOCK_LINES)):
        yield block


def _read(file: DiskFile, start: int, end: int, size: int) -> Iterator[bytes]:
    """The lines of a run."""
    begun = b""
    while start < end:
        data = file.read_at(start, min(size, end - start))
        if not data:
            raise OSError(errno.EIO, "lines that were laid down to be sorted are gone")
        start += len(data)
        *lines, begun = (begun + data).split(b"\n")
        for line in lines:
            yield line + b"\n"
