"""The few bytes under the key of a URL that has no record of its own.

    0, place, rank                  it waits in the queue at that place
    1, place, rank, reason, group   it is parked: on a shelf of its host (see `shelving`)

Anything else there is a packed `UrlRecord`, whose first byte is larger. `native/frontier.c` knows these bytes too.
"""

from __future__ import annotations

from nephila.frontier import order

QUEUED, PARKED = 0, 1
"""The first byte of a mark."""
PLACE_END = 1 + order.PLACE_BYTES
"""Where the rank stands in it."""
DEPTH_IN_PLACE = 4
DEPTH_AT = 1 + DEPTH_IN_PLACE
"""Where the depth stands in it: a part of the place."""
RANK_BYTES = tuple(bytes((rank,)) for rank in range(256))
_QUEUED_MARK = bytes((QUEUED,))


def place_in(raw: bytes) -> bytes:
    """The place that a mark names."""
    return raw[1:PLACE_END]


def rank_in(raw: bytes) -> int:
    """The rank that is written there."""
    return raw[PLACE_END]


def queued_mark(place: bytes, rank: int) -> bytes:
    """What is written under the key of a URL that waits in the queue."""
    return _QUEUED_MARK + place + RANK_BYTES[rank]
