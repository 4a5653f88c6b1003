"""Files in a ZIP package, one after the other, in bounded time and memory, trusting nothing (X4, Q5).

Office documents are packages: a few XML files under known names, packed. The standard library reads the whole table of
contents into objects before it hands out the first file; this walks the table, or, where that is missing because the
file was cut, the files as they lie there, and takes those that are asked for. Sizes that a package claims are not
believed: unpacking ends at a limit for all of it, whatever it says, so that a bomb costs that much and no more.
Packages in packages are not opened, and neither is what is encrypted.

What must stay true: any bytes give an end; never more than `max_bytes` are unpacked in all, in pieces of `PIECE` bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

PIECE = 1 << 16
MOST_ENTRIES = 20_000
"""Of the table of contents; a presentation of a thousand slides has four thousand."""
_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_LOCAL_FIELDS = struct.Struct("<4x2xHH8xLLHH")
"""Flags, method, packed and unpacked size, lengths of name and extra field."""
_CENTRAL_FIELDS = struct.Struct("<4x4xHH8xLLHHH8xL")
"""The same, with the length of the comment and where the file begins."""
_END_FIELDS = struct.Struct("<4x8xLL")
"""Length and beginning of the table."""
_COMMENT_AT_MOST = 65_557
_STORED, _DEFLATED = 0, 8
_ENCRYPTED = 1


class Entry(NamedTuple):
    """A file in a package."""

    name: str
    method: int
    at: int
    """Where its packed bytes begin."""
    size: int
    """Packed; 0 where that is not known before it is unpacked."""


class Package:
    """One package."""

    def __init__(self, body: bytes, max_bytes: int) -> None:
        self._body = body
        self._left = max_bytes
        self.is_whole = True
        """Whether it had a table of contents."""
        self.is_cut = False
        """Whether there was more than may be unpacked, or something of it could not be."""

    def entries(self, wanted: Callable[[str], bool]) -> Iterator[Entry]:
        """The files that are wanted by their name, each once."""
        met: set[str] = set()
        for entry in self._listed():
            if entry.name not in met and wanted(entry.name):
                met.add(entry.name)
                yield entry

    def pieces(self, entry: Entry) -> Iterator[bytes]:
        """A file, unpacked, in pieces."""
        end = entry.at + entry.size if entry.size else len(self._body)
        if entry.method == _STORED:
            data = self._body[entry.at : min(end, entry.at + self._left)]
            self._left -= len(data)
            yield from (data[start : start + PIECE] for start in range(0, len(data), PIECE))
        elif entry.method == _DEFLATED:
            yield from self._inflated(memoryview(self._body)[entry.at : end])
        else:
            self.is_cut = True

    def _inflated(self, packed: memoryview) -> Iterator[bytes]:
        unpacker = zlib.decompressobj(-15)
        rest, at = b"", 0
        while self._left > 0 and not unpacker.eof:
            if not rest:
                rest = bytes(packed[at : at + PIECE])
                at += len(rest)
            if not rest:
                self.is_cut = True
                return
            try:
                piece = unpacker.decompress(rest, min(PIECE, self._left))
            except zlib.error:
                self.is_cut = True
                return
            rest = unpacker.unconsumed_tail
            self._left -= len(piece)
            if piece:
                yield piece
        self.is_cut |= not unpacker.eof

    # -- the table of contents

    def _listed(self) -> Iterator[Entry]:
        body = self._body
        end = body.rfind(_END, max(0, len(body) - _COMMENT_AT_MOST))
        if 0 <= end <= len(body) - 22:
            _, begin = _END_FIELDS.unpack_from(body, end)
            if body[begin : begin + 4] == _CENTRAL:
                yield from self._by_table(begin)
                return
        self.is_whole = False
        yield from self._lying_about()

    def _by_table(self, at: int) -> Iterator[Entry]:
        body = self._body
        for _ in range(MOST_ENTRIES):
            if body[at : at + 4] != _CENTRAL or at + 46 > len(body):
                return
            flags, method, packed, _, name, extra, comment, begin = _CENTRAL_FIELDS.unpack_from(body, at)
            spelled = body[at + 46 : at + 46 + name]
            at += 46 + name + extra + comment
            place = self._contents_at(begin)
            if place and not flags & _ENCRYPTED:
                yield Entry(spelled.decode("utf-8", "replace"), method, place, packed)
        self.is_cut = True

    def _contents_at(self, begin: int) -> int:
        """Where the packed bytes of a file begin; 0 where there is none."""
        if self._body[begin : begin + 4] != _LOCAL or begin + 30 > len(self._body):
            return 0
        *_, name, extra = _LOCAL_FIELDS.unpack_from(self._body, begin)
        return int(begin + 30 + name + extra)

    def _lying_about(self) -> Iterator[Entry]:
        """Files by the marks before them, for a package that has lost its end."""
        body, at = self._body, -1
        for _ in range(MOST_ENTRIES):
            at = body.find(_LOCAL, at + 1)
            if at < 0 or at + 30 > len(body):
                return
            flags, method, packed, _, name, extra = _LOCAL_FIELDS.unpack_from(body, at)
            spelled = body[at + 30 : at + 30 + name]
            if not flags & _ENCRYPTED:
                yield Entry(spelled.decode("utf-8", "replace"), method, at + 30 + name + extra, packed)
