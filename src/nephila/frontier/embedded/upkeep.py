"""What keeps the frontier whole: renewing, reaping, confirming, and the sweep that begins a new cycle."""

from __future__ import annotations

from collections.abc import Sequence

from nephila.frontier.lifecycle import State, may_return
from nephila.model.outcome import DeferReason
from nephila.model.record import SegmentId
from nephila.model.task import Token

from .book import Book
from .coding import pack, read_lease, read_url
from .endings import fate_of
from .marks import PARKED
from .records import LeaseRecord, UrlRecord
from .replanning import check_terms
from .returning import cooling_s, end_state, requeue
from .shelving import covers_no_more
from .tables import HOST_KEY_BYTES, URL, pending_key
from .waking import wake

SWEEP_STEP = 500
"""URLs that one claim looks at while a new cycle begins: no claim is O(frontier)."""


def renew(book: Book, tokens: Sequence[Token], lease_ms: int) -> set[Token]:
    """Extend the leases that still exist."""
    kept: set[Token] = set()
    for token in tokens:
        token_key = token.to_bytes(8, "big")
        raw = book.txn.get(token_key, db=book.db["leases"])
        if raw is not None:
            lease = read_lease(raw)
            lease.expires_at = book.now + lease_ms
            book.txn.put(token_key, pack(lease), db=book.db["leases"])
            kept.add(token)
    return kept


def reap(book: Book, *, living: int = 0, holder: int = 0, lent: int = 0, expired_by: int | None = None) -> int:
    """End leases that have expired (or all of holders known to be dead); each host waits a full delay.

    Known to be dead are all but `living`, or `holder` alone. `lent` names a holder of whom only what has expired is
    ended, and nothing of anybody else. `expired_by` is when that was asked, where it is not now.
    """
    expired_by = book.now if expired_by is None else expired_by
    ended: list[tuple[bytes, LeaseRecord]] = []
    with book.txn.cursor(db=book.db["leases"]) as cursor:
        for token_key, raw in cursor:
            lease = read_lease(raw)
            if lent and lease.holder != lent:
                continue
            is_dead = lease.holder == holder if holder else living not in (0, lease.holder)
            if is_dead or (not holder and lease.expires_at <= expired_by):
                ended.append((token_key, lease))
    for token_key, lease in ended:
        book.txn.delete(token_key, db=book.db["leases"])
        key = lease.host_key
        if book.token_of(key) == int.from_bytes(token_key, "big"):
            host = book.known_host(key)
            book.free(key, host)
            # A lease may be taken before its host may be asked: a Retry-After that was not over is kept.
            promised = host.free_at + book.timeline.slept_ms - host.slept_ms
            host.free_at = max(promised, book.now + book.delay_of(key, host) + 1)
            host.released_at, host.slept_ms = book.now, book.timeline.slept_ms
            book.rest(key, host)
    return len(ended)


def confirm(book: Book, segment: SegmentId, upto: int) -> int:
    """Complete the pages that were pending on the bytes before `upto`."""
    first, last = pending_key(segment, 0), pending_key(segment, upto)
    count = 0
    with book.txn.cursor(db=book.db["pending"]) as cursor:
        cursor.set_range(first)
        while first <= cursor.key() <= last:  # there is no key after the last one, which is before all others
            cursor.delete()
            count += 1
    book.txn.put(segment.encode(), upto.to_bytes(8, "big"), db=book.db["marks"])
    book.totals.pending -= count
    book.totals.completed += count
    return count


def lose(book: Book, segment: SegmentId, valid_end: int) -> int:
    """Bytes after `valid_end` of a segment are gone: queue the pages that lay there again."""
    prefix = segment.encode() + b"\0"
    lost: list[bytes] = []
    with book.txn.cursor(db=book.db["pending"]) as cursor:
        found = cursor.set_range(prefix)
        while found and cursor.key().startswith(prefix):
            if int.from_bytes(cursor.key()[-8:], "big") > valid_end:
                lost.append(cursor.value())
            found = cursor.next()
    for url_key in lost:
        key = url_key[:HOST_KEY_BYTES]
        host, record = book.known_host(key), record_at(book, url_key)
        if record.fate and record.fate.capture and record.fate.capture.page:
            book.totals.pages -= 1
            if record.cycle == book.totals.cycle:
                book.totals.pages_in_cycle -= 1
                host.fetched_in_cycle -= host.cycle == record.cycle
        wake(book, key, host, (requeue(book, key, host, url_key, record),))
    return len(lost)


def end_cycle(book: Book) -> None:
    """The cycle has come to its end."""
    book.totals.cycle_open = False


def begin_cycle(book: Book) -> bool:
    """Begin a new cycle: every URL that has ended may be fetched once more. False while the last one is still open."""
    if book.totals.cycle_open:
        return False
    book.totals.cycle_open = True
    book.totals.cycle += 1
    book.totals.sweep = b""
    book.totals.pages_in_cycle = 0
    return True


def sweep(book: Book, step: int = SWEEP_STEP) -> None:
    """Take the sweep of a new cycle a step further: queue URLs that ended in an earlier one."""
    if book.totals.sweep is None:
        return
    ended: list[bytes] = []
    looked_at, at = 0, book.totals.sweep
    with book.txn.cursor(db=book.web) as cursor:
        found = cursor.set_range(at)
        while found and looked_at < step:
            found_key = cursor.key()
            kind = found_key[HOST_KEY_BYTES : HOST_KEY_BYTES + 1]
            if kind < URL:
                found = cursor.set_range(found_key[:HOST_KEY_BYTES] + URL)
            elif kind > URL:
                found = cursor.set_range(found_key[:HOST_KEY_BYTES] + b"\xff")  # the next host
            else:
                looked_at += 1
                if cursor.value()[0] > PARKED:
                    ended.append(found_key)
                found = cursor.next()
        book.totals.sweep = cursor.key() if found else None
    for url_key in ended:
        record = record_at(book, url_key)
        if not may_return(record.state, url_cycle=record.cycle, cycle=book.totals.cycle):
            continue
        key = url_key[:HOST_KEY_BYTES]
        host = book.known_host(key)
        rest_s = cooling_s(book, record)
        if rest_s > 0:
            end_state(book, url_key, record)
            record.state, record.cycle, record.retries, record.hops = State.DELAYED, book.totals.cycle, 0, 0
            fate_of(record).reason = DeferReason.COOLING
            book.delay(url_key, record, book.now + int(rest_s * 1000), DeferReason.COOLING)
            book.put_url(url_key, record)
            if host.reason == DeferReason.HOST_LIMIT:  # what else it has may go on now
                wake(book, key, host)
        else:
            wake(book, key, host, (requeue(book, key, host, url_key, record),))


def record_at(book: Book, url_key: bytes) -> UrlRecord:
    """The record of a URL that must have one."""
    raw = book.txn.get(url_key)
    if raw is None or raw[0] <= PARKED:
        raise KeyError(url_key)
    return read_url(raw)


def unpark(book: Book) -> int:
    """Let parked hosts be judged again: a limit may have been raised since. So may what visits are planned by."""
    check_terms(book)
    over_budget = DeferReason.BUDGET.encode()
    with book.txn.cursor(db=book.db["parked"]) as cursor:
        keys = [key for key, reason in cursor if reason != over_budget]
    for key in keys:
        book.rest(key, book.known_host(key))
    return len(keys)


def next_moment(book: Book) -> int | None:
    """When something can be claimed next on the timeline; 0 when now, None when nothing waits for a time."""
    totals = book.totals
    if totals.hosts_ready or totals.sweep is not None or totals.replanning or covers_no_more(book):
        return 0
    moments: list[int] = []
    for name in ("waiting", "due"):
        with book.txn.cursor(db=book.db[name]) as cursor:
            if cursor.first():
                moments.append(int.from_bytes(cursor.key()[:8], "big"))
    return min(moments, default=None)
