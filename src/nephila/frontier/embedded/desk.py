"""States of hosts, domains and origins, and tallies of patterns, that were read of late: for the next group of verbs.

A page is claimed in one group and settled in another, and its links lead to hosts that other pages led to: what is kept
here need not be looked up and decoded again. It is all in the store as well: nothing is lost with it.

What must stay true: what lies here is what the store says. So a book takes the desk with the number of its transaction
and gives it back when it was written. Whatever another process may have written in between, or a book that was not
written back, makes it forget everything. Who rolls a written book back calls `clear`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from nephila.frontier.traps import SkeletonTally

from .records import DomainState, HostState, OriginNote

KEPT = 4_096
"""Hosts, and as many domains: some six megabytes, for the hosts of a few seconds."""

TALLIES_KEPT = 4_096
"""Some six megabytes: a host has one, and one for each kind of its URLs."""

LEASED_KEPT = 20_000
ORIGINS_KEPT = 10_000
"""Three megabytes each."""


@dataclass(slots=True)
class Passed:
    """How far claims have come in the queue of a host: see `passing`."""

    began: int
    until: int
    """When the first of the origins is worth another look."""
    after: dict[int, bytes] = field(default_factory=dict)
    """By lane, the key to go on from."""
    expires: int | None = None
    """When to begin in front again, once something was found."""


class Desk:
    """What one writer keeps between its books. Each state lies beside the bytes that the store has of it.

    There are two generations: once the young one is full it becomes the old one, and what was old is forgotten unless
    it was asked for meanwhile.
    """

    __slots__ = (
        *("_is_out", "_transaction", "domains", "hosts", "leased", "old_domains", "old_hosts", "old_tallies"),
        *("origins", "passed", "tallies"),
    )

    def __init__(self) -> None:
        self.hosts: dict[bytes, tuple[HostState, bytes]] = {}
        self.old_hosts: dict[bytes, tuple[HostState, bytes]] = {}
        self.domains: dict[bytes, tuple[DomainState, bytes]] = {}
        self.old_domains: dict[bytes, tuple[DomainState, bytes]] = {}
        self.tallies: dict[bytes, SkeletonTally] = {}
        self.old_tallies: dict[bytes, SkeletonTally] = {}
        """What was counted under patterns, by their keys in the store."""
        self.leased: dict[bytes, int] = {}
        """Tokens of hosts, 0 of those that are not leased."""
        self.origins: dict[str, OriginNote] = {}
        self.passed: dict[bytes, Passed] = {}
        """How far claims have come in the queues of hosts: a hint, which is not forgotten with what the store says."""
        self._transaction = 0
        self._is_out = False

    def take(self, transaction: int) -> None:
        """A book begins in a transaction with this number."""
        if self._is_out or not 0 <= transaction - self._transaction <= 1:
            self.clear()
        self._transaction, self._is_out = transaction, True
        if len(self.hosts) > KEPT // 2:
            self.old_hosts, self.hosts = self.hosts, {}
        if len(self.domains) > KEPT // 2:
            self.old_domains, self.domains = self.domains, {}
        if len(self.tallies) > TALLIES_KEPT // 2:
            self.old_tallies, self.tallies = self.tallies, {}
        if len(self.leased) > LEASED_KEPT:
            self.leased.clear()
        if len(self.origins) > ORIGINS_KEPT:
            self.origins.clear()

    def give_back(self) -> None:
        """The book was written: what lies here is what its transaction says."""
        self._is_out = False

    def clear(self) -> None:
        """Forget everything: it was not committed, or not by us."""
        for kept in (self.hosts, self.old_hosts, self.domains, self.old_domains, self.tallies, self.old_tallies):
            kept.clear()
        self.leased.clear()
        self.origins.clear()
