"""Lists of domains and hosts out of the store of a crawl directory (`interfaces.census`). Short read transactions.

The store keeps domains in the order of their hashes: a list is made by walking from domain to domain, past all that
lies under each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nephila.frontier import order
from nephila.interfaces.census import HOSTS_ADDED_UP, LIVELIEST, DomainFigures, HostFigures, Loan
from nephila.model.outcome import DeferReason

from .book import NO_HOST
from .coding import read_domain, read_host, read_lease
from .lending import OUTSIDE
from .records import HostState, Place
from .tables import DOMAIN_KEY_BYTES, HOST_KEY_BYTES, STATE

if TYPE_CHECKING:
    from nephila.model.task import Token

    from .tables import Txn
    from .view import LmdbFrontierView

_HELD = frozenset({DeferReason.PAUSED, DeferReason.BLOCKED, DeferReason.ERRORS, DeferReason.HOURS})


class LmdbCensus:
    """A `Census` of the frontier in a crawl directory."""

    def __init__(self, view: LmdbFrontierView) -> None:
        self._view = view
        self._tables = view.tables

    def domains(self, after: bytes, limit: int) -> tuple[list[DomainFigures], bytes]:
        """The next domains after a mark (empty for the first), and the mark to go on from; empty at the end."""
        found: list[DomainFigures] = []
        with self._tables.look() as txn, txn.cursor(db=self._tables.web) as cursor:
            going = cursor.set_range(after)
            while going and len(found) < limit:
                prefix = cursor.key()[:DOMAIN_KEY_BYTES]
                figures = self._domain(txn, prefix)
                if figures is not None:
                    found.append(figures)
                going = cursor.set_range(prefix + b"\xff" * (HOST_KEY_BYTES - DOMAIN_KEY_BYTES + 1))
            return found, cursor.key() if going else b""

    def named(self, names: Sequence[str]) -> list[DomainFigures]:
        """Those of some domains that are known."""
        with self._tables.look() as txn:
            found = [self._domain(txn, self._tables.domain_key(name)) for name in names]
        return [one for one in found if one is not None]

    def hosts(self, domain: str, limit: int, after: str = "") -> list[HostFigures]:
        """Hosts of a domain in the order of their keys, after the one of that name."""
        prefix = self._tables.domain_key(domain)
        start = prefix + bytes(6) + b"\xff"
        if after:  # somebody may name what is no host of this domain: then it is a place in the order, and no more
            start = max(start, self._tables.host_key(after) + b"\xff")
        with self._tables.look() as txn:
            return [self._host(txn, key, host) for key, host in self._hosts_of(txn, prefix, limit, start)]

    def longest_wait_s(self) -> float:
        """How long the ready host that has waited longest has had work; 0 when none is ready (F7)."""
        with self._tables.look() as txn, txn.cursor(db=self._tables.db["ready"]) as cursor:
            if not cursor.set_range(bytes((order.STARVING_LANE,))):
                return 0.0
            since = int.from_bytes(cursor.key()[1:9], "big")
        return max(0, self._view.timeline.now() - since) / 1000

    def loan(self, token: Token) -> Loan | None:
        """What a worker outside holds under a token; None when that is nothing, or not his."""
        with self._tables.look() as txn:
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
            next((state for state in LIVELIEST if state in states), "idle"),
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
