"""The `Frontier` on LMDB: the seven verbs, and what opening and recovering need."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import lmdb

from nephila.engines.disk import LOCAL_DISK, Disk
from nephila.frontier import order
from nephila.frontier.lifecycle import State
from nephila.frontier.policy import Policy
from nephila.frontier.timeline import Timeline
from nephila.interfaces.clock import Clock
from nephila.interfaces.frontier import NOWHERE, Admission, Found, FrontierSnapshot, Settled, UrlStory
from nephila.model.errors import StorageError
from nephila.model.outcome import DeferReason, OriginRules, Release, Settlement
from nephila.model.policy import Block, DomainPolicy
from nephila.model.record import RecordRef, SegmentId
from nephila.model.task import Candidate, Lease, Level, Refusal, RobotsTask, Token
from nephila.urls import Address, Fingerprint

from . import admission, claiming, forgetting, lending, orders, replaying, returning, settling, trapping, upkeep, waking
from .book import Book
from .coding import read_anchor, read_url
from .group import GroupCommitter
from .marks import PARKED
from .noting import NotedTransaction
from .records import Totals
from .tables import open_tables, pending_key, refused
from .view import LmdbFrontierView
from .writing import Turns, open_writing


class LmdbFrontier:
    """One writer's handle on the frontier of a crawl directory. `view` is its reading side."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        policy: Policy,
        *,
        threaded: bool = True,
        joining: bool = False,
        alone: bool = False,
        disk: Disk = LOCAL_DISK,
    ) -> None:
        """`joining`: another process has opened it and looks after it as a whole. `alone`: nobody else claims from it.

        Who is alone, or shares it with other workers (`Policy.sharing`), makes groups durable in a journal on `disk`,
        and commits the store now and then; others may still write what a person wants, and wait for that a moment.
        """
        settings = policy.settings
        self._tables = open_tables(path, map_bytes=settings.map_bytes, sync=settings.sync)
        turns = Turns(policy.sharing.among) if policy.sharing is not None else None
        commit_ms = settings.commit_ms if settings.sync and (alone or turns is not None) else 0
        writing = open_writing(self._tables, disk, path, clock.steady_ms, commit_ms, turns, joining=joining)
        with self._tables.env.begin() as txn:
            raw = txn.get(b"anchor", db=self._tables.db["meta"])
        self.timeline = Timeline(clock, None if raw is None else read_anchor(raw))
        self._group = GroupCommitter(self._tables, writing, self.timeline, clock, policy, threaded=threaded)
        self._tables.show = self._group.show
        self._group.observe = _observe
        self._group.after_commit = self._publish
        self._totals = Totals()
        self._next: int | None = None
        self._commits = 0
        self._seen = 0
        """The last transaction that was looked at, of ours or of another process."""
        self._shown: tuple[Totals, int, int | None] = (self._totals, 0, None)
        self._snapshot = snapshot_of(*self._shown)
        """What `snapshot` gave last, and of what."""
        self.view = LmdbFrontierView(self._tables, self.timeline)
        try:
            if joining:
                self.refresh()
            else:
                self._group.run_now(upkeep.unpark)
        except BaseException:
            self._group.abandon()
            self._tables.close()
            raise

    @property
    def secret(self) -> int:
        """The crawl's secret: fingerprints are seeded with it."""
        return self._tables.secret

    async def admit(
        self, candidates: Sequence[Candidate], refused: Sequence[Refusal] = (), found: Found = NOWHERE
    ) -> Admission:
        """Add those that are new."""

        def verb(book: Book) -> Admission:
            admission.note_refused(book, refused, admission.via_of(book, found))
            return admission.admit_found(book, candidates, found)

        return await self._group.run(verb)

    async def claim(self, hosts: int, lease_s: float) -> list[Lease]:
        """Lease up to `hosts` hosts that may be asked now, best first. Where none may, nothing is written."""
        if self._group.is_idle and not self._is_due():
            return []
        return await self._group.run(claiming.claim, hosts, int(lease_s * 1000))

    async def renew(self, tokens: Sequence[Token], lease_s: float) -> set[Token]:
        """Extend leases."""
        return await self._group.run(upkeep.renew, tokens, int(lease_s * 1000))

    async def settle(self, token: Token, settlements: Sequence[Settlement], release: Release | None) -> Settled:
        """End tasks of a lease. The host's rest counts from this call, not from the commit."""
        return await self._group.run(settling.settle, token, settlements, release, self.timeline.now())

    async def confirm(self, segment: SegmentId, upto: int) -> int:
        """Complete the pages that were pending on the bytes before `upto`."""
        return await self._group.run(upkeep.confirm, segment, upto)

    async def reap(self) -> int:
        """Return the hosts of leases that have expired when it is called.

        Not when it is committed: who is stopped in between has answers to settle when it goes on. Written in any case,
        so that the timeline's anchor is never old.
        """
        called_at = self.timeline.now()
        return await self._group.run(lambda book: upkeep.reap(book, expired_by=called_at))

    def snapshot(self) -> FrontierSnapshot:
        """Counters as of the last commit."""
        source = (self._totals, self.timeline.now(), self._next)
        if source[0] is not self._shown[0] or source[1:] != self._shown[1:]:
            self._shown, self._snapshot = source, snapshot_of(*source)
        return self._snapshot

    def refresh(self) -> FrontierSnapshot:
        """Counters as of the last commit of any process: a look at the store, some forty microseconds."""
        if self._group.is_held:  # then nobody else can have written
            return self.snapshot()
        commits = self._commits
        with self._tables.env.begin(db=self._tables.web) as txn:
            if txn.id() == self._seen:
                return self.snapshot()
            looking = NotedTransaction(txn, self._tables.web)
            observed = _observe(Book(looking, self._tables, self.timeline, self._group.policy, 0))
        if self._commits == commits:  # else a commit of our own was faster, and knows more
            self._totals, self._next, self._seen = observed
        return self.snapshot()

    def _is_due(self) -> bool:
        """Whether a claim could change anything: something is ready, or its time comes soon enough."""
        self.refresh()
        policy = self._group.policy
        ahead_ms = policy.ordered_wait_ms if policy.ordered else policy.settings.look_ahead_ms
        return self._next is not None and self._next <= self.timeline.now() + ahead_ms

    # Reading: what was committed, through the view

    def rules(self, origin: str) -> OriginRules | None:
        """The robots rules in force for an origin."""
        return self.view.rules(origin)

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""
        return self.view.story(host, fingerprint)

    def dead(self, limit: int, after: bytes = b"") -> list[UrlStory]:
        """Dead letters in key order."""
        return self.view.dead(limit, after)

    # Opening, recovering, operating: for the node, on one machine

    async def begin_cycle(self) -> bool:
        """Begin a new cycle, unless one that was begun so is still open: the same command goes on (F10)."""
        return await self._group.run(upkeep.begin_cycle)

    async def end_cycle(self) -> bool:
        """Nothing is left to do in this cycle: the next `begin_cycle` begins another."""
        await self._group.run(upkeep.end_cycle)
        return True  # nobody else begins one

    def check_readers(self) -> int:
        """Free the places of readers that died; how many."""
        return int(self._tables.env.reader_check())

    def is_waited_at(self) -> bool:
        """Whether a worker waits for its turn at the store: nearly always if all are busy, or if one hangs."""
        return self._group.is_waited_at()

    async def catch_up(self) -> None:
        """Let the store show what a worker has answered and not committed, who is known to be dead."""
        await self._group.run(lambda _: None)

    async def reap_all(self) -> int:
        """Return the hosts of all leases: their holders are known to be dead.

        Not of those that were lent and still hold: whoever works outside lives on when a crawl is killed.
        """
        return await self._group.run(lambda book: upkeep.reap(book, living=lending.OUTSIDE))

    async def reap_holder(self, holder: int) -> int:
        """Return the hosts of all leases of one process, known to be dead."""
        return await self._group.run(lambda book: upkeep.reap(book, holder=holder))

    async def lose(self, segment: SegmentId, valid_end: int) -> int:
        """Queue again the pages whose bytes are gone."""
        return await self._group.run(upkeep.lose, segment, valid_end)

    async def disown(self, segment: SegmentId, offset: int) -> None:
        """A capture that was stored, but whose settle was refused: it belongs to nobody and is listed nowhere."""

        def verb(book: Book) -> None:
            book.txn.put(pending_key(segment, offset), b"", db=book.db["orphans"])

        await self._group.run(verb)

    async def revive(self, stories: Sequence[UrlStory]) -> int:
        """Put dead letters back into their queues, retries forgiven."""

        def verb(book: Book) -> int:
            count = 0
            for story in stories:
                key = book.tables.host_key(story.host)
                url_key = book.tables.url_key(story.host, story.fingerprint)
                raw = book.txn.get(url_key)
                if raw is None or raw[0] <= PARKED or (record := read_url(raw)).state is not State.DEAD:
                    continue
                host = book.known_host(key)
                waking.wake(book, key, host, (returning.requeue(book, key, host, url_key, record),))
                count += 1
            return count

        return await self._group.run(verb)

    async def recall(self, stories: Sequence[UrlStory], level: Level) -> int:
        """Queue URLs that have ended, or that wait for a time, once more in a class; how many (R2, by hand)."""

        def verb(book: Book) -> int:
            count = 0
            for story in stories:
                key = book.tables.host_key(story.host)
                url_key = book.tables.url_key(story.host, story.fingerprint)
                raw = book.txn.get(url_key)
                if raw is None or raw[0] <= PARKED or (record := read_url(raw)).state is State.QUEUED:
                    continue
                host = book.known_host(key)
                waking.wake(book, key, host, (returning.requeue(book, key, host, url_key, record, level),))
                count += 1
            return count

        return await self._group.run(verb)

    async def lease_again(self, token: Token, candidate: Candidate, via: Address | None, ref: RecordRef) -> bool:
        """Give the lease that a page in the archive was fetched under (N8); see `replaying`."""
        return await self._group.run(replaying.lease_page, token, candidate, via, ref)

    async def lease_robots_again(self, token: Token, task: RobotsTask, host: str) -> None:
        """The same for a robots.txt."""
        await self._group.run(replaying.lease_robots, token, task, host)

    # Workers outside

    async def lend(self, hosts: int, lease_s: float) -> lending.Lent:
        """Lease up to `hosts` hosts, one URL each, to a worker outside."""
        return await self._group.run(lending.lend, hosts, int(lease_s * 1000))

    async def take_back(self, token: Token, settlement: Settlement, release: Release) -> Settled:
        """Settle what was lent; refused where the lease was lost, or never was lent."""
        return await self._group.run(lending.take_back, token, settlement, release)

    async def reap_lent(self) -> int:
        """Return the hosts of leases that were lent and have expired."""
        return await self._group.run(lambda book: upkeep.reap(book, lent=lending.OUTSIDE))

    # A person's orders

    async def set_policy(self, domain: str, policy: DomainPolicy | None, was: DomainPolicy | None = None) -> bool:
        """Let a policy hold for a registrable domain from the next claim on; None takes it back (R4).

        Where somebody has changed `was` meanwhile, nothing is done; False then.
        """
        return await self._group.run(orders.set_policy, domain, policy, was)

    async def block(self, block: Block) -> None:
        """Ask no more for a domain, a host or a part of it (T7)."""
        await self._group.run(orders.block, block)

    async def unblock(self, pattern: str) -> bool:
        """Take a block back; False when there was none."""
        return await self._group.run(orders.unblock, pattern)

    async def forget(
        self,
        gone: Sequence[tuple[str, Fingerprint]],
        emptied: Sequence[tuple[str, Fingerprint]],
        origins: Sequence[str],
    ) -> None:
        """Forget what captures left behind that were taken out of the archive (K2); see `forgetting`."""
        await self._group.run(forgetting.forget, gone, emptied, origins)

    async def release_trap(self, host: str, skeleton_key: bytes) -> int:
        """Let a quarantined or slowed skeleton start anew; how many URLs come back (T2)."""
        return await self._group.run(lambda book: trapping.release(book, book.tables.host_key(host), skeleton_key))

    async def close(self) -> None:
        """Finish what was handed in, sync and close."""
        try:
            if self._tables.referrers and self.timeline.is_of_this_boot:
                with suppress(StorageError):  # a full disk: the latest are not counted, as after a kill
                    await self._group.run(lambda book: book.count_referrers())
            await self._group.close()
            self._tables.env.sync(True)
        except lmdb.Error as error:
            raise refused(error) from error
        finally:
            self._tables.close()

    def _publish(self, observed: tuple[Totals, int | None, int]) -> None:
        self._totals, self._next, self._seen = observed
        self._commits += 1


def _observe(book: Book) -> tuple[Totals, int | None, int]:
    """The counters, when something can be claimed next, and the transaction that says so."""
    return book.totals, upkeep.next_moment(book), book.txn.id()


_LEVEL_NAMES = tuple(level.name.lower() for level in Level)
_LANES = tuple(
    (order.level_of_lane(lane).name.lower(), order.supply_of_lane(lane) is order.Supply.DUE)
    for lane in range(order.LANES)
)
"""Of each lane its level, and whether what it holds was fetched before."""


def snapshot_of(totals: Totals, now: int, next_moment: int | None) -> FrontierSnapshot:
    """The totals as the interface's record."""
    queued, due = dict.fromkeys(_LEVEL_NAMES, 0), dict[str, int]()
    for (name, is_due), count in zip(_LANES, totals.queued, strict=True):
        queued[name] += count
        if is_due:
            due[name] = count
    planned = totals.delayed.get(DeferReason.DUE, 0)
    return FrontierSnapshot(
        now=now,
        cycle=totals.cycle,
        queued=queued,
        delayed={reason: count for reason, count in totals.delayed.items() if count and reason != DeferReason.DUE},
        states={
            "pending": totals.pending,
            "completed": totals.completed,
            "dropped": totals.dropped,
            "dead": totals.dead,
            "refused": totals.refused,
        },
        hosts=totals.hosts,
        hosts_ready=totals.hosts_ready,
        hosts_waiting=totals.hosts_waiting,
        hosts_leased=totals.hosts_leased,
        domains=totals.domains,
        pages=totals.pages,
        pages_in_cycle=totals.pages_in_cycle,
        next_in_ms=None if next_moment is None else max(0, next_moment - now),
        sweeping=totals.sweep is not None,
        waiting_for={reason: count for reason, count in totals.put_off.items() if count},
        due_again=due,
        parked={reason: count for reason, count in totals.shelved.items() if count},
        planned=planned,
        urls=totals.urls,
        gone=totals.gone,
        traps=totals.traps,
        reserved=totals.reserved,
        draws=totals.draws,
    )
