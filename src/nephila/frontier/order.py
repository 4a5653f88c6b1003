"""The order of fetching, in one place (F1, F6).

Among the hosts that may be asked now, the next one is found by these rules, first to last:

1. immediate before everything;
2. high, medium and low are drawn 80/15/5 among those that have a ready host, so none starves;
3. the registrable domain with the fewest pages fetched;
4. the least depth;
5. the smallest tie-break: a plain hash of the URL, then the fingerprint. The fingerprint alone would do, but it is
   seeded with the crawl's secret, and the same input must give the same order in two crawls.

Rules 3 to 5 are the bytes of a key, so that any ordered store sorts by them; rules 1 and 2 choose among four such
orderings. Within a host the same rules apply without the domain's count.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from xxhash import xxh3_64_digest, xxh3_64_intdigest

from nephila.model.task import Level

SHARES: dict[Level, int] = {Level.HIGH: 80, Level.MEDIUM: 15, Level.LOW: 5}
"""F1's draw. Immediate is not drawn: it goes first."""

_QUEUE = struct.Struct(">BB4s8s")
_READY = struct.Struct(">BIB4s8s")
_MAX_COUNT = 0xFFFF_FFFF


def queue_key(level: int, depth: int, url: str, fingerprint: bytes, seed: int) -> bytes:
    """The place of a URL in its host's queue; `seed` is the crawl's random seed."""
    return _QUEUE.pack(level, min(depth, 255), xxh3_64_digest(url.encode(), seed)[:4], fingerprint[:8])


def level_of(queue_place: bytes) -> int:
    """The level that a place in a queue belongs to."""
    return queue_place[0]


def prefix_of(queue_place: bytes) -> bytes:
    """The first eight bytes of the fingerprint at that place: enough to find the record among its host's."""
    return queue_place[-8:]


def ready_key(domain_count: int, head: bytes) -> bytes:
    """The place of a host among the ready ones of a level, from its domain's count and its first queue key."""
    level, depth, tie, prefix = _QUEUE.unpack(head)
    return _READY.pack(level, min(domain_count, _MAX_COUNT), depth, tie, prefix)


QUEUE_KEY_BYTES = _QUEUE.size
READY_KEY_BYTES = _READY.size


def count_in_ready_key(key: bytes) -> int:
    """The domain count that a ready key was made with: it is stale once the domain has been asked again."""
    return int.from_bytes(key[1:5], "big")


def is_sample(url: str, cycle: int, every: int, seed: int) -> bool:
    """Whether a URL is one of those that are looked at closely in a cycle: one in `every`, each in its turn."""
    return (xxh3_64_intdigest(url.encode(), seed) + cycle) % every == 0


def draw_level(present: Sequence[Level], seed: int, draw: int) -> Level:
    """Which level goes next among those with a ready host. The same seed and draw number give the same answer."""
    if present[0] is Level.IMMEDIATE or len(present) == 1:
        return present[0]
    total = sum(SHARES[level] for level in present)
    point = xxh3_64_intdigest(draw.to_bytes(8, "big"), seed) % total
    for level in present:
        point -= SHARES[level]
        if point < 0:
            return level
    return present[-1]
