"""Zstandard frames, one for each WARC record ("Zstandard Compression for WARC Files", IIPC; RFC 8878).

A record can be read at its offset alone because it is a frame of its own, as a gzip member is (`member`). Frames carry
a checksum; there is no dictionary. What came compressed from the server is kept in *raw* blocks: a checksum and a copy.
"""

from __future__ import annotations

import struct
import threading

import zstandard
from xxhash import xxh64_intdigest

MAGIC = b"\x28\xb5\x2f\xfd"
RAW_MAX = 1 << 17
"""RFC 8878, 3.1.1.2.4: the most bytes that a block holds, and the window of a frame that is all raw blocks."""
HEAD_BYTES = 14
CHECKSUM = struct.Struct("<I")
BLOCK_BYTES = 3

_SIZE_AND_CHECKSUM, _SHORT_SIZE_AND_CHECKSUM, _CHECKSUM_ALONE = 0xC4, 0x84, 0x04
"""Frame header descriptors: eight, four or no bytes for the size of the content; always a window and a checksum."""
_SINGLE_SEGMENT = 0x20
_LEAST_WINDOW_LOG = 10
_LEVEL = 3
_QUICK_LEVEL = 1


class _Compressors(threading.local):
    """One for each thread and level: they are not safe to share, and dear to make."""

    def __init__(self) -> None:
        self.by_level: dict[int, zstandard.ZstdCompressor] = {}

    def at(self, level: int) -> zstandard.ZstdCompressor:
        found = self.by_level.get(level)
        if found is None:
            found = self.by_level[level] = zstandard.ZstdCompressor(level=level, write_checksum=True)
        return found


_compressors = _Compressors()


def frame(data: bytes, level: int = _LEVEL) -> bytes:
    """A frame that holds `data` compressed."""
    return _compressors.at(level).compress(data)


def quick_frame(data: bytes) -> bytes:
    """The same in less time, for records of a few hundred bytes."""
    return frame(data, _QUICK_LEVEL)


def raw_frame(data: bytes, blocks: int = 0) -> bytes:
    """A frame that holds `data` as it is, in so many blocks, or as many as it takes."""
    blocks = blocks or max(1, -(-len(data) // RAW_MAX))
    parts = [_head(_SIZE_AND_CHECKSUM, 17, len(data))]
    for number in range(blocks):
        piece = data[number * RAW_MAX : (number + 1) * RAW_MAX]
        parts += ((len(piece) << 3 | (number == blocks - 1)).to_bytes(BLOCK_BYTES, "little"), piece)
    parts.append(CHECKSUM.pack(xxh64_intdigest(data) & 0xFFFFFFFF))
    return b"".join(parts)


def frame_of_length(data: bytes, length: int) -> bytes | None:
    """A frame of exactly that length; None where it does not fit.

    What is left over is filled with empty blocks, of three bytes each, and by the spelling of the size of the content.
    """
    for level in (_LEVEL, 9, 19):
        packed = frame(data, level)
        body = packed[zstandard.frame_header_size(packed) :]
        log = max(_LEAST_WINDOW_LOG, (len(data) - 1).bit_length(), _window_log(packed))
        for descriptor in (_CHECKSUM_ALONE, _SHORT_SIZE_AND_CHECKSUM, _SIZE_AND_CHECKSUM):
            head = _head(descriptor, log, len(data))
            left = length - len(head) - len(body)
            if left >= 0 and left % BLOCK_BYTES == 0:
                return b"".join((head, bytes(left), body))
    return None


def _window_log(packed: bytes) -> int:
    if packed[len(MAGIC)] & _SINGLE_SEGMENT:
        return 0
    return (packed[len(MAGIC) + 1] >> 3) + _LEAST_WINDOW_LOG + 1


def _head(descriptor: int, window_log: int, size: int) -> bytes:
    window = (window_log - _LEAST_WINDOW_LOG) << 3
    told = {_SIZE_AND_CHECKSUM: 8, _SHORT_SIZE_AND_CHECKSUM: 4, _CHECKSUM_ALONE: 0}[descriptor]
    return MAGIC + bytes((descriptor, window)) + (size.to_bytes(told, "little") if told else b"")
