"""What the store holds, as rows that belong to no engine (see `frontier.moving`).

The tables are walked in pages, each in a short read transaction of its own: a reader that stays would keep LMDB from
using freed pages again. Whoever exports holds the crawl directory, so nothing changes between two pages. A page is
bounded by rows and by time; memory does not grow with the frontier.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from nephila.frontier import order
from nephila.frontier.lifecycle import State
from nephila.frontier.moving import (
    VERSION,
    AskedFor,
    BlockRow,
    CaptureRow,
    CrawlRow,
    DomainRow,
    HostRow,
    MarkRow,
    OriginRow,
    OrphanRow,
    PolicyRow,
    RefusedRow,
    RobotsRow,
    Row,
    UrlRow,
    UrlState,
    tally_row,
)
from nephila.frontier.moving.rows import SECTION as CROWDED
from nephila.model.outcome import DeferReason
from nephila.urls import Address

from .book import NO_HOST, time_key
from .bundle import Head, entries_of, fingerprint_of, read_head, tail_of
from .coding import (
    read_block,
    read_domain,
    read_host,
    read_origin,
    read_policy,
    read_refusal,
    read_robots,
    read_tally,
    read_url,
)
from .marks import PARKED, QUEUED, place_in, rank_in
from .records import Fate, HostState, Place, UrlRecord
from .shelving import NO_GROUP, REASONS
from .tables import (
    DOMAIN_KEY_BYTES,
    HOST_KEY_BYTES,
    PREFIX_BYTES,
    QUEUE,
    ROBOTS,
    SHELF,
    SKELETON,
    STATE,
    URL,
    lengthen,
    pending_key,
)

if TYPE_CHECKING:
    from nephila.frontier.policy import Policy

    from .tables import Txn
    from .view import LmdbFrontierView

ROWS_AT_ONCE = 2_000
"""Rows of a table that are read in one transaction."""
READ_S = 0.5
"""And no transaction is longer than this (DESIGN section 3: a second at most)."""

_STATES = {
    State.QUEUED: UrlState.QUEUED,
    State.DELAYED: UrlState.DELAYED,
    State.DONE: UrlState.DONE,
    State.DROPPED: UrlState.DROPPED,
    State.DEAD: UrlState.DEAD,
}


class LmdbExport:
    """Reads a frontier that nobody writes to."""

    def __init__(
        self,
        view: LmdbFrontierView,
        policy: Policy,
        identify: Callable[[str], Address | None],
        asked_for: AskedFor,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`identify` makes addresses with the crawl's secret."""
        self._view = view
        self._tables = view.tables
        self._policy = policy
        self._identify = identify
        self._asked_for = asked_for
        self._clock_s = clock_s
        self._host: HostState | None = None
        self.unnamed = 0
        """Refusals that could not be told, because nobody knows whose they are: their URL was taken down."""

    def rows(self) -> Iterator[Row]:
        """Everything."""
        yield self._crawl()
        yield from self._pages("policies", lambda _, key, raw: [PolicyRow(key.decode(), read_policy(raw))])
        yield from self._pages("blocks", lambda *row: [BlockRow(read_block(row[2]))])
        yield from self._pages("marks", lambda _, key, raw: [MarkRow(key.decode(), int.from_bytes(raw, "big"))])
        yield from self._pages("orphans", lambda *row: [_orphan(row[1])])
        yield from self._pages("web", self._of_web)
        yield from self._pages("origins", self._origin)
        yield from self._pages("refused", self._refused)

    def _pages(self, name: str, tell: Callable[[Txn, bytes, bytes], list[Row]]) -> Iterator[Row]:
        """What `tell` makes of the rows of a table, read page by page."""
        after: bytes | None = b""
        while after is not None:
            found: list[Row] = []
            until, read = self._clock_s() + READ_S, 0
            with self._tables.look() as txn, txn.cursor(db=self._tables.db[name]) as cursor:
                going = cursor.set_range(after)
                while going and read < ROWS_AT_ONCE and self._clock_s() < until:
                    found += tell(txn, cursor.key(), cursor.value())
                    read += 1
                    going = cursor.next()
                after = cursor.key() if going else None
            yield from found

    def _at(self, moment: int) -> int:
        """A moment of the timeline as UTC milliseconds."""
        return self._view.timeline.wall_of(moment) if moment else 0

    def _crawl(self) -> CrawlRow:
        totals, timeline, policy = self._view.totals(), self._view.timeline, self._policy
        now, step_ms = timeline.now(), order.step_ms(policy.priority)
        return CrawlRow(
            version=VERSION,
            secret=f"{self._tables.secret:016x}",
            urls=self._asked_for.urls,
            config=self._asked_for.config,
            exported_at=timeline.wall_of(now),
            step=0 if policy.ordered else now // step_ms,
            step_ms=step_ms,
            cycle=totals.cycle,
            cycle_open=totals.cycle_open,
            sweeping=totals.sweep is not None,
            covered=totals.covered,
            mean_rank=totals.mean_rank,
            draws=totals.draws,
            reserved=totals.reserved,
            tokens=totals.next_token - 1,
            pages=totals.pages,
            pages_in_cycle=totals.pages_in_cycle,
        )

    # Hosts and what is theirs

    def _of_web(self, txn: Txn, key: bytes, raw: bytes) -> list[Row]:
        host_key, kind = key[:HOST_KEY_BYTES], key[HOST_KEY_BYTES : HOST_KEY_BYTES + 1]
        if kind == STATE:
            return [self._domain(raw) if host_key[DOMAIN_KEY_BYTES:] == NO_HOST else self._begin_host(raw)]
        if kind == URL:
            return self._ended(txn, key, raw)
        if kind == QUEUE:
            return self._queued(txn, host_key, key[HOST_KEY_BYTES + 1 :], raw)
        if kind == SHELF:
            return self._parked(txn, host_key, key[HOST_KEY_BYTES + 1 :], raw)
        if kind == ROBOTS:
            entry = read_robots(raw)
            return [RobotsRow(entry.origin, entry.url, entry.hops)]
        return [tally_row(read_tally(raw))] if kind == SKELETON else []  # sections are counted anew

    def _domain(self, raw: bytes) -> DomainRow:
        domain = read_domain(raw)
        return DomainRow(
            domain.name,
            domain.pages,
            domain.hosts,
            domain.hosts_over,
            domain.useful,
            domain.referrers,
            domain.queued,
            self._at(domain.paused_until),
            domain.health.window.hex(),
            domain.health.server_errors,
            domain.health.lowered,
            domain.health.successes,
        )

    def _begin_host(self, raw: bytes) -> HostRow:
        self._host = host = read_host(raw)
        promised = host.free_at and host.free_at + self._view.timeline.slept_ms - host.slept_ms
        return HostRow(
            name=host.name,
            fetched=host.fetched,
            cycle=host.cycle,
            fetched_in_cycle=host.fetched_in_cycle,
            lied_in=host.lied_in,
            free_at=self._at(promised),
            released_at=self._at(host.released_at),
            delay_ms=host.delay_ms,
            crawl_delay_ms=host.crawl_delay_ms,
            mean_ms=host.mean_ms,
            work_since_at=self._at(host.work_since),
            admitted=host.admitted,
            fresh=host.fresh,
            referrers=host.referrers,
            trap_at=self._at(host.trap_at),
            over=host.over,
            outgrown=host.outgrown,
            reason=host.reason,
            until_at=self._at(host.next_at) if host.place is Place.WAITING and host.reason else 0,
            parked=host.place is Place.PARKED,
        )

    @property
    def _name(self) -> str:
        if self._host is None:
            raise KeyError("a URL without its host")
        return self._host.name

    def _ended(self, txn: Txn, url_key: bytes, raw: bytes) -> list[Row]:
        """A URL that waits in no queue; the others come with their places."""
        if raw[0] <= PARKED:
            return []
        record = read_url(raw)
        return [] if record.state is State.QUEUED else [self._record(txn, url_key, record)]

    def _queued(self, txn: Txn, host_key: bytes, place: bytes, value: bytes) -> list[Row]:
        """The URLs of a bundle that stand there: an entry whose URL stands elsewhere by now is passed over."""
        found: list[Row] = []
        head, via = read_head(value, host_key, URL), None
        for entry in entries_of(value):
            url_key = host_key + URL + fingerprint_of(entry)[:PREFIX_BYTES]
            raw = txn.get(url_key, db=self._tables.web)
            if raw is None:
                continue
            if raw[0] > PARKED:
                record = read_url(raw)
                if record.state is State.QUEUED and record.place == place:
                    found.append(self._record(txn, url_key, record))
            elif raw[0] == QUEUED and place_in(raw) == place:
                via = self._view.url_at(txn, head.via) if via is None else via
                found.append(self._found(entry, place, head, via, rank_in(raw)))
        return found

    def _parked(self, txn: Txn, host_key: bytes, shelf: bytes, value: bytes) -> list[Row]:
        reason, group, place = REASONS[shelf[0]], shelf[1:9], shelf[9:]
        head = read_head(value, host_key, URL)
        via = self._view.url_at(txn, head.via)
        told = group.hex() if reason is DeferReason.TRAP else "" if group == NO_GROUP else CROWDED
        found: list[Row] = []
        for entry in entries_of(value):
            raw = txn.get(host_key + URL + fingerprint_of(entry)[:PREFIX_BYTES], db=self._tables.web)
            rank = head.rank if raw is None else rank_in(raw)
            found.append(self._found(entry, place, head, via, rank, shelf=str(reason), group=told))
        return found

    def _found(
        self, entry: bytes, place: bytes, head: Head, via: str, rank: int, *, shelf: str = "", group: str = ""
    ) -> UrlRow:
        """A URL that was never asked for."""
        lane, step, depth, tie = order.read_place(place)
        return UrlRow(
            fp=fingerprint_of(entry).hex(),
            url=lengthen(tail_of(entry).decode(), self._name),
            state=UrlState.PARKED if shelf else UrlState.QUEUED,
            rank=rank,
            level=order.level_of_lane(lane),
            depth=depth,
            hops=head.hops,
            cycle=head.cycle,
            admitted_s=head.admitted_s,
            via=via,
            lane=lane,
            step=step,
            tie=tie.hex(),
            shelf=shelf,
            group=group,
        )

    def _record(self, txn: Txn, url_key: bytes, record: UrlRecord) -> UrlRow:
        fate = record.fate or Fate()
        lane, step, _, tie = order.read_place(record.place) if record.place else (-1, -1, 0, b"")
        reason = b""
        if record.due_at:
            reason = txn.get(time_key(record.due_at) + url_key, db=self._tables.db["due"]) or b""
        return UrlRow(
            fp=(url_key[HOST_KEY_BYTES + 1 :] + record.suffix).hex(),
            url=lengthen(record.tail, self._name),
            state=_STATES[record.state],
            rank=record.rank,
            level=record.level,
            depth=record.depth,
            hops=record.hops,
            retries=record.retries,
            cycle=record.cycle,
            admitted_s=record.admitted_s,
            via=self._view.url_at(txn, record.via),
            lane=lane,
            step=step,
            tie=tie.hex(),
            asked=True,
            settled_s=fate.settled_s,
            reason=fate.reason,
            detail=fate.detail,
            trail=fate.trail,
            history=tuple(fate.history),
            fetched=fate.fetched,
            gone=fate.gone,
            due_at=self._at(record.due_at),
            due_reason=reason.decode(),
            capture=self._capture(txn, fate),
        )

    def _capture(self, txn: Txn, fate: Fate) -> CaptureRow | None:
        capture = fate.capture
        if capture is None:
            return None
        waits = txn.get(pending_key(capture.segment, capture.end), db=self._tables.db["pending"]) is not None
        return CaptureRow(
            capture.status,
            capture.segment,
            capture.offset,
            capture.end,
            capture.digest.hex(),
            capture.etag,
            capture.last_modified,
            capture.changed_at,
            capture.count,
            capture.page,
            waits,
        )

    # What lies apart

    def _origin(self, txn: Txn, key: bytes, raw: bytes) -> list[Row]:
        note = read_origin(raw)
        body = txn.get(key, db=self._tables.db["rules"]) or b""
        row = OriginRow(
            key.decode(),
            str(note.kind),
            note.stored_at,
            self._at(note.fresh_until),
            note.status,
            self._at(note.failing_since),
            note.detail,
            self._at(note.moved_at),
            b64encode(body).decode(),
        )
        return [row]

    def _refused(self, txn: Txn, key: bytes, raw: bytes) -> list[Row]:
        note = read_refusal(raw)
        address = self._identify(note.url)
        if address is None or self._tables.url_key(address.host, address.fingerprint) != key:
            self.unnamed += 1
            return []
        via = self._view.url_at(txn, note.via)
        return [RefusedRow(address.host, address.fingerprint.hex(), note.url, note.reason, note.detail, note.at_s, via)]


def _orphan(key: bytes) -> OrphanRow:
    return OrphanRow(key[:-9].decode(), int.from_bytes(key[-8:], "big"))
