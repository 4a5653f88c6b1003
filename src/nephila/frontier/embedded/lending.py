"""Leases for workers that are not ours: programs in any language that ask over HTTP (C1).

What such a worker is lent is a host like any other's, with two differences. It gets one URL at a time, so that the
store keeps the host's delays and nobody has to be trusted with them. And a robots.txt is never lent: it is ours to
fetch, so that a URL which is lent is one whose rules are in force.

What it brings lies where it has put it. A page that is done is therefore not pending on a segment of our archive:
reporting it is its worker's word that it is durable.
"""

from __future__ import annotations

from typing import NamedTuple

from nephila.interfaces.frontier import Settled
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.task import Lease, PageTask, RobotsTask, Token

from . import claiming, settling
from .book import NO_QUOTA, Book
from .coding import pack, read_lease
from .tables import pending_key
from .upkeep import reap

OUTSIDE = 1 << 16
"""The holder of every lease that was lent: no process of a crawl has such a number."""


PROMOTED_FOR_EACH = 10
"""Hosts whose time has come that are looked at for each that is lent: a worker waits for the answer."""


class Lent(NamedTuple):
    """What was lent, and how many hosts could have been but for their robots.txt."""

    leases: list[Lease]
    without_rules: int


def lend(book: Book, hosts: int, lease_ms: int) -> Lent:
    """Lease up to `hosts` hosts for one URL each; leases that have run out are taken back first."""
    reap(book, lent=OUTSIDE)
    book.page_quota = 1  # of each lease
    try:
        claimed = claiming.claim(book, hosts, lease_ms, PROMOTED_FOR_EACH * hosts)
    finally:
        book.page_quota = NO_QUOTA
    lent = [lease for lease in claimed if isinstance(lease.tasks[0], PageTask)]
    wanting = [lease for lease in claimed if isinstance(lease.tasks[0], RobotsTask)]
    for lease in lent:
        _mark(book, lease.token)
    for lease in wanting:
        settling.settle(book, lease.token, (), Release(max(0, lease.not_before - book.now), lease.pace))
    return Lent(lent, len(wanting))


def take_back(book: Book, token: Token, settlement: Settlement, release: Release) -> Settled:
    """Settle what was lent. Refused where the lease is not, or no longer, somebody's outside."""
    raw = book.txn.get(token.to_bytes(8, "big"), db=book.db["leases"])
    if raw is None or read_lease(raw).holder != OUTSIDE:
        return Settled(accepted=False)
    settled = settling.settle(book, token, (settlement,), release)
    outcome = settlement.outcome
    if settled.accepted and isinstance(outcome, Done):
        book.txn.delete(pending_key(outcome.ref.segment, outcome.ref.end), db=book.db["pending"])
        book.totals.pending -= 1
        book.totals.completed += 1
    return settled


def _mark(book: Book, token: Token) -> None:
    """Write down that a lease is held outside."""
    token_key = token.to_bytes(8, "big")
    raw = book.txn.get(token_key, db=book.db["leases"])
    if raw is None:
        raise KeyError(token)
    lease = read_lease(raw)
    lease.holder = OUTSIDE
    book.txn.put(token_key, pack(lease), db=book.db["leases"])
