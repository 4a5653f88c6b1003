"""A file of named sections: arrays that are mapped, not read, with what is to be said of them and a checksum.

The sections come first, each from a multiple of eight bytes on, in the machine's own byte order; then a line of JSON
that says where they are; then three numbers: the length of that line, the checksum of all before, and a mark with the
version. It is written under another name, synced and moved into place, so that a file is whole or not there; one that
is damaged, of another version or of another machine is not opened. All such files are derived and may be deleted.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec
from xxhash import xxh3_64

from nephila.model.errors import StorageError

_END = struct.Struct("=QQQ")
_MARK = 0x31_4B_4E_41_52_48_50_4E
"""Spells ``NPHRANK1`` on the machines that are common; in another byte order it is another number."""
_PIECE_BYTES = 1 << 22
DRAFT = ".new"


class DamagedFileError(Exception):
    """It is not what was written: to be made anew."""


def write_sections(path: Path, owner: str, about: Mapping[str, object], sections: Mapping[str, Any]) -> int:
    """Write a file, whole or not at all; its size. Raises `StorageError` where the disk refuses.

    `owner` says what it is and whose; each section is something with a buffer.
    """
    draft = path.with_name(path.name + DRAFT)
    checksum, places, size = xxh3_64(), dict[str, tuple[int, int]](), 0
    try:
        with draft.open("wb") as stream:
            for name, section in sections.items():
                data = memoryview(section).cast("B")
                places[name] = (size, len(data))
                for piece in (data, bytes(-len(data) % 8)):
                    stream.write(piece)
                    checksum.update(piece)
                    size += len(piece)
            line = msgspec.json.encode({"owner": owner, "about": about, "places": places})
            stream.write(line)
            checksum.update(line)
            stream.write(_END.pack(len(line), checksum.intdigest(), _MARK))
            stream.flush()
            os.fsync(stream.fileno())
            size = stream.tell()
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise refused(path, error) from error
    return size


def refused(path: Path, error: OSError) -> StorageError:
    """The sentence for a disk that does not take a file, or does not give it."""
    return StorageError(
        f"{path} cannot be written: {(error.strerror or str(error)).lower()}",
        hint="make room or mend the permissions, and do it again: what is there can be deleted and is made anew",
    )


def placed_in(read_at: Callable[[int, int], bytes], size: int, owner: str) -> dict[str, tuple[int, int]]:
    """Where the sections of a file are that lies elsewhere, unchecked. Raises `DamagedFileError`."""
    if size < _END.size:
        raise DamagedFileError
    try:
        length, _, mark = _END.unpack(read_at(size - _END.size, _END.size))
        end = size - _END.size
        if mark != _MARK or length > end:
            raise DamagedFileError
        line = msgspec.json.decode(read_at(end - length, length))
        if line["owner"] != owner:
            raise DamagedFileError
        return _places_of(line)
    except (msgspec.DecodeError, struct.error, KeyError, TypeError, ValueError) as error:
        raise DamagedFileError from error


def _places_of(line: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    return {name: (int(at), int(size)) for name, (at, size) in line["places"].items()}


class Sections:
    """Such a file, mapped. Closed by `close`, or by the end of a block; what was taken out of it is gone then."""

    def __init__(self, path: Path, owner: str) -> None:
        """Raises `DamagedFileError` where it is not whole or not the owner's, FileNotFoundError where there is none."""
        self.path = path
        with path.open("rb") as stream:
            self.size = os.fstat(stream.fileno()).st_size
            if self.size < _END.size:
                raise DamagedFileError(path.name)
            self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self._whole: memoryview[int] = memoryview(self._map)
        self._views: dict[tuple[str, str], memoryview[Any]] = {}
        try:
            self.about, self._places = self._read(owner)
        except (DamagedFileError, msgspec.DecodeError, struct.error, KeyError, TypeError, ValueError) as error:
            self.close()
            raise DamagedFileError(path.name) from error

    def _read(self, owner: str) -> tuple[dict[str, Any], dict[str, tuple[int, int]]]:
        length, told, mark = _END.unpack(self._whole[-_END.size :])
        end = self.size - _END.size
        if mark != _MARK or length > end:
            raise DamagedFileError
        checksum = xxh3_64()
        for at in range(0, end, _PIECE_BYTES):
            checksum.update(self._whole[at : min(at + _PIECE_BYTES, end)])
        line = msgspec.json.decode(self._whole[end - length : end]) if checksum.intdigest() == told else {}
        if line["owner"] != owner:
            raise DamagedFileError
        return line["about"], _places_of(line)

    def bytes(self, name: str) -> memoryview[int]:
        """A section as bytes."""
        return self._view(name, "B")

    def words(self, name: str) -> memoryview[int]:
        """A section as numbers of 64 bits."""
        return self._view(name, "Q")

    def floats(self, name: str) -> memoryview[float]:
        """A section as floating-point numbers."""
        return self._view(name, "d")

    def _view(self, name: str, form: Literal["B", "Q", "d"]) -> memoryview[Any]:
        view = self._views.get((name, form))
        if view is None:
            at, size = self._places[name]
            view = self._views[name, form] = self._whole[at : at + size].cast(form)
        return view

    def close(self) -> None:
        """Give the memory back; a part that somebody still holds keeps it until he lets go."""
        for view in (*self._views.values(), self._whole):
            view.release()
        self._views.clear()
        with suppress(BufferError):
            self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
