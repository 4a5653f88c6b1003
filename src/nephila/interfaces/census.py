"""Domains and hosts as people want to see them listed, whichever engine keeps them (C3).

No engine has an index by name or by size: admitting a page must not pay for a list that somebody may look at. So a list
is made by walking, a bounded number in one call; whoever wants all of them keeps what he was told (`node.roster`).
Synchronous: every call may wait for an engine, so that it is made in a thread wherever a loop must not wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from nephila.model.task import Token


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


LIVELIEST = ("leased", "ready", "waiting", "parked", "idle")
"""States of hosts; that of a domain is the first that any of its hosts is in."""
HOSTS_ADDED_UP = 200
"""Hosts of one domain whose figures make up the domain's: a domain with more of them is told by these."""


class Census(Protocol):
    """Reads lists out of a frontier."""

    def domains(self, after: bytes, limit: int) -> tuple[list[DomainFigures], bytes]:
        """The next domains after a mark (empty for the first), and the mark to go on from; empty at the end.

        About as many as the limit says. One that comes or goes meanwhile may be missed, or told twice.
        """

    def named(self, names: Sequence[str]) -> list[DomainFigures]:
        """Those of some domains that are known, in the order of their names as given."""

    def hosts(self, domain: str, limit: int, after: str = "") -> list[HostFigures]:
        """Hosts of a domain in an order that stays, after the one of that name."""

    def longest_wait_s(self) -> float:
        """How long the ready host that has waited longest has had work; 0 when none is ready (F7)."""

    def loan(self, token: Token) -> Loan | None:
        """What a worker outside holds under a token; None when that is nothing, or not his."""
