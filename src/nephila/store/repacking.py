"""Captures of a `.warc.zst` file for a file whose records are gzip members, as those of a WACZ file are.

A file is all of one kind, and replay tools read gzip. What is in the records stays as it is, byte for byte; offsets and
lengths become those of the members.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import zstandard

from nephila.interfaces.catalogue import CaptureRow

from .frame import MAGIC
from .member import deflated, stored
from .reader import WarcRecord


def as_gzip(row: CaptureRow, unit: Iterable[WarcRecord], raw: bytes) -> tuple[CaptureRow, list[WarcRecord], bytes]:
    """A capture with its records in gzip members, as if it lay at the same offset; what is no Zstandard stays."""
    if not raw.startswith(MAGIC):
        return row, list(unit), raw
    parts: list[bytes] = []
    records: list[WarcRecord] = []
    offset = row.offset
    for record in unit:
        start = record.offset - row.offset
        member = _member(raw[start : start + record.length])
        records.append(replace(record, offset=offset, length=len(member), end=offset + len(member)))
        parts.append(member)
        offset += len(member)
    return replace(row, record_length=records[0].length, end=offset), records, b"".join(parts)


def _member(packed: bytes) -> bytes:
    """What a frame holds, compressed where the frame was: what came compressed from the server is copied."""
    data = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    return deflated(data) if len(packed) < len(data) else stored(data)
