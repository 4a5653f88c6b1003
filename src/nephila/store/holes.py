"""Objects with holes: what retention took out of an archive file takes no room in a store of objects (W5).

A tombstone is as long as what it replaces, so that every other record keeps its offset: it is zeros, which a file
system keeps as a hole. A store of objects has no holes. There the file is kept with its tombstones *packed*, each the
same record in some hundred bytes, and with one record behind the last that tells where they are; where that one lies
is told by a word that the store keeps with the object. So the object is a WARC file like any other to whoever takes it
as it is, its index has the offsets that hold there; and to this program, which opens it here, it is as long as it ever
was, byte for byte the file that the chain has a receipt for.

What must stay true: a record is called by the offset that it was written at, for ever; only this module, and the index
beside the object, know another.
"""

from __future__ import annotations

import errno
from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import NamedTuple

from nephila.engines.disk import DiskFile
from nephila.interfaces.objects import ObjectStore
from nephila.model.record import SegmentId

from .packing import packing_of
from .reader import DamagedArchiveError, WarcReader
from .remote import RemoteFile
from .rewriting import unit_at
from .tombstone import is_tombstone, packed, taken_out_record, unpacked

HOLES = "holes"
"""What stands in the place of an id of a takedown in the record that tells where the holes are."""
_FIELD = b"hole: "
_PIECE_BYTES = 1 << 20
_LEAST_SAVED = 128
"""Bytes: a hole costs some in the record that tells of it."""


class Hole(NamedTuple):
    """A tombstone that is packed."""

    at: int
    """Where it is in the file, and how long."""
    length: int
    kept_at: int
    """Where it lies in the object, and how long."""
    kept: int


class HoledFile(RemoteFile):
    """Such an object, read as the file that it stands for."""

    def __init__(self, objects: ObjectStore, key: str, holes: Sequence[Hole], told_at: int) -> None:
        """`told_at` is where the record lies that tells of them: the end of the file, in the object."""
        super().__init__(objects, key, told_at + sum(hole.length - hole.kept for hole in holes))
        self._holes = holes
        self._starts = [hole.at for hole in holes]
        self._filled: tuple[int, bytes] = (-1, b"")

    @property
    def tombstones(self) -> list[int]:
        """Where they begin."""
        return list(self._starts)

    def place(self, offset: int) -> int:
        """Where in the object a record lies that begins there in the file."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return offset
        hole = self._holes[index]
        return hole.kept_at + (hole.kept + offset - hole.at - hole.length if offset > hole.at else 0)

    def read_at(self, offset: int, size: int) -> bytes:
        """As the protocol."""
        parts: list[bytes] = []
        end = min(offset + size, self.size())
        while offset < end:
            index = bisect_right(self._starts, offset) - 1
            hole = self._holes[index] if index >= 0 else None
            if hole is not None and offset < hole.at + hole.length:
                piece = self._tombstone(index)[offset - hole.at : end - hole.at]
            else:
                upto = self._starts[index + 1] if index + 1 < len(self._starts) else end
                piece = super().read_at(self.place(offset), min(end, upto) - offset)
            if not piece:
                raise OSError(errno.EIO, "the object is shorter than it says")
            parts.append(piece)
            offset += len(piece)
        return b"".join(parts)

    def _tombstone(self, index: int) -> bytes:
        if self._filled[0] != index:
            hole = self._holes[index]
            try:
                made = unpacked(super().read_at(hole.kept_at, hole.kept), hole.length)
            except ValueError as error:
                raise OSError(errno.EIO, f"what was taken out at byte {hole.at} is not what it was: {error}") from error
            self._filled = index, made
        return self._filled[1]


def holed_file(objects: ObjectStore, key: str, told_at: int) -> HoledFile:
    """An object whose holes are told at that byte. Blocks. Raises OSError where it makes no sense."""
    try:
        record = next(iter(WarcReader(RemoteFile(objects, key), key, told_at)))
        lines = [line for line in record.block.split(b"\r\n") if line.startswith(_FIELD)]
        holes = [Hole(*map(int, line.removeprefix(_FIELD).split())) for line in lines]
        _check(holes, told_at)
    except (StopIteration, ValueError, TypeError, DamagedArchiveError) as error:
        raise OSError(errno.EIO, "what it says of its holes cannot be read") from error
    return HoledFile(objects, key, holes, told_at)


def _check(holes: Sequence[Hole], told_at: int) -> None:
    """Raise ValueError where holes overlap, or lie elsewhere than those before them say."""
    end = kept_end = 0
    for hole in holes:
        if hole.at < end or hole.kept_at - kept_end != hole.at - end or not 0 < hole.kept < hole.length:
            raise ValueError("they do not follow each other")
        end, kept_end = hole.at + hole.length, hole.kept_at + hole.kept
    if kept_end > told_at:
        raise ValueError("they lie behind the end")


def write_holed(source: DiskFile, out: DiskFile, segment: SegmentId, offsets: Collection[int], at: int) -> int:
    """Write a file with the tombstones at those offsets packed; where its holes are told, 0 where there are none.

    `at` is the instant, UTC milliseconds. Raises OSError.
    """
    holes: list[Hole] = []
    position = written = 0
    for offset in sorted(offsets):
        unit = unit_at(source, segment, offset)
        if unit is None or not is_tombstone(unit[0]):
            continue
        length = unit[0].end - offset
        was = source.read_at(offset, length)
        member = packed(was)
        if len(member) + _LEAST_SAVED > length or unpacked(member, length) != was:
            continue
        written += _copy(source, out, position, offset)
        out.append(member)
        holes.append(Hole(offset, length, written, len(member)))
        position, written = offset + length, written + len(member)
    written += _copy(source, out, position, source.size())
    if not holes:
        return 0
    fields = [(_FIELD.decode().rstrip(": "), " ".join(map(str, hole))) for hole in holes]
    out.append(packing_of(segment).packed(taken_out_record(HOLES, fields, at)))
    return written


def _copy(source: DiskFile, out: DiskFile, start: int, end: int) -> int:
    position = start
    while position < end:
        piece = source.read_at(position, min(_PIECE_BYTES, end - position))
        if not piece:
            raise OSError(errno.EIO, f"{end - position} bytes are missing")
        out.append(piece)
        position += len(piece)
    return end - start
