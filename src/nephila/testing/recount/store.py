"""Everything that an embedded frontier has stored, decoded: what `whole` counts anew."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from nephila.frontier.embedded.book import NO_HOST, Book
from nephila.frontier.embedded.coding import read_lease, read_tally, read_url
from nephila.frontier.embedded.marks import PARKED
from nephila.frontier.embedded.records import DomainState, HostState, LeaseRecord, UrlRecord
from nephila.frontier.embedded.tables import (
    DOMAIN_KEY_BYTES,
    HOST_KEY_BYTES,
    QUEUE,
    ROBOTS,
    SECTION,
    SHELF,
    SKELETON,
    STATE,
    URL,
)
from nephila.frontier.traps import SkeletonTally


@dataclass(frozen=True)
class Store:
    """The tables, by what they hold. Keys of the queue and the shelves are without the byte that says which it is."""

    book: Book
    hosts: dict[bytes, HostState] = field(default_factory=dict)
    domains: dict[bytes, DomainState] = field(default_factory=dict)
    marks: dict[bytes, bytes] = field(default_factory=dict)
    """What lies under the keys of URLs without a record."""
    records: dict[bytes, UrlRecord] = field(default_factory=dict)
    queue: dict[bytes, bytes] = field(default_factory=dict)
    """Bundles by host key and place."""
    shelves: dict[bytes, bytes] = field(default_factory=dict)
    """Bundles by host key, reason, group and place."""
    robots: Counter[bytes] = field(default_factory=Counter)
    tallies: dict[bytes, SkeletonTally] = field(default_factory=dict)
    """By host key and group."""
    sections: dict[bytes, int] = field(default_factory=dict)
    """URLs queued under a first path segment, by host key and section."""
    leased: dict[bytes, int] = field(default_factory=dict)
    leases: dict[int, LeaseRecord] = field(default_factory=dict)

    def keys(self, name: str) -> list[bytes]:
        """The keys of a named database."""
        with self.book.txn.cursor(db=self.book.db[name]) as cursor:
            return [key for key, _ in cursor]


def read_store(book: Book) -> Store:
    """Decode all there is."""
    store = Store(book)
    with book.txn.cursor(db=book.web) as cursor:
        rows = list(cursor)
    for key, value in rows:
        _sort_in(store, key[:HOST_KEY_BYTES], key[HOST_KEY_BYTES : HOST_KEY_BYTES + 1], key, value)
    with book.txn.cursor(db=book.db["leased"]) as cursor:
        store.leased.update({key: int.from_bytes(value, "big") for key, value in cursor})
    with book.txn.cursor(db=book.db["leases"]) as cursor:
        store.leases.update({int.from_bytes(key, "big"): read_lease(value) for key, value in cursor})
    return store


def _sort_in(store: Store, host_key: bytes, kind: bytes, key: bytes, value: bytes) -> None:
    rest = key[HOST_KEY_BYTES + 1 :]
    if kind == STATE and host_key[DOMAIN_KEY_BYTES:] == NO_HOST:
        store.domains[host_key[:DOMAIN_KEY_BYTES]] = store.book.domain(host_key)
    elif kind == STATE:
        store.hosts[host_key] = store.book.known_host(host_key)
    elif kind == URL and value[0] <= PARKED:
        store.marks[key] = value
    elif kind == URL:
        store.records[key] = read_url(value)
    elif kind == QUEUE:
        store.queue[host_key + rest] = value
    elif kind == SHELF:
        store.shelves[host_key + rest] = value
    elif kind == ROBOTS:
        store.robots[host_key] += 1
    elif kind == SKELETON:
        store.tallies[host_key + rest] = read_tally(value)
    elif kind == SECTION:
        store.sections[host_key + rest] = int.from_bytes(value, "big")
    else:
        raise AssertionError(f"a row of an unknown kind: {key.hex()}")
