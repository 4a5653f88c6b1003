"""How a queued URL leaves its queue: it gets a record of its own, if it had none, that says what became of it."""

from __future__ import annotations

from nephila.frontier import order
from nephila.frontier.lifecycle import State

from .book import Book
from .coding import read_url
from .marks import DEPTH_IN_PLACE, PARKED, PLACE_END
from .queueing import Work, uncount
from .records import Fate, HostState, UrlRecord
from .sections import count_out
from .tables import PREFIX_BYTES, QUEUE, URL
from .unpacking import take_url
from .waking import look_further

_QUEUED = State.QUEUED


def take_out(book: Book, key: bytes, host: HostState, place: bytes, fingerprint: bytes) -> tuple[bytes, UrlRecord]:
    """Take a URL out of its queue; returns its key and its record, which the caller changes and writes."""
    url_key, bundle_key = key + URL + fingerprint[:PREFIX_BYTES], key + QUEUE + place
    bundle = book.txn.get(bundle_key)
    taken = None if bundle is None else take_url(bundle, fingerprint, key)
    if taken is not None and taken[5] is not None:
        book.txn.put(bundle_key, taken[5])
    elif taken is not None:
        book.txn.delete(bundle_key)
    raw = book.txn.get(url_key)
    lane = place[0]
    if raw is not None and raw[0] > PARKED:
        record = read_url(raw)
        record.place = b""
    else:
        if taken is None or raw is None:
            raise KeyError(url_key)
        tail, admitted_s, cycle, hops, via, _ = taken
        suffix = fingerprint[PREFIX_BYTES:]
        level, depth = order.LEVELS[lane], place[DEPTH_IN_PLACE]
        record = UrlRecord(_QUEUED, raw[PLACE_END], level, depth, hops, 0, cycle, admitted_s, tail, suffix, via)
    uncount(book, key, host, lane, record.admitted_s)
    if host.sections:
        count_out(book, key, host, record.tail.encode())
    return url_key, record


def fate_of(record: UrlRecord) -> Fate:
    """What came of asking for a URL, to be added to."""
    if record.fate is None:
        record.fate = Fate()
    return record.fate


def drop(book: Book, key: bytes, host: HostState, one: Work, reason: str, detail: str) -> None:
    """End a queued URL without asking for it."""
    url_key, record = take_out(book, key, host, one.place, one.fingerprint)
    record.state, record.cycle = State.DROPPED, book.totals.cycle
    fate = fate_of(record)
    fate.settled_s, fate.reason, fate.detail = book.wall_s, reason, detail
    book.totals.dropped += 1
    book.put_url(url_key, record)
    look_further(book, key)
