"""The archive in a directory: WARC files that grow by whole captures.

`append` encodes a capture and writes all of its records with one call, so that a crash leaves whole captures and at
most one torn tail; what it returned survives kill -9, because the bytes are the operating system's. `sync` makes them
durable in groups and may run in a thread beside `append`: it takes note of what is written under the lock and waits for
the disk without it.

Which captures share a file is the layout's affair (`layout`): a file is open under the key that they share, until it is
full, or its hour or day is over; one that is for a single capture is closed when that is written.

Every run begins new files: an old file is read, cut to its last whole capture, and never grown again, so the warcinfo
record at its head speaks for all that follows. A file counts as finished once its index lies beside it.

After a failed fsync nothing more is written: the kernel may have dropped the bytes, and a second fsync that succeeds
would say nothing about them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from nephila.engines.disk import Disk, DiskFile
from nephila.interfaces.catalogue import CaptureRow
from nephila.interfaces.clock import Clock
from nephila.model.errors import StorageError
from nephila.model.record import Capture, SegmentId, StoredCapture
from nephila.model.settings import ArchiveSettings

from . import warc
from .capture import EncodedCapture, encode_capture
from .cdxj import write_index
from .layout import ROLLING, SegmentKey, layout_of
from .packing import packing_named
from .readback import Decode, capture_of, whole_units
from .reader import WarcReader
from .recovery import recover
from .rotation import WARC_SUFFIXES, RollLimits, index_name, next_serial
from .segment import MAX_DESCRIPTORS, Segment, SegmentFiles, TornSegmentError, UnsyncedError, refused
from .trail import ARCHIVES, Trail
from .warc import CrawlIdentity, RecordKind


class LocalArchive:
    """Implements `interfaces.archive.Archive` on a disk."""

    def __init__(
        self,
        directory: Path,
        settings: ArchiveSettings,
        clock: Clock,
        identity: CrawlIdentity,
        disk: Disk,
        decode: Decode,
        domain_of: Callable[[str], str] = lambda host: host,
        max_descriptors: int = MAX_DESCRIPTORS,
    ) -> None:
        """`domain_of` gives the registrable domain of a host, for layouts that name it. Raises `UsageError`."""
        self.trail: Trail | None = None
        """Where given, what was synced is sealed."""
        self._directory = directory
        self._settings = settings
        self._layout = layout_of(settings, identity.secret, domain_of)
        self._rolls = settings.layout == "rolling"
        self._packing = packing_named(settings.compression)
        self._clock = clock
        self._identity = identity
        self._disk = disk
        self._decode = decode
        self._limits = RollLimits(settings.max_bytes, int(settings.max_age_s * 1000))
        self._files = SegmentFiles(directory, disk, max_descriptors)
        self._lock = threading.Lock()
        self._one_sync = threading.Lock()
        """Held for a whole `sync`, so that none closes a file under another."""
        self._open: dict[SegmentKey, Segment] = {}
        self._retired: list[Segment] = []
        """Closed for writing, not yet synced for the last time."""
        self._period = 0
        self._listeners: list[Callable[[SegmentId], None]] = []
        self._broken: StorageError | None = None
        self._serial = next_serial(self._names(), identity.writer)

    # -- writing

    def encode(self, capture: Capture) -> EncodedCapture:
        """As the interface."""
        return encode_capture(capture, self._identity, self._packing)

    def append(self, capture: Capture, encoded: object = None) -> StoredCapture:
        """As the interface. Files that are full are closed first, and their listeners told."""
        if not isinstance(encoded, EncodedCapture):
            encoded = encode_capture(capture, self._identity, self._packing)
        with self._lock:
            if self._broken is not None:
                raise self._broken
            key = ROLLING if self._rolls else self._layout.key_of(capture, self._clock.wall_ms())
            segment = self._open.get(key)
            rolled: list[SegmentId] = []
            try:
                if segment is None or key.period != self._period or self._is_full(segment, len(encoded.data)):
                    rolled = self._roll(key, len(encoded.data))
                    segment = self._open.get(key) or self._begin(key)
                offset = self._write(segment, encoded.data)
                if self._layout.single:
                    self._retire(segment)
                    rolled.append(segment.name)
            except UnsyncedError as error:  # of another file, that had to give way
                self._broken = error
                raise
            if rolled:
                self._tell(rolled)
        return encoded.stored_at(segment.name, offset)

    def sync(self) -> list[tuple[SegmentId, int]]:
        """As the interface: (segment, end) of every file that had unsynced bytes."""
        with self._one_sync:
            with self._lock:
                if self._broken is not None:
                    raise self._broken
                segments = (*self._retired, *self._open.values())
                work = [(segment, segment.end) for segment in segments if segment.synced < segment.end]
                directories = self._files.take_unsynced_names()
            try:
                for segment, _ in work:
                    self._sync_file(segment)
                for directory in directories:
                    self._disk.sync_directory(directory)
            except UnsyncedError as error:
                self._broken = error
                raise
            except StorageError:  # a file could not be opened: nothing is lost, and the next sync does it all
                with self._lock:
                    self._files.give_back_names(directories)
                raise
            except OSError as error:
                self._broken = refused(work[0][0].name if work else self._directory.name, error)
                raise self._broken from error
            with self._lock:
                for segment, end in work:
                    segment.synced = end
                    self._tell_trail(segment.name, end)
                self._forget_retired()
            if self.trail is not None:
                self.trail.seal()
        return [(segment.name, end) for segment, end in work]

    def count_on_from(self, names: Iterable[str]) -> None:
        """Serial numbers follow these names, too: they were used, and are not in the directory any more."""
        self._serial = max(self._serial, next_serial(names, self._identity.writer))

    def roll_aged(self) -> None:
        """Close files that are as old as they may be, though nothing more was appended. May be run in a thread."""
        period_ms = self._layout.period_ms
        period = self._clock.wall_ms() // period_ms if period_ms else 0
        with self._lock:
            aged = [
                segment
                for segment in self._open.values()
                if segment.end and (self._is_full(segment, 0) or segment.key.period != period)
            ]
            for segment in aged:
                self._retire(segment)
            self._tell([segment.name for segment in aged])

    def roll(self) -> None:
        """Close every file that holds anything: what comes next goes to new ones. May be run in a thread."""
        with self._lock:
            full = [segment for segment in self._open.values() if segment.end]
            for segment in full:
                self._retire(segment)
            self._tell([segment.name for segment in full])

    def on_roll(self, listener: Callable[[SegmentId], None]) -> None:
        """As the interface. Called in the thread that appends or closes, in the order in which files are closed.

        Nothing is appended meanwhile; the last bytes are durable after `sync`.
        """
        self._listeners.append(listener)

    def close(self) -> None:
        """Sync and close every open segment. Its listeners are told, unless the disk refused."""
        with self._lock:
            segments = list(self._open.values())
            for segment in segments:
                self._retire(segment)
        try:
            self.sync()
        finally:
            with self._lock:
                for segment in self._retired:
                    with suppress(UnsyncedError):  # they are here because a sync has failed, which was told
                        self._files.release(segment)
                self._retired.clear()
        self._tell([segment.name for segment in segments if segment.end])

    # -- reading

    def tail(self, segment: SegmentId, start: int) -> Iterator[tuple[Capture, StoredCapture]]:
        """As the interface: up to the end, or to where the file is torn."""
        with closing(self._opened(segment)) as file:
            for unit in whole_units(WarcReader(file, segment, start)):
                if unit[0].kind != "warcinfo":
                    yield capture_of(unit, segment, self._decode)

    def segments(self) -> list[SegmentId]:
        """Every WARC file of the directory, oldest first."""
        return [SegmentId(name) for name in self._names() if name.endswith(WARC_SUFFIXES)]

    def unfinished(self) -> list[SegmentId]:
        """Segments without an index beside them: still open, or left by a run that did not end well."""
        names = set(self._names())
        return [segment for segment in self.segments() if index_name(segment) not in names]

    def recover(self, segment: SegmentId, confirmed: int) -> int:
        """Cut a file that an earlier run left to its last whole capture; its length then. See `recovery.recover`.

        A file of which nothing was whole is removed.
        """
        path = self._directory / segment
        end = recover(self._disk, path, confirmed, self._directory)
        if end == 0:
            try:
                self._disk.remove(path)
                self._disk.sync_directory(path.parent)
                self._disk.remove_folders(path.parent, self._directory)
            except OSError as error:
                raise refused(segment, error) from error
        elif self.trail is not None:
            self.trail.left(f"{ARCHIVES}/{segment}", end)
        return end

    def write_index(self, segment: SegmentId, rows: Iterable[CaptureRow]) -> None:
        """Write the CDXJ file of a segment, whole or not at all, from the captures that count."""
        write_index(self._disk, self._directory, segment, rows)

    # -- parts

    def _names(self) -> list[str]:
        try:
            return self._disk.names(self._directory)
        except OSError as error:
            raise refused(self._directory.name, error) from error

    def _opened(self, segment: SegmentId) -> DiskFile:
        try:
            return self._disk.open(self._directory / segment)
        except OSError as error:
            raise StorageError(f"The archive file {segment} cannot be read: {error.strerror or error}.") from error

    def _roll(self, key: SegmentKey, more: int) -> list[SegmentId]:
        """Close what may not grow: the full file under this key, and all files of another hour or day."""
        full = [segment for segment in (self._open.get(key),) if segment is not None and self._is_full(segment, more)]
        if key.period != self._period:
            self._period = key.period
            full += [segment for segment in self._open.values() if segment.key.period != key.period]
        for segment in full:
            self._retire(segment)
        return [segment.name for segment in full]

    def _is_full(self, segment: Segment, more: int) -> bool:
        return self._limits.reached(segment.end, more, self._clock.steady_ms() - segment.opened_at)

    def _begin(self, key: SegmentKey) -> Segment:
        while True:
            name = self._layout.name_of(key, self._clock.wall_ms(), self._serial, self._identity.writer)
            self._serial += 1
            segment = Segment(SegmentId(name), key, self._clock.steady_ms())
            if self._files.create(segment):
                self._open[key] = segment
                return segment

    def _write(self, segment: Segment, data: bytes) -> int:
        """Add a capture, after a warcinfo where it is the first; where it lies."""
        opening = b"" if segment.end else self._warcinfo(segment.name)
        offset = segment.end + len(opening)
        try:
            self._files.append(segment, opening + data)
        except TornSegmentError:
            self._retire(segment)
            raise
        return offset

    def _sync_file(self, segment: Segment) -> None:
        with self._lock:
            file = self._files.opened(segment)
            segment.syncing = True
        try:
            file.sync()
        finally:
            with self._lock:
                segment.syncing = False

    def _retire(self, segment: Segment) -> None:
        del self._open[segment.key]
        self._retired.append(segment)

    def _forget_retired(self) -> None:
        for segment in [one for one in self._retired if one.synced == one.end]:
            self._files.release(segment)
            self._retired.remove(segment)
            self._tell_trail(segment.name, segment.end, closed=True)

    def _tell_trail(self, name: SegmentId, end: int, *, closed: bool = False) -> None:
        if self.trail is not None and end:
            self.trail.grown(f"{ARCHIVES}/{name}", end, closed=closed)

    def _tell(self, segments: Iterable[SegmentId]) -> None:
        for segment in segments:
            for listener in self._listeners:
                listener(segment)

    def _warcinfo(self, name: SegmentId) -> bytes:
        identity = self._identity
        fields = [
            ("software", identity.software),
            ("format", "WARC File Format 1.1"),
            ("conformsTo", "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"),
            ("isPartOf", identity.crawl),
            ("operator", self._settings.operator),
            ("http-header-user-agent", identity.user_agent),
            ("robots", identity.robots),
            ("terms", identity.terms),
            ("boot-id", self._clock.boot_id()),
            ("steady-ms", str(self._clock.steady_ms())),
        ]
        record_id = identity.file_ids(name) + RecordKind.WARCINFO
        told = [(field, value) for field, value in fields if value]
        return self._packing.packed(warc.warcinfo(record_id, self._clock.wall_ms(), name, told))
