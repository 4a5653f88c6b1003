"""The embedded frontier counted anew: what its counters and indexes claim, held against what is in its tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from nephila.frontier import order
from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.embedded.book import Book, read_lease, read_url, time_key
from nephila.frontier.embedded.records import HostState, Place, UrlRecord
from nephila.frontier.embedded.tables import HOST_KEY_BYTES, pending_key
from nephila.frontier.lifecycle import State


@dataclass(frozen=True)
class Tables:
    """Everything that is stored, decoded."""

    book: Book
    hosts: dict[bytes, HostState]
    urls: dict[bytes, UrlRecord]
    queue: list[bytes]

    def keys(self, name: str) -> list[bytes]:
        with self.book.txn.cursor(db=self.book.db[name]) as cursor:
            return [key for key, _ in cursor]


def check_tables(frontier: LmdbFrontier) -> None:
    """Assert that every counter equals a recount and that every index agrees with the records."""
    frontier._group.run_now(_check)


def _check(book: Book) -> None:
    with book.txn.cursor(db=book.db["hosts"]) as cursor:
        hosts = {key: book.known_host(key) for key, _ in cursor}
    with book.txn.cursor(db=book.db["urls"]) as cursor:
        urls = {key: read_url(value) for key, value in cursor}
    with book.txn.cursor(db=book.db["queue"]) as cursor:
        queue = [key for key, _ in cursor]
    tables = Tables(book, hosts, urls, queue)
    _check_urls(tables)
    _check_queue(tables)
    _check_hosts(tables)
    _check_leases(tables)


def _check_urls(tables: Tables) -> None:
    """Every URL is in one state, and in the index of that state alone."""
    book, totals = tables.book, tables.book.totals
    states = Counter(record.state for record in tables.urls.values())
    pending = set(tables.keys("pending"))
    unconfirmed = 0
    reasons: Counter[str] = Counter()
    for url_key, record in tables.urls.items():
        if record.state is State.DELAYED:
            raw = book.txn.get(time_key(record.due_at) + url_key, db=book.db["due"])
            assert raw is not None, "a delayed URL is missing from the time index"
            reasons[raw.decode()] += 1
        if record.state is State.DONE:
            assert record.capture is not None
            unconfirmed += pending_key(record.capture.segment, record.capture.end) in pending
    dead = {url_key for url_key, record in tables.urls.items() if record.state is State.DEAD}
    assert set(tables.keys("dead")) == dead
    assert len(tables.keys("due")) == states[State.DELAYED]
    assert {reason: count for reason, count in totals.delayed.items() if count} == dict(reasons)
    assert (totals.dead, totals.dropped) == (states[State.DEAD], states[State.DROPPED])
    assert totals.pending == len(pending) == unconfirmed
    assert totals.completed == states[State.DONE] - unconfirmed
    assert totals.refused == len(tables.keys("refused"))
    assert totals.domains == len(tables.keys("domains"))


def _check_queue(tables: Tables) -> None:
    """Every queued URL is in its host's queue exactly once, and nothing else is."""
    book = tables.book
    places = {
        url_key[:HOST_KEY_BYTES]
        + book.place_of(tables.hosts[url_key[:HOST_KEY_BYTES]], record, url_key[HOST_KEY_BYTES:])
        for url_key, record in tables.urls.items()
        if record.state is State.QUEUED
    }
    assert set(tables.queue) == places
    levels = Counter((place[:HOST_KEY_BYTES], place[HOST_KEY_BYTES]) for place in tables.queue)
    for key, host in tables.hosts.items():
        assert host.queued == [levels[key, level] for level in range(4)]
    assert book.totals.queued == [sum(host.queued[level] for host in tables.hosts.values()) for level in range(4)]


def _check_hosts(tables: Tables) -> None:
    """A host is in exactly one place, and the index of that place says so."""
    book, totals = tables.book, tables.book.totals
    waiting, ready, parked = set[bytes](), set[bytes](), set[bytes]()
    put_off: Counter[str] = Counter()
    for key, host in tables.hosts.items():
        has_work = bool(sum(host.queued)) or book.first_robots(key) is not None
        assert (host.place is Place.LEASED) == bool(host.token)
        assert bool(host.ready) == (host.place is Place.READY)
        if host.reason:
            put_off[host.reason] += max(1, sum(host.queued))
        match host.place:
            case Place.IDLE:
                assert not has_work, f"{host.name} has work and nobody knows"
            case Place.WAITING:
                waiting.add(time_key(host.next_at) + key)
            case Place.PARKED:
                parked.add(key)
            case Place.READY:
                _check_ready(book, key, host)
                ready.update(place + key for place in host.ready)
            case Place.LEASED:
                pass
    assert set(tables.keys("waiting")) == waiting
    assert set(tables.keys("ready")) == ready
    assert set(tables.keys("parked")) == parked
    places = Counter(host.place for host in tables.hosts.values())
    assert totals.hosts == len(tables.hosts)
    counted = (totals.hosts_waiting, totals.hosts_ready, totals.hosts_leased)
    assert counted == (places[Place.WAITING], places[Place.READY], places[Place.LEASED])
    assert {reason: count for reason, count in totals.put_off.items() if count} == dict(put_off)


def _check_ready(book: Book, key: bytes, host: HostState) -> None:
    """The ready index holds the head of each level; only the domain's count in it may be old."""
    heads = book.heads(key)
    assert heads, f"{host.name} is ready without work"
    assert [(place[0], place[5:]) for place in host.ready] == [(head[0], head[1:]) for head in heads]
    assert all(order.count_in_ready_key(place) <= book.domain_count(host.domain) for place in host.ready)


def _check_leases(tables: Tables) -> None:
    """Leases and leased hosts belong to each other; what a lease covers is still queued."""
    book = tables.book
    leased = {host.token: key for key, host in tables.hosts.items() if host.place is Place.LEASED}
    with book.txn.cursor(db=book.db["leases"]) as cursor:
        leases = {int.from_bytes(key, "big"): read_lease(value) for key, value in cursor}
    assert {token: lease.host_key for token, lease in leases.items()} == leased
    queue = set(tables.queue)
    assert all(lease.host_key + entry in queue for lease in leases.values() for entry in lease.entries)
