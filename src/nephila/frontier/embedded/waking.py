"""A host that was given work is put where it belongs."""

from __future__ import annotations

from collections.abc import Sequence

from nephila.frontier import order
from nephila.model.outcome import DeferReason

from .book import Book
from .records import HostState, Place


def wake(book: Book, key: bytes, host: HostState, places: Sequence[bytes] = ()) -> None:
    """Put a host where it belongs after work was added to its queue at these places."""
    if book.token_of(key):
        return
    match host.place:
        case Place.IDLE:
            if host.free_at > book.now or host.robots or not places:
                book.rest(key, host)
            else:
                book.make_ready(key, host, _heads(book, key, places))
        case Place.READY:
            if places:
                _improve(book, key, host, places)
            else:
                book.make_ready(key, host)
        case Place.PARKED:
            if host.reason == DeferReason.HOST_LIMIT and host.cycle < book.totals.cycle:
                book.wait(key, host, host.free_at)
        case Place.WAITING:
            if host.reason == DeferReason.TRAP:
                book.wait(key, host, host.free_at)


def _heads(book: Book, key: bytes, places: Sequence[bytes]) -> dict[int, bytes]:
    """The best of these places by lane."""
    lowered = book.domain(key).health.lowered
    heads: dict[int, bytes] = {}
    for place in places:
        stored, step, _, _ = order.read_place(place)
        lane = order.effective_lane(stored, step, book.step, book.policy.priority, lowered)
        if lane not in heads or place[1:] < heads[lane][1:]:
            heads[lane] = place
    return heads


def _improve(book: Book, key: bytes, host: HostState, places: Sequence[bytes]) -> None:
    """Keep the ready index exact: a better head, or the first one of another lane, moves a ready host."""
    current = {ready[0]: ready[5:9] for ready in host.ready}
    for lane, place in _heads(book, key, places).items():
        known = current.get(lane)
        if known is None or place[1:5] < known:
            book.make_ready(key, host)
            return
