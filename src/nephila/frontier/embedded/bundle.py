"""Bundles: how queued URLs lie in the store.

The links that a page brings to one host share nearly all there is to say of them: depth, class, rank, the page they were
found on, the time. So they are written as one value, a head and then a few bytes for each URL, instead of a record and a
queue entry each: two writes for thirty links, and half the room.

The first URL of a bundle is the last in its bytes, so that taking it away is cutting off the end. A URL that is moved to a
better place is not looked for in its bundle: it gets an entry in another one, its own key names the place that counts,
and the old entry is passed over when its turn comes.

    head   admitted (4), cycle (2), rank (1), hops (1), length of via (1), via
    entry  tail, fingerprint (16), length of tail (2)

What must stay true: a value stays under half a page of the store, because LMDB gives larger ones whole pages of their own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

BUNDLE_BYTES = 1_900
_HEAD = struct.Struct(">IHBBB")
_LENGTH = struct.Struct(">H")
_pack_length = _LENGTH.pack
_MAX_CYCLE = 0xFFFF

Entry = tuple[bytes, bytes]
"""Tail and fingerprint."""


class Head(NamedTuple):
    """What the URLs of a bundle share."""

    admitted_s: int
    cycle: int
    rank: int
    hops: int
    via: bytes = b""
    """Key of the page they were found on; empty for seeds."""


def pack_head(head: Head, host_key: bytes) -> bytes:
    """A head as bytes; of a page on the same host only the fingerprint is kept."""
    via = head.via
    if via.startswith(host_key):
        via = via[len(host_key) + 1 :]
    return _HEAD.pack(head.admitted_s, min(head.cycle, _MAX_CYCLE), head.rank, min(head.hops, 255), len(via)) + via


def read_head(value: bytes, host_key: bytes, url_mark: bytes) -> Head:
    """The head of a bundle."""
    admitted_s, cycle, rank, hops, length = _HEAD.unpack_from(value)
    via = value[_HEAD.size : _HEAD.size + length]
    if via and length < len(host_key):
        via = host_key + url_mark + via
    return Head(admitted_s, cycle, rank, hops, via)


def pack_bundle(head: bytes, entries: Sequence[Entry]) -> bytes:
    """A bundle: a packed head and its URLs."""
    parts = [head]
    for tail, fingerprint in reversed(entries):
        parts += (tail, fingerprint, _pack_length(len(tail)))
    return b"".join(parts)


def entries_of(value: bytes) -> Iterator[Entry]:
    """The URLs of a bundle, first to last."""
    end, start = len(value), _HEAD.size + value[_HEAD.size - 1]
    while end > start:
        length = _LENGTH.unpack_from(value, end - 2)[0]
        at = end - 18 - length
        yield value[at : at + length], value[end - 18 : end - 2]
        end = at


def without(value: bytes, fingerprint: bytes) -> bytes | None:
    """The bundle without one URL: None when that was its last one. Raises KeyError where it is not in it."""
    end, start = len(value), _HEAD.size + value[_HEAD.size - 1]
    while end > start:
        at = end - 18 - _LENGTH.unpack_from(value, end - 2)[0]
        if value[end - 18 : end - 2] == fingerprint:
            left = value[:at] + value[end:]
            return left if len(left) > start else None
        end = at
    raise KeyError(fingerprint)
