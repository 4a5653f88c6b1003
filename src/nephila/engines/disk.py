"""The disk, passed in: every byte that the archive and the frontier's journal write goes through two small protocols.

A missing fsync is never found on a real machine, because tests cannot pull its plug; on a simulated disk that forgets
what was not synced it is found at once (`nephila.testing.disk`). So no stage opens a file that must last by itself, but
for SQLite and LMDB, which have their own ways.

What must stay true: `append` writes all or raises; bytes are safe from power loss after `DiskFile.sync`, a new or
renamed name after `Disk.sync_directory`, that of a folder too.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

_MODE = 0o644
_BLOCK = 1 << 20
"""Bytes that are written again at once."""


class DiskFile(Protocol):
    """An open file. Every call may raise OSError."""

    def append(self, data: bytes) -> None:
        """Write at the end, all of it; when this raises, a part may have been written."""

    def append_zeros(self, count: int) -> None:
        """Zeros at the end, as a hole that takes no room where the file system knows such."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def size(self) -> int:
        """Length in bytes."""

    def truncate(self, size: int) -> None:
        """Cut off what is after `size`."""

    def rewrite(self, offset: int, size: int) -> None:
        """Write bytes that are there once more, unchanged, so that the next sync carries them to the disk.

        After a sync that failed the system may take bytes for written that are in its memory alone: whoever reads them
        finds them whole, and a sync that succeeds says nothing of them.
        """

    def sync(self) -> None:
        """Make all bytes durable."""

    def close(self) -> None:
        """Give the descriptor back. Says nothing about durability."""


class Disk(Protocol):
    """Files by their path. Every call may raise OSError."""

    def create(self, path: Path) -> DiskFile:
        """A new, empty file; raises FileExistsError where there is one."""

    def open(self, path: Path) -> DiskFile:
        """An existing file, for reading, appending and cutting."""

    def names(self, directory: Path) -> list[str]:
        """File names in order; the directory is made when it is missing, and nothing above it.

        A file in a folder below it is called by its path from here, with slashes; folders themselves are not named.
        """

    def make_folder(self, directory: Path, within: Path | None = None) -> list[Path]:
        """Make a folder, and those above it that are missing: which were made. No error when it is there.

        `within` is not made, nor what is above it: where that is gone nothing is to come into its place.
        """

    def remove_folders(self, directory: Path, within: Path) -> None:
        """Remove a folder if it is empty, then the one above it, and so on below `within`. Never raises."""

    def rename(self, source: Path, target: Path) -> None:
        """Atomic; replaces the target."""

    def remove(self, path: Path) -> None:
        """Gone; no error when it was not there."""

    def sync_directory(self, directory: Path) -> None:
        """Make names that were created, renamed or removed durable."""

    def sizes(self, directory: Path) -> dict[str, int]:
        """The bytes of each file, by name as in `names`; the directory is made as there."""

    def free(self, directory: Path) -> int:
        """Bytes that may still be written there, as far as is known."""


class LocalFile:
    """A file of the operating system."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def append(self, data: bytes) -> None:
        """One write, in the ordinary case. A short one is a disk that fills up: the next says why, as an OSError."""
        written = os.write(self._descriptor, data)
        while written < len(data):
            written += os.write(self._descriptor, memoryview(data)[written:])

    def append_zeros(self, count: int) -> None:
        """As the protocol."""
        os.ftruncate(self._descriptor, self.size() + count)

    def read_at(self, offset: int, size: int) -> bytes:
        """As the protocol."""
        return os.pread(self._descriptor, size, offset)

    def size(self) -> int:
        """As the protocol."""
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        """As the protocol."""
        os.ftruncate(self._descriptor, size)

    def rewrite(self, offset: int, size: int) -> None:
        """As the protocol. A descriptor that appends would do so wherever it is told to write."""
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags & ~os.O_APPEND)
        try:
            end = offset + size
            while offset < end and (data := os.pread(self._descriptor, min(_BLOCK, end - offset), offset)):
                offset += os.pwrite(self._descriptor, data, offset)
        finally:
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags)

    def sync(self) -> None:
        """As the protocol. Data and length; times of change are not worth a journal entry of the file system."""
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """As the protocol."""
        os.close(self._descriptor)


class LocalDisk:
    """The file system of this machine."""

    def create(self, path: Path) -> DiskFile:
        """As the protocol."""
        return LocalFile(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE))

    def open(self, path: Path) -> DiskFile:
        """As the protocol. A file that may not be written is opened for reading."""
        try:
            return LocalFile(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC))
        except PermissionError:
            return LocalFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def names(self, directory: Path) -> list[str]:
        """As the protocol."""
        directory.mkdir(exist_ok=True)
        return sorted(name for name, _ in _files_below(directory))

    def make_folder(self, directory: Path, within: Path | None = None) -> list[Path]:
        """As the protocol."""
        made: list[Path] = []
        try:
            directory.mkdir()
        except FileExistsError:
            if not directory.is_dir():  # not an error that says that a name is taken: no other would be free
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory)) from None
            return made
        except FileNotFoundError:
            if directory.parent == within:
                raise
            made = self.make_folder(directory.parent, within)
            directory.mkdir(exist_ok=True)
        return [*made, directory]

    def remove_folders(self, directory: Path, within: Path) -> None:
        """As the protocol. The system refuses where something is in it, or was put there meanwhile."""
        while within in directory.parents:
            try:
                directory.rmdir()
            except OSError:
                return
            directory = directory.parent

    def rename(self, source: Path, target: Path) -> None:
        """As the protocol."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """As the protocol."""
        path.unlink(missing_ok=True)

    def sync_directory(self, directory: Path) -> None:
        """As the protocol."""
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sizes(self, directory: Path) -> dict[str, int]:
        """As the protocol. A file that goes while they are counted has no bytes."""
        directory.mkdir(exist_ok=True)
        found: dict[str, int] = {}
        for name, entry in _files_below(directory):
            try:
                found[name] = entry.stat().st_size
            except FileNotFoundError:
                continue
        return dict(sorted(found.items()))

    def free(self, directory: Path) -> int:
        """As the protocol: what is left to ordinary users."""
        told = os.statvfs(directory)
        return told.f_bavail * told.f_frsize


def _files_below(directory: Path, prefix: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every file with its path from there. A folder that goes meanwhile has none; links to folders are not followed."""
    try:
        entries = os.scandir(directory)
    except FileNotFoundError:
        if prefix:
            return
        raise
    with entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files_below(directory / entry.name, f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name, entry


LOCAL_DISK = LocalDisk()


class LookingDisk(LocalDisk):
    """The same for those who only look: nothing is made, nothing is opened for writing."""

    def open(self, path: Path) -> DiskFile:
        """For reading."""
        return LocalFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def names(self, directory: Path) -> list[str]:
        """File names in order; none where there is no such directory."""
        return sorted(name for name, _ in _files_below(directory)) if directory.is_dir() else []
