"""Domains and hosts as people want to see them listed. Short read transactions, beside any writer.

The store keeps domains in the order of their hashes and has no index by name or by size: admitting a page must not pay
for a list that somebody may look at. So a list is made by walking from domain to domain, past all that lies under each,
a bounded number in one call; whoever wants all of them keeps what he was told (`node.roster`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nephila.frontier import order
from nephila.model.outcome import DeferReason

from .book import NO_HOST, read_domain, read_host, read_lease
from .lending import OUTSIDE
from .records import HostState, Place
from .tables import DOMAIN_KEY_BYTES, HOST_KEY_BYTES, STATE

if TYPE_CHECKING:
    from nephila.model.task import Token

    from .tables import Txn
    from .view import LmdbFrontierView

HOSTS_ADDED_UP = 200
"""Hosts of one domain whose figures make up the domain's: a domain with more of them is told by these."""

_HELD = frozenset({DeferReason.PAUSED, DeferReason.BLOCKED, DeferReason.ERRORS, DeferReason.HOURS})


class HostFigures(NamedTuple):
    """One host. Instants are UTC milliseconds, 0 for never."""

    host: str
    state: str
    """idle, waiting, ready, leased or parked."""
    reason: str
    """Why it is put off as a whole; empty when it is not."""
    queued: int
    fetched: int
    delay_ms: int
    """In force: its own adaptive delay, or a longer Crawl-delay; -1 before it was asked."""
    mean_ms: int
    """Of its answers."""
    parked: int
    next_at: int
    last_at: int


class DomainFigures(NamedTuple):
    """One registrable domain, its hosts added up."""

    domain: str
    pages: int
    hosts: int
    queued: int
    parked: int
    errors: int
    """Among its last hundred requests (P4)."""
    delay_ms: int
    """The longest of its hosts."""
    mean_ms: int
    """The mean answer time of the slowest of them."""
    state: str
    """leased, ready, waiting, parked or idle: the liveliest of its hosts."""
    reason: str
    """Why it is held back as a whole: paused, blocked, domain_errors, hours; empty when it is not."""


class Loan(NamedTuple):
    """A lease that is held outside."""

    host: str
    fingerprint: bytes
    expires_at: int
    """On the timeline."""


_LIVELIEST = ("leased", "ready", "waiting", "parked", "idle")


class Census:
    """Reads lists out of a frontier."""

    def __init__(self, view: LmdbFrontierView) -> None:
        self._view = view
        self._tables = view.tables

    def domains(self, after: bytes, limit: int) -> tuple[list[DomainFigures], bytes]:
        """The next domains after a mark (empty for the first), and the mark to go on from; empty at the end."""
        found: list[DomainFigures] = []
        with self._tables.env.begin() as txn, txn.cursor(db=self._tables.web) as cursor:
            going = cursor.set_range(after)
            while going and len(found) < limit:
                prefix = cursor.key()[:DOMAIN_KEY_BYTES]
                figures = self._domain(txn, prefix)
                if figures is not None:
                    found.append(figures)
                going = cursor.set_range(prefix + b"\xff" * (HOST_KEY_BYTES - DOMAIN_KEY_BYTES + 1))
            return found, cursor.key() if going else b""

    def domain(self, name: str) -> DomainFigures | None:
        """One domain by its name."""
        with self._tables.env.begin() as txn:
            return self._domain(txn, self._tables.domain_key(name))

    def hosts(self, domain: str, limit: int, after: str = "") -> list[HostFigures]:
        """Hosts of a domain in the order of their keys, after the one of that name."""
        prefix = self._tables.domain_key(domain)
        start = self._tables.host_key(after) + b"\xff" if after else prefix + bytes(6) + b"\xff"
        with self._tables.env.begin() as txn:
            return [self._host(txn, key, host) for key, host in self._hosts_of(txn, prefix, limit, start)]

    def longest_wait_s(self) -> float:
        """How long the ready host that has waited longest has had work; 0 when none is ready (F7)."""
        with self._tables.env.begin() as txn, txn.cursor(db=self._tables.db["ready"]) as cursor:
            if not cursor.set_range(bytes((order.STARVING_LANE,))):
                return 0.0
            since = int.from_bytes(cursor.key()[1:9], "big")
        return max(0, self._view.timeline.now() - since) / 1000

    def loan(self, token: Token) -> Loan | None:
        """What a worker outside holds under a token; None when that is nothing, or not his."""
        with self._tables.env.begin() as txn:
            raw = txn.get(token.to_bytes(8, "big"), db=self._tables.db["leases"])
            if raw is None:
                return None
            lease = read_lease(raw)
            state = txn.get(lease.host_key + STATE, db=self._tables.web)
        if lease.holder != OUTSIDE or not lease.entries or state is None:
            return None
        return Loan(read_host(state).name, lease.entries[0][-16:], lease.expires_at)

    def _domain(self, txn: Txn, prefix: bytes) -> DomainFigures | None:
        raw = txn.get(prefix + NO_HOST + STATE, db=self._tables.web)
        if raw is None:
            return None
        domain = read_domain(raw)
        queued = parked = delay = mean = 0
        states, reasons = set[str](), set[str]()
        for key, host in self._hosts_of(txn, prefix, HOSTS_ADDED_UP, prefix + bytes(6) + b"\xff"):
            queued += sum(host.queued)
            parked += host.shelved
            delay = max(delay, host.delay_ms, host.crawl_delay_ms)
            mean = max(mean, host.mean_ms)
            states.add(self._state(txn, key, host))
            reasons.add(host.reason)
        reason = next(iter(reasons & _HELD), "") if len(reasons) == 1 else ""
        if domain.paused_until > self._view.timeline.now():
            reason = DeferReason.ERRORS
        return DomainFigures(
            domain.name,
            domain.pages,
            domain.hosts + domain.hosts_over,
            queued,
            parked,
            domain.health.errors,
            delay,
            mean,
            next((state for state in _LIVELIEST if state in states), "idle"),
            reason,
        )

    def _hosts_of(self, txn: Txn, prefix: bytes, limit: int, start: bytes) -> list[tuple[bytes, HostState]]:
        """Hosts under a domain; jumped to, one after the other, past all that lies under each."""
        found: list[tuple[bytes, HostState]] = []
        with txn.cursor(db=self._tables.web) as cursor:
            going = cursor.set_range(start)
            while going and len(found) < limit and cursor.key().startswith(prefix):
                key = cursor.key()[:HOST_KEY_BYTES]
                if cursor.key() == key + STATE:
                    found.append((key, read_host(cursor.value())))
                going = cursor.set_range(key + b"\xff")
        return found

    def _state(self, txn: Txn, key: bytes, host: HostState) -> str:
        if txn.get(key, db=self._tables.db["leased"]) is not None:
            return "leased"
        return host.place.name.lower()

    def _host(self, txn: Txn, key: bytes, host: HostState) -> HostFigures:
        timeline = self._view.timeline
        next_at = max(host.free_at, host.next_at if host.place is Place.WAITING else 0)
        return HostFigures(
            host.name,
            self._state(txn, key, host),
            host.reason,
            sum(host.queued),
            host.fetched,
            max(host.delay_ms, host.crawl_delay_ms),
            host.mean_ms,
            host.shelved,
            timeline.wall_of(next_at) if next_at > timeline.now() else 0,
            timeline.wall_of(host.released_at) if host.released_at else 0,
        )
