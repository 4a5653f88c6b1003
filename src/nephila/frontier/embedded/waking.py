"""A host that was given work is put where it belongs."""

from __future__ import annotations

from collections.abc import Sequence

from nephila.frontier import order
from nephila.model.outcome import DeferReason

from . import shelving
from .arrivals import stays_ready
from .book import Book
from .records import HostState, Place
from .tables import DOMAIN_KEY_BYTES


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
            elif not host.trap_at:
                book.make_ready(key, host)
        case Place.PARKED | Place.WAITING:
            limited = host.reason == DeferReason.HOST_LIMIT and host.cycle < book.totals.cycle
            if limited or host.reason == DeferReason.TRAP:
                book.rest(key, host)


def is_behind(book: Book, host: HostState, places: Sequence[bytes]) -> bool:
    """Whether a host stays where it is after URLs that were scored just now came into its queue at these places."""
    return not book.totals.lowered and stays_ready(host, places)


def look_further(book: Book, key: bytes) -> None:
    """In coverage mode, after a URL has ended: try another one of a domain that has brought no page yet (S4)."""
    if not book.policy.target_domains or book.totals.covered:
        return
    domain = book.domain(key)
    domain.queued = max(0, domain.queued - 1)
    if domain.pages or domain.queued:
        return
    prefix = shelving.shelf_code(DeferReason.COVERAGE) + key[:DOMAIN_KEY_BYTES]
    others: list[bytes] = []
    with book.txn.cursor(db=book.db["shelves"]) as cursor:
        going = cursor.set_range(prefix)
        while going and cursor.key().startswith(prefix) and len(others) < shelving.HOSTS_COMPARED:
            others.append(cursor.key()[1:])
            going = cursor.next()
    if not others:
        return
    other_key = min(others, key=lambda one: shelving.tie_of_host(book, book.known_host(one)))
    other = book.known_host(other_key)
    moved = shelving.unshelve(book, other_key, other, DeferReason.COVERAGE, 1)
    domain.queued += moved
    other.admitted += moved
    if other_key != key:
        wake(book, other_key, other)


def _heads(book: Book, key: bytes, places: Sequence[bytes]) -> dict[int, bytes]:
    """The best of these places by lane."""
    lowered = book.lowered(key)
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
    heads = _heads(book, key, places)
    for lane, place in heads.items():
        known = current.get(lane)
        if known is None or place[1:5] < known:
            book.make_ready(key, host)
            return
