"""admit: add what is new, know what is known, remember what was refused.

The hot loop of the frontier: sixty links a page. One look-up decides; only what is new is packed and written, and each
host is touched once however many of its URLs came.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nephila.frontier.lifecycle import State, may_return
from nephila.interfaces.frontier import Admission
from nephila.model.task import Candidate, Refusal
from nephila.urls import registrable_domain

from .book import Book, pack, read_url
from .records import HostState, Place, RefusalNote, UrlRecord
from .tables import pending_key, shorten


def admit(book: Book, candidates: Sequence[Candidate], via: bytes = b"") -> Admission:
    """Add the candidates that are new; `via` is the key of the page they were found on."""
    added = known = cooling = 0
    touched: dict[bytes, list[bytes]] = {}
    get, urls, host_key = book.txn.get, book.db["urls"], book.tables.host_key
    for candidate in candidates:
        address = candidate.address
        domain = registrable_domain(address.host)
        key = host_key(address.host, domain)
        url_key = key + address.fingerprint
        raw = get(url_key, db=urls)
        if raw is None:
            host = book.host_or_new(key, address.host, domain)
            record = _new_record(book, candidate, host, via)
            place = book.place_of(host, record, address.fingerprint)
            book.enqueue(key, host, place)
            book.put_url(url_key, record)
            touched.setdefault(key, []).append(place)
            added += 1
            continue
        known += 1
        verdict = _meet_again(book, candidate, key, url_key, read_url(raw))
        if verdict is None:
            cooling += 1
        elif verdict:
            touched.setdefault(key, []).append(verdict)
    for key, places in touched.items():
        wake(book, key, book.known_host(key), places)
    return Admission(added, known, cooling)


def _new_record(book: Book, candidate: Candidate, host: HostState, via: bytes) -> UrlRecord:
    return UrlRecord(
        State.QUEUED,
        candidate.level,
        candidate.depth,
        candidate.hops,
        0,
        book.totals.cycle,
        book.wall_s,
        shorten(candidate.address.url, host.name),
        via,
    )


def _meet_again(book: Book, candidate: Candidate, key: bytes, url_key: bytes, record: UrlRecord) -> bytes | None:
    """What a second meeting brings: the place where it is queued anew, b"" where it is not, None while it cools."""
    host = book.known_host(key)
    fingerprint = candidate.address.fingerprint
    if may_return(record.state, url_cycle=record.cycle, cycle=book.totals.cycle):
        if cooling_s(book, record) > 0:
            return None
        return requeue(book, key, host, url_key, record)
    if record.state is not State.QUEUED:
        return b""
    if candidate.level >= record.level and candidate.depth >= record.depth:
        return b""
    # Found nearer to a seed, or more urgent, while it still waits: it moves up. A leased one stays as it was claimed.
    place = book.place_of(host, record, fingerprint)
    if host.place is Place.LEASED or not book.dequeue(key, host, place):
        return b""
    record.level = min(record.level, candidate.level)
    record.depth = min(record.depth, candidate.depth)
    book.enqueue(key, host, book.place_of(host, record, fingerprint))
    book.put_url(url_key, record)
    if host.place is Place.READY:
        book.make_ready(key, host)  # the place that it left may have been the head of its level
    return b""


def cooling_s(book: Book, record: UrlRecord) -> float:
    """Seconds until a URL may be queued again (S5)."""
    if not record.settled_s:
        return 0.0
    cooldown_s = book.policy.settings.cooldown_s
    # Where the wall clock was set back, it has cooled since just now.
    return min(cooldown_s, record.settled_s + cooldown_s - book.wall_s)


def requeue(book: Book, key: bytes, host: HostState, url_key: bytes, record: UrlRecord) -> bytes:
    """Put a URL that had ended back into its queue for this cycle; returns its place."""
    if record.state is State.DEAD:
        book.txn.delete(url_key, db=book.db["dead"])
        book.totals.dead -= 1
    elif record.state is State.DROPPED:
        book.totals.dropped -= 1
    elif record.state is State.DONE:
        _uncount_capture(book, record)
    record.state, record.cycle, record.retries, record.hops = State.QUEUED, book.totals.cycle, 0, 0
    record.trail, record.reason, record.detail = (), "", ""
    place = book.place_of(host, record, url_key[len(key) :])
    book.enqueue(key, host, place)
    book.put_url(url_key, record)
    return place


def _uncount_capture(book: Book, record: UrlRecord) -> None:
    """Count a page no longer as completed or pending; a capture that may never become durable is forgotten."""
    capture = record.capture
    if capture and book.txn.delete(pending_key(capture.segment, capture.end), db=book.db["pending"]):
        book.totals.pending -= 1
        record.capture = None
    else:
        book.totals.completed -= 1


def wake(book: Book, key: bytes, host: HostState, places: Iterable[bytes]) -> None:
    """Put a host where it belongs after work was added to its queue."""
    match host.place:
        case Place.IDLE:
            book.wait(key, host, max(host.free_at, 0))
        case Place.READY:
            # Keep the ready index exact: a better head, or the first one of another level, moves the host.
            best = {place[0]: place[5:] for place in host.ready}
            if any(place[0] not in best or place[1:] < best[place[0]] for place in places):
                book.make_ready(key, host)
        case Place.PARKED:
            if host.cycle < book.totals.cycle:
                book.wait(key, host, host.free_at)
        case Place.WAITING | Place.LEASED:
            pass


def note_refused(book: Book, refused: Sequence[Refusal], via: bytes = b"") -> None:
    """Remember refusals for `why`, each URL once, up to the limit."""
    limit = book.policy.settings.max_refusals
    for refusal in refused:
        if book.totals.refused >= limit:
            return
        address = refusal.address
        url_key = book.tables.host_key(address.host, registrable_domain(address.host)) + address.fingerprint
        note = RefusalNote(address.url, refusal.reason, refusal.detail, book.wall_s, via)
        if book.txn.put(url_key, pack(note), db=book.db["refused"], overwrite=False):
            book.totals.refused += 1
