"""One open transaction, with everything a verb needs while it runs: tables, time, totals, settings.

The verbs (`admission`, `claiming`, `settling`, `upkeep`) are plain functions on a book. They decide synchronously; the
book is written back once, when the group commits. Host states are decoded once a book and written once, however many
verbs touch them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from nephila.frontier import order
from nephila.frontier.timeline import Anchor, Timeline
from nephila.model.settings import FrontierSettings

from .records import (
    HostState,
    LeaseRecord,
    OriginNote,
    Place,
    RefusalNote,
    RobotsEntry,
    Totals,
    UrlRecord,
)
from .tables import HOST_KEY_BYTES, Tables, lengthen

if TYPE_CHECKING:
    from .tables import Txn

pack = msgspec.msgpack.Encoder().encode
read_url = msgspec.msgpack.Decoder(UrlRecord).decode
read_host = msgspec.msgpack.Decoder(HostState).decode
read_lease = msgspec.msgpack.Decoder(LeaseRecord).decode
read_robots = msgspec.msgpack.Decoder(RobotsEntry).decode
read_origin = msgspec.msgpack.Decoder(OriginNote).decode
read_refusal = msgspec.msgpack.Decoder(RefusalNote).decode
read_totals = msgspec.msgpack.Decoder(Totals).decode
read_anchor = msgspec.msgpack.Decoder(Anchor).decode


def time_key(moment: int) -> bytes:
    """A moment of the timeline as a sortable key."""
    return max(moment, 0).to_bytes(8, "big")


@dataclass(frozen=True, slots=True)
class Policy:
    """What the verbs need to know of the crawl."""

    settings: FrontierSettings
    base_delay_ms: int
    """Of a host that was never asked."""
    max_pages_per_host: int = 0
    robots: bool = True
    """Whether pages wait for the rules of their origin."""
    random_seed: int = 0
    verify_every: int = 0
    """One page in so many is asked for in full although there are validators; 0 means none is."""
    ordered: bool = False
    """One exchange at a time: hosts are chosen by the comparator alone, and waited for, so that timing cannot change
    the order (F6)."""
    ordered_wait_ms: int = 120_000
    """In that mode a host that must rest longer than this is left for later."""


class Book:
    """A write transaction and its context."""

    __slots__ = ("_hosts", "db", "now", "policy", "tables", "timeline", "totals", "txn", "wall_s")

    def __init__(self, txn: Txn, tables: Tables, timeline: Timeline, policy: Policy, wall_s: int) -> None:
        self.txn = txn
        self.tables = tables
        self.db = tables.db
        self.timeline = timeline
        self.now = timeline.now()
        self.wall_s = wall_s
        self.policy = policy
        raw = txn.get(b"totals", db=self.db["meta"])
        self.totals = Totals() if raw is None else read_totals(raw)
        self._hosts: dict[bytes, HostState] = {}

    def write_back(self) -> None:
        """Write the host states, the totals and the timeline's anchor."""
        for key, host in self._hosts.items():
            self.txn.put(key, pack(host), db=self.db["hosts"])
        meta = self.db["meta"]
        self.txn.put(b"totals", pack(self.totals), db=meta)
        self.txn.put(b"anchor", pack(self.timeline.anchor()), db=meta)

    # Hosts

    def host(self, key: bytes) -> HostState | None:
        """The state of a host, shared by all verbs of this book."""
        host = self._hosts.get(key)
        if host is None:
            raw = self.txn.get(key, db=self.db["hosts"])
            if raw is None:
                return None
            host = self._hosts[key] = read_host(raw)
        return host

    def known_host(self, key: bytes) -> HostState:
        """The state of a host that must exist."""
        host = self.host(key)
        if host is None:
            raise KeyError(key)
        return host

    def host_or_new(self, key: bytes, name: str, domain: str) -> HostState:
        """The state of a host, made when it is met for the first time."""
        host = self.host(key)
        if host is None:
            host = self._hosts[key] = HostState(name, domain, [0, 0, 0, 0])
            self.totals.hosts += 1
        return host

    def delay_of(self, host: HostState) -> int:
        """The delay that a host is owed now, milliseconds."""
        delay = self.policy.base_delay_ms if host.delay_ms < 0 else host.delay_ms
        return max(delay, host.crawl_delay_ms)

    def domain_count(self, domain: str) -> int:
        """Pages fetched from a registrable domain."""
        raw = self.txn.get(self.tables.domain_key(domain), db=self.db["domains"])
        return 0 if raw is None else int.from_bytes(raw, "big")

    def count_page(self, domain: str) -> None:
        """One more page of a registrable domain."""
        count = self.domain_count(domain)
        if count == 0:
            self.totals.domains += 1
        self.txn.put(self.tables.domain_key(domain), (count + 1).to_bytes(4, "big"), db=self.db["domains"])

    # Places of hosts: every move takes the host out of where it was

    def leave(self, key: bytes, host: HostState) -> None:
        """Take a host out of the index it is in."""
        match host.place:
            case Place.WAITING:
                self.txn.delete(time_key(host.next_at) + key, db=self.db["waiting"])
                self.totals.hosts_waiting -= 1
            case Place.READY:
                for place in host.ready:
                    self.txn.delete(place + key, db=self.db["ready"])
                host.ready = []
                self.totals.hosts_ready -= 1
            case Place.LEASED:
                self.totals.hosts_leased -= 1
                host.token = 0
            case Place.PARKED:
                self.txn.delete(key, db=self.db["parked"])
            case Place.IDLE:
                pass
        if host.reason:
            self._count_put_off(host, -1)
            host.reason = ""
        host.place = Place.IDLE

    def wait(self, key: bytes, host: HostState, until: int, reason: str = "") -> None:
        """Put a host among the waiting ones."""
        self.leave(key, host)
        host.place, host.next_at, host.reason = Place.WAITING, max(until, 0), reason
        self.txn.put(time_key(until) + key, b"", db=self.db["waiting"])
        self.totals.hosts_waiting += 1
        self._count_put_off(host, 1)

    def park(self, key: bytes, host: HostState, reason: str) -> None:
        """Put a host aside until something else changes."""
        self.leave(key, host)
        host.place, host.reason = Place.PARKED, reason
        self.txn.put(key, reason.encode(), db=self.db["parked"])
        self._count_put_off(host, 1)

    def make_ready(self, key: bytes, host: HostState) -> None:
        """Put a host among the ready ones, once for each level it has work in."""
        heads = self.heads(key)
        self.leave(key, host)
        if not heads:
            return
        count = self.domain_count(host.domain)
        host.ready = [order.ready_key(count, head) for head in heads]
        for place in host.ready:
            self.txn.put(place + key, b"", db=self.db["ready"])
        host.place = Place.READY
        self.totals.hosts_ready += 1

    def lease(self, key: bytes, host: HostState, token: int) -> None:
        """Put a host among the leased ones."""
        self.leave(key, host)
        host.place, host.token = Place.LEASED, token
        self.totals.hosts_leased += 1

    def rest(self, key: bytes, host: HostState) -> None:
        """Put a free host where it belongs: waiting until it may be asked, or idle when it has no work."""
        if sum(host.queued) or self.first_robots(key):
            self.wait(key, host, host.free_at)
        else:
            self.leave(key, host)

    def _count_put_off(self, host: HostState, sign: int) -> None:
        if host.reason:
            total = self.totals.put_off.get(host.reason, 0) + sign * max(1, sum(host.queued))
            self.totals.put_off[host.reason] = max(0, total)

    # Queues

    def heads(self, key: bytes) -> list[bytes]:
        """The first queue place of each level that a host has work in; robots.txt counts as immediate work."""
        robots = self.first_robots(key)
        if robots is not None:
            return [order.queue_key(0, 0, robots[1].url, bytes(8), self.policy.random_seed)]
        heads: list[bytes] = []
        with self.txn.cursor(db=self.db["queue"]) as cursor:
            found = cursor.set_range(key)
            while found:
                place = cursor.key()
                if place[:HOST_KEY_BYTES] != key:
                    break
                heads.append(place[HOST_KEY_BYTES:])
                found = cursor.set_range(key + bytes((place[HOST_KEY_BYTES] + 1,)))
        return heads

    def first_robots(self, key: bytes) -> tuple[bytes, RobotsEntry] | None:
        """The robots.txt that waits in this host's queue."""
        with self.txn.cursor(db=self.db["robots"]) as cursor:
            if cursor.set_range(key) and cursor.key()[:HOST_KEY_BYTES] == key:
                return cursor.key(), read_robots(cursor.value())
        return None

    def enqueue(self, key: bytes, host: HostState, place: bytes) -> None:
        """Add a URL's place to a host's queue. The host's own place is the caller's business."""
        self.txn.put(key + place, b"", db=self.db["queue"])
        self._shift(host, place[0], 1)

    def dequeue(self, key: bytes, host: HostState, place: bytes) -> bool:
        """Take a URL's place out of a host's queue."""
        if self.txn.delete(key + place, db=self.db["queue"]):
            self._shift(host, place[0], -1)
            return True
        return False

    def _shift(self, host: HostState, level: int, by: int) -> None:
        self._count_put_off(host, -1)
        host.queued[level] += by
        self.totals.queued[level] += by
        self._count_put_off(host, 1)

    def place_of(self, host: HostState, record: UrlRecord, fingerprint: bytes) -> bytes:
        """Where a URL stands in its host's queue."""
        return order.queue_key(
            record.level, record.depth, f"{host.name} {record.tail}", fingerprint, self.policy.random_seed
        )

    # Waiting for a time

    def delay(self, url_key: bytes, record: UrlRecord, until: int, reason: str) -> None:
        """Put a URL into the time index."""
        record.due_at, record.reason = until, reason
        self.txn.put(time_key(until) + url_key, reason.encode(), db=self.db["due"])
        self.totals.delayed[reason] = self.totals.delayed.get(reason, 0) + 1

    def end_delay(self, url_key: bytes, record: UrlRecord) -> None:
        """Take a URL out of the time index."""
        raw = self.txn.pop(time_key(record.due_at) + url_key, db=self.db["due"])
        if raw is not None:
            reason = raw.decode()
            self.totals.delayed[reason] = max(0, self.totals.delayed.get(reason, 0) - 1)
        record.due_at = 0

    # URLs

    def url(self, url_key: bytes) -> UrlRecord:
        """The record of a URL that must exist."""
        raw = self.txn.get(url_key, db=self.db["urls"])
        if raw is None:
            raise KeyError(url_key)
        return read_url(raw)

    def find(self, key_prefix: bytes) -> tuple[bytes, UrlRecord] | None:
        """The record whose key begins with a host key and eight bytes of fingerprint."""
        with self.txn.cursor(db=self.db["urls"]) as cursor:
            if cursor.set_range(key_prefix) and cursor.key()[: len(key_prefix)] == key_prefix:
                return cursor.key(), read_url(cursor.value())
        return None

    def url_at(self, key_prefix: bytes) -> str:
        """The URL whose key begins so; empty when there is none."""
        found = self.find(key_prefix) if key_prefix else None
        return "" if found is None else lengthen(found[1].tail, self.known_host(key_prefix[:HOST_KEY_BYTES]).name)

    def put_url(self, url_key: bytes, record: UrlRecord) -> None:
        """Write a URL's record."""
        self.txn.put(url_key, pack(record), db=self.db["urls"])
