"""A disk in memory that forgets: bytes that were not synced are gone after a power loss, and so are names.

On a real machine a missing fsync is never noticed. Here `lose_power` leaves what a file system may leave: of each file
what was synced, plus any part of what was written since, perhaps with a hole of zeros where data never arrived; of
each directory the names as of its last sync, with any later change kept or not. Which, is drawn from the random source
that is passed in; without one everything unsynced is lost. A folder that was made is such a name, in the one above it:
where it is lost, so is all below it.

A sync that is refused drops what it was to carry: it can be read until the power is lost, and no later sync carries it,
unless it is written again. The disk may also be small (`capacity`): then it fills up in the middle of a write, as disks
do.
"""

from __future__ import annotations

import errno
import os
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(eq=False)
class _Content:
    """A file's bytes as programs see them, and as the platter has them."""

    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    has_changed: bool = False
    """Whether more than its end has changed since the last sync."""
    dropped: list[tuple[int, int]] = field(default_factory=list)
    """Spans that a failed sync left in memory alone: the system takes them for written, and never tries again."""

    def drop_unsynced(self) -> None:
        # What was durable stays so, where the file was cut shorter since, too.
        pairs = zip(self.data, self.durable, strict=False)
        shared = min(len(self.data), len(self.durable))
        start = next((at for at, (here, there) in enumerate(pairs) if here != there), shared)
        if start < len(self.data):
            self.dropped.append((start, len(self.data)))

    def renew(self, start: int, end: int) -> None:
        self.has_changed = self.has_changed or bool(self.dropped)
        spans = [part for a, b in self.dropped for part in ((a, min(b, start)), (max(a, end), b))]
        self.dropped = [(a, b) for a, b in spans if a < b]

    def cut(self, size: int) -> None:
        del self.data[size:]
        self.has_changed = self.has_changed or size < len(self.durable)
        self.renew(size, 1 << 62)

    def sync(self) -> None:
        """Bring to the platter what is not there; most files only grow, and need not be copied whole for it."""
        if self.has_changed or self.dropped:
            self.durable, self.has_changed = bytearray(self.data), False
            for start, end in self.dropped:
                self.durable[start:end] = bytes(end - start)
        else:
            self.durable += self.data[len(self.durable) :]

    def copied(self) -> _Content:
        return _Content(bytearray(self.data), bytearray(self.durable), self.has_changed, list(self.dropped))

    def after_power_loss(self, draw: random.Random | None) -> bytes:
        if draw is None or self.dropped or self.data == self.durable:
            return bytes(self.durable)
        if not self.data.startswith(self.durable):
            return bytes(self.data if draw.random() < 0.5 else self.durable)  # an unsynced cut: done or not
        kept = draw.randint(len(self.durable), len(self.data))
        survived = self.data[:kept]
        if draw.random() < 0.3:
            hole = draw.randint(len(self.durable), kept)
            survived[hole:] = bytes(kept - hole)
        return bytes(survived)


_Names = dict[str, _Content]
"""The files of one directory."""


def _by_path(folders: Mapping[str, _Names]) -> dict[Path, _Content]:
    return {Path(folder, name): one for folder, names in folders.items() for name, one in names.items()}


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

    def append_zeros(self, count: int) -> None:
        """As the protocol; holes take room here."""
        self.append(bytes(count))

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
        self._content.cut(size)

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
        self._content.sync()

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
    """Implements `nephila.engines.disk.Disk`."""

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.refuses_sync = False
        self.refuses_truncation = False
        self.refuses_close = False
        self.powered_off = False
        self.syncs = 0
        """How many files were synced so far."""
        self.open_files = 0
        self._folders: defaultdict[str, _Names] = defaultdict(dict)
        self._durable: defaultdict[str, _Names] = defaultdict(dict)
        """The names of each directory as of its last sync."""
        self._fleeting: set[str] = set()
        """Folders that were made, and whose names a power loss may take."""

    def create(self, path: Path) -> MemoryFile:
        """As the protocol."""
        self._check()
        folder, name = os.path.split(path)
        if name in self._folders[folder]:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        self._folders[folder][name] = _Content()
        return self.open(path)

    def open(self, path: Path) -> MemoryFile:
        """As the protocol."""
        self._check()
        content = self._found(path)
        self.open_files += 1
        return MemoryFile(self, content)

    def _found(self, path: Path) -> _Content:
        folder, name = os.path.split(path)
        content = self._folders.get(folder, {}).get(name)
        if content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return content

    def names(self, directory: Path) -> list[str]:
        """As the protocol."""
        return list(self.sizes(directory))

    def make_folder(self, directory: Path, within: Path | None = None) -> list[Path]:
        """As the protocol. Folders that were listed, or that something lies in, are taken for older than the disk."""
        self._check()
        if str(directory) in self._folders or directory.parent == directory:
            return []
        made = [] if directory.parent == within else self.make_folder(directory.parent, within)
        self._folders[str(directory)] = {}
        self._fleeting.add(str(directory))
        return [*made, directory]

    def remove_folders(self, directory: Path, within: Path) -> None:
        """As the protocol."""
        while within in directory.parents and not self.sizes(directory):
            for known in (self._folders, self._durable):
                known.pop(str(directory), None)
            self._fleeting.discard(str(directory))
            directory = directory.parent

    def rename(self, source: Path, target: Path) -> None:
        """As the protocol."""
        self._check()
        content = self._found(source)
        self._drop(source)
        folder, name = os.path.split(target)
        self._folders[folder][name] = content

    def remove(self, path: Path) -> None:
        """As the protocol."""
        self._check()
        self._drop(path)

    def _drop(self, path: Path) -> None:
        folder, name = os.path.split(path)
        if folder in self._folders:
            self._folders[folder].pop(name, None)

    def sync_directory(self, directory: Path) -> None:
        """As the protocol."""
        self._check()
        self._durable[str(directory)] = dict(self._folders[str(directory)])
        self._fleeting -= {folder for folder in self._fleeting if os.path.dirname(folder) == str(directory)}  # noqa: PTH120 - text

    def sizes(self, directory: Path) -> dict[str, int]:
        """As the protocol."""
        self._check()
        here = str(directory)
        found = {name: len(content.data) for name, content in self._folders[here].items()}
        for folder, names in self._folders.items():
            if folder.startswith(here + os.sep):
                below = folder[len(here) + 1 :]
                found |= {f"{below}/{name}": len(content.data) for name, content in names.items()}
        return dict(sorted(found.items()))

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
        return sum(len(content.data) for names in self._folders.values() for content in names.values())

    def names_of_all(self) -> frozenset[Path]:
        """Every file there is."""
        return frozenset(_by_path(self._folders))

    def contents(self, path: Path) -> bytes:
        """A file's bytes as programs see them."""
        return bytes(self._found(path).data)

    def overwrite(self, path: Path, data: bytes) -> None:
        """Put these bytes there, durably: what a test wants to be found."""
        folder, name = os.path.split(path)
        self._folders[folder][name] = self._durable[folder][name] = _Content(bytearray(data), bytearray(data))

    def lose_power(self, draw: random.Random | None = None) -> ForgetfulDisk:
        """The disk as the next boot finds it. This one, and every file open on it, refuses from now on."""
        self.powered_off = True
        seen, names = _by_path(self._folders), _by_path(self._durable)
        if draw is not None:
            for path in sorted(seen.keys() | names.keys()):
                if seen.get(path) is not names.get(path) and draw.random() < 0.5:
                    if path in seen:
                        names[path] = seen[path]
                    else:
                        del names[path]
        lost = {folder for folder in sorted(self._fleeting) if draw is None or draw.random() < 0.5}
        after = ForgetfulDisk(self.capacity)
        for path, content in names.items():
            if lost.isdisjoint(map(str, path.parents)):
                after.overwrite(path, content.after_power_loss(draw))
        return after

    def hand_over(self) -> ForgetfulDisk:
        """The disk as another process finds it when the one that used it was killed: nothing is lost, or synced."""
        self.powered_off = True
        after = ForgetfulDisk(self.capacity)
        copies: dict[int, _Content] = {}
        for mine, its in ((self._folders, after._folders), (self._durable, after._durable)):
            for folder, names in mine.items():
                for name, one in names.items():
                    its[folder][name] = copies.setdefault(id(one), one.copied())
        after._fleeting = set(self._fleeting)
        return after

    def _check(self) -> None:
        if self.powered_off:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
