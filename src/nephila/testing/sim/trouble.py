"""A disk whose operations can fail, or be the last thing that a crawl does.

Every operation that changes something is counted. At the one that was planned the disk refuses it (having written a
part, as disks do), or the crawl dies there, before or after it. What the disk holds is a `ForgetfulDisk`.

The frontier's journal is written to far more often than the archive. Where all were counted alike, the archive would
hardly ever be met; so the journal is counted in some lives only.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nephila.engines.disk import DiskFile
from nephila.testing.disk import ForgetfulDisk, MemoryFile

from .happenings import Happened, Happening
from .owners import OWNER


@dataclass(slots=True)
class Trouble:
    """What is to happen to one life's disk."""

    happened: Happened
    now_s: Callable[[], float]
    fail_write_at: int = 0
    fail_sync_at: int = 0
    crash_at: int = 0
    crash_first: bool = False
    """Before the operation, not after it."""
    of_journal: bool = False
    """Whether operations on the frontier's journal count."""
    crash: Callable[[], None] = field(default=lambda: None)
    operations: int = 0
    writes: int = 0
    syncs: int = 0
    since_s: float | None = None
    """When something went wrong first."""
    since_s_of: dict[int, float] = field(default_factory=dict)
    """The same of each process: it keeps no answer any more, for as long as it takes to end."""

    def around(self, operation: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the operation gives
        """Do it, unless the crawl dies before; or die after."""
        self.operations += 1
        mine = self.operations == self.crash_at
        if mine and self.crash_first:
            self.crash()
        result = operation()
        if mine:
            self.crash()
        return result

    def went_wrong(self, kind: Happening) -> None:
        """The disk has refused something."""
        self.happened[kind] += 1
        now_s = self.now_s()
        if self.since_s is None:
            self.since_s = now_s
        self.since_s_of.setdefault(OWNER.get(), now_s)


@dataclass(frozen=True, slots=True)
class TroubledFile:
    """A file of a troubled disk."""

    file: MemoryFile
    trouble: Trouble
    counted: bool = True
    """Whether what is planned may happen to it. A disk that is full is full for all."""

    def append(self, data: bytes) -> None:
        """As the protocol; on the planned occasion a part is written, or nothing."""
        trouble = self.trouble
        trouble.writes += self.counted
        if self.counted and trouble.writes == trouble.fail_write_at:
            part = len(data) * (trouble.writes % 3) // 3
            self.file.append(data[:part])
            trouble.went_wrong(Happening.TORN_WRITE if part else Happening.WRITE_ERROR)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        def write() -> None:
            try:
                self.file.append(data)
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    trouble.went_wrong(Happening.DISK_FULL)
                raise

        self._around(write)

    def append_zeros(self, count: int) -> None:
        """As the protocol."""
        self.append(bytes(count))

    def sync(self) -> None:
        """As the protocol; on the planned occasion it fails."""
        self.trouble.syncs += self.counted
        if self.counted and self.trouble.syncs == self.trouble.fail_sync_at:
            self.trouble.went_wrong(Happening.SYNC_ERROR)
            self.file.drop_unsynced()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._around(self.file.sync)

    def truncate(self, size: int) -> None:
        """As the protocol."""
        self._around(lambda: self.file.truncate(size))

    def rewrite(self, offset: int, size: int) -> None:
        """As the protocol. The same bytes: whoever dies in it has changed nothing."""
        self.file.rewrite(offset, size)

    def read_at(self, offset: int, size: int) -> bytes:
        """As the protocol."""
        return self.file.read_at(offset, size)

    def size(self) -> int:
        """As the protocol."""
        return self.file.size()

    def close(self) -> None:
        """As the protocol."""
        self.file.close()

    def _around(self, operation: Callable[[], None]) -> None:
        if self.counted:
            self.trouble.around(operation)
        else:
            operation()


@dataclass(frozen=True, slots=True)
class TroubledDisk:
    """Implements `nephila.engines.disk.Disk`."""

    disk: ForgetfulDisk
    trouble: Trouble

    def create(self, path: Path) -> DiskFile:
        """As the protocol."""
        if self._is_spared(path.parent):
            return TroubledFile(self.disk.create(path), self.trouble, counted=False)
        return TroubledFile(self.trouble.around(lambda: self.disk.create(path)), self.trouble)

    def open(self, path: Path) -> DiskFile:
        """As the protocol."""
        if self._is_spared(path.parent):
            return TroubledFile(self.disk.open(path), self.trouble, counted=False)
        return TroubledFile(self.disk.open(path), self.trouble)

    def names(self, directory: Path) -> list[str]:
        """As the protocol."""
        return self.disk.names(directory)

    def make_folder(self, directory: Path, within: Path | None = None) -> list[Path]:
        """As the protocol."""
        return list(self.trouble.around(lambda: self.disk.make_folder(directory, within)))

    def remove_folders(self, directory: Path, within: Path) -> None:
        """As the protocol."""
        self.disk.remove_folders(directory, within)

    def rename(self, source: Path, target: Path) -> None:
        """As the protocol."""
        self.trouble.around(lambda: self.disk.rename(source, target))

    def remove(self, path: Path) -> None:
        """As the protocol."""
        self.trouble.around(lambda: self.disk.remove(path))

    def sync_directory(self, directory: Path) -> None:
        """As the protocol."""
        if self._is_spared(directory):
            self.disk.sync_directory(directory)
        else:
            self.trouble.around(lambda: self.disk.sync_directory(directory))

    def sizes(self, directory: Path) -> dict[str, int]:
        """As the protocol."""
        return self.disk.sizes(directory)

    def free(self, directory: Path) -> int:
        """As the protocol."""
        return self.disk.free(directory)

    def _is_spared(self, directory: Path) -> bool:
        """The frontier has nothing on this disk but its journal."""
        return not self.trouble.of_journal and directory.name == "frontier"
