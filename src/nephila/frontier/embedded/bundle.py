"""Bundles: how queued URLs lie in the store.

The links that a page brings to one host share nearly all there is to say of them: depth, class, rank, the page they
were found on, the time. So they are written as one value, a head and then a few bytes for each URL, instead of a record
and a queue entry each: two writes for thirty links, and half the room.

The first URL of a bundle is the last in its bytes, so that taking it away is cutting off the end.

    head   admitted (4), cycle (2), rank (1), hops (1), length of via (1), via
    entry  tail, fingerprint (16), length of tail (2)

What must stay true: a value stays under half a page of the store, because LMDB gives larger ones whole pages of their
own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

BUNDLE_BYTES = 1_900
_HEAD = struct.Struct(">IHBBB")
_RANK_AT = 6
"""Where the rank stands in a head."""
_LENGTH = struct.Struct(">H")
_MAX_CYCLE = 0xFFFF
_AFTER_TAIL = 18
"""Bytes of an entry after its tail: fingerprint and length."""
_LENGTHS = tuple(_LENGTH.pack(length) for length in range(4_096))
"""Of tails, packed: most are asked for thirty times a page."""

Entry = bytes
"""A URL in a bundle, packed. Bytes and not a noun: thirty a page are made, and most are never looked at singly."""


class Head(NamedTuple):
    """What the URLs of a bundle share."""

    admitted_s: int
    cycle: int
    rank: int
    hops: int
    via: bytes = b""
    """Key of the page they were found on; empty for seeds."""


Fields = tuple[int, int, int, int, bytes]
"""A head as a plain tuple, for who makes five a page."""


def pack_entry(tail: bytes, fingerprint: bytes) -> Entry:
    """A URL as it lies in a bundle."""
    length = len(tail)
    return tail + fingerprint + (_LENGTHS[length] if length < len(_LENGTHS) else _LENGTH.pack(length))


def tail_of(entry: Entry) -> bytes:
    """The spelling of a URL, as `tables.shorten` cuts it."""
    return entry[:-_AFTER_TAIL]


def fingerprint_of(entry: Entry) -> bytes:
    """The fingerprint of a URL."""
    return entry[-_AFTER_TAIL:-2]


def pack_head(head: Fields, host_key: bytes) -> bytes:
    """A head as bytes; of a page on the same host only the fingerprint is kept."""
    admitted_s, cycle, rank, hops, via = head
    if via.startswith(host_key):
        via = via[len(host_key) + 1 :]
    return _HEAD.pack(admitted_s, min(cycle, _MAX_CYCLE), rank, min(hops, 255), len(via)) + via


def read_head(value: bytes, host_key: bytes, url_mark: bytes) -> Head:
    """The head of a bundle."""
    admitted_s, cycle, rank, hops, length = _HEAD.unpack_from(value)
    via = value[_HEAD.size : _HEAD.size + length]
    if via and length < len(host_key):
        via = host_key + url_mark + via
    return Head(admitted_s, cycle, rank, hops, via)


def head_end(value: bytes) -> int:
    """Where the head of a bundle ends, and its entries begin."""
    return _HEAD.size + value[_HEAD.size - 1]


def head_of(value: bytes) -> bytes:
    """The head of a bundle, as it is packed."""
    return value[: head_end(value)]


def with_rank(head: bytes, rank: int) -> bytes:
    """A packed head with another rank in it."""
    return head[:_RANK_AT] + bytes((rank,)) + head[_RANK_AT + 1 :]


def pack_bundle(head: bytes, entries: Sequence[Entry]) -> bytes:
    """A bundle: a packed head and its URLs."""
    return head + b"".join(entries[::-1])


def split(entries: Sequence[Entry], head_bytes: int) -> list[Sequence[Entry]]:
    """The entries in as many pieces as are needed to keep each bundle small."""
    room = BUNDLE_BYTES - head_bytes
    if sum(map(len, entries)) <= room:
        return [entries]
    pieces: list[Sequence[Entry]] = []
    start = size = 0
    for index, entry in enumerate(entries):
        size += len(entry)
        if size > room and index > start:
            pieces.append(entries[start:index])
            start, size = index, len(entry)
    pieces.append(entries[start:])
    return pieces


def entry_before(value: bytes, end: int) -> int:
    """Where the entry begins that ends there."""
    length: int = _LENGTH.unpack_from(value, end - 2)[0]
    return end - _AFTER_TAIL - length


def entries_of(value: bytes) -> Iterator[Entry]:
    """The URLs of a bundle, first to last."""
    end, start = len(value), head_end(value)
    while end > start:
        at = entry_before(value, end)
        yield value[at:end]
        end = at


def find(value: bytes, fingerprint: bytes) -> Entry | None:
    """The entry of one URL, by the whole of its fingerprint or the first half."""
    size = len(fingerprint)
    return next((entry for entry in entries_of(value) if entry[-_AFTER_TAIL : size - _AFTER_TAIL] == fingerprint), None)


def without(value: bytes, entry: Entry) -> bytes | None:
    """The bundle without one of its URLs: None when that was its last one."""
    at = value.rindex(entry)
    left = value[:at] + value[at + len(entry) :]
    return left if len(left) > head_end(value) else None
