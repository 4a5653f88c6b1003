"""URLs that are met again, and those that come back: a second link, a new cycle, a retry whose time has come."""

from __future__ import annotations

from nephila.frontier import order
from nephila.frontier.lifecycle import State, may_return
from nephila.frontier.score import level_of
from nephila.model.task import Candidate, Level
from nephila.urls import Address

from . import shelving
from .book import Book
from .coding import read_lease, read_url
from .links import Writes, risen
from .marks import DEPTH_IN_PLACE, PARKED, PLACE_END, QUEUED, queued_mark, rank_in
from .queueing import enqueue_record, move, take_away, uncount
from .records import RANK_AT, HostState, Place, UrlRecord
from .rising import Move, bettered, is_as_fresh
from .scoring import NOMINAL, score_of, standing_of
from .sections import count_out
from .tables import HOST_KEY_BYTES, pending_key
from .waking import is_behind, wake


def meet_again(
    book: Book,
    url_key: bytes,
    raw: bytes,
    candidate: Candidate,
    part: tuple[int, ...] | None,
    salt: int,
    writes: Writes,
) -> int:
    """What a second meeting brings that needs a closer look (see `links`); 1 when the URL still cools.

    That is a better place, or another visit. `part` is what the link brings a known URL.
    """
    if raw[0] == PARKED:
        _take_off_shelf(book, url_key, raw, candidate)
        return 0
    if raw[0] == QUEUED:
        _move(book, url_key, raw, candidate, risen(part, rank_in(raw), candidate, salt), writes)
        return 0
    rank = raw[RANK_AT]
    record = read_url(raw)
    record.rank = risen(part, rank, candidate, salt)
    return _meet_record(book, url_key[:HOST_KEY_BYTES], url_key, record, candidate, risen=record.rank != rank)


def _take_off_shelf(book: Book, url_key: bytes, raw: bytes, candidate: Candidate) -> None:
    """A parked URL is wanted now."""
    key = url_key[:HOST_KEY_BYTES]
    place = shelving.fetch_from_shelf(book, key, url_key, raw, candidate)
    if place is not None:
        host = book.known_host(key)
        if host.over and host.place is Place.PARKED and not book.token_of(key):
            book.rest(key, host)
        else:
            wake(book, key, host, (place,))


def _move(book: Book, url_key: bytes, raw: bytes, candidate: Candidate, rank: int, writes: Writes) -> None:
    """Give a URL that waits the place it deserves by now: found nearer to a seed, more urgent, or of a higher rank.

    What a lease covers stays where it was claimed. The rest of a leased host's queue moves like any other: most links
    of a page lead to its own host, and they are settled under its lease. Lane and step are compared as they are packed.
    """
    address, depth, level, _, bonus = candidate
    key, place = url_key[:HOST_KEY_BYTES], raw[1:PLACE_END]
    host, held = book.known_host(key), place[DEPTH_IN_PLACE]
    fresh = standing_of(book, key, host, rank, min(depth, held), bonus, level)
    better = bettered(fresh, place)
    if better == place[: len(better)] or _is_leased(book, key, address.fingerprint):
        if rank != raw[PLACE_END]:
            writes.append((url_key, queued_mark(place, rank)))
        return
    scored_now = level is None and is_as_fresh(better, fresh)
    give_place(book, (url_key, raw, candidate, host, better, scored_now, rank), writes)


def give_place(book: Book, one: Move, writes: Writes) -> None:
    """Let a URL that waits stand where it deserves to by now."""
    url_key, raw, candidate, host, better, scored_now, rank = one
    key, place = url_key[:HOST_KEY_BYTES], raw[1:PLACE_END]
    found, admitted_s = move(book, key, host, place, candidate[0][3], better, rank)
    if better[0] != place[0]:  # else it is counted where it was
        uncount(book, key, host, place[0], admitted_s)
        book.count_queued(host, better[0], 1, admitted_s)
    writes.append((url_key, queued_mark(found, rank)))
    if not (scored_now and is_behind(book, host, (found,))):
        wake(book, key, host, (found,))


def _is_leased(book: Book, key: bytes, fingerprint: bytes) -> bool:
    """Whether a queued URL is one of those that its host's lease covers."""
    token = book.token_of(key)
    if not token:
        return False
    covered = book.covered.get(token)
    if covered is None:
        raw = book.txn.get(token.to_bytes(8, "big"), db=book.db["leases"])
        covered = book.covered[token] = [] if raw is None else [entry[-16:] for entry in read_lease(raw).entries]
    return fingerprint in covered


def _meet_record(
    book: Book, key: bytes, url_key: bytes, record: UrlRecord, candidate: Candidate, *, risen: bool
) -> int:
    """A URL that has a record is met again; 1 when it may not come back yet. What has risen of it must be written."""
    host = book.known_host(key)
    urgent = candidate.level is Level.IMMEDIATE
    returns = may_return(record.state, url_cycle=record.cycle, cycle=book.totals.cycle)
    cools = returns and not urgent and cooling_s(book, record) > 0
    if (returns or (urgent and record.state is not State.QUEUED)) and not cools:
        wake(book, key, host, (requeue(book, key, host, url_key, record, candidate.level),))
        return 0
    better = candidate.depth < record.depth or (candidate.level is not None and candidate.level < record.level)
    if record.state is State.QUEUED and better and not book.token_of(key):
        take_away(book, key, record.place, url_key[HOST_KEY_BYTES + 1 :] + record.suffix)
        uncount(book, key, host, order.read_place(record.place).lane, record.admitted_s)
        count_out(book, key, host, record.tail.encode())
        record.depth = min(record.depth, candidate.depth)
        record.level = min(record.level, candidate.level) if candidate.level is not None else record.level
        points = NOMINAL[record.level] if urgent else score_of(book, key, host, record.rank, record.depth)
        place = enqueue_record(book, key, host, url_key, record, points)
        book.put_url(url_key, record)
        wake(book, key, host, (place,))
    elif risen:
        book.put_url(url_key, record)
    return int(cools)


def renew(book: Book, address: Address, said_s: int) -> bool:
    """Queue a fetched URL that is said to have changed after its last visit, unless it cools; whether it was."""
    url_key = book.tables.url_key(address.host, address.fingerprint)
    raw = book.txn.get(url_key)
    if raw is None or raw[0] in {PARKED, QUEUED}:
        return False
    record = read_url(raw)
    if record.state is not State.DONE or record.fate is None or record.fate.settled_s >= said_s:
        return False
    if cooling_s(book, record) > 0:
        return False
    key = url_key[:HOST_KEY_BYTES]
    host = book.known_host(key)
    wake(book, key, host, (requeue(book, key, host, url_key, record),))
    return True


def cooling_s(book: Book, record: UrlRecord) -> float:
    """Seconds until a URL may be queued again (S5)."""
    if record.fate is None or not record.fate.settled_s:
        return 0.0
    cooldown_s = book.policy.settings.cooldown_s
    # Where the wall clock was set back, it has cooled since just now.
    return min(cooldown_s, record.fate.settled_s + cooldown_s - book.wall_s)


def requeue(
    book: Book, key: bytes, host: HostState, url_key: bytes, record: UrlRecord, level: Level | None = None
) -> bytes:
    """Put a URL that had ended, or that waited for a time, back into its queue; returns its place."""
    end_state(book, url_key, record)
    record.cycle, record.retries, record.hops = book.totals.cycle, 0, 0
    record.level = Level.LOW  # what was urgent once is not urgent for ever: its class is found anew
    if record.fate is not None:
        record.fate.trail, record.fate.reason, record.fate.detail = (), "", ""
    return put_back(book, key, host, url_key, record, level)


def put_back(
    book: Book, key: bytes, host: HostState, url_key: bytes, record: UrlRecord, level: Level | None = None
) -> bytes:
    """Queue a URL that has a record, by its present score (or class); returns its place."""
    points = score_of(book, key, host, record.rank, record.depth, 0, record.fate)
    if level is None and record.level is not Level.IMMEDIATE:
        level = level_of(book.policy.priority, points)
    record.level = record.level if level is None else level
    if record.level is Level.IMMEDIATE:
        points = NOMINAL[Level.IMMEDIATE]
    record.state = State.QUEUED
    place = enqueue_record(book, key, host, url_key, record, points)
    book.put_url(url_key, record)
    return place


def end_state(book: Book, url_key: bytes, record: UrlRecord) -> None:
    """A URL leaves the state it is in: it is counted there no longer."""
    book.end_delay(url_key, record)
    match record.state:
        case State.DEAD:
            book.txn.delete(url_key, db=book.db["dead"])
            book.totals.dead -= 1
        case State.DROPPED:
            book.totals.dropped -= 1
        case State.DONE:
            _uncount_capture(book, record)
        case State.QUEUED | State.DELAYED:
            pass


def _uncount_capture(book: Book, record: UrlRecord) -> None:
    """Count a page no longer as completed or pending; a capture that may never become durable is forgotten."""
    fate = record.fate
    capture = fate.capture if fate else None
    if fate and capture and book.txn.delete(pending_key(capture.segment, capture.end), db=book.db["pending"]):
        book.totals.pending -= 1
        fate.capture = None
    else:
        book.totals.completed -= 1
