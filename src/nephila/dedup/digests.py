"""Exact duplicates (D2): SHA-256 of a decoded body to the capture that first had it.

The index only saves space. A lost entry costs a second copy; a wrong one would make a revisit record point at nothing,
so it must never happen. Therefore commits are not synced (a crawl finds a hundred new bodies a second), and an
environment that was open when the *machine* went down is thrown away: what LMDB wrote without a sync may then be torn.
A killed process harms nothing, for its pages are in the system's cache. A small marker beside the environment, holding
the boot's id while it is open, tells the two apart.

New entries live in a dict until `flush` writes them in key order; both are asked by `find`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import lmdb
import msgspec

from nephila.engines.store_files import prepare_files
from nephila.model.errors import MemoryShortageError, NephilaError, StorageError
from nephila.model.record import Original

from .environment import sync_file
from .full_disk import HINT, full_disk, is_memory_short

MAP_BYTES = 1 << 38
"""Address space, sparse: room for a billion bodies at ~250 bytes each."""

FLUSH_ENTRIES = 128
"""Written in one transaction. Digests lie all over the table, and LMDB keeps the room for as many changed pages as a
transaction ever had: half a megabyte so, where a slow second would take ten."""

_FIELDS = tuple[str, str, int, str, str]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_FIELDS).decode


class MemoryDigestIndex:
    """In memory, for simulations."""

    def __init__(self) -> None:
        self._originals: dict[bytes, Original] = {}

    def find(self, digest: bytes) -> Original | None:
        """As the interface."""
        return self._originals.get(digest)

    def remember(self, digest: bytes, original: Original) -> None:
        """As the interface."""
        self._originals.setdefault(digest, original)

    def forget(self, digest: bytes, record_id: str) -> None:
        """As the interface."""
        if (known := self._originals.get(digest)) is not None and known.record_id == record_id:
            del self._originals[digest]

    def forget_named(self, may_name: Callable[[bytes], bool], names: Callable[[str], bool]) -> int:
        """As that on disk."""
        found = [one for one, known in self._originals.items() if may_name(known.url.encode()) and names(known.url)]
        for digest in found:
            del self._originals[digest]
        return len(found)

    def flush(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


class LmdbDigestIndex:
    """On disk, in an LMDB environment of its own. Several processes may share it. `flush` may run in a thread."""

    def __init__(self, path: Path, boot_id: str, map_bytes: int = MAP_BYTES, *, joining: bool = False) -> None:
        """`boot_id` names this boot of the machine (`Clock.boot_id`).

        `joining`: another process has opened it and keeps it open for longer, so the marker is its affair; and what is
        remembered is written at once, for others are looking for the same bodies.
        """
        self._path = path
        self._joining = joining
        self._marker = path / "open-since-boot"
        self._lock = threading.Lock()
        self._recent: dict[bytes, Original] = {}
        self._absent = b""
        """What was looked for last, where it was not found: a body is remembered right after that."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not joining and self._left_open_by_another_boot(boot_id):
                self._discard()
            if not joining:
                self._marker.write_text(boot_id, encoding="utf-8")
                sync_file(self._marker)
                sync_file(path)
            prepare_files(self._path)
            self._environment = lmdb.open(
                str(path), map_size=map_bytes, sync=False, metasync=False, max_dbs=0, readahead=False
            )
        except (OSError, lmdb.Error) as error:
            raise self._refused(error) from error

    def find(self, digest: bytes) -> Original | None:
        """As the interface."""
        recent = self._recent.get(digest)
        if recent is not None:
            return recent
        try:
            with self._environment.begin() as reading:
                packed = reading.get(digest)
        except lmdb.Error as error:
            raise self._refused(error) from error
        if packed is None:
            self._absent = digest
            return None
        return Original(*_decode(packed))

    def remember(self, digest: bytes, original: Original) -> None:
        """As the interface."""
        with self._lock:
            if digest == self._absent or self.find(digest) is None:
                self._recent[digest] = original
            self._absent = b""
        if self._joining:
            self.flush()

    def forget(self, digest: bytes, record_id: str) -> None:
        """As the interface."""
        with self._lock:
            known = self.find(digest)
            if known is None or known.record_id != record_id:
                return
            self._recent.pop(digest, None)
            try:
                with self._environment.begin(write=True) as writing:
                    writing.delete(digest)
            except lmdb.Error as error:
                raise self._refused(error) from error

    def forget_named(self, may_name: Callable[[bytes], bool], names: Callable[[str], bool]) -> int:
        """Let nothing refer to captures of URLs that `names` picks out; how many were forgotten (K2).

        Every entry is looked at; `may_name` says of packed ones whether they are worth unpacking. May run in a thread.
        """
        self.flush()
        try:
            with self._environment.begin(buffers=True) as reading, reading.cursor() as cursor:
                found = [
                    (bytes(digest), record_id)
                    for digest, packed in cursor
                    if may_name(bytes(packed))
                    for url, record_id, *_ in (_decode(packed),)
                    if names(url)
                ]
        except lmdb.Error as error:
            raise self._refused(error) from error
        for digest, record_id in found:
            self.forget(digest, record_id)
        return len(found)

    def flush(self) -> None:
        """As the interface: safe from a kill afterwards, not from a power loss."""
        with self._lock:
            batch = sorted(self._recent.items())
        for first in range(0, len(batch), FLUSH_ENTRIES):
            self._write(batch[first : first + FLUSH_ENTRIES])

    def close(self) -> None:
        """As the interface; a power loss afterwards takes nothing.

        What a full disk does not take is left out without a word: it costs a second copy of a body, and whoever called
        `flush` before has been told.
        """
        with suppress(StorageError, MemoryShortageError):
            self.flush()
        if not self._joining:
            with suppress(lmdb.Error):
                self._environment.sync(True)
                self._marker.unlink(missing_ok=True)
        self._environment.close()

    def _write(self, entries: list[tuple[bytes, Original]]) -> None:
        with self._lock:  # held until it is written: what is forgotten meanwhile must not come back
            left = [(digest, original) for digest, original in entries if self._recent.get(digest) is original]
            try:
                with self._environment.begin(write=True) as writing:
                    for digest, original in left:
                        writing.put(digest, _packed(original), overwrite=False)
            except lmdb.Error as error:
                raise self._refused(error) from error
            for digest, _ in left:
                del self._recent[digest]

    def _left_open_by_another_boot(self, boot_id: str) -> bool:
        try:
            return self._marker.read_text(encoding="utf-8") != boot_id
        except FileNotFoundError:
            return False

    def _discard(self) -> None:
        for name in ("data.mdb", "lock.mdb"):
            (self._path / name).unlink(missing_ok=True)

    def _refused(self, error: Exception) -> NephilaError:
        if is_memory_short(error):
            return MemoryShortageError()
        if full := full_disk(error):
            return StorageError(f"The index of known bodies in {self._path.name} could not be written: {full}.", HINT)
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        return StorageError(
            f"The index of known bodies in {self._path.name} refused: {reason}.",
            hint="It may be deleted while no crawl runs: bodies met again are then stored once more.",
        )


def _packed(original: Original) -> bytes:
    return _encode((original.url, original.record_id, original.at, original.payload_digest, original.coding))
