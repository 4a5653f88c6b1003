"""URLs that wait and are met again: which of them get a better place, in C where that was built.

Every page of a host links to the same menu, and each link raises the rank of what it leads to; two or three URLs a page
enter another band of ranks by that. So the decision is one call a page, `rise`. It writes nothing to the store itself,
and what is not at hand it hands back for a closer look (`returning.meet_again`). What stands here is what
`native/rising.c` does; the tests hold the two against each other.
"""

from __future__ import annotations

from nephila.model.task import Candidate
from nephila.native import AVAILABLE, native

from .arrivals import Ledger
from .links import Met, Writes, risen
from .marks import DEPTH_IN_PLACE, PLACE_END, QUEUED, queued_mark
from .records import HostState
from .tables import HOST_KEY_BYTES

Move = tuple[bytes, bytes, Candidate, HostState, bytes, bool, int]
"""The key of a URL, what lies under it, the link to it, its host, where it is to stand (packed as by `order`), whether
its step is the one that it would be given now, and its rank."""


def plain_rise(
    again: list[Met],
    ledger: Ledger,
    covered: dict[int, list[bytes]],
    own: bytes,
    inside: tuple[int, ...] | None,
    abroad: tuple[int, ...] | None,
    salt: int,
    writes: Writes,
) -> tuple[list[Move], list[Met]]:
    """Of known URLs that need a closer look, the queued ones that move, and those that need it still.

    `covered` is what leases cover, by token, and `own` the key of the page's domain; `inside` and `abroad` are what its
    links bring (`rank.Part.known`). Ranks that rise where URLs stay go into `writes`.
    """
    moves: list[Move] = []
    closer: list[Met] = []
    for one in again:
        url_key, raw, candidate = one
        key = url_key[:HOST_KEY_BYTES]
        host, token = ledger.states.get(key), ledger.leased.get(key)
        leased = [] if token == 0 else covered.get(token or 0)
        is_plain = raw[0] == QUEUED and len(raw) == PLACE_END + 1 and candidate.level is None
        if not is_plain or host is None or key in ledger.referrers or leased is None:
            closer.append(one)
            continue
        rank = risen(inside if url_key.startswith(own) else abroad, raw[PLACE_END], candidate, salt)
        place = raw[1:PLACE_END]
        depth = min(candidate.depth, place[DEPTH_IN_PLACE])
        fresh = ledger.standings.get((rank, depth, candidate.bonus, host.referrers.bit_count()))
        if fresh is None:
            closer.append(one)
            continue
        better = bettered(fresh, place)
        if better == place[: len(better)] or candidate.address.fingerprint in leased:
            if rank != raw[PLACE_END]:
                writes.append((url_key, queued_mark(place, rank)))
        else:
            moves.append((url_key, raw, candidate, host, better, is_as_fresh(better, fresh), rank))
    return moves, closer


def bettered(fresh: bytes, place: bytes) -> bytes:
    """The better of two standings, as they are packed: lane and step each by itself, and the depth of the fresh one."""
    lane, step = min(fresh[:1], place[:1]), min(fresh[1:DEPTH_IN_PLACE], place[1:DEPTH_IN_PLACE])
    return lane + step + fresh[DEPTH_IN_PLACE:]


def is_as_fresh(better: bytes, fresh: bytes) -> bool:
    """Whether a standing has the step of one that was scored just now."""
    return better[1:DEPTH_IN_PLACE] == fresh[1:DEPTH_IN_PLACE]


rise = native.rise if AVAILABLE else plain_rise
