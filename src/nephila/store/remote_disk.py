"""Files that lie in a store of objects, read as those of a disk are: for whoever checks a trail that is not here (K1).

Each folder says where its files are: in the store, in pieces there, on this machine, or in one of two places. Nothing
can be written. An object is asked for when it is opened, not when it was listed: files move from a spool to the store
while somebody reads.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from nephila.engines.disk import Disk, DiskFile
from nephila.interfaces.objects import ObjectInfo, ObjectStore

from .holes import holed_file
from .remote import RemoteFile


class Folder(Protocol):
    """Where the files of one folder are."""

    def names(self) -> list[str]:
        """Their names in order."""

    def open(self, name: str) -> DiskFile:
        """One of them; raises FileNotFoundError."""


class ObjectFolder:
    """Each file is an object. Blocks; not for a loop that runs."""

    def __init__(self, objects: ObjectStore, keys: Mapping[str, str]) -> None:
        """`keys` by name."""
        self._objects = objects
        self._keys = keys

    def names(self) -> list[str]:
        """As they were listed."""
        return sorted(self._keys)

    def open(self, name: str) -> DiskFile:
        """As the store has it now."""
        return opened(self._objects, self._keys.get(name, ""))


class ArchiveFolder:
    """Objects whose keys follow from their names, and files that wait for their upload in a spool."""

    def __init__(self, objects: ObjectStore, keys: Mapping[str, str], prefix: str, spool: Path, disk: Disk) -> None:
        self._objects, self._keys, self._prefix = objects, keys, prefix
        self._spool, self._disk = spool, disk

    def names(self) -> list[str]:
        """Of both."""
        return sorted({*self._keys, *self._disk.names(self._spool)})

    def open(self, name: str) -> DiskFile:
        """From the store where it is there; a file that leaves the spool meanwhile has arrived."""
        for _ in range(2):
            try:
                return opened(self._objects, self._prefix + name)
            except FileNotFoundError:
                pass
            try:
                return self._disk.open(self._spool / name)
            except FileNotFoundError:
                continue
        raise _missing(name)


class StretchFolder:
    """Files that lie in the store in stretches, each an object."""

    def __init__(self, objects: ObjectStore, stretches: Mapping[str, Sequence[str]]) -> None:
        """Keys in order, by the name of the file."""
        self._objects = objects
        self._stretches = stretches

    def names(self) -> list[str]:
        """As they were listed."""
        return sorted(self._stretches)

    def open(self, name: str) -> DiskFile:
        """All stretches, one behind the other. One that is gone since it was listed is left out: its lines miss."""
        if name not in self._stretches:
            raise _missing(name)
        files: list[tuple[int, DiskFile]] = []
        for key in self._stretches[name]:
            try:
                file = opened(self._objects, key)
            except FileNotFoundError:
                continue
            files.append((file.size(), file))
        return _Joined(files)


class RemoteDisk:
    """Implements `store.disk.Disk` for reading; folders that are not named are those of another disk."""

    def __init__(self, folders: Mapping[Path, Folder], other: Disk) -> None:
        self._folders = folders
        self._other = other

    def open(self, path: Path) -> DiskFile:
        """As the protocol."""
        for parent in path.parents:  # names of archives may have folders in them
            if (folder := self._folders.get(parent)) is not None:
                return folder.open(path.relative_to(parent).as_posix())
        return self._other.open(path)

    def names(self, directory: Path) -> list[str]:
        """As the protocol."""
        folder = self._folders.get(directory)
        return self._other.names(directory) if folder is None else folder.names()

    def create(self, path: Path) -> DiskFile:
        """Nothing is made."""
        raise _refused(path)

    def make_folder(self, directory: Path, within: Path | None = None) -> list[Path]:
        """Nothing is made."""
        del within
        raise _refused(directory)

    def remove_folders(self, directory: Path, within: Path) -> None:
        """Nothing is removed."""

    def rename(self, source: Path, target: Path) -> None:
        """Nothing is renamed."""
        del target
        raise _refused(source)

    def remove(self, path: Path) -> None:
        """Nothing is removed."""
        raise _refused(path)

    def sync_directory(self, directory: Path) -> None:
        """Objects are durable."""

    def sizes(self, directory: Path) -> dict[str, int]:
        """As the protocol; each file is asked for."""
        return {name: self.open(directory / name).size() for name in self.names(directory)}

    def free(self, directory: Path) -> int:
        """Nothing may be written."""
        del directory
        return 0


class _Joined:
    """Several files as one."""

    def __init__(self, files: Sequence[tuple[int, DiskFile]]) -> None:
        """Each with its length."""
        self._files = files

    def read_at(self, offset: int, size: int) -> bytes:
        """As the protocol."""
        found = bytearray()
        for length, file in self._files:
            if offset < length and len(found) < size:
                found += file.read_at(offset, min(size - len(found), length - offset))
                offset = length
            offset -= length
        return bytes(found)

    def size(self) -> int:
        """As the protocol."""
        return sum(length for length, _ in self._files)

    def close(self) -> None:
        """Let go of what was read ahead."""
        for _, file in self._files:
            file.close()

    def sync(self) -> None:
        """Objects are durable."""

    def append(self, data: bytes) -> None:
        """Objects do not grow."""
        del data
        raise _refused(Path())

    def append_zeros(self, count: int) -> None:
        """Objects do not grow."""
        del count
        raise _refused(Path())

    def truncate(self, size: int) -> None:
        """Objects are not cut."""
        del size
        raise _refused(Path())

    def rewrite(self, offset: int, size: int) -> None:
        """There is no need to."""
        del offset, size
        raise _refused(Path())


def opened(objects: ObjectStore, key: str) -> RemoteFile:
    """An object as the file that it stands for, its length asked for. Blocks. Raises FileNotFoundError."""
    found = asyncio.run(_look(objects, key)) if key else None
    if found is None:
        raise _missing(key)
    return holed_file(objects, key, found.holes) if found.holes else RemoteFile(objects, key, found.size)


async def _look(objects: ObjectStore, key: str) -> ObjectInfo | None:
    return await objects.look(key)


def _missing(name: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def _refused(path: Path) -> OSError:
    return OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
