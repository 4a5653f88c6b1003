"""The reading side: rules for workers, stories for people. Short read transactions, beside any writer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nephila.frontier.lifecycle import State
from nephila.frontier.timeline import Timeline
from nephila.interfaces.clock import Clock
from nephila.interfaces.frontier import FrontierSnapshot, UrlStory
from nephila.model.outcome import OriginRules
from nephila.model.record import SegmentId
from nephila.model.task import Level, PageTask, Token
from nephila.urls import Fingerprint, registrable_domain

from .book import read_anchor, read_host, read_lease, read_origin, read_refusal, read_totals, read_url
from .claiming import page_task
from .records import HostState, Place, Totals, UrlRecord
from .tables import HOST_KEY_BYTES, Tables, lengthen, open_tables, pending_key

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
        return any(entry[-8:] == fingerprint[:8] for entry in lease.entries)

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""
        key = self._tables.host_key(host, registrable_domain(host))
        url_key = key + fingerprint
        with self._tables.env.begin() as txn:
            raw = txn.get(url_key, db=self._db["urls"])
            if raw is not None:
                return self._tell(txn, url_key, read_url(raw))
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

    def task(self, host: str, fingerprint: Fingerprint) -> PageTask | None:
        """A known URL as a task: what recovery settles from the archive."""
        url_key = self._tables.host_key(host, registrable_domain(host)) + fingerprint
        with self._tables.env.begin() as txn:
            raw = txn.get(url_key, db=self._db["urls"])
            if raw is None:
                return None
            record = read_url(raw)
            return page_task(url_key, record, self._host_at(txn, url_key), self._url_at(txn, record.via))

    def dead(self, limit: int, after: bytes = b"") -> list[UrlStory]:
        """Dead letters in key order; `after` is the (host key and) fingerprint key of the last one seen."""
        stories: list[UrlStory] = []
        with self._tables.env.begin() as txn, txn.cursor(db=self._db["dead"]) as cursor:
            found = cursor.set_range(after + b"\0") if after else cursor.first()
            while found and len(stories) < limit:
                raw = txn.get(cursor.key(), db=self._db["urls"])
                if raw is not None:
                    stories.append(self._tell(txn, cursor.key(), read_url(raw)))
                found = cursor.next()
        return stories

    def key_of(self, story: UrlStory) -> bytes:
        """Where a page of `dead` ended, for the next one."""
        return self._tables.host_key(story.host, registrable_domain(story.host)) + story.fingerprint

    def host(self, name: str) -> HostState | None:
        """The state of one host."""
        key = self._tables.host_key(name, registrable_domain(name))
        with self._tables.env.begin() as txn:
            raw = txn.get(key, db=self._db["hosts"])
        return None if raw is None else read_host(raw)

    def _tell(self, txn: Txn, url_key: bytes, record: UrlRecord) -> UrlStory:
        host = self._host_at(txn, url_key)
        now = self.timeline.now()
        capture = record.capture
        return UrlStory(
            url=lengthen(record.tail, host.name),
            fingerprint=Fingerprint(url_key[HOST_KEY_BYTES:]),
            host=host.name,
            state=self._state(txn, url_key, record, host),
            level=record.level,
            depth=record.depth,
            via=self._url_at(txn, record.via),
            hops=record.hops,
            retries=record.retries,
            cycle=record.cycle,
            admitted_at=record.admitted_s * 1000,
            settled_at=record.settled_s * 1000,
            reason=record.reason or (host.reason if record.state is State.QUEUED else ""),
            detail=record.detail,
            status=capture.status if capture else 0,
            due_in_ms=max(0, record.due_at - now) if record.state is State.DELAYED else None,
            host_wait_ms=max(0, max(host.free_at, host.next_at if host.place is Place.WAITING else 0) - now),
            segment=capture.segment if capture else "",
            offset=capture.offset if capture else -1,
            digest=capture.digest if capture else b"",
        )

    def _host_at(self, txn: Txn, key: bytes) -> HostState:
        raw = txn.get(key[:HOST_KEY_BYTES], db=self._db["hosts"])
        if raw is None:
            raise KeyError(key)
        return read_host(raw)

    def _state(self, txn: Txn, url_key: bytes, record: UrlRecord, host: HostState) -> str:
        if record.state is State.QUEUED and host.token:
            raw = txn.get(host.token.to_bytes(8, "big"), db=self._db["leases"])
            prefix = url_key[HOST_KEY_BYTES : HOST_KEY_BYTES + 8]
            if raw is not None and any(entry[-8:] == prefix for entry in read_lease(raw).entries):
                return "in_progress"
        if record.state is State.DONE and record.capture:
            key = pending_key(record.capture.segment, record.capture.end)
            if txn.get(key, db=self._db["pending"]) is not None:
                return "stored_pending"
        return _NAMES[record.state]

    def _url_at(self, txn: Txn, prefix: bytes) -> str:
        """The URL whose key begins with `prefix`, empty when there is none."""
        if not prefix:
            return ""
        with txn.cursor(db=self._db["urls"]) as cursor:
            if cursor.set_range(prefix) and cursor.key()[: len(prefix)] == prefix:
                host = self._host_at(txn, prefix)
                return lengthen(read_url(cursor.value()).tail, host.name)
        return ""
