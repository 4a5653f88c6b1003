"""The runs of an index as files: mapped by all who search, written by whoever holds the index's write transaction.

A file is written once, named by a number that is never used again, and taken away when a larger run has taken its
place. Which ones count is said by the index's state, in LMDB: a file that no state names is the rest of a process
that died.

Merging keeps the runs in a row of falling sizes, each at least `RATIO` times the next: so a look-up asks some
``log(n / FOLD) / log(RATIO)`` of them, and an entry is written again a few times for each. All in order.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from .near_run import ENTRY_BYTES, is_run, merge_into, run_bytes

RATIO = 3
FOLD = 4096
"""Entries that are looked through one by one, in a microsecond or two, before they become a run."""
SUFFIX = ".run"


class DamagedRunError(OSError):
    """A file is not the run that it was written as."""


class RunFile(NamedTuple):
    """One run, as the state names it."""

    number: int
    entries: int

    def path(self, folder: Path) -> Path:
        """Where it lies."""
        return folder / f"{self.number}{SUFFIX}"


class MappedRuns:
    """The runs that a process searches. Not safe for threads: whoever owns it holds a lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mapped: dict[RunFile, mmap.mmap] = {}
        self.maps: tuple[mmap.mmap, ...] = ()
        """In the order of the state."""

    def become(self, files: Sequence[RunFile]) -> None:
        """Map exactly these. Raises FileNotFoundError when one has been replaced meanwhile: then the state is old."""
        self._mapped = {
            file: self._mapped[file] if file in self._mapped else _mapped(file, self._folder, scattered=True)
            for file in files
        }
        self.maps = tuple(self._mapped.values())

    def close(self) -> None:
        """Let go of them; the system unmaps what nobody holds."""
        self._mapped = {}
        self.maps = ()


def choose(files: Sequence[RunFile], new: int) -> int:
    """How many runs, of the newest, are merged with so many new entries."""
    total, count = new, 0
    for file in reversed(files):
        if file.entries >= RATIO * total:
            break
        total += file.entries
        count += 1
    return count


def write_run(folder: Path, number: int, sources: Sequence[RunFile], entries: bytes | bytearray) -> RunFile:
    """Write what `sources` and packed entries hold as one run. Raises OSError; then nothing is left behind."""
    made = RunFile(number, len(entries) // ENTRY_BYTES + sum(source.entries for source in sources))
    path = made.path(folder)
    size = run_bytes(made.entries)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(descriptor, 0, size)  # a full disk must be told here: in a mapping it is a SIGBUS
        with mmap.mmap(descriptor, size) as out:
            merge_into(out, [_mapped(source, folder, scattered=False) for source in sources], entries)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    return made


def discard(folder: Path, kept: Iterable[RunFile]) -> None:
    """Take away the files of all runs but these. For the holder of the write transaction only."""
    names = {file.path(folder).name for file in kept}
    for path in folder.glob(f"*{SUFFIX}"):
        if path.name not in names:
            path.unlink(missing_ok=True)


def _mapped(file: RunFile, folder: Path, *, scattered: bool) -> mmap.mmap:
    with file.path(folder).open("rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    if not is_run(mapped, file.entries):
        raise DamagedRunError(f"{file.path(folder).name} is not what was written")
    if scattered and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_RANDOM)
    return mapped
