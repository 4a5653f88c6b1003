"""Moving captures out of an archive to another place (W5): archived instead of deleted.

What goes from a file is copied, byte for byte, into a file of the same name elsewhere, with a warcinfo record before it
and an index beside it, so that it is an archive like any other. A file from which something is moved a second time has
a second one there (`NAME.2.warc.gz`).

What must stay true: a copy is durable before anything is taken out; what is there already, because somebody was killed
in between, is not copied again. That is known by the ids of its records. Should the index of such a file be missing,
it is written then: its rows are still listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from nephila.engines.disk import Disk, DiskFile
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.errors import StorageError
from nephila.model.record import SegmentId

from .cdxj import write_index
from .metadata import MetadataFields
from .packing import packing_of
from .readback import units
from .reader import WarcReader, WarcRecord
from .rewriting import unit_at
from .rotation import index_name, without_suffix
from .segment import directories_of
from .tombstone import is_tombstone
from .warc import CrawlIdentity, RecordKind, warcinfo

MOVED_FROM = "moved-from"
"""The field of warcinfo that names the file from which what follows came."""
_PIECE_BYTES = 1 << 20

Rows = Callable[[], Iterable[CaptureRow]]
"""Reads what is listed of a file."""


class Elsewhere:
    """A directory, or what stands for one (`uploading`), that captures are moved to."""

    def __init__(self, directory: Path, disk: Disk, identity: CrawlIdentity, name: str = "") -> None:
        """`identity` names the records that are written here: those of each file's warcinfo.

        `name` is what the place is called towards people, where it is not the directory.
        """
        self._directory = directory
        self._name = name or str(directory)
        self._disk = disk
        self._identity = identity

    def take(self, file: DiskFile, segment: SegmentId, offsets: Sequence[int], rows: Rows, at: int) -> int:
        """Copy the captures of a file that begin there; how many were not here before.

        Durable when it returns. Raises `StorageError`, having left nothing that counts.
        """
        try:
            return self._take(file, segment, offsets, rows, at)
        except OSError as error:
            raise StorageError(
                f"what is to be kept of {segment} could not be written to {self._name}: "
                f"{(error.strerror or str(error)).lower()}.",
                hint="Make room there and do it again: nothing was taken out of the file.",
            ) from error

    def _take(self, file: DiskFile, segment: SegmentId, offsets: Sequence[int], rows: Rows, at: int) -> int:
        before = self._before(segment)
        known = {unit[0].record_id: (name, unit[0].offset) for name in before for unit in self._units(name)}
        without_index: dict[SegmentId, dict[int, int]] = {name: {} for name in before if not self._has_index(name)}
        name = _numbered(segment, len(before) + 1)
        target = self._directory / name
        draft = target.with_name(target.name + ".part")
        moved: dict[int, int] = {}
        for made in self._disk.make_folder(target.parent):  # the directory itself, too, and what is above it
            self._disk.sync_directory(made.parent)
        self._disk.remove(draft)
        with closing(self._disk.create(draft)) as out:
            end = _append(out, self._warcinfo(file, segment, name, at))
            for offset in offsets:
                unit = unit_at(file, segment, offset)
                if unit is None or is_tombstone(unit[0]):
                    continue
                if (there := known.get(unit[0].record_id)) is not None:
                    without_index.get(there[0], {})[offset] = there[1]
                    continue
                moved[offset] = end
                end += _copied(file, out, offset, unit[-1].end)
            if moved:
                out.sync()
        for earlier, places in without_index.items():
            write_index(self._disk, self._directory, earlier, _moved_rows(rows(), earlier, places))
        if not moved:
            self._disk.remove(draft)
            self._disk.remove_folders(target.parent, self._directory)
            return 0
        self._disk.rename(draft, target)
        for directory in sorted(directories_of(target, self._directory)):
            self._disk.sync_directory(directory)
        write_index(self._disk, self._directory, name, _moved_rows(rows(), name, moved))
        return len(moved)

    def _has_index(self, name: SegmentId) -> bool:
        return self._is_there(index_name(name))

    def _is_there(self, name: str) -> bool:
        try:
            self._disk.open(self._directory / name).close()
        except FileNotFoundError:
            return False
        return True

    def _before(self, segment: SegmentId) -> list[SegmentId]:
        """Files that captures of this one were moved to."""
        found: list[SegmentId] = []
        while True:
            name = _numbered(segment, len(found) + 1)
            if not self._is_there(name):
                return found
            found.append(name)

    def _units(self, name: SegmentId) -> Iterator[list[WarcRecord]]:
        with closing(self._disk.open(self._directory / name)) as file:
            yield from units(WarcReader(file, name))

    def _warcinfo(self, file: DiskFile, segment: SegmentId, name: SegmentId, at: int) -> bytes:
        """What the file says of itself, and where this is from."""
        first = unit_at(file, segment, 0)
        told: dict[str, str] = {}
        if first is not None and first[0].kind == "warcinfo":
            told = MetadataFields.parse(first[0].block).single
        record_id = self._identity.file_ids(f"{MOVED_FROM} {name}") + RecordKind.WARCINFO
        return packing_of(name).packed(warcinfo(record_id, at, name, [*told.items(), (MOVED_FROM, segment)]))


def _numbered(segment: SegmentId, number: int) -> SegmentId:
    if number == 1:
        return segment
    stem = without_suffix(segment)
    return SegmentId(f"{stem}.{number}{segment[len(stem) :]}")


def _append(out: DiskFile, data: bytes) -> int:
    out.append(data)
    return len(data)


def _copied(file: DiskFile, out: DiskFile, start: int, end: int) -> int:
    position = start
    while position < end:
        piece = file.read_at(position, min(_PIECE_BYTES, end - position))
        if not piece:
            raise OSError(f"{end - position} bytes are missing")
        out.append(piece)
        position += len(piece)
    return end - start


def _moved_rows(rows: Iterable[CaptureRow], name: SegmentId, moved: dict[int, int]) -> Iterator[CaptureRow]:
    for row in rows:
        if (offset := moved.get(row.offset)) is not None:
            yield replace(row, segment=name, offset=offset, end=offset + row.end - row.offset)
