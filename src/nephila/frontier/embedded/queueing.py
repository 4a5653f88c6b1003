"""A host's queue: bundles of URLs by place, and the few bytes under each URL's key that say where it stands.

Under the key of a URL lies a mark (see `marks`) or a packed UrlRecord: it was asked for, or put back on its own; while
it is queued the record names its place. The place under the key is the one that counts: an entry of a bundle whose URL
stands elsewhere by now is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import NamedTuple

from nephila.frontier import order
from nephila.frontier.lifecycle import State
from nephila.model.noun import quick

from .book import Book
from .bundle import BUNDLE_BYTES, Entry, Fields, Head, pack_bundle, pack_entry, pack_head, split, tail_of
from .coding import read_url
from .links import New, Writes, pack_bundles
from .marks import PARKED, PLACE_END, QUEUED, queued_mark
from .records import HostState, UrlRecord
from .sections import count_in
from .tables import HOST_KEY_BYTES, PREFIX_BYTES, QUEUE, URL
from .unpacking import next_url, split_off, take_url

_QUEUED = State.QUEUED
_LANES = tuple(range(order.LANES))
_BEHIND = b"\xff" * 8
"""Behind all places of a lane."""
PROBE_MARK = bytes(3)
"""How the tie-break of a URL begins that a trap lets go: it is not caught again on its way."""


@quick
class Work(NamedTuple):
    """A queued URL."""

    place: bytes
    tail: str
    fingerprint: bytes
    cycle: int
    hops: int
    via: bytes
    """Key of the page it was found on; like cycle and hops, as its bundle knows it."""
    record: UrlRecord | None
    """Where it has one."""
    bundle: bytes
    """The bundle it lies in, as it was found."""


@quick
class Standing(NamedTuple):
    """Where URLs are to stand: what a place says but for the tie-break."""

    lane: int
    step: int
    depth: int


def enqueue(
    book: Book,
    key: bytes,
    host: HostState,
    standing: Standing,
    head: Head,
    entries: Sequence[Entry],
    tie: bytes | None = None,
) -> list[tuple[bytes, Sequence[Entry]]]:
    """Put URLs that share a head into a host's queue; returns each place with the URLs that stand there.

    What lies under the URLs' own keys, and the host's own place, are the caller's business.
    """
    packed = pack_head(head, key)
    placed = [
        (put_bundle(book, key + QUEUE, host, standing, packed, chunk, tie), chunk)
        for chunk in split(entries, len(packed))
    ]
    book.count_queued(host, standing.lane, len(entries), head.admitted_s)
    count_in(book, key, host, entries)
    return placed


def enqueue_new(
    book: Book, key: bytes, host: HostState, standing: bytes, head: Fields, urls: New, writes: Writes
) -> list[bytes]:
    """`enqueue` for URLs that were just met, without a step for each; what goes under their keys is in `writes`.

    `standing` is packed (see `order.pack_standing`). Only for hosts that are not counted by section, and stay so with
    these URLs: see `counts_sections`.
    """
    places: list[bytes] = []
    first = len(writes)
    prefix = key + QUEUE + standing
    for bundle_key, value, count in pack_bundles(
        head, host.name, urls, BUNDLE_BYTES, book.policy.random_seed, prefix, writes
    ):
        place = bundle_key[HOST_KEY_BYTES + 1 :]
        if not book.cursor.put(bundle_key, value, overwrite=False):
            lane, step, depth, tie = order.read_place(place)
            place = put_beside(book, key + QUEUE, Standing(lane, step, depth), value, tie)
            mark = queued_mark(place, head[2])
            writes[first : first + count] = [(url_key, mark) for url_key, _ in writes[first : first + count]]
        places.append(place)
        first += count
    book.count_queued(host, standing[0], len(urls), book.wall_s)
    return places


def put_bundle(
    book: Book,
    prefix: bytes,
    host: HostState,
    standing: Standing,
    head: bytes,
    entries: Sequence[Entry],
    tie: bytes | None = None,
) -> bytes:
    """Write one bundle under a prefix; returns its place. Two bundles with the same tie-break: one takes another."""
    tie = tie or order.tie_of(host.name.encode() + tail_of(entries[0]), book.policy.random_seed)
    value = pack_bundle(head, entries)
    place = order.pack_place(*standing, tie)
    if book.txn.put(prefix + place, value, overwrite=False):
        return place
    return put_beside(book, prefix, standing, value, tie)


def put_beside(book: Book, prefix: bytes, standing: Standing, value: bytes, tie: bytes) -> bytes:
    """Write a bundle whose place is taken, under another tie-break."""
    while True:
        probe = tie.startswith(PROBE_MARK)
        tie = PROBE_MARK + bytes((tie[3] + 1 & 0xFF,)) if probe else order.tie_of(tie, book.policy.random_seed)
        place = order.pack_place(*standing, tie)
        if book.txn.put(prefix + place, value, overwrite=False):
            return place


def enqueue_record(book: Book, key: bytes, host: HostState, url_key: bytes, record: UrlRecord, score: int) -> bytes:
    """Put a URL that has a record into the queue on its own; returns its place. The record is the caller's to write."""
    supply = order.Supply.DUE if record.fate and record.fate.fetched else order.Supply.NEW
    lane = order.lane_of(supply, record.level)
    head = Head(record.admitted_s, record.cycle, record.rank, record.hops, record.via)
    fingerprint = url_key[HOST_KEY_BYTES + 1 :] + record.suffix
    standing = Standing(lane, order.step_for(book.step, score), record.depth)
    ((place, _),) = enqueue(book, key, host, standing, head, [pack_entry(record.tail.encode(), fingerprint)])
    record.place = place
    return place


def take_away(book: Book, key: bytes, place: bytes, fingerprint: bytes) -> None:
    """Take a URL out of its bundle, if it is in there. Nothing is counted."""
    bundle_key = key + QUEUE + place
    bundle = book.txn.get(bundle_key)
    taken = None if bundle is None else take_url(bundle, fingerprint, key)
    if taken is not None:
        put_or_delete(book, bundle_key, taken[5])


def move(
    book: Book, key: bytes, host: HostState, place: bytes, fingerprint: bytes, standing: bytes, rank: int
) -> tuple[bytes, int]:
    """Let a URL stand elsewhere, in a bundle of its own; its place, and when it was admitted. Nothing is counted.

    `standing` is packed (see `order.pack_standing`).
    """
    bundle_key = key + QUEUE + place
    bundle = book.txn.get(bundle_key)
    moved = None if bundle is None else split_off(bundle, fingerprint, rank)
    if moved is None:
        raise KeyError(bundle_key)
    value, tail, admitted_s, rest = moved
    if rest is None:
        book.txn.delete(bundle_key)
    else:
        book.txn.put(bundle_key, rest)
    found = standing + order.tie_of(host.name.encode() + tail, book.policy.random_seed)
    if not book.cursor.put(key + QUEUE + found, value, overwrite=False):
        lane, step, depth, tie = order.read_place(found)
        found = put_beside(book, key + QUEUE, Standing(lane, step, depth), value, tie)
    return found, admitted_s


def put_or_delete(book: Book, bundle_key: bytes, value: bytes | None) -> None:
    """Write what is left of a bundle."""
    if value is None:
        book.txn.delete(bundle_key)
    else:
        book.txn.put(bundle_key, value)


def uncount(book: Book, key: bytes, host: HostState, lane: int, admitted_s: int) -> None:
    """One URL has left a host's queue. What is left in a lane that is empty by count was moved elsewhere long ago."""
    book.count_queued(host, lane, -1, admitted_s)
    if host.queued[lane] <= 0:
        prefix = key + QUEUE + bytes((lane,))
        cursor = book.cursor
        while cursor.set_range(prefix) and cursor.key().startswith(prefix):
            cursor.delete()


def work_of(
    book: Book, key: bytes, host: HostState, lane: int, after: Mapping[int, bytes] = MappingProxyType({})
) -> Works:
    """The queued URLs of a host, beginning with the lane it was picked for; each is looked up when it is asked for.

    The caller may take away, park or settle what it was given before it asks for the next. `after`: by lane, from which
    key on.
    """
    lanes = list(compress(_LANES, host.queued))
    return Works(book, key, lanes if len(lanes) == 1 else _in_order(book, key, lanes, lane), after)


def _in_order(book: Book, key: bytes, lanes: list[int], wanted: int) -> list[int]:
    """The lanes of a queue, those first whose head is in the wanted lane by now."""
    lowered = book.lowered(key)
    firsts: list[tuple[bool, bytes, int]] = []
    for stored in lanes:
        prefix = key + QUEUE + bytes((stored,))
        if book.cursor.set_range(prefix) and book.cursor.key().startswith(prefix):
            place = book.cursor.key()[HOST_KEY_BYTES + 1 :]
            step = order.read_place(place).step
            lane = order.effective_lane(stored, step, book.step, book.policy.priority, lowered)
            firsts.append((lane != wanted, place[1:], stored))
    return [stored for _, _, stored in sorted(firsts)]


class Works:
    """The queued URLs of a host, one by one.

    No generator, as most are left after the first URL, and to leave a generator half-way is an exception in it.
    """

    __slots__ = ("_after", "_book", "_bundle", "_end", "_key", "_lanes", "_of_lane", "_passed", "_place", "_starts")

    def __init__(self, book: Book, key: bytes, lanes: list[int], starts: Mapping[int, bytes]) -> None:
        self._book, self._key, self._lanes, self._starts = book, key, iter(lanes), starts
        self._passed: list[bytes] = []
        """Lanes that were looked through."""
        self._bundle = self._place = self._after = b""
        """The bundle that is looked through, its place, and the key from which on to look for the next."""
        self._end = 0
        """Where the entry of the next URL ends in it."""
        self._of_lane = b"\xff"

    def __iter__(self) -> Works:
        return self

    def __next__(self) -> Work:
        book, key = self._book, self._key
        while True:
            found = next_url(self._bundle, self._end, key) if self._end else None
            if found is None:
                self._open_next()
                continue
            self._end, tail, fingerprint, cycle, hops, via = found
            raw, record = book.txn.get(key + URL + fingerprint[:PREFIX_BYTES]), None
            if raw is None:
                current = b""
            elif raw[0] == QUEUED:
                current = raw[1:PLACE_END]
            elif raw[0] == PARKED:
                current = b""
            else:
                record = read_url(raw)
                current = record.place if record.state is _QUEUED else b""
            place = self._place
            if current == place:
                return Work(place, tail, fingerprint, cycle, hops, via, record, self._bundle)
            take_away(book, key, place, fingerprint)

    def place_of(self, place: bytes) -> dict[int, bytes]:
        """Where to go on that comes to this place again, and to what is behind it: as `work_of` takes it."""
        return {lane[-1]: lane + _BEHIND for lane in self._passed} | {place[0]: self._key + QUEUE + place}

    def _open_next(self) -> None:
        """Go on with the next bundle, of this lane or of the next one that has any; at the end there is none."""
        cursor = self._book.cursor
        while not (self._after and cursor.set_range(self._after) and cursor.key().startswith(self._of_lane)):
            if self._after:
                self._passed.append(self._of_lane)
            lane = next(self._lanes)
            self._of_lane = self._key + QUEUE + bytes((lane,))
            self._after = self._starts.get(lane, self._of_lane)
        bundle_key, self._bundle = cursor.key(), cursor.value()
        self._place, self._end = bundle_key[HOST_KEY_BYTES + 1 :], len(self._bundle)
        self._after = bundle_key + b"\0"
