"""How a queued URL leaves its queue: it gets a record of its own, if it had none, that says what became of it."""

from __future__ import annotations

from nephila.frontier import order
from nephila.frontier.lifecycle import State

from .book import Book, read_url
from .marks import PARKED
from .queueing import Work, take, uncount
from .records import Fate, HostState, UrlRecord
from .sections import count_out
from .tables import PREFIX_BYTES, URL
from .waking import look_further


def take_out(book: Book, key: bytes, host: HostState, place: bytes, fingerprint: bytes) -> tuple[bytes, UrlRecord]:
    """Take a URL out of its queue; returns its key and its record, which the caller changes and writes."""
    url_key = key + URL + fingerprint[:PREFIX_BYTES]
    bundle = take(book, key, place, fingerprint)
    raw = book.txn.get(url_key, db=book.web)
    lane, _, depth, _ = order.read_place(place)
    if raw is not None and raw[0] > PARKED:
        record = read_url(raw)
    else:
        if bundle is None or raw is None:
            raise KeyError(url_key)
        head, tail = bundle
        record = UrlRecord(
            State.QUEUED,
            head.rank,
            order.level_of_lane(lane),
            depth,
            head.hops,
            0,
            head.cycle,
            head.admitted_s,
            tail.decode(),
            fingerprint[PREFIX_BYTES:],
            head.via,
        )
        record.rank = raw[1 + order.PLACE_BYTES]
    uncount(book, key, host, lane, record.admitted_s)
    count_out(book, key, host, record.tail.encode())
    record.place = b""
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
