"""The archive in a store of objects, by way of a spool: the local archive, whose files leave when they are closed (W2).

What is appended lies in the spool exactly as it would lie in a local archive, and survives what that survives. The
difference is what *durable* means: `sync` tells of a segment only when its upload was acknowledged. So nothing is
confirmed, listed or indexed before, by the same code that waits for a local sync.

A segment leaves the spool in this order: uploaded and acknowledged; confirmed; listed in the catalogue; indexed, and
the index uploaded beside it; removed. Wherever that is cut, the next start finds the file in the spool and goes through
the steps again: each finds that it was done. Who carries the files is the shipper's business (`node/shipping.py`); here
is what lies where.

What is not in the spool any more is read from the store, in stretches.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from nephila.engines.disk import Disk
from nephila.interfaces.catalogue import CaptureRow
from nephila.interfaces.objects import ObjectBody, ObjectStore
from nephila.model.errors import StorageError
from nephila.model.record import Capture, SegmentId, StoredCapture
from nephila.model.summary import SpoolStanding

from .holes import holed_file
from .journal import JOURNAL_SUFFIX
from .local import LocalArchive
from .place import ArchivePlace
from .readback import Decode, capture_of, whole_units
from .reader import WarcReader
from .remote import RemoteFile
from .rotation import WARC_SUFFIXES, begun_at, index_name
from .segment import directories_of, refused
from .trail import ARCHIVES

HASH_BYTES = 1 << 20
_SHORTAGE = frozenset({errno.EMFILE, errno.ENFILE})
"""No descriptor now: the upload is tried again like one that the network broke off."""


class SpooledArchive:
    """Implements `interfaces.archive.Archive` on a spool and a store of objects."""

    def __init__(
        self,
        spool: LocalArchive,
        directory: Path,
        disk: Disk,
        objects: ObjectStore,
        place: ArchivePlace,
        decode: Decode,
    ) -> None:
        self._spool = spool
        self._directory = directory
        self._disk = disk
        self._objects = objects
        self._place = place
        self._decode = decode
        self._closed: deque[SegmentId] = deque()
        self._synced: deque[tuple[SegmentId, int]] = deque()
        """What a sync has told, and nobody has taken note of."""
        self._acknowledged: deque[tuple[SegmentId, int]] = deque()
        self._holes: dict[SegmentId, int] = {}
        """Where segments in the store tell what they lack, of those that were looked at."""
        self._taken_on: set[SegmentId] = set()
        """Segments of this process: written by it, or recovered."""
        spool.on_roll(self._closed.append)

    # -- writing

    def encode(self, capture: Capture) -> object:
        """As the interface."""
        return self._spool.encode(capture)

    def append(self, capture: Capture, encoded: object = None) -> StoredCapture:
        """As the interface: into the spool."""
        stored = self._spool.append(capture, encoded)
        self._taken_on.add(stored.ref.segment)
        return stored

    def sync(self) -> list[tuple[SegmentId, int]]:
        """As the interface: the spool is synced, and told is what the store has acknowledged since the last time."""
        self.sync_spool()
        return self.take_acknowledged()

    def sync_spool(self) -> list[tuple[SegmentId, int]]:
        """Close what is old enough, and make the spool safe from power loss; (segment, end) of what was synced."""
        self._spool.roll_aged()
        self._sync()
        return [self._synced.popleft() for _ in range(len(self._synced))]

    def _sync(self) -> None:
        """Sync, and keep what that tells for `sync_spool`: it is told only once, and the books are kept by it."""
        self._synced.extend(self._spool.sync())

    def roll(self) -> None:
        """Close every file that holds anything: it leaves the spool as soon as the store takes it."""
        self._spool.roll()

    def on_roll(self, listener: Callable[[SegmentId], None]) -> None:
        """As the interface: closed for writing, which does not say uploaded."""
        self._spool.on_roll(listener)

    def close(self) -> None:
        """As the interface: the last segments wait for their upload then."""
        self._spool.close()

    # -- leaving the spool

    def take_closed(self) -> list[SegmentId]:
        """Segments that were closed since the last call, oldest first."""
        return [self._closed.popleft() for _ in range(len(self._closed))]

    def take_on(self, segment: SegmentId) -> None:
        """A segment that an earlier run left is this process's affair from now on."""
        self._taken_on.add(segment)

    def is_taken_on(self, segment: SegmentId) -> bool:
        """Whether it is this process's affair, and still in the spool."""
        return segment in self._taken_on

    def body(self, name: str) -> ObjectBody:
        """A file of the spool as an object; its digest is taken. Blocks.

        No byte of a segment leaves before the chain has sealed it.
        """
        path = self._directory / name
        if name.endswith(WARC_SUFFIXES) and self._spool.trail is not None:
            self._sync()
            self._spool.trail.seal(now=True)
        digest = sha256()
        try:
            with closing(self._disk.open(path)) as file:
                size = position = 0
                while piece := file.read_at(position, HASH_BYTES):
                    digest.update(piece)
                    position += len(piece)
                size = position
        except OSError as error:
            raise _unreadable(name, error) from error

        def read_at(offset: int, count: int) -> bytes:
            try:
                with closing(self._disk.open(path)) as opened:
                    return opened.read_at(offset, count)
            except OSError as error:
                if error.errno in _SHORTAGE:
                    raise
                raise _unreadable(name, error) from error  # else it would be taken for the store's fault

        return ObjectBody(size, digest.hexdigest(), read_at)

    def acknowledge(self, segment: SegmentId, end: int) -> None:
        """The store has it: `sync` tells so, and the chain too."""
        self._acknowledged.append((segment, end))
        if self._spool.trail is not None:
            self._spool.trail.arrived(f"{ARCHIVES}/{segment}")

    @property
    def has_news(self) -> bool:
        """Whether something was closed or acknowledged that nobody has taken note of."""
        return bool(self._closed or self._acknowledged)

    def take_acknowledged(self) -> list[tuple[SegmentId, int]]:
        """What was acknowledged since the last call."""
        return [self._acknowledged.popleft() for _ in range(len(self._acknowledged))]

    def remove(self, segment: SegmentId) -> None:
        """Its index is in the store too: nothing of it is needed here any more. Blocks.

        That it has arrived is in the chain first: after a crash nobody here would know of it, nor miss it.
        """
        if self._spool.trail is not None:
            self._spool.trail.seal(now=True)
        try:
            for name in (segment, index_name(segment), segment + JOURNAL_SUFFIX):
                self._disk.remove(self._directory / name)
        except OSError as error:
            raise refused(segment, error) from error
        self._disk.remove_folders((self._directory / segment).parent, self._directory)
        self._taken_on.discard(segment)

    # -- reading

    async def look(self, segment: SegmentId) -> None:
        """Know how a segment lies in the store, before it is read there: a retention may have rewritten it."""
        if not self.has_in_spool(segment) and (found := await self._objects.look(self._place.key(segment))) is not None:
            self._holes[segment] = found.holes

    def tail(self, segment: SegmentId, start: int) -> Iterator[tuple[Capture, StoredCapture]]:
        """As the interface: from the spool, else from the store."""
        if self.has_in_spool(segment):
            yield from self._spool.tail(segment, start)
            return
        key, told_at = self._place.key(segment), self._holes.get(segment, 0)
        file = holed_file(self._objects, key, told_at) if told_at else RemoteFile(self._objects, key)
        for unit in whole_units(WarcReader(file, segment, start)):
            if unit[0].kind != "warcinfo":
                yield capture_of(unit, segment, self._decode)

    def segments(self) -> list[SegmentId]:
        """What is in the spool, oldest first."""
        return self._spool.segments()

    def unfinished(self) -> list[SegmentId]:
        """What is in the spool and nobody's affair in this process: left by one that did not end well."""
        return [segment for segment in self._spool.segments() if segment not in self._taken_on]

    def has_in_spool(self, segment: SegmentId) -> bool:
        """Whether its file is here."""
        try:
            self._disk.open(self._directory / segment).close()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise refused(segment, error) from error
        return True

    def recover(self, segment: SegmentId, confirmed: int) -> int:
        """As `LocalArchive.recover`. An object of the store is whole: it ends where it is known to."""
        if not self.has_in_spool(segment):
            return confirmed
        end = self._spool.recover(segment, confirmed)
        if end == 0:
            self.remove(segment)
        return end

    def recall(self, segment: SegmentId) -> bool:
        """Bring a segment back into the spool that the store has; False where it has none. Blocks.

        For one whose upload was made and whose spool was lost before that was written down.
        """
        source = RemoteFile(self._objects, self._place.key(segment))
        target = self._directory / segment
        draft = target.with_name(target.name + ".part")
        try:
            self._disk.remove(draft)
            self._disk.make_folder(draft.parent)
            with closing(self._disk.create(draft)) as file:
                position = 0
                while piece := source.read_at(position, HASH_BYTES):
                    file.append(piece)
                    position += len(piece)
                file.sync()
            self._disk.rename(draft, target)
            for directory in sorted(directories_of(target, self._directory)):
                self._disk.sync_directory(directory)
        except FileNotFoundError:
            self._disk.remove(draft)
            self._disk.remove_folders(draft.parent, self._directory)
            return False
        except OSError as error:
            raise refused(segment, error) from error
        return True

    async def without_index(self) -> set[SegmentId]:
        """Segments that the store has and whose index it has not: they were cut short on their way out of a spool."""
        names = self._place.names(await self._objects.keys(self._place.key("")))
        return {SegmentId(name) for name in names if name.endswith(WARC_SUFFIXES) and index_name(name) not in names}

    def write_index(self, segment: SegmentId, rows: Iterable[CaptureRow]) -> None:
        """Write the CDXJ file of a segment into the spool, whole or not at all."""
        self._spool.write_index(segment, rows)

    # -- the spool as a whole

    def clean(self) -> None:
        """Remove what segments left behind that are gone: for the start, while nobody writes."""
        names = self._names()
        kept = {name for name in names if name.endswith(WARC_SUFFIXES)}
        kept |= {index_name(name) for name in kept} | {name + JOURNAL_SUFFIX for name in kept}
        try:
            for name in names - kept:
                self._disk.remove(self._directory / name)
                self._disk.remove_folders((self._directory / name).parent, self._directory)
        except OSError as error:
            raise refused(self._directory.name, error) from error

    def standing(self, now_ms: int) -> SpoolStanding:
        """What waits in the spool. Blocks."""
        return spool_standing(self._disk, self._directory, now_ms)

    def free(self) -> int:
        """Bytes that the disk of the spool has left."""
        try:
            return self._disk.free(self._directory)
        except OSError as error:
            raise refused(self._directory.name, error) from error

    def _names(self) -> set[str]:
        try:
            return set(self._disk.names(self._directory))
        except OSError as error:
            raise refused(self._directory.name, error) from error


def _unreadable(name: str, error: OSError) -> StorageError:
    return StorageError(f"{name} in the spool cannot be read: {error.strerror or error}.")


def spool_standing(disk: Disk, directory: Path, now_ms: int) -> SpoolStanding:
    """What waits in a spool: files that are still written to included."""
    try:
        sizes = disk.sizes(directory)
    except OSError as error:
        raise refused(directory.name, error) from error
    segments = [name for name in sizes if name.endswith(WARC_SUFFIXES)]
    begun = [at for name in segments if (at := begun_at(name)) is not None]
    oldest_s = max(0.0, (now_ms - min(begun)) / 1000) if begun else 0.0
    return SpoolStanding(segments=len(segments), bytes=sum(sizes.values()), oldest_s=oldest_s)
