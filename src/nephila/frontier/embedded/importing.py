"""Rows of another engine's frontier, written into a store of our own (see `frontier.moving`).

A batch of rows is one transaction. What counts is counted as the verbs count it, so that counters are true at the end;
the order of a queue is kept: a place is lane, step, depth and tie, and URLs that stood at one place stay together.

What must stay true: the store cannot be opened before the last row is in it (`tables.begin_import`), and every host
rests one full delay from then on: nobody knows who asked it, and when, on the way.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from nephila.engines.disk import LOCAL_DISK
from nephila.frontier import order
from nephila.frontier.health import Health
from nephila.frontier.lifecycle import State
from nephila.frontier.moving import (
    BlockRow,
    CaptureRow,
    CrawlRow,
    DomainRow,
    HostRow,
    MarkRow,
    OriginRow,
    OrphanRow,
    PolicyRow,
    RefusedRow,
    RobotsRow,
    Row,
    Shift,
    TallyRow,
    UrlRow,
    UrlState,
    tally_in,
)
from nephila.frontier.policy import Policy
from nephila.frontier.timeline import Anchor, Timeline
from nephila.frontier.traps import TrapState
from nephila.interfaces.clock import Clock
from nephila.interfaces.recrawl import History
from nephila.model.errors import FrontierError
from nephila.model.outcome import DeferReason, RulesKind
from nephila.model.task import Level
from nephila.urls import Address, registrable_domain

from . import orders
from .book import Book
from .bundle import Entry, Head, fingerprint_of, pack_entry, tail_of
from .coding import pack
from .group import GroupCommitter
from .marks import queued_mark
from .origins import put_note, robots_key
from .queueing import Standing, enqueue
from .records import CaptureNote, Fate, HostState, OriginNote, RefusalNote, RobotsEntry, UrlRecord
from .sections import section_of
from .shelving import NO_GROUP, shelve
from .tables import PREFIX_BYTES, URL, Tables, begin_import, end_import, pending_key, shorten
from .tallies import put_tally
from .writing import EachCommitted

BATCH = 1_000
"""Rows in one transaction."""

_STATES = {
    UrlState.QUEUED: State.QUEUED,
    UrlState.DELAYED: State.DELAYED,
    UrlState.DONE: State.DONE,
    UrlState.DROPPED: State.DROPPED,
    UrlState.DEAD: State.DEAD,
}


def import_into(
    path: Path,
    crawl: CrawlRow,
    rows: Iterable[Row],
    policy: Policy,
    clock: Clock,
    identify: Callable[[str], Address | None],
) -> None:
    """Write a whole frontier into a directory that holds none; `rows` may begin with `crawl`."""
    tables = begin_import(path, map_bytes=policy.settings.map_bytes, secret=int(crawl.secret, 16))
    try:
        timeline = Timeline(clock, _anchor(clock))
        group = GroupCommitter(tables, EachCommitted(tables, LOCAL_DISK, path), timeline, clock, policy, threaded=False)
        shift = Shift(crawl, order.step_ms(policy.priority), ordered=policy.ordered)
        coming = _Arrival(tables, shift, identify)
        group.run_now(lambda book: coming.begin(book, crawl))
        source = iter(rows)
        while batch := list(islice(source, BATCH)):
            group.run_now(lambda book, batch=batch: coming.write(book, batch))  # type: ignore[misc]  # mypy: default of a lambda
        group.run_now(coming.end)
        end_import(tables)
    finally:
        tables.close()


def _anchor(clock: Clock) -> Anchor:
    """A timeline that begins at UTC, so that instants from elsewhere lie on it."""
    wall = clock.wall_ms()
    return Anchor(clock.boot_id(), wall - clock.steady_ms(), wall, wall, 0)


class _Together(NamedTuple):
    """What URLs that follow each other must share to go into one bundle."""

    standing: Standing
    tie: bytes
    hops: int
    cycle: int
    admitted_s: int
    via: str
    shelf: str
    group: str
    rank: int
    """Of what is parked; in the queue each has its own."""


class _Arrival:
    """Writes rows. Between two batches it remembers the host whose rows come."""

    def __init__(self, tables: Tables, shift: Shift, identify: Callable[[str], Address | None]) -> None:
        self._tables = tables
        self._shift = shift
        self._identify = identify
        self._row: HostRow | None = None
        self._key = b""
        self._together: _Together | None = None
        self._waiting: list[tuple[Entry, int]] = []
        self._via: tuple[str, bytes] = ("", b"")

    def begin(self, book: Book, crawl: CrawlRow) -> None:
        """What holds for the crawl as a whole."""
        totals = book.totals
        totals.cycle, totals.cycle_open, totals.covered = crawl.cycle, crawl.cycle_open, crawl.covered
        totals.sweep = b"" if crawl.sweeping else None
        totals.mean_rank, totals.draws, totals.reserved = crawl.mean_rank, crawl.draws, crawl.reserved
        totals.next_token = crawl.tokens + 1
        totals.pages, totals.pages_in_cycle = crawl.pages, crawl.pages_in_cycle

    def write(self, book: Book, batch: Iterable[Row]) -> None:
        """Write a batch."""
        for row in batch:
            if not isinstance(row, UrlRow):
                self._flush(book)
            self._write(book, row)
        self._flush(book)

    def end(self, book: Book) -> None:
        """The last host is whole, too."""
        self._end_host(book)

    def _write(self, book: Book, row: Row) -> None:
        match row:
            case UrlRow():
                self._url(book, row)
            case HostRow():
                self._end_host(book)
                self._begin_host(book, row)
            case DomainRow():
                self._end_host(book)
                self._domain(book, row)
            case RobotsRow(origin, url, hops):
                book.txn.put(robots_key(self._key, origin), pack(RobotsEntry(origin, url, hops)))
                book.known_host(self._key).robots += 1
            case TallyRow():
                put_tally(book, self._key, book.known_host(self._key), tally_in(row), TrapState.NORMAL)
            case _:
                self._write_apart(book, row)

    def _write_apart(self, book: Book, row: Row) -> None:
        """What belongs to no host."""
        match row:
            case OriginRow():
                _put_origin(book, row)
            case RefusedRow():
                self._refused(book, row)
            case PolicyRow(domain, policy):
                orders.set_policy(book, domain, policy)
            case BlockRow(block):
                orders.block(book, block)
            case MarkRow(segment, upto):
                book.txn.put(segment.encode(), upto.to_bytes(8, "big"), db=book.db["marks"])
            case OrphanRow(segment, offset):
                book.txn.put(pending_key(segment, offset), b"", db=book.db["orphans"])
            case _:
                pass  # the crawl was written at the beginning, its scope is the directory's

    # Domains and hosts

    def _domain(self, book: Book, row: DomainRow) -> None:
        domain = book.domain(book.tables.domain_key(row.name), row.name)
        domain.pages, domain.hosts, domain.hosts_over, domain.useful = row.pages, row.hosts, row.hosts_over, row.useful
        domain.referrers, domain.queued, domain.paused_until = row.referrers, row.looked_for, row.paused_until_at
        domain.health = Health(bytes.fromhex(row.window), row.server_errors, row.lowered, row.successes)
        book.totals.domains += row.pages > 0
        book.totals.lowered += row.lowered > 0

    def _begin_host(self, book: Book, row: HostRow) -> None:
        self._row, self._key = row, book.tables.host_key(row.name)
        if book.host(self._key) is not None:
            raise FrontierError(f"the exported frontier names the host {row.name} twice", "export it again")
        book.domain(self._key, registrable_domain(row.name))
        host = book.host_or_new(self._key, row.name)
        host.fetched, host.cycle, host.fetched_in_cycle = row.fetched, row.cycle, row.fetched_in_cycle
        host.lied_in, host.delay_ms, host.crawl_delay_ms, host.mean_ms = (
            row.lied_in,
            row.delay_ms,
            row.crawl_delay_ms,
            row.mean_ms,
        )
        host.released_at, host.free_at, host.slept_ms = row.released_at, row.free_at, book.timeline.slept_ms
        host.work_since, host.trap_at = row.work_since_at, row.trap_at
        host.admitted, host.fresh, host.referrers = row.admitted, row.fresh, row.referrers
        host.over, host.outgrown = row.over, row.outgrown
        book.totals.outgrown += row.outgrown

    def _end_host(self, book: Book) -> None:
        """All of a host is there: it rests, or is put off as it was."""
        row, self._row = self._row, None
        if row is None:
            return
        key, host = self._key, book.known_host(self._key)
        host.free_at = max(host.free_at, book.now + book.delay_of(key, host) + 1)
        if row.parked and row.reason:
            book.park(key, host, row.reason)
        elif row.reason and row.until_at:
            book.wait(key, host, max(row.until_at, host.free_at), row.reason)
        else:
            book.rest(key, host)

    # URLs

    def _url(self, book: Book, row: UrlRow) -> None:
        book.totals.urls += 1
        if row.asked:
            self._flush(book)
            self._record(book, row)
            return
        standing = Standing(row.lane, self._shift.step(row.step), row.depth)
        rank = row.rank if row.shelf else 0
        like = _Together(
            standing, bytes.fromhex(row.tie), row.hops, row.cycle, row.admitted_s, row.via, row.shelf, row.group, rank
        )
        if like != self._together:
            self._flush(book)
            self._together = like
        self._waiting.append((pack_entry(self._tail(row).encode(), bytes.fromhex(row.fp)), row.rank))

    def _tail(self, row: UrlRow) -> str:
        if self._row is None:
            raise FrontierError(f"the exported frontier has a URL without its host: {row.url}", "export it again")
        return shorten(row.url, self._row.name)

    def _flush(self, book: Book) -> None:
        """Put what follows each other into the queue, or onto its shelf."""
        like, waiting = self._together, self._waiting
        self._together, self._waiting = None, []
        if like is None:
            return
        key, host = self._key, book.known_host(self._key)
        head = Head(like.admitted_s, like.cycle, waiting[0][1], like.hops, self._via_key(like.via))
        if like.shelf:
            self._shelve(book, key, host, like, head, [entry for entry, _ in waiting])
            return
        ranks = dict(waiting)
        writes: list[tuple[bytes, bytes]] = []
        entries = [entry for entry, _ in waiting]
        for place, chunk in enqueue(book, key, host, like.standing, head, entries, like.tie):
            writes += [
                (key + URL + fingerprint_of(entry)[:PREFIX_BYTES], queued_mark(place, ranks[entry])) for entry in chunk
            ]
        book.cursor.putmulti(writes)

    def _shelve(
        self, book: Book, key: bytes, host: HostState, like: _Together, head: Head, entries: list[Entry]
    ) -> None:
        reason, place = DeferReason(like.shelf), order.pack_place(*like.standing, like.tie)
        if reason is DeferReason.TRAP:
            shelve(book, key, host, reason, bytes.fromhex(like.group), place, head, entries)
        elif not like.group:
            shelve(book, key, host, reason, NO_GROUP, place, head, entries)
        else:
            for entry in entries:
                shelve(book, key, host, reason, section_of(tail_of(entry)), place, head, [entry])

    def _via_key(self, via: str) -> bytes:
        """The key of the page that a URL was found on; of those that follow each other it is mostly the same."""
        if via != self._via[0]:
            address = self._identify(via)
            key = b"" if address is None else self._tables.url_key(address.host, address.fingerprint)
            self._via = (via, key)
        return self._via[1]

    def _record(self, book: Book, row: UrlRow) -> None:
        key, host = self._key, book.known_host(self._key)
        fingerprint, state = bytes.fromhex(row.fp), _STATES[row.state]
        url_key = key + URL + fingerprint[:PREFIX_BYTES]
        record = UrlRecord(
            state,
            row.rank,
            Level(row.level),
            row.depth,
            row.hops,
            row.retries,
            row.cycle,
            row.admitted_s,
            self._tail(row),
            fingerprint[PREFIX_BYTES:],
            self._via_key(row.via),
            fate=_fate(row),
        )
        if state is State.QUEUED:
            head = Head(row.admitted_s, row.cycle, row.rank, row.hops, record.via)
            standing = Standing(row.lane, self._shift.step(row.step), row.depth)
            entry = pack_entry(record.tail.encode(), fingerprint)
            ((record.place, _),) = enqueue(book, key, host, standing, head, [entry], bytes.fromhex(row.tie))
        if row.due_at:
            book.delay(url_key, record, row.due_at, row.due_reason)
        self._count(book, url_key, row, record)
        book.put_url(url_key, record)

    def _count(self, book: Book, url_key: bytes, row: UrlRow, record: UrlRecord) -> None:
        totals, capture = book.totals, row.capture
        totals.gone += row.gone
        match record.state:
            case State.DONE:
                if capture is not None and capture.pending:
                    book.txn.put(pending_key(capture.segment, capture.end), url_key, db=book.db["pending"])
                    totals.pending += 1
                else:
                    totals.completed += 1
            case State.DROPPED:
                totals.dropped += 1
            case State.DEAD:
                totals.dead += 1
                book.txn.put(url_key, b"", db=book.db["dead"])
            case _:
                pass

    def _refused(self, book: Book, row: RefusedRow) -> None:
        url_key = book.tables.url_key(row.host, bytes.fromhex(row.fp))
        note = RefusalNote(row.url, row.reason, row.detail, row.at_s, self._via_key(row.via))
        if book.txn.put(url_key, pack(note), db=book.db["refused"], overwrite=False):
            book.totals.refused += 1


def _put_origin(book: Book, row: OriginRow) -> None:
    name = row.origin.encode()
    note = OriginNote(
        RulesKind(row.rules),
        row.stored_at,
        row.fresh_until_at,
        row.status,
        row.failing_since_at,
        row.detail,
        row.moved_at,
    )
    put_note(book, row.origin, note)
    body = b64decode(row.body)
    if body:
        book.txn.put(name, body, db=book.db["rules"])


def _fate(row: UrlRow) -> Fate | None:
    """What came of asking for it; a URL that was only put back has none."""
    if not (row.settled_s or row.fetched or row.capture or row.reason or row.trail):
        return None
    history = History(*row.history) if row.history else History()
    note = None if row.capture is None else _note(row.capture)
    return Fate(row.settled_s, row.reason, row.detail, note, row.trail, history, row.fetched, row.gone)


def _note(capture: CaptureRow) -> CaptureNote:
    return CaptureNote(
        capture.status,
        capture.segment,
        capture.offset,
        capture.end,
        bytes.fromhex(capture.digest),
        capture.etag,
        capture.last_modified,
        capture.changed_s,
        capture.count,
        capture.page,
    )
