"""Reading WARC files: record by record, with exact offsets, in bounded memory, trusting nothing.

Good enough for recovery, `tail`, verification and rebuilding an index; and because those decide what is cut and what is
believed, it is strict where it matters: a record is whole or it is `DamagedArchiveError` with the offset at which
the damage begins. One gzip member, or one Zstandard frame, is one record; one that holds several (a file compressed as
a whole) is refused, for its records have no offsets. Plain (uncompressed) files of other tools are read as well.

The file is read through a window, so that a record may begin anywhere and be of any size up to `MAX_RECORD_BYTES`.
Members of stored blocks, which most of ours are, are taken apart by hand: a checksum and a copy, no decompressor.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import zstandard
from isal import isal_zlib

from nephila.engines.disk import DiskFile
from nephila.model.errors import StorageError

from .frame import MAGIC
from .member import HEADER

MAX_RECORD_BYTES = 1 << 30
"""A record over this size is not ours, and not something to take into memory."""

MAX_FIELDS_BYTES = 1 << 20
"""The named fields of a record; ours stay under a few KB."""

_WINDOW_BYTES = 1 << 20
_STEP_BYTES = 1 << 14
"""Fed to the decompressor at a time: what it leaves unused is copied, so small steps waste little."""
_CAREFUL_BYTES = 1 << 10
"""The same where a frame does not say how much it holds: three bytes may unpack to 128 KB."""
_FRAME_HEAD_BYTES = 18
_MAX_WINDOW_BYTES = 1 << 27
"""What the tools of Zstandard take unless they are told otherwise."""
_SIZE_UNKNOWN = frozenset({zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR})
_GZIP_MAGIC = b"\x1f\x8b"
_STORED_HEADER = HEADER[:4]
_GZIP_HEADER_BYTES = len(HEADER)
_BLOCK = struct.Struct("<BHH")
_TRAILER = struct.Struct("<II")
_END = b"\r\n\r\n"


class DamagedArchiveError(StorageError):
    """A file is not what it should be from `offset` on; what came before is whole."""

    def __init__(self, name: str, offset: int, reason: str) -> None:
        super().__init__(f"{name} is damaged at byte {offset}: {reason}.")
        self.offset = offset
        self.reason = reason


@dataclass(frozen=True, slots=True)
class WarcRecord:
    """One record as it lies in the file."""

    offset: int
    length: int
    """Bytes in the file: of the whole member, or of the plain record without the line ends that close it."""
    end: int
    """Where the next record begins."""
    version: str
    fields: tuple[tuple[str, str], ...]
    """Names in lower case, in order, repeats kept."""
    block: bytes

    def get(self, name: str) -> str:
        """The first value of a field by its lower-case name, or an empty string."""
        for key, value in self.fields:
            if key == name:
                return value
        return ""

    @property
    def kind(self) -> str:
        """WARC-Type."""
        return self.get("warc-type").lower()

    @property
    def record_id(self) -> str:
        """WARC-Record-ID without its angle brackets."""
        return self.get("warc-record-id").strip("<>")

    @property
    def target(self) -> str:
        """WARC-Target-URI; the angle brackets that some tools write are taken off, spaces encoded."""
        return self.get("warc-target-uri").strip("<>").replace(" ", "%20")


class _Window:
    """A stretch of a file in memory."""

    def __init__(self, file: DiskFile) -> None:
        self._file = file
        self._start = 0
        self._data = b""

    def at(self, offset: int, size: int) -> memoryview:
        """`size` bytes from `offset`, fewer at the end of the file."""
        index = offset - self._start
        if index < 0 or index + size > len(self._data):
            self._data = self._file.read_at(offset, max(size, _WINDOW_BYTES))
            self._start, index = offset, 0
        return memoryview(self._data)[index : index + size]


class WarcReader:
    """Iterates over the records of one file from `start`, which must be where a record begins."""

    def __init__(self, file: DiskFile, name: str, start: int = 0) -> None:
        self._window = _Window(file)
        self._name = name
        self._offset = start

    def __iter__(self) -> Iterator[WarcRecord]:
        while True:
            magic = bytes(self._window.at(self._offset, len(MAGIC)))
            if not magic:
                return
            if magic.startswith(_GZIP_MAGIC):
                record = self._record(self._stored_member() or self._deflated_member(), "gzip member")
            elif magic == MAGIC or MAGIC.startswith(magic):
                record = self._record(self._frame(), "Zstandard frame")
            else:
                record = self._plain_record()
            self._offset = record.end
            yield record

    def at(self, offset: int) -> Iterator[WarcRecord]:
        """The records from an offset on, where one must begin: what was read ahead is used where it can be."""
        self._offset = offset
        return iter(self)

    def _damaged(self, reason: str) -> DamagedArchiveError:
        return DamagedArchiveError(self._name, self._offset, reason)

    def _record(self, unpacked: tuple[bytes, int], within: str) -> WarcRecord:
        """The record of a member or frame, of which contents and length are given."""
        offset = self._offset
        data, length = unpacked
        version, fields, start = self._fields(data)
        size = self._content_length(fields)
        closing = data[start + size :]
        if len(data) < start + size:
            raise self._damaged("the record is shorter than its Content-Length")
        if closing.lstrip(b"\r\n").startswith(b"WARC/"):
            raise self._damaged(f"several records in one {within}: the file was not compressed record by record")
        if closing != _END:
            raise self._damaged("the record does not end with two empty lines")
        return WarcRecord(offset, length, offset + length, version, fields, data[start : start + size])

    def _plain_record(self) -> WarcRecord:
        offset = self._offset
        head = bytes(self._window.at(offset, 1 << 14))
        if head.startswith(b"WARC/") and b"\r\n\r\n" not in head:
            head = bytes(self._window.at(offset, MAX_FIELDS_BYTES))
        version, fields, start = self._fields(head)
        size = self._content_length(fields)
        block = bytes(self._window.at(offset + start, size))
        if len(block) < size:
            raise self._damaged("the record is shorter than its Content-Length")
        end = offset + start + size
        if self._window.at(end, len(_END)) != _END:
            raise self._damaged("the record does not end with two empty lines")
        return WarcRecord(offset, end - offset, end + len(_END), version, fields, block)

    def _stored_member(self) -> tuple[bytes, int] | None:
        """The contents and length of a member that is all stored blocks, None where it is not."""
        at, offset = self._window.at, self._offset
        if at(offset, 4) != _STORED_HEADER:
            return None
        position = offset + _GZIP_HEADER_BYTES
        parts: list[bytes] = []
        final = 0
        while not final:
            block = at(position, _BLOCK.size)
            if len(block) < _BLOCK.size:
                raise self._damaged("the gzip member is cut")
            final, size, check = _BLOCK.unpack(block)
            if final > 1:
                return None
            if size ^ check != 0xFFFF:
                raise self._damaged("a stored block contradicts itself")
            parts.append(bytes(at(position + _BLOCK.size, size)))
            position += _BLOCK.size + size
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        trailer = at(position, _TRAILER.size)
        if len(trailer) < _TRAILER.size:
            raise self._damaged("the gzip member is cut")
        if _TRAILER.unpack(trailer) != (isal_zlib.crc32(data), len(data) & 0xFFFFFFFF):
            raise self._damaged("the checksum of the gzip member is wrong")
        return data, position + _TRAILER.size - offset

    def _deflated_member(self) -> tuple[bytes, int]:
        decompressor = isal_zlib.decompressobj(wbits=31)
        position = self._offset
        parts: list[bytes] = []
        total = 0
        try:
            while not decompressor.eof:
                step = self._window.at(position, _STEP_BYTES)
                if not step:
                    raise self._damaged("the gzip member is cut")
                position += len(step)
                part = decompressor.decompress(step, MAX_RECORD_BYTES + 1 - total)
                total += len(part)
                if total > MAX_RECORD_BYTES:
                    raise self._damaged(f"the record is over {MAX_RECORD_BYTES} bytes")
                parts.append(part)
        except isal_zlib.error as error:  # type: ignore[misc]  # the stub has an instance for the class
            raise self._damaged(f"the gzip member cannot be read ({error})") from error
        return b"".join(parts), position - len(decompressor.unused_data) - self._offset

    def _frame(self) -> tuple[bytes, int]:
        """The contents and length of a Zstandard frame."""
        head = bytes(self._window.at(self._offset, _FRAME_HEAD_BYTES))
        try:
            told = zstandard.get_frame_parameters(head)
        except zstandard.ZstdError as error:
            raise self._damaged("the Zstandard frame is cut") from error
        if told.dict_id:
            raise self._damaged("it was compressed with a dictionary, which is not read")
        is_known = told.content_size not in _SIZE_UNKNOWN
        if is_known and told.content_size > MAX_RECORD_BYTES:
            raise self._damaged(f"the record is over {MAX_RECORD_BYTES} bytes")
        step_bytes = _STEP_BYTES if is_known else _CAREFUL_BYTES
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).decompressobj()
        position, total = self._offset, 0
        parts: list[bytes] = []
        try:
            while not decompressor.eof:
                step = self._window.at(position, step_bytes)
                if not step:
                    raise self._damaged("the Zstandard frame is cut")
                position += len(step)
                part = decompressor.decompress(bytes(step))
                total += len(part)
                if total > MAX_RECORD_BYTES:
                    raise self._damaged(f"the record is over {MAX_RECORD_BYTES} bytes")
                parts.append(part)
        except zstandard.ZstdError as error:
            raise self._damaged(f"the Zstandard frame cannot be read ({error})") from error
        return b"".join(parts), position - len(decompressor.unused_data) - self._offset

    def _fields(self, data: bytes) -> tuple[str, tuple[tuple[str, str], ...], int]:
        """Version, fields and where the block starts."""
        if not data.startswith(b"WARC/"):
            raise self._damaged("no WARC record begins here")
        end = data.find(_END)
        if end < 0:
            raise self._damaged("the fields of the record do not end")
        version, _, rest = data[:end].decode("utf-8", "replace").partition("\r\n")
        fields: list[tuple[str, str]] = []
        for line in rest.split("\r\n") if rest else ():
            if line[:1] in {" ", "\t"} and fields:
                name, value = fields[-1]
                fields[-1] = (name, f"{value} {line.strip()}")
                continue
            name, colon, value = line.partition(":")
            if not colon:
                raise self._damaged("a line among the fields is no field")
            fields.append((name.strip().lower(), value.strip()))
        return version, tuple(fields), end + len(_END)

    def _content_length(self, fields: tuple[tuple[str, str], ...]) -> int:
        for name, value in fields:
            if name == "content-length":
                if value.isascii() and value.isdigit() and len(value) < 16 and int(value) <= MAX_RECORD_BYTES:
                    return int(value)
                break
        raise self._damaged("the record has no usable Content-Length")
