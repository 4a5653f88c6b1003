"""How URLs come out of bundles: when they are leased, when they end, when they move; in C where that was built.

What stands here is what `native/bundles.c` does; the tests hold the two against each other.
"""

from __future__ import annotations

from nephila.native import AVAILABLE, native

from .bundle import entry_before, find, fingerprint_of, head_end, head_of, read_head, tail_of, with_rank, without
from .tables import URL

Taken = tuple[str, int, int, int, bytes, bytes | None]
"""Tail, UTC seconds of admission, cycle, hops, key of the page it was found on; what is left of the bundle."""
Moved = tuple[bytes, bytes, int, bytes | None]
"""The bundle of its own, tail, UTC seconds of admission; what is left of the old one."""
Next = tuple[int, str, bytes, int, int, bytes]
"""Where its entry begins; tail, fingerprint, cycle, hops, key of the page it was found on."""


def plain_split_off(bundle: bytes, fingerprint: bytes, rank: int) -> Moved | None:
    """A URL of a bundle in one of its own, with another rank; None where it is not in there."""
    entry = find(bundle, fingerprint)
    if entry is None:
        return None
    head = with_rank(head_of(bundle), rank)
    return head + entry, tail_of(entry), int.from_bytes(bundle[:4], "big"), without(bundle, entry)


def plain_take_url(bundle: bytes, fingerprint: bytes, host_key: bytes) -> Taken | None:
    """What a bundle knows of a URL, and what is left without it; None where it is not in there."""
    entry = find(bundle, fingerprint)
    if entry is None:
        return None
    head = read_head(bundle, host_key, URL)
    return tail_of(entry).decode(), head.admitted_s, head.cycle, head.hops, head.via, without(bundle, entry)


def plain_next_url(bundle: bytes, end: int, host_key: bytes) -> Next | None:
    """The URL whose entry ends at `end`: the first one at the end of the bundle, the next where that begins."""
    if end == head_end(bundle):
        return None
    at = entry_before(bundle, end)
    entry, head = bundle[at:end], read_head(bundle, host_key, URL)
    return at, tail_of(entry).decode(), fingerprint_of(entry), head.cycle, head.hops, head.via


split_off = native.split_off if AVAILABLE else plain_split_off
take_url = native.take_url if AVAILABLE else plain_take_url
next_url = native.next_url if AVAILABLE else plain_next_url
