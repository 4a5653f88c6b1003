"""The reading side: rules for workers, counters and standing orders, and (`stories`) what became of URLs.

Short read transactions, beside any writer. Nothing here costs more the larger the frontier is: counters are read, a
host is looked up, a list has its limit.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from nephila.frontier.timeline import Timeline
from nephila.interfaces.clock import Clock
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.outcome import OriginRules
from nephila.model.policy import Block, DomainPolicy
from nephila.model.record import SegmentId
from nephila.model.task import Token
from nephila.urls import Fingerprint

from .book import NO_HOST
from .coding import (
    read_ages,
    read_anchor,
    read_block,
    read_domain,
    read_host,
    read_lease,
    read_origin,
    read_policy,
    read_totals,
)
from .lending import OUTSIDE
from .records import DomainState, HostState, Totals
from .stories import Stories
from .tables import STATE, Tables, open_tables


class LmdbFrontierView(Stories):
    """Reads what is committed."""

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

    @property
    def tables(self) -> Tables:
        """What it reads: for those who list (`census`)."""
        return self._tables

    def close(self) -> None:
        """Close a view that was opened on its own."""
        self._tables.close()

    def rules(self, origin: str) -> OriginRules | None:
        """The robots rules in force for an origin."""
        key = origin.encode()
        raw, body = self._tables.recent.find(key)
        if raw is None or body is None:
            with self._tables.env.begin() as txn:
                raw = raw or txn.get(key, db=self._db["origins"])
                body = body or txn.get(key, db=self._db["rules"])
        if raw is None:
            return None
        note = read_origin(raw)
        return OriginRules(
            origin=origin,
            kind=note.kind,
            body=body or b"",
            stored_at=note.stored_at,
            fresh_until=note.fresh_until,
            status=note.status,
            failing_since=note.failing_since,
            detail=note.detail,
        )

    def totals(self) -> Totals:
        """The counters."""
        with self._tables.look() as txn:
            raw = txn.get(b"totals", db=self._db["meta"])
        return Totals() if raw is None else read_totals(raw)

    def mean_rank(self) -> int:
        """What ranks are compared with."""
        return self.totals().mean_rank

    def snapshot(self) -> FrontierSnapshot:
        """Counters as of the last commit, without the next moment."""
        from .engine import snapshot_of  # noqa: PLC0415 - the engine holds a view

        return snapshot_of(self.totals(), self.timeline.now(), None)

    def marks(self, segments: Collection[SegmentId] | None = None) -> dict[SegmentId, int]:
        """Up to where these segments (all) are confirmed."""
        with self._tables.look() as txn, txn.cursor(db=self._db["marks"]) as cursor:
            keys = None if segments is None else [segment.encode() for segment in segments]
            found = cursor if keys is None else cursor.getmulti(keys)
            return {SegmentId(key.decode()): int.from_bytes(value, "big") for key, value in found}

    def pending_segments(self) -> set[SegmentId]:
        """Segments that pages wait for: few, because every tick confirms what is durable."""
        segments: set[SegmentId] = set()
        with self._tables.look() as txn, txn.cursor(db=self._db["pending"]) as cursor:
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
        with self._tables.look() as txn, txn.cursor(db=self._db["orphans"]) as cursor:
            found = cursor.set_range(prefix)
            while found and cursor.key().startswith(prefix):
                offsets.add(int.from_bytes(cursor.key()[-8:], "big"))
                found = cursor.next()
        return offsets

    def all_orphans(self) -> dict[SegmentId, set[int]]:
        """The same of all segments: few, because results seldom come too late."""
        found: dict[SegmentId, set[int]] = {}
        with self._tables.look() as txn, txn.cursor(db=self._db["orphans"]) as cursor:
            for key in cursor.iternext(values=False):
                found.setdefault(SegmentId(key[:-9].decode()), set()).add(int.from_bytes(key[-8:], "big"))
        return found

    def holds(self, token: Token, fingerprint: Fingerprint | None, origin: str = "") -> bool:
        """Whether a lease still exists and its task is not yet settled."""
        with self._tables.look() as txn:
            raw = txn.get(token.to_bytes(8, "big"), db=self._db["leases"])
        if raw is None:
            return False
        lease = read_lease(raw)
        if fingerprint is None:
            return lease.origin == origin
        return any(entry[-16:] == fingerprint for entry in lease.entries)

    def leases(self, holder: int | None = None) -> list[tuple[Token, str]]:
        """Every lease there is, or those of one process, with the name of its host."""
        with self._tables.look() as txn, txn.cursor(db=self._db["leases"]) as cursor:
            found = [(Token(int.from_bytes(key, "big")), read_lease(raw)) for key, raw in cursor]
            return [
                (token, self._host_at(txn, lease.host_key).name)
                for token, lease in found
                if holder is None or lease.holder == holder
            ]

    def overdue(self) -> set[int]:
        """The holders of leases that have expired."""
        now = self.timeline.now()
        with self._tables.look() as txn, txn.cursor(db=self._db["leases"]) as cursor:
            return {lease.holder for lease in map(read_lease, cursor.iternext(False, True)) if lease.expires_at <= now}

    def oldest_lease(self) -> Token | None:
        """The least token of all leases of the crawl's own workers; None when there is none."""
        with self._tables.look() as txn, txn.cursor(db=self._db["leases"]) as cursor:
            for key, raw in cursor:
                if read_lease(raw).holder != OUTSIDE:
                    return Token(int.from_bytes(key, "big"))
        return None

    def host(self, name: str) -> HostState | None:
        """The state of one host."""
        with self._tables.look() as txn:
            raw = txn.get(self._tables.host_key(name) + STATE, db=self._web)
        return None if raw is None else read_host(raw)

    def domain(self, name: str) -> DomainState | None:
        """The state of one registrable domain."""
        with self._tables.look() as txn:
            raw = txn.get(self._tables.domain_key(name) + NO_HOST + STATE, db=self._web)
        return None if raw is None else read_domain(raw)

    def ages(self) -> dict[int, list[int]]:
        """Queued URLs by the time they were admitted (in steps of `AGE_STEP_S`) and class."""
        with self._tables.look() as txn:
            raw = txn.get(b"ages", db=self._db["meta"])
        return {} if raw is None else read_ages(raw)

    def policy(self, domain: str) -> DomainPolicy | None:
        """What holds for a domain by a person's word (R4)."""
        with self._tables.look() as txn:
            raw = txn.get(domain.encode(), db=self._db["policies"])
        return None if raw is None else read_policy(raw)

    def policies(self) -> dict[str, DomainPolicy]:
        """All of them."""
        with self._tables.look() as txn, txn.cursor(db=self._db["policies"]) as cursor:
            return {key.decode(): read_policy(raw) for key, raw in cursor}

    def blocks(self) -> list[Block]:
        """What may not be asked for (T7)."""
        with self._tables.look() as txn, txn.cursor(db=self._db["blocks"]) as cursor:
            return [read_block(raw) for _, raw in cursor]
