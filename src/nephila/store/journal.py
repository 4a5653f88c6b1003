"""Catalogue rows of captures whose segment is not confirmed yet, beside it in the spool.

A page counts once its segment is in the store of objects, which may take a minute, or a day when the store is away.
Until then its row waits here and not in memory. The file of a segment is a list of frames, each with rows and a *mark*:
all captures before the mark are settled or disowned, and their rows are in this frame or an earlier one. After a kill
only what lies behind the last mark must be read from the segment again.

Frames carry a checksum and are appended without a sync: a frame that a power loss took with it only moves the mark
back, for a mark is written after the segment was synced up to it, and after its settles were.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
from isal import isal_zlib

from nephila.engines.disk import Disk
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.noun import noun
from nephila.model.record import SegmentId

from .segment import refused

JOURNAL_SUFFIX = ".rows"
_FRAME = struct.Struct("<II")
_values = attrgetter(*(field.name for field in fields(CaptureRow)))
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, list[list[Any]]]).decode


@noun
class Journaled:
    """What a segment's journal holds."""

    rows: list[CaptureRow]
    mark: int
    """Nothing before it needs to be looked at again."""
    end: int
    """Of the last whole frame."""


class RowJournal:
    """The journals of a spool."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._directory = directory
        self._disk = disk

    def append(self, segment: SegmentId, rows: Sequence[CaptureRow], mark: int) -> None:
        """Keep these rows, and that nothing before `mark` needs to be looked at again."""
        payload = _encode((mark, [_values(row) for row in rows]))
        frame = _FRAME.pack(len(payload), isal_zlib.crc32(payload)) + payload
        path = self._path(segment)
        try:
            try:
                file = self._disk.open(path)
            except FileNotFoundError:
                file = self._disk.create(path)
            with closing(file):
                size = file.size()
                try:
                    file.append(frame)
                except OSError:
                    with suppress(OSError):  # a torn frame is found out when it is read, as long as it is the last
                        file.truncate(size)
                    raise
        except OSError as error:
            raise refused(path.name, error) from error

    def read(self, segment: SegmentId) -> Journaled:
        """All that was kept; up to the first frame that is not whole."""
        rows: list[CaptureRow] = []
        mark = end = 0
        for mark, values, end in self._frames(segment):  # noqa: B007 - the last ones are wanted
            rows += [CaptureRow(*row) for row in values]
        return Journaled(rows, mark, end)

    def repair(self, segment: SegmentId) -> int:
        """Cut off what is not whole, so that it can be appended to; the mark."""
        found = self.read(segment)
        try:
            with closing(self._disk.open(self._path(segment))) as file:
                if file.size() > found.end:
                    file.truncate(found.end)
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise refused(self._path(segment).name, error) from error
        return found.mark

    def _frames(self, segment: SegmentId) -> Iterator[tuple[int, list[list[Any]], int]]:
        try:
            file = self._disk.open(self._path(segment))
        except FileNotFoundError:
            return
        except OSError as error:
            raise refused(self._path(segment).name, error) from error
        with closing(file):
            position = 0
            while len(head := file.read_at(position, _FRAME.size)) == _FRAME.size:
                size, checksum = _FRAME.unpack(head)
                if size == 0 or position + _FRAME.size + size > file.size():
                    return  # zeros are what a power loss leaves, and would pass for a frame of nothing
                payload = file.read_at(position + _FRAME.size, size)
                if isal_zlib.crc32(payload) != checksum:
                    return
                position += _FRAME.size + size
                mark, values = _decode(payload)
                yield mark, values, position

    def _path(self, segment: SegmentId) -> Path:
        return self._directory / (segment + JOURNAL_SUFFIX)
