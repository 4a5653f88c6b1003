"""The environment of what a crawl has learned of its sites.

Aliases; how hosts answer for missing pages; what lists have shown; which hosts need a browser.

An LMDB environment of its own, that several processes may share. Commits are rare (once a second at the most) and
synced, so that what was learned survives the machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import lmdb

from nephila.engines.store_files import prepare_files
from nephila.model.errors import MemoryShortageError, NephilaError, StorageError

from .full_disk import HINT, full_disk, is_memory_short

if TYPE_CHECKING:
    from lmdb import _Database as Database

    Txn = lmdb.Transaction[bytes]

MAP_BYTES = 1 << 34
"""Address space, sparse. What is kept is bounded; hosts are not, at some hundred bytes each."""
NAMES = ("meta", "tallies", "votes", "counts", "changes", "absences", "listings", "renderings")


class LearnedEnvironment:
    """Opens it, begins transactions, and words what goes wrong."""

    def __init__(self, path: Path, *, sync: bool = True, read_only: bool = False, map_bytes: int = MAP_BYTES) -> None:
        self._path = path
        self._read_only = read_only
        try:
            if not read_only:
                path.mkdir(parents=True, exist_ok=True)
                prepare_files(self._path)
            self._environment = lmdb.open(
                os.fspath(path),
                map_size=map_bytes,
                max_dbs=len(NAMES),
                sync=sync,
                metasync=sync,
                readonly=read_only,
                readahead=False,
            )
            self.db: dict[str, Database] = {}
            for name in NAMES:
                try:
                    self.db[name] = self._environment.open_db(name.encode(), create=not read_only)
                except lmdb.NotFoundError:  # of a crawl that an earlier version made: nothing of it is known
                    continue
        except (OSError, lmdb.Error) as error:
            raise self._refused(error) from error

    def get(self, name: str, key: bytes) -> bytes | None:
        """One record, without the detour through `reading`: pages with a query ask often."""
        try:
            table = self.db.get(name)
            if table is None:
                return None
            with self._environment.begin() as txn:
                return txn.get(key, db=table)
        except lmdb.Error as error:
            raise self._refused(error) from error

    @contextmanager
    def reading(self) -> Iterator[Txn]:
        """A transaction that reads."""
        try:
            with self._environment.begin() as txn:
                yield txn
        except lmdb.Error as error:
            raise self._refused(error) from error

    @contextmanager
    def writing(self) -> Iterator[Txn]:
        """A transaction that writes; durable when it ends."""
        try:
            with self._environment.begin(write=True) as txn:
                yield txn
        except lmdb.Error as error:
            raise self._refused(error) from error

    def close(self) -> None:
        """Close it, synced to the last page."""
        try:
            if not self._read_only:
                self._environment.sync(True)
        except lmdb.Error as error:
            raise self._refused(error) from error
        finally:
            self._environment.close()

    def _refused(self, error: Exception) -> NephilaError:
        if is_memory_short(error):
            return MemoryShortageError()
        if full := full_disk(error):
            return StorageError(f"What was learned of sites could not be written to {self._path.name}: {full}.", HINT)
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        hint = "It may be deleted while no crawl runs: aliases and soft not-found pages are then learned anew."
        if "Permission denied" in reason:
            hint = "Looking takes a lock there, too: mend its permissions, or look at a copy that is yours."
        return StorageError(
            f"What was learned of sites in {self._path.name} cannot be read or written: {reason}.", hint
        )
