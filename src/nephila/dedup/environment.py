"""A directory with an LMDB environment that is never synced while it is open, and shared by the processes of a crawl.

For what may be lost, but not be wrong. A killed process harms nothing, for its pages are in the system's cache. When
the *machine* goes down while the environment is open, what was written without a sync may be torn: the next one to
open it throws all of it away. A marker beside the environment holds the id of the boot while somebody has it open;
every process holds a shared lock on the marker, so that the last one to close knows that it is the last, syncs, and
takes it away.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

import lmdb

from nephila.engines.store_files import prepare_files
from nephila.model.errors import MemoryShortageError, NephilaError, StorageError

from .full_disk import HINT, full_disk, is_memory_short


class UnsyncedEnvironment:
    """Opens, shares, closes and throws away. Raises `StorageError`, naming itself by `what`."""

    def __init__(self, path: Path, boot_id: str, what: str, loss: str, *, map_bytes: int, tables: int = 0) -> None:
        """`boot_id` names this boot of the machine (`Clock.boot_id`); `loss` says what deleting it would cost."""
        self.path = path
        self._what = what
        self._loss = loss
        self._marker = -1
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._marker = os.open(path / "open-since-boot", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._enter(boot_id)
            prepare_files(self.path)
            self.lmdb = lmdb.open(
                str(path), map_size=map_bytes, sync=False, metasync=False, max_dbs=tables, readahead=False
            )
            self.lmdb.reader_check()
        except (OSError, lmdb.Error) as error:
            self._leave()
            raise self.refused(error) from error

    def close(self) -> None:
        """Close; the last one to do so makes everything durable first, so that a power loss takes nothing."""
        try:
            with suppress(OSError, lmdb.Error):  # somebody else has it open, or the disk refuses: the marker stays
                fcntl.flock(self._marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.lmdb.sync(True)
                for path in self._files():
                    sync_file(path)
                os.truncate(self._marker, 0)
        finally:
            self.lmdb.close()
            self._leave()

    def refused(self, error: Exception) -> NephilaError:
        """What to tell when the disk or LMDB says no."""
        if is_memory_short(error):
            return MemoryShortageError()
        if full := full_disk(error):
            return StorageError(f"The {self._what} in {self.path.name} could not be written: {full}.", HINT)
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        return StorageError(
            f"The {self._what} in {self.path.name} refused: {reason}.",
            hint=f"It may be deleted while no crawl runs: {self._loss}.",
        )

    def _enter(self, boot_id: str) -> None:
        """Take part. Whoever is alone looks whose mark there is; beside others it can only be that of this boot."""
        boot = boot_id.encode()
        try:
            fcntl.flock(self._marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._marker, fcntl.LOCK_SH)
        else:
            if os.pread(self._marker, 1024, 0) not in {b"", boot}:
                for path in self._files():
                    path.unlink(missing_ok=True)
                os.truncate(self._marker, 0)
        os.pwrite(self._marker, boot, 0)
        os.fsync(self._marker)
        sync_file(self.path)
        fcntl.flock(self._marker, fcntl.LOCK_SH)

    def _leave(self) -> None:
        if self._marker >= 0:
            os.close(self._marker)
            self._marker = -1

    def _files(self) -> list[Path]:
        """All but the marker."""
        return [path for path in self.path.iterdir() if path.name != "open-since-boot"]


def sync_file(path: Path) -> None:
    """Make a file durable, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
