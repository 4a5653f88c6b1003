"""What became of URLs, and what holds them back: stories for people, tasks for recovery.

Each is read in a short transaction, and costs no more the larger the frontier is: a list has its limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nephila.frontier import order
from nephila.frontier.change import outlook_of
from nephila.frontier.lifecycle import State
from nephila.frontier.timeline import Timeline
from nephila.frontier.traps import SkeletonTally, tell, trap_of
from nephila.interfaces.frontier import Trap, UrlStory
from nephila.model.outcome import DeferReason
from nephila.model.task import Level, PageTask, Validators
from nephila.urls import Address, Fingerprint

from .bundle import entries_of, find, read_head, tail_of
from .bundle import fingerprint_of as entry_fingerprint
from .coding import read_host, read_lease, read_refusal, read_tally, read_url
from .marks import PARKED, place_in
from .records import Fate, HostState, Place, UrlRecord
from .shelving import reason_in, shelf_code
from .tables import (
    HOST_KEY_BYTES,
    PREFIX_BYTES,
    QUEUE,
    SHELF,
    SKELETON,
    STATE,
    URL,
    Tables,
    lengthen,
    pending_key,
)

if TYPE_CHECKING:
    from .tables import Txn

COUNTED_ON_SHELF = 20_000
"""URLs on a shelf that are counted before it is said that there are more."""

_NAMES = {
    State.QUEUED: "queued",
    State.DELAYED: "delayed",
    State.DONE: "completed",
    State.DROPPED: "dropped",
    State.DEAD: "dead_letter",
}


class Stories:
    """The half of the view that tells of URLs."""

    def __init__(self, tables: Tables, timeline: Timeline) -> None:
        self._tables = tables
        self._db = tables.db
        self._web = tables.web
        self.timeline = timeline

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""
        url_key = self._tables.url_key(host, fingerprint)
        with self._tables.look() as txn:
            raw = txn.get(url_key, db=self._web)
            if raw is not None:
                story = self._tell(txn, url_key, *self._record(txn, url_key, raw, fingerprint))
                return self._with_evidence(txn, story, url_key, raw) if story.reason == DeferReason.TRAP else story
            raw = txn.get(url_key, db=self._db["refused"])
            if raw is None:
                return None
            note = read_refusal(raw)
            return UrlStory(
                url=note.url,
                fingerprint=fingerprint,
                host=host,
                state="refused",
                level=Level.MEDIUM,
                depth=0,
                via=self.url_at(txn, note.via),
                hops=0,
                retries=0,
                cycle=0,
                admitted_at=note.at_s * 1000,
                settled_at=note.at_s * 1000,
                reason=note.reason,
                detail=note.detail,
            )

    def stories(self, addresses: Sequence[Address]) -> list[UrlStory | None]:
        """The same of each of many."""
        return [self.story(one.host, one.fingerprint) for one in addresses]

    def task(self, host: str, fingerprint: Fingerprint) -> PageTask | None:
        """A known URL as a task: what recovery settles from the archive."""
        url_key = self._tables.url_key(host, fingerprint)
        with self._tables.look() as txn:
            raw = txn.get(url_key, db=self._web)
            if raw is None:
                return None
            record, _ = self._record(txn, url_key, raw, fingerprint)
            capture = record.fate.capture if record.fate else None
            return PageTask(
                fingerprint=fingerprint,
                url=lengthen(record.tail, host),
                depth=record.depth,
                level=record.level,
                hops=record.hops,
                retries=record.retries,
                cycle=record.cycle,
                validators=Validators(capture.etag, capture.last_modified) if capture else Validators(),
                digest=capture.digest if capture else b"",
                via=self.url_at(txn, record.via),
                trail=record.fate.trail if record.fate else (),
            )

    def dead(self, limit: int, after: bytes = b"") -> list[UrlStory]:
        """Dead letters in key order; `after` is the (host key and) fingerprint key of the last one seen."""
        stories: list[UrlStory] = []
        with self._tables.look() as txn, txn.cursor(db=self._db["dead"]) as cursor:
            found = cursor.set_range(after + b"\0") if after else cursor.first()
            while found and len(stories) < limit:
                raw = txn.get(cursor.key(), db=self._web)
                if raw is not None and raw[0] > PARKED:
                    stories.append(self._tell(txn, cursor.key(), read_url(raw)))
                found = cursor.next()
        return stories

    def traps(self, limit: int, host: str = "") -> list[Trap]:
        """Patterns that hold URLs back (T2), of one host or of all."""
        prefix = self._tables.host_key(host) if host else b""
        found: list[Trap] = []
        with self._tables.look() as txn, txn.cursor(db=self._db["trapped"]) as cursor:
            going = cursor.set_range(prefix)
            while going and cursor.key().startswith(prefix) and len(found) < limit:
                key, group = cursor.key()[:HOST_KEY_BYTES], cursor.key()[HOST_KEY_BYTES:]
                raw = txn.get(key + SKELETON + group, db=self._web)
                if raw is not None:
                    found.append(self._trap(txn, key, group, read_tally(raw)))
                going = cursor.next()
        return found

    def key_of(self, story: UrlStory) -> bytes:
        """Where a page of `dead` ended, for the next one."""
        return self._tables.url_key(story.host, story.fingerprint)

    def url_at(self, txn: Txn, url_key: bytes) -> str:
        """The URL with that key, empty when there is none (or none but a seed's own)."""
        raw = txn.get(url_key, db=self._web) if url_key else None
        if raw is None or raw[0] <= PARKED:
            return ""
        return lengthen(read_url(raw).tail, self._host_at(txn, url_key).name)

    def _record(self, txn: Txn, url_key: bytes, raw: bytes, fingerprint: bytes) -> tuple[UrlRecord, str]:
        """The record of a URL, put together from its bundle where it has none; and why it is parked, if it is."""
        if raw[0] > PARKED:
            return read_url(raw), ""
        key, place = url_key[:HOST_KEY_BYTES], place_in(raw)
        parked = raw[0] == PARKED
        bundle_key = key + (SHELF + raw[11:20] + place if parked else QUEUE + place)
        value = txn.get(bundle_key, db=self._web)
        entry = None if value is None else find(value, fingerprint[:PREFIX_BYTES])
        if value is None or entry is None:
            raise KeyError(url_key)
        head = read_head(value, key, URL)
        lane, _, depth, _ = order.read_place(place)
        record = UrlRecord(
            State.QUEUED,
            raw[1 + order.PLACE_BYTES],
            order.level_of_lane(lane),
            depth,
            head.hops,
            0,
            head.cycle,
            head.admitted_s,
            tail_of(entry).decode(),
            entry_fingerprint(entry)[PREFIX_BYTES:],
            head.via,
            place,
        )
        return record, reason_in(raw) if parked else ""

    def _tell(self, txn: Txn, url_key: bytes, record: UrlRecord, parked: str = "") -> UrlStory:
        host = self._host_at(txn, url_key)
        now = self.timeline.now()
        fate = record.fate or Fate()
        capture = fate.capture
        place = order.read_place(record.place) if record.place else None
        waits = record.state is State.DELAYED or (record.state is State.DONE and record.due_at)
        return UrlStory(
            url=lengthen(record.tail, host.name),
            fingerprint=Fingerprint(url_key[HOST_KEY_BYTES + 1 :] + record.suffix),
            host=host.name,
            state="parked" if parked else self._state(txn, url_key, record),
            level=record.level,
            depth=record.depth,
            via=self.url_at(txn, record.via),
            hops=record.hops,
            retries=record.retries,
            cycle=record.cycle,
            admitted_at=record.admitted_s * 1000,
            settled_at=fate.settled_s * 1000,
            reason=parked or fate.reason or (host.reason if record.state is State.QUEUED else ""),
            detail=fate.detail,
            status=capture.status if capture else 0,
            due_in_ms=max(0, record.due_at - now) if waits else None,
            host_wait_ms=max(0, max(host.free_at, host.next_at if host.place is Place.WAITING else 0) - now),
            segment=capture.segment if capture else "",
            offset=capture.offset if capture else -1,
            digest=capture.digest if capture else b"",
            rank=record.rank,
            visits=fate.history.visits,
            changes=fate.history.changes,
            changed_at=capture.changed_at * 1000 if capture else 0,
            interval_s=fate.history.interval_s,
            missing=fate.history.gone,
            missing_since=fate.history.gone_since_s * 1000,
            again=place is not None and order.supply_of_lane(place.lane) is order.Supply.DUE,
            step=-1 if place is None else place.step,
            outlook=outlook_of(fate.history),
        )

    def _state(self, txn: Txn, url_key: bytes, record: UrlRecord) -> str:
        if record.state is State.QUEUED:
            token = txn.get(url_key[:HOST_KEY_BYTES], db=self._db["leased"])
            raw = None if token is None else txn.get(token, db=self._db["leases"])
            prefix = url_key[HOST_KEY_BYTES + 1 :]
            if raw is not None and any(entry[-16:-8] == prefix for entry in read_lease(raw).entries):
                return "in_progress"
        capture = record.fate.capture if record.fate else None
        if record.state is State.DONE and capture:
            key = pending_key(capture.segment, capture.end)
            if txn.get(key, db=self._db["pending"]) is not None:
                return "stored_pending"
        return _NAMES[record.state]

    def _host_at(self, txn: Txn, key: bytes) -> HostState:
        raw = txn.get(key[:HOST_KEY_BYTES] + STATE, db=self._web)
        if raw is None:
            raise KeyError(key)
        return read_host(raw)

    def _with_evidence(self, txn: Txn, story: UrlStory, url_key: bytes, mark: bytes) -> UrlStory:
        """The story of a URL that a trap holds back, with what is held against its pattern and when one may go."""
        raw = txn.get(url_key[:HOST_KEY_BYTES] + SKELETON + mark[12:20], db=self._web)
        if mark[0] != PARKED or raw is None:
            return story
        tally = read_tally(raw)
        wait_ms = tally.not_before_s * 1000 - self.timeline.wall_of(self.timeline.now())
        return replace(story, detail=tell(tally), due_in_ms=max(0, wait_ms))

    def _trap(self, txn: Txn, key: bytes, group: bytes, tally: SkeletonTally) -> Trap:
        parked = self._count_shelf(txn, key + SHELF + shelf_code(DeferReason.TRAP) + group)
        name, more = self._host_at(txn, key).name, parked > COUNTED_ON_SHELF
        return trap_of(name, tally, COUNTED_ON_SHELF if more else parked, more=more)

    def _count_shelf(self, txn: Txn, prefix: bytes) -> int:
        """URLs in the bundles under a prefix, counted to a little over `COUNTED_ON_SHELF` at most."""
        count = 0
        with txn.cursor(db=self._web) as cursor:
            going = cursor.set_range(prefix)
            while going and cursor.key().startswith(prefix) and count <= COUNTED_ON_SHELF:
                count += sum(1 for _ in entries_of(cursor.value()))
                going = cursor.next()
        return count
