"""settle: end tasks under their token, links included, in one act.

A settle with an old token changes nothing. A page that is done is pending on its archive segment until `confirm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from nephila.frontier.lifecycle import after
from nephila.interfaces.frontier import Admission, Settled
from nephila.model.errors import FrontierError
from nephila.model.outcome import (
    Dead,
    DeferReason,
    Deferred,
    Done,
    Dropped,
    OriginRules,
    Release,
    Respelled,
    Retry,
    RulesKind,
    RulesLearned,
    RulesMoved,
    Settlement,
)
from nephila.model.task import PageTask, RobotsTask, Token
from nephila.urls import registrable_domain

from .admission import admit, note_refused
from .book import Book, pack, read_lease
from .claiming import origin_note, put_robots, robots_key
from .records import CaptureNote, HostState, LeaseRecord, OriginNote, Place, RobotsEntry, UrlRecord
from .tables import HOST_KEY_BYTES, pending_key, shorten

MEAN_WEIGHT = 8
"""The host's mean answer time moves by an eighth of each new one, as TCP's round-trip estimate does (RFC 6298)."""


def settle(book: Book, token: Token, settlements: Sequence[Settlement], release: Release | None) -> Settled:
    """End tasks of a lease; with `release`, end the lease and let the host rest."""
    token_key = token.to_bytes(8, "big")
    raw = book.txn.get(token_key, db=book.db["leases"])
    if raw is None:
        return Settled(accepted=False)
    lease = read_lease(raw)
    host = book.known_host(lease.host_key)
    places = _places(lease, settlements)
    if host.token != token or places is None:
        return Settled(accepted=False)
    added = known = cooling = 0
    for settlement, place in zip(settlements, places, strict=True):
        via = _end(book, lease, host, settlement, place)
        admission = admit(book, settlement.links, via)
        note_refused(book, settlement.refused, via)
        added, known, cooling = added + admission.added, known + admission.known, cooling + admission.cooling
    if release is None:
        book.txn.put(token_key, pack(lease), db=book.db["leases"])
    else:
        book.txn.delete(token_key, db=book.db["leases"])
        _free(book, lease.host_key, host, release)
    return Settled(True, Admission(added, known, cooling))


def _places(lease: LeaseRecord, settlements: Sequence[Settlement]) -> list[bytes] | None:
    """The queue place of each task; None when one of them is not (any more) this lease's to settle."""
    places: list[bytes] = []
    for settlement in settlements:
        match settlement.task:
            case PageTask() as task:
                prefix = task.fingerprint[:8]
                place = next((entry for entry in lease.entries if entry[-8:] == prefix), None)
                if place is None or place in places:
                    return None
                places.append(place)
            case RobotsTask() as task:
                if lease.origin != task.origin:
                    return None
                places.append(b"")
    return places


def _end(book: Book, lease: LeaseRecord, host: HostState, settlement: Settlement, place: bytes) -> bytes:
    """Apply one outcome; returns the key under which its links were found."""
    key = lease.host_key
    match settlement.task:
        case PageTask() as task:
            url_key = key + task.fingerprint
            record = book.url(url_key)
            lease.entries.remove(place)
            _end_page(book, key, host, url_key, record, settlement, place)
            return url_key[: HOST_KEY_BYTES + 8]
        case RobotsTask() as task:
            lease.origin = ""
            _end_robots(book, key, task, settlement)
            return b""


def _end_page(
    book: Book, key: bytes, host: HostState, url_key: bytes, record: UrlRecord, settlement: Settlement, place: bytes
) -> None:
    outcome, totals = settlement.outcome, book.totals
    record.state = after(record.state, outcome)
    record.settled_s = book.wall_s
    record.cycle = totals.cycle  # it may have been queued in an earlier one; this is the cycle that it was asked in
    record.reason = record.detail = ""
    book.dequeue(key, host, place)
    match outcome:
        case Done():
            _store(book, url_key, record, outcome)
            host.fetched += 1
            if outcome.lied:
                host.lied_in = totals.cycle
            if outcome.page:
                host.fetched_in_cycle += 1
                book.count_page(host.domain)
                totals.pages += 1
                totals.pages_in_cycle += 1
        case Retry():
            record.retries += 1
            record.detail = f"{outcome.kind}: {outcome.detail}" if outcome.detail else outcome.kind
            book.delay(url_key, record, book.now + outcome.wait_ms, DeferReason.RETRY)
        case Deferred():
            book.delay(url_key, record, book.now + outcome.wait_ms, outcome.reason)
        case Dropped():
            record.reason, record.detail = outcome.reason, outcome.detail
            totals.dropped += 1
        case Dead():
            record.reason, record.detail = outcome.kind, outcome.detail
            book.txn.put(url_key, b"", db=book.db["dead"])
            totals.dead += 1
        case Respelled():
            record.trail = (*record.trail, settlement.task.url)
            record.hops += 1
            record.tail = shorten(outcome.address.url, host.name)
            book.enqueue(key, host, book.place_of(host, record, url_key[HOST_KEY_BYTES:]))
        case RulesLearned() | RulesMoved():
            raise FrontierError("a page cannot end with the rules of an origin")
        case _:
            assert_never(outcome)
    book.put_url(url_key, record)


def _store(book: Book, url_key: bytes, record: UrlRecord, done: Done) -> None:
    old = record.capture
    kept = done.digest or (old.digest if old and not done.changed else b"")
    record.capture = CaptureNote(
        status=done.status,
        segment=done.ref.segment,
        offset=done.ref.offset,
        end=done.ref.end,
        digest=kept,
        etag=done.validators.etag,
        last_modified=done.validators.last_modified,
        changed_at=book.wall_s if done.changed or old is None else old.changed_at,
        count=old.count + 1 if old else 1,
        page=done.page,
    )
    book.txn.put(pending_key(done.ref.segment, done.ref.end), url_key, db=book.db["pending"])
    book.totals.pending += 1


def _end_robots(book: Book, key: bytes, task: RobotsTask, settlement: Settlement) -> None:
    match settlement.outcome:
        case RulesLearned(rules, crawl_delay_ms):
            book.txn.delete(robots_key(key, task.origin), db=book.db["robots"])
            _put_rules(book, rules)
            _wake_origin(book, task.origin, crawl_delay_ms)
        case RulesMoved(origin, address, hops):
            book.txn.delete(robots_key(key, origin), db=book.db["robots"])
            note = origin_note(book, origin) or OriginNote(RulesKind.UNAVAILABLE, 0, 0)
            moved = OriginNote(
                note.kind, note.stored_at, 0, note.status, note.failing_since, note.detail, max(1, book.now)
            )
            book.txn.put(origin.encode(), pack(moved), db=book.db["origins"])
            domain = registrable_domain(address.host)
            target_key = book.tables.host_key(address.host, domain)
            target = book.host_or_new(target_key, address.host, domain)
            put_robots(book, target_key, RobotsEntry(origin, address.url, hops))
            if target.place is not Place.LEASED:
                book.rest(target_key, target)
        case Deferred():
            pass  # stays first in its host's queue
        case other:
            raise FrontierError(f"a robots.txt cannot end as {type(other).__name__}")


def _put_rules(book: Book, rules: OriginRules) -> None:
    note = OriginNote(rules.kind, rules.stored_at, rules.fresh_until, rules.status, rules.failing_since, rules.detail)
    book.txn.put(rules.origin.encode(), pack(note), db=book.db["origins"])
    book.txn.put(rules.origin.encode(), rules.body, db=book.db["rules"])


def _wake_origin(book: Book, origin: str, crawl_delay_ms: int) -> None:
    """Let a host go on that waited for rules which were found on another host."""
    name = origin.split("://", 1)[1].rstrip(".")
    name = name if name.endswith("]") else name.rsplit(":", 1)[0]
    key = book.tables.host_key(name, registrable_domain(name))
    host = book.host(key)
    if host is None or host.place is Place.LEASED:
        return
    if crawl_delay_ms:
        host.crawl_delay_ms = crawl_delay_ms
        host.free_at = max(host.free_at, host.released_at + crawl_delay_ms + 1)
    if host.place is Place.WAITING and host.reason == DeferReason.ROBOTS:
        book.wait(key, host, host.free_at)


def _free(book: Book, key: bytes, host: HostState, release: Release) -> None:
    """Let the host rest."""
    host.delay_ms = release.pace.delay_ms
    host.crawl_delay_ms = release.pace.crawl_delay_ms
    # The answer ended within this millisecond, not at its beginning: round up.
    host.free_at = book.now + release.wait_ms + (release.wait_ms > 0)
    host.released_at, host.slept_ms = book.now, book.timeline.slept_ms
    if release.elapsed_ms:
        host.mean_ms += (release.elapsed_ms - host.mean_ms) // MEAN_WEIGHT if host.mean_ms else release.elapsed_ms
    book.rest(key, host)
    if release.reason is not None and host.place is Place.WAITING:
        book.wait(key, host, host.free_at, release.reason)
