"""What stands in the place of a capture that was taken out of an archive on purpose (W5, K2).

A tombstone is one WARC record, a `metadata` record that belongs to no other, in one gzip member (or Zstandard frame) of
exactly as many bytes as all members of the capture had. So every other record keeps its offset: index, catalogue and
frontier stay true, and only the file's hash changes, for which there is a receipt (`receipt`). The record names no URL,
no address and no content. It says which takedown took the capture out, the digest of the bytes that were there, and
when the request was sent and how long it took, because an audit still has to know that a request was made. The rest is
zeros, of which a file is made with holes (`rewriting`): what was taken out takes no room any more, where the file
system can.

A record of somebody else that only *mentions* what was taken out (a revisit whose original is gone) is spelled anew
without the mention, in as many bytes as it had: what is left over is filled by the comment of the gzip header (RFC
1952, 2.3), or by empty blocks of a frame, which readers pass over.

What must stay true: the same capture taken out by the same takedown gives the same bytes, so that doing it again after
a crash changes nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple
from zlib import compressobj, decompressobj
from zlib import error as zlib_error

from isal import isal_zlib
from zstandard import ZstdDecompressor, ZstdError, frame_content_size

from .frame import BLOCK_BYTES, CHECKSUM, HEAD_BYTES, MAGIC, RAW_MAX, frame, frame_of_length, raw_frame
from .member import HEADER, STORED_MAX, deflated
from .metadata import MetadataFields
from .reader import WarcRecord
from .warc import FIELDS_TYPE, VERSION, digest_of, fields_block, warc_date

TAKEN_OUT = "taken-out-by"
"""The first field of a tombstone: the id of the takedown."""
_KEPT = ("sent-at", "ended-at", "sent-steady-ms", "fetchTimeMs")
"""What an audit needs of the metadata record that was there."""

_BLOCK = struct.Struct("<BHH")
_TRAILER = struct.Struct("<II")
_COMMENT = 0x10
_FLAGS_AT = 3
_FRAME = len(HEADER) + _TRAILER.size
_LEVELS = (1, 2, 3)
_END = b"\r\n\r\n"


def is_tombstone(record: WarcRecord) -> bool:
    """Whether a record stands for a capture that was taken out."""
    return record.kind == "metadata" and record.block.startswith(f"{TAKEN_OUT}: ".encode())


def tombstone(unit: Sequence[WarcRecord], was: bytes, takedown: str, at: int) -> bytes:
    """The member that takes the place of the records of a capture, which were the bytes `was`.

    `at` is the instant of the takedown, UTC milliseconds. Every capture of ours is long enough: it has three records.
    """
    digest = sha256(was)
    fields = [(TAKEN_OUT, takedown), ("sha256", digest.hexdigest())]
    kept = MetadataFields.parse(unit[-1].block).single
    fields += [(name, kept[name]) for name in _KEPT if kept.get(name, "").isdigit()]
    record_id = _record_id(digest.hexdigest())
    shape = _FRAMES if was.startswith(MAGIC) else _MEMBERS
    return _of_length(len(was), record_id, warc_date(at), fields_block(fields), shape)


def taken_out_record(what: str, fields: Sequence[tuple[str, str]], at: int) -> bytes:
    """A record that stands for no capture, and is passed over as tombstones are; not compressed."""
    block = fields_block([(TAKEN_OUT, what), *fields])
    return b"".join(
        (_head(_record_id(sha256(block).hexdigest()), warc_date(at)), str(len(block)).encode(), _END, block, _END)
    )


def _record_id(named: str) -> str:
    return f"urn:uuid:{named[:8]}-{named[8:12]}-8{named[13:16]}-9{named[17:20]}-{named[20:32]}"


def _head(record_id: str, date: str) -> bytes:
    """Up to the number that says how long the block is."""
    return (
        f"{VERSION}\r\nWARC-Type: metadata\r\nWARC-Record-ID: <{record_id}>\r\nWARC-Date: {date}\r\n"
        f"Content-Type: {FIELDS_TYPE}\r\nContent-Length: "
    ).encode()


class _Shape(NamedTuple):
    """How bytes are kept as they are."""

    overhead: int
    """Bytes around all blocks."""
    block_overhead: int
    block_max: int
    made: Callable[[bytes, int], bytes]
    """Of data, in so many blocks."""


def _of_length(length: int, record_id: str, date: str, block: bytes, shape: _Shape) -> bytes:
    """A member or frame of exactly that length, its record's block filled up with zeros."""
    head = _head(record_id, date)
    least = max(1, -(-(length - shape.overhead) // (shape.block_max + shape.block_overhead)))
    for blocks in (least, least + 1):  # a length that falls between two numbers of digits takes an empty block more
        room = length - shape.overhead - blocks * shape.block_overhead - len(head) - 2 * len(_END)
        for digits in range(len(str(max(room, 0))), 0, -1):
            size = room - digits
            if size >= len(block) and len(str(size)) == digits:
                return shape.made(b"".join((head, str(size).encode(), _END, block.ljust(size, b"\0"), _END)), blocks)
    raise ValueError(f"a capture of {length} bytes is too short for what must take its place")


def _stored(data: bytes, blocks: int) -> bytes:
    """A member of so many stored blocks."""
    parts = [HEADER]
    for number in range(blocks):
        piece = data[number * STORED_MAX : (number + 1) * STORED_MAX]
        parts += (_BLOCK.pack(number == blocks - 1, len(piece), len(piece) ^ 0xFFFF), piece)
    parts.append(_TRAILER.pack(isal_zlib.crc32(data), len(data) & 0xFFFFFFFF))
    return b"".join(parts)


_MEMBERS = _Shape(_FRAME, _BLOCK.size, STORED_MAX, _stored)
_FRAMES = _Shape(HEAD_BYTES + CHECKSUM.size, BLOCK_BYTES, RAW_MAX, raw_frame)


def packed(was: bytes) -> bytes:
    """A tombstone compressed: the same record in some hundred bytes. See `holes`."""
    data = _content(was, len(was))
    if was.startswith(MAGIC):
        return frame(data)
    packer = compressobj(9, wbits=31)
    return packer.compress(data) + packer.flush()


def unpacked(member: bytes, length: int) -> bytes:
    """The tombstone of that length that was packed so. Raises ValueError where none can have been."""
    data = _content(member, length)
    shape = _FRAMES if member.startswith(MAGIC) else _MEMBERS
    blocks, left = divmod(length - shape.overhead - len(data), shape.block_overhead)
    if left or blocks * shape.block_max < len(data):
        raise ValueError(f"what was packed does not make {length} bytes")
    return shape.made(data, blocks)


def _content(member: bytes, longest: int) -> bytes:
    """What a member or a frame holds, which is shorter than that."""
    try:
        if member.startswith(MAGIC):
            if frame_content_size(member) > longest:
                raise ValueError("it holds more than was there")
            return ZstdDecompressor().decompress(member)
        unpacker = decompressobj(wbits=31)
        data = unpacker.decompress(member, longest)
    except (zlib_error, ZstdError) as error:
        raise ValueError(str(error)) from error
    if not unpacker.eof:
        raise ValueError("it is not whole, or holds more than was there")
    return data


def in_as_many_bytes(record: bytes, length: int, was: bytes) -> bytes | None:
    """A record in exactly that length, compressed as that which began so; None where it does not fit."""
    if was.startswith(MAGIC):
        return frame_of_length(record, length)
    shortest = min((deflated(record, level) for level in _LEVELS), key=len)
    if len(shortest) > length:
        packer = compressobj(9, wbits=31)
        shortest = packer.compress(record) + packer.flush()
    missing = length - len(shortest)
    if missing < 0:
        return None
    if not missing:
        return shortest
    flags = bytes((shortest[_FLAGS_AT] | _COMMENT,))
    comment = b" " * (missing - 1) + b"\0"
    return b"".join((shortest[:_FLAGS_AT], flags, shortest[_FLAGS_AT + 1 : len(HEADER)], comment, shortest[10:]))


_REFERS = frozenset({"warc-refers-to", "warc-refers-to-target-uri", "warc-refers-to-date"})


def without_original(record: WarcRecord) -> bytes:
    """A revisit that does not say any more which record its payload is in."""
    return _spelled(record, [(name, value) for name, value in record.fields if name not in _REFERS], record.block)


def without_notes(record: WarcRecord, notes: frozenset[str]) -> bytes:
    """A metadata record without those notes of the pipeline."""
    lines = record.block.split(b"\r\n")
    block = b"\r\n".join(line for line in lines if line.partition(b": ")[0].decode("utf-8", "replace") not in notes)
    return _spelled(record, list(record.fields), block)


_SPELLED = {
    name.lower(): name
    for name in (
        *("WARC-Type", "WARC-Record-ID", "WARC-Date", "WARC-Target-URI", "WARC-IP-Address", "WARC-Protocol"),
        *("WARC-Profile", "WARC-Payload-Digest", "WARC-Truncated", "WARC-Block-Digest", "WARC-Concurrent-To"),
        *("Content-Type", "Content-Length"),
    )
}


def _spelled(record: WarcRecord, fields: list[tuple[str, str]], block: bytes) -> bytes:
    told = {"warc-block-digest": digest_of(block), "content-length": str(len(block))}
    lines = "".join(f"{_SPELLED.get(name, name)}: {told.get(name, value)}\r\n" for name, value in fields)
    return b"".join((f"{record.version}\r\n{lines}\r\n".encode(), block, b"\r\n\r\n"))
