"""Leases that are given once more, for answers that lie in the archive (N8).

When a frontier is lost, every capture of its archive can be settled again, in order, as recovery settles those that a
kill has left behind; all that a crawl knows comes of settling. What is missing is the lease that each was fetched
under. It is made here, for exactly one URL, whatever the order of the queue says: the host is free, for nobody else is
at work on a frontier that is built anew.
"""

from __future__ import annotations

from nephila.frontier.lifecycle import State
from nephila.model.record import RecordRef
from nephila.model.task import Candidate, RobotsTask, Token
from nephila.urls import Address

from . import admission, upkeep
from .book import Book
from .coding import pack, read_url
from .marks import PARKED, QUEUED, place_in
from .origins import put_robots
from .records import HostState, LeaseRecord, RobotsEntry
from .returning import put_back, requeue
from .shelving import fetch_from_shelf

LEASE_MS = 300_000


def lease_page(book: Book, token: Token, candidate: Candidate, via: Address | None, ref: RecordRef) -> bool:
    """Give the lease that a page was fetched under; False where a person's word keeps it out now.

    What lies before it in its segment counts as confirmed: it is there.
    """
    upkeep.confirm(book, ref.segment, ref.offset)
    address = candidate.address
    key, url_key = book.tables.host_key(address.host), book.tables.url_key(address.host, address.fingerprint)
    if book.txn.get(url_key) is None:
        via_key = b"" if via is None else book.tables.url_key(via.host, via.fingerprint)
        admission.admit(book, [candidate], admission.Source(via_key))
    raw = book.txn.get(url_key)
    if raw is None:
        return False
    host = book.known_host(key)
    place = _place(book, key, host, url_key, raw, candidate)
    if place is None:
        return False
    _lease(book, key, host, token, LeaseRecord(key, book.now + LEASE_MS, [place + address.fingerprint]))
    return True


def _place(book: Book, key: bytes, host: HostState, url_key: bytes, raw: bytes, candidate: Candidate) -> bytes | None:
    """Where a known URL waits; it is queued where it does not."""
    if raw[0] == QUEUED:
        return place_in(raw)
    if raw[0] == PARKED:
        return fetch_from_shelf(book, key, url_key, raw, candidate)
    record = read_url(raw)
    match record.state:
        case State.QUEUED:
            return record.place
        case State.DELAYED:  # it was tried before: its retries count
            book.end_delay(url_key, record)
            return put_back(book, key, host, url_key, record)
        case _:
            return requeue(book, key, host, url_key, record)


def lease_robots(book: Book, token: Token, task: RobotsTask, host_name: str) -> None:
    """Give the lease that a robots.txt was fetched under, from the host that was asked for it."""
    key = book.tables.host_key(host_name)
    host = book.host(key) or admission.take_on(book, key, host_name)
    put_robots(book, key, host, RobotsEntry(task.origin, task.url, task.hops))
    _lease(book, key, host, token, LeaseRecord(key, book.now + LEASE_MS, [], task.origin))


def _lease(book: Book, key: bytes, host: HostState, token: Token, lease: LeaseRecord) -> None:
    book.make_ready(key, host)
    book.lease(key, host, token)
    book.txn.put(token.to_bytes(8, "big"), pack(lease), db=book.db["leases"])
    book.totals.next_token = max(book.totals.next_token, token + 1)
