"""Gzip members, one for each WARC record.

A record can be read at its offset alone because it is a gzip member of its own. Most pages come compressed from the
server, and compressing them again costs more than all else in the archive together; such a record becomes a member of
*stored* deflate blocks, which any gzip reader takes and which costs a checksum and a copy. Records whose payload came
plain are compressed with ISA-L.

Members carry no time and no name: the same record gives the same bytes.
"""

from __future__ import annotations

import struct

from isal import igzip_lib, isal_zlib

HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""RFC 1952: deflate, no flags, no time, no hint, unknown system."""

STORED_MAX = 0xFFFF
"""RFC 1951, 3.2.4: the most bytes that a stored block holds."""

_BLOCK = struct.Struct("<BHH")
_TRAILER = struct.Struct("<II")


def stored(data: bytes) -> bytes:
    """A member that holds `data` as it is."""
    size = len(data)
    trailer = _TRAILER.pack(isal_zlib.crc32(data), size & 0xFFFFFFFF)
    if size <= STORED_MAX:
        return b"".join((HEADER, _BLOCK.pack(1, size, size ^ 0xFFFF), data, trailer))
    parts: list[bytes | memoryview] = [HEADER]
    view = memoryview(data)
    for start in range(0, size, STORED_MAX):
        block = view[start : start + STORED_MAX]
        final = start + STORED_MAX >= size
        parts += (_BLOCK.pack(final, len(block), len(block) ^ 0xFFFF), block)
    parts.append(trailer)
    return b"".join(parts)


def deflated(data: bytes, level: int = 1) -> bytes:
    """A member that holds `data` compressed; level 0 is ISA-L's fastest, for records of a few hundred bytes."""
    return igzip_lib.compress(data, level, igzip_lib.COMP_GZIP)


def quickly_deflated(data: bytes) -> bytes:
    """The same at level 0: for 5 KB level 1 takes three times as long to save a few hundred bytes more."""
    return igzip_lib.compress(data, 0, igzip_lib.COMP_GZIP)
