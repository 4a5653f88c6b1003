"""The reading side: rules for workers, stories for people. Short read transactions, beside any writer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nephila.frontier import order
from nephila.frontier.lifecycle import State
from nephila.frontier.timeline import Timeline
from nephila.interfaces.clock import Clock
from nephila.interfaces.frontier import FrontierSnapshot, UrlStory
from nephila.model.outcome import OriginRules
from nephila.model.policy import Block, DomainPolicy
from nephila.model.record import SegmentId
from nephila.model.task import Level, PageTask, Token, Validators
from nephila.urls import Fingerprint

from .book import (
    NO_HOST,
    read_ages,
    read_anchor,
    read_block,
    read_domain,
    read_host,
    read_lease,
    read_origin,
    read_policy,
    read_refusal,
    read_totals,
    read_url,
)
from .bundle import entries_of, read_head
from .queueing import PARKED, place_in
from .records import DomainState, Fate, HostState, Place, Totals, UrlRecord
from .shelving import reason_in
from .tables import HOST_KEY_BYTES, PREFIX_BYTES, QUEUE, SHELF, STATE, URL, Tables, lengthen, open_tables, pending_key

if TYPE_CHECKING:
    from .tables import Txn

_NAMES = {
    State.QUEUED: "queued",
    State.DELAYED: "delayed",
    State.DONE: "completed",
    State.DROPPED: "dropped",
    State.DEAD: "dead_letter",
}


class LmdbFrontierView:
    """Reads what is committed."""

    def __init__(self, tables: Tables, timeline: Timeline) -> None:
        self._tables = tables
        self._db = tables.db
        self._web = tables.web
        self.timeline = timeline

    @classmethod
    def open(cls, path: Path, clock: Clock, map_bytes: int) -> LmdbFrontierView:
        """A view of its own, for a process that does not crawl."""
        tables = open_tables(path, map_bytes=map_bytes, sync=True, read_only=True)
        with tables.env.begin() as txn:
            raw = txn.get(b"anchor", db=tables.db["meta"])
        return cls(tables, Timeline(clock, None if raw is None else read_anchor(raw)))

    @property
    def secret(self) -> int:
        """The crawl's secret."""
        return self._tables.secret

    def close(self) -> None:
        """Close a view that was opened on its own."""
        self._tables.close()

    def rules(self, origin: str) -> OriginRules | None:
        """The robots rules in force for an origin."""
        with self._tables.env.begin() as txn:
            raw = txn.get(origin.encode(), db=self._db["origins"])
            if raw is None:
                return None
            note = read_origin(raw)
            body = txn.get(origin.encode(), db=self._db["rules"]) or b""
        return OriginRules(
            origin=origin,
            kind=note.kind,
            body=body,
            stored_at=note.stored_at,
            fresh_until=note.fresh_until,
            status=note.status,
            failing_since=note.failing_since,
            detail=note.detail,
        )

    def totals(self) -> Totals:
        """The counters."""
        with self._tables.env.begin() as txn:
            raw = txn.get(b"totals", db=self._db["meta"])
        return Totals() if raw is None else read_totals(raw)

    def snapshot(self) -> FrontierSnapshot:
        """Counters as of the last commit, without the next moment."""
        from .engine import snapshot_of  # noqa: PLC0415 - the engine holds a view

        return snapshot_of(self.totals(), self.timeline.now(), None)

    def marks(self) -> dict[SegmentId, int]:
        """Up to where each segment is confirmed."""
        with self._tables.env.begin() as txn, txn.cursor(db=self._db["marks"]) as cursor:
            return {SegmentId(key.decode()): int.from_bytes(value, "big") for key, value in cursor}

    def pending_segments(self) -> set[SegmentId]:
        """Segments that pages wait for: few, because every tick confirms what is durable."""
        segments: set[SegmentId] = set()
        with self._tables.env.begin() as txn, txn.cursor(db=self._db["pending"]) as cursor:
            found = cursor.first()
            while found:
                name = cursor.key()[:-9]
                segments.add(SegmentId(name.decode()))
                found = cursor.set_range(name + b"\1")
        return segments

    def orphans(self, segment: SegmentId) -> set[int]:
        """Offsets of captures in a segment whose settle was refused."""
        prefix = segment.encode() + b"\0"
        offsets: set[int] = set()
        with self._tables.env.begin() as txn, txn.cursor(db=self._db["orphans"]) as cursor:
            found = cursor.set_range(prefix)
            while found and cursor.key().startswith(prefix):
                offsets.add(int.from_bytes(cursor.key()[-8:], "big"))
                found = cursor.next()
        return offsets

    def holds(self, token: Token, fingerprint: Fingerprint | None, origin: str = "") -> bool:
        """Whether a lease still exists and its task is not yet settled."""
        with self._tables.env.begin() as txn:
            raw = txn.get(token.to_bytes(8, "big"), db=self._db["leases"])
        if raw is None:
            return False
        lease = read_lease(raw)
        if fingerprint is None:
            return lease.origin == origin
        return any(entry[-16:] == fingerprint for entry in lease.entries)

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""
        url_key = self._tables.url_key(host, fingerprint)
        with self._tables.env.begin() as txn:
            raw = txn.get(url_key, db=self._web)
            if raw is not None:
                return self._tell(txn, url_key, *self._record(txn, url_key, raw, fingerprint))
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
                via=self._url_at(txn, note.via),
                hops=0,
                retries=0,
                cycle=0,
                admitted_at=note.at_s * 1000,
                settled_at=note.at_s * 1000,
                reason=note.reason,
                detail=note.detail,
            )

    def _record(self, txn: Txn, url_key: bytes, raw: bytes, fingerprint: bytes) -> tuple[UrlRecord, str]:
        """The record of a URL, put together from its bundle where it has none; and why it is parked, if it is."""
        if raw[0] > PARKED:
            return read_url(raw), ""
        key, place = url_key[:HOST_KEY_BYTES], place_in(raw)
        parked = raw[0] == PARKED
        bundle_key = key + (SHELF + raw[11:20] + place if parked else QUEUE + place)
        value = txn.get(bundle_key, db=self._web)
        entry = None
        if value is not None:
            entry = next(
                (one for one in entries_of(value) if one[1][:PREFIX_BYTES] == fingerprint[:PREFIX_BYTES]), None
            )
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
            entry[0].decode(),
            entry[1][PREFIX_BYTES:],
            head.via,
            place,
        )
        return record, reason_in(raw) if parked else ""

    def task(self, host: str, fingerprint: Fingerprint) -> PageTask | None:
        """A known URL as a task: what recovery settles from the archive."""
        url_key = self._tables.url_key(host, fingerprint)
        with self._tables.env.begin() as txn:
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
                via=self._url_at(txn, record.via),
                trail=record.fate.trail if record.fate else (),
            )

    def dead(self, limit: int, after: bytes = b"") -> list[UrlStory]:
        """Dead letters in key order; `after` is the (host key and) fingerprint key of the last one seen."""
        stories: list[UrlStory] = []
        with self._tables.env.begin() as txn, txn.cursor(db=self._db["dead"]) as cursor:
            found = cursor.set_range(after + b"\0") if after else cursor.first()
            while found and len(stories) < limit:
                raw = txn.get(cursor.key(), db=self._web)
                if raw is not None and raw[0] > PARKED:
                    stories.append(self._tell(txn, cursor.key(), read_url(raw)))
                found = cursor.next()
        return stories

    def key_of(self, story: UrlStory) -> bytes:
        """Where a page of `dead` ended, for the next one."""
        return self._tables.url_key(story.host, story.fingerprint)

    def host(self, name: str) -> HostState | None:
        """The state of one host."""
        with self._tables.env.begin() as txn:
            raw = txn.get(self._tables.host_key(name) + STATE, db=self._web)
        return None if raw is None else read_host(raw)

    def domain(self, name: str) -> DomainState | None:
        """The state of one registrable domain."""
        with self._tables.env.begin() as txn:
            raw = txn.get(self._tables.domain_key(name) + NO_HOST + STATE, db=self._web)
        return None if raw is None else read_domain(raw)

    def ages(self) -> dict[int, list[int]]:
        """Queued URLs by the time they were admitted (in steps of `AGE_STEP_S`) and class."""
        with self._tables.env.begin() as txn:
            raw = txn.get(b"ages", db=self._db["meta"])
        return {} if raw is None else read_ages(raw)

    def policy(self, domain: str) -> DomainPolicy | None:
        """What holds for a domain by a person's word (R4)."""
        with self._tables.env.begin() as txn:
            raw = txn.get(domain.encode(), db=self._db["policies"])
        return None if raw is None else read_policy(raw)

    def policies(self) -> dict[str, DomainPolicy]:
        """All of them."""
        with self._tables.env.begin() as txn, txn.cursor(db=self._db["policies"]) as cursor:
            return {key.decode(): read_policy(raw) for key, raw in cursor}

    def blocks(self) -> list[Block]:
        """What may not be asked for (T7)."""
        with self._tables.env.begin() as txn, txn.cursor(db=self._db["blocks"]) as cursor:
            return [read_block(raw) for _, raw in cursor]

    def _tell(self, txn: Txn, url_key: bytes, record: UrlRecord, parked: str = "") -> UrlStory:
        host = self._host_at(txn, url_key)
        now = self.timeline.now()
        fate = record.fate or Fate()
        capture = fate.capture
        waits = record.state is State.DELAYED or (record.state is State.DONE and record.due_at)
        return UrlStory(
            url=lengthen(record.tail, host.name),
            fingerprint=Fingerprint(url_key[HOST_KEY_BYTES + 1 :] + record.suffix),
            host=host.name,
            state="parked" if parked else self._state(txn, url_key, record),
            level=record.level,
            depth=record.depth,
            via=self._url_at(txn, record.via),
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
        )

    def _host_at(self, txn: Txn, key: bytes) -> HostState:
        raw = txn.get(key[:HOST_KEY_BYTES] + STATE, db=self._web)
        if raw is None:
            raise KeyError(key)
        return read_host(raw)

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

    def _url_at(self, txn: Txn, url_key: bytes) -> str:
        """The URL with that key, empty when there is none (or none but a seed's own)."""
        raw = txn.get(url_key, db=self._web) if url_key else None
        if raw is None or raw[0] <= PARKED:
            return ""
        return lengthen(read_url(raw).tail, self._host_at(txn, url_key).name)
