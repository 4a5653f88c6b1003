"""A disk in memory that forgets: bytes that were not synced are gone after a power loss, and so are names.

On a real machine a missing fsync is never noticed. Here `lose_power` leaves what a file system may leave: of each file
what was synced, plus any part of what was written since, perhaps with a hole of zeros where data never arrived; of
each directory the names as of its last sync, with any later change kept or not. Which, is drawn from the random source
that is passed in; without one everything unsynced is lost.

A sync that is refused drops what it was to carry: it can be read until the power is lost, and no later sync carries it,
unless it is written again. The disk may also be small (`capacity`): then it fills up in the middle of a write, as disks
do.
"""

from __future__ import annotations

import errno
import os
import random
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=10_000)
def _folder(path: Path) -> str:
    """The directory of a file; asked for every file at every sync, and pathlib is slow to tell."""
    return str(path.parent)


@dataclass(eq=False)
class _Content:
    """A file's bytes as programs see them, and as the platter has them."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    dropped: list[tuple[int, int]] = field(default_factory=list)
    """Spans that a failed sync left in memory alone: the system takes them for written, and never tries again."""

    def drop_unsynced(self) -> None:
        start = len(self.durable) if self.data.startswith(self.durable) else 0
        if start < len(self.data):
            self.dropped.append((start, len(self.data)))

    def renew(self, start: int, end: int) -> None:
        spans = [part for a, b in self.dropped for part in ((a, min(b, start)), (max(a, end), b))]
        self.dropped = [(a, b) for a, b in spans if a < b]

    def written(self) -> bytes:
        """What a sync brings to the platter."""
        found = bytearray(self.data)
        for start, end in self.dropped:
            found[start:end] = bytes(end - start)
        return bytes(found)

    def after_power_loss(self, draw: random.Random | None) -> bytes:
        if draw is None or self.dropped or bytes(self.data) == self.durable:
            return self.durable
        if not self.data.startswith(self.durable):
            return bytes(self.data) if draw.random() < 0.5 else self.durable  # an unsynced cut: done or not
        kept = draw.randint(len(self.durable), len(self.data))
        survived = self.data[:kept]
        if draw.random() < 0.3:
            hole = draw.randint(len(self.durable), kept)
            survived[hole:] = bytes(kept - hole)
        return bytes(survived)


class MemoryFile:
    """An open file of a `ForgetfulDisk`."""

    def __init__(self, disk: ForgetfulDisk, content: _Content) -> None:
        self._disk = disk
        self._content = content
        self._open = True

    def append(self, data: bytes) -> None:
        """As the protocol; on a full disk a part is written."""
        self._check()
        room = self._disk.room()
        self._content.data += data[:room]
        if len(data) > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def read_at(self, offset: int, size: int) -> bytes:
        """As the protocol."""
        self._check()
        return bytes(self._content.data[offset : offset + size])

    def size(self) -> int:
        """As the protocol."""
        return len(self._content.data)

    def truncate(self, size: int) -> None:
        """As the protocol."""
        self._check()
        if self._disk.refuses_truncation:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        del self._content.data[size:]
        self._content.renew(size, 1 << 62)

    def rewrite(self, offset: int, size: int) -> None:
        """As the protocol."""
        self._check()
        self._content.renew(offset, offset + size)

    def sync(self) -> None:
        """As the protocol. Where it is refused, what was not durable yet is dropped, as systems do."""
        self._check()
        if self._disk.refuses_sync:
            self.drop_unsynced()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._disk.syncs += 1
        self._content.durable = self._content.written()

    def drop_unsynced(self) -> None:
        """A sync has failed."""
        self._content.drop_unsynced()

    def close(self) -> None:
        """As the protocol. After a power loss there is nothing left that could be refused."""
        if not self._open:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._open = False
        self._disk.open_files -= 1
        if self._disk.refuses_close and not self._disk.powered_off:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _check(self) -> None:
        if not self._open or self._disk.powered_off:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class ForgetfulDisk:
    """Implements `nephila.store.disk.Disk`."""

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.refuses_sync = False
        self.refuses_truncation = False
        self.refuses_close = False
        self.powered_off = False
        self.syncs = 0
        """How many files were synced so far."""
        self.open_files = 0
        self._files: dict[Path, _Content] = {}
        self._durable_names: dict[Path, _Content] = {}

    def create(self, path: Path) -> MemoryFile:
        """As the protocol."""
        self._check()
        if path in self._files:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        self._files[path] = _Content()
        return self.open(path)

    def open(self, path: Path) -> MemoryFile:
        """As the protocol."""
        self._check()
        if path not in self._files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        self.open_files += 1
        return MemoryFile(self, self._files[path])

    def names(self, directory: Path) -> list[str]:
        """As the protocol."""
        self._check()
        here = str(directory)
        return sorted(path.name for path in self._files if _folder(path) == here)

    def rename(self, source: Path, target: Path) -> None:
        """As the protocol."""
        self._check()
        if source not in self._files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
        self._files[target] = self._files.pop(source)

    def remove(self, path: Path) -> None:
        """As the protocol."""
        self._check()
        self._files.pop(path, None)

    def sync_directory(self, directory: Path) -> None:
        """As the protocol."""
        self._check()
        here = str(directory)
        elsewhere = {path: one for path, one in self._durable_names.items() if _folder(path) != here}
        self._durable_names = elsewhere | {path: one for path, one in self._files.items() if _folder(path) == here}

    def sizes(self, directory: Path) -> dict[str, int]:
        """As the protocol."""
        return {name: len(self._files[directory / name].data) for name in self.names(directory)}

    def free(self, directory: Path) -> int:
        """As the protocol: one disk for all directories."""
        del directory
        return self.room()

    def room(self) -> int:
        """Bytes that can still be written."""
        if self.capacity is None:
            return 1 << 62
        return max(0, self.capacity - self.used())

    def used(self) -> int:
        """Bytes that are written."""
        return sum(len(content.data) for content in self._files.values())

    def names_of_all(self) -> frozenset[Path]:
        """Every file there is."""
        return frozenset(self._files)

    def contents(self, path: Path) -> bytes:
        """A file's bytes as programs see them."""
        return bytes(self._files[path].data)

    def overwrite(self, path: Path, data: bytes) -> None:
        """Put these bytes there, durably: what a test wants to be found."""
        self._files[path] = self._durable_names[path] = _Content(bytearray(data), data)

    def lose_power(self, draw: random.Random | None = None) -> ForgetfulDisk:
        """The disk as the next boot finds it. This one, and every file open on it, refuses from now on."""
        self.powered_off = True
        names = dict(self._durable_names)
        if draw is not None:
            for path in sorted(self._files.keys() | self._durable_names.keys()):
                if self._files.get(path) is not names.get(path) and draw.random() < 0.5:
                    if path in self._files:
                        names[path] = self._files[path]
                    else:
                        del names[path]
        after = ForgetfulDisk(self.capacity)
        for path, content in names.items():
            after.overwrite(path, content.after_power_loss(draw))
        return after

    def hand_over(self) -> ForgetfulDisk:
        """The disk as another process finds it when the one that used it was killed: nothing is lost, or synced."""
        self.powered_off = True
        after = ForgetfulDisk(self.capacity)
        copies = {
            id(one): _Content(bytearray(one.data), one.durable, list(one.dropped)) for one in self._files.values()
        }
        after._files = {path: copies[id(one)] for path, one in self._files.items()}
        after._durable_names = {
            path: copies.get(id(one)) or _Content(bytearray(one.data), one.durable, list(one.dropped))
            for path, one in self._durable_names.items()
        }
        return after

    def _check(self) -> None:
        if self.powered_off:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
