"""One open transaction, with everything a verb needs while it runs: tables, time, totals, settings.

The verbs (`admission`, `claiming`, `settling`, `upkeep`, `shelving`) are plain functions on a book. They decide
synchronously; the book is written back once, when the group commits. The states of hosts and domains are decoded once a
book and written once, and only if they changed, however many verbs touch them: a page of the store that need not be
written is the cheapest one.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING

from nephila.frontier import order
from nephila.frontier.blocklist import Blocklist
from nephila.frontier.policy import Policy
from nephila.frontier.timeline import Timeline
from nephila.frontier.traps import SkeletonTally
from nephila.model.outcome import DeferReason
from nephila.model.policy import DomainPolicy

from .coding import (
    pack,
    read_ages,
    read_block,
    read_domain,
    read_host,
    read_policy,
    read_robots,
    read_tally,
    read_totals,
)
from .desk import Desk
from .records import (
    DomainState,
    HostState,
    Place,
    RobotsEntry,
    Totals,
    UrlRecord,
)
from .tables import DOMAIN_KEY_BYTES, HOST_KEY_BYTES, QUEUE, ROBOTS, STATE, Tables

if TYPE_CHECKING:
    from .arrivals import Ledger
    from .noting import NotedTransaction

NO_HOST = bytes(HOST_KEY_BYTES - DOMAIN_KEY_BYTES)
"""Stands where a host's half of the key would: the state of the domain itself."""

AGE_STEP_S = 4 * 3600
"""Queued URLs are counted by the time they were admitted, in steps of four hours: 180 figures a month."""

NO_QUOTA = 1 << 62

ORDINARY = DomainPolicy()
"""Of a domain of which nobody has said anything."""
_LANES = tuple(range(order.LANES))
_IDLE, _WAITING, _READY, _PARKED = Place
"""Looked up once: until Python 3.12 a member of an enumeration costs as much as a call each time."""


def time_key(moment: int) -> bytes:
    """A moment of the timeline as a sortable key."""
    return max(moment, 0).to_bytes(8, "big")


class Book:
    """A write transaction and its context.

    The transaction's own database is `web`: a look-up or a write that names none means that one.
    """

    __slots__ = (
        "_desk", "_domain_states", "_domains_read", "_hosts_read", "_policies", "_tallies", "ages", "blocks", "covered",
        "cursor", "db", "hosts", "leased", "ledger", "now", "origins", "page_quota", "passed", "policy", "ready",
        "repute", "scores", "standings", "step", "tables", "timeline", "totals", "txn", "wall_s", "web",
    )  # fmt: skip

    def __init__(
        self,
        txn: NotedTransaction,
        tables: Tables,
        timeline: Timeline,
        policy: Policy,
        wall_s: int,
        desk: Desk | None = None,
    ) -> None:
        """`desk` is what the books of one writer keep between them; a book without one decodes everything itself."""
        self.txn = txn
        self.tables = tables
        self.db = tables.db
        self.web = tables.web
        self.cursor = txn.cursor(db=tables.web)
        """For looking up and writing many at once."""
        self.ready = txn.cursor(db=tables.db["ready"])
        """For choosing the next host, once for each lease."""
        self.timeline = timeline
        self.policy = policy
        self.repute = policy.repute if policy.repute is not None and policy.repute.look() else None
        """Where grades of domains are at hand: looked for once a book."""
        self.now = timeline.now()
        self.step = 0 if policy.ordered else self.now // order.step_ms(policy.priority)
        self.wall_s = wall_s
        raw = txn.get(b"totals", db=self.db["meta"])
        self.totals = Totals() if raw is None else read_totals(raw)
        raw = txn.get(b"ages", db=self.db["meta"])
        self.ages: dict[int, list[int]] = {} if raw is None else read_ages(raw)
        self.hosts: dict[bytes, HostState] = {}
        self._hosts_read: dict[bytes, bytes] = {}
        self._domain_states: dict[bytes, DomainState] = {}
        self._domains_read: dict[bytes, bytes] = {}
        self._tallies: dict[bytes, SkeletonTally] = {}
        self.scores: dict[tuple[int, int, int, int], int] = {}
        """What URLs that were never fetched score, by what that depends on."""
        self.standings: dict[tuple[int, int, int, int], bytes] = {}
        """And where that puts them in the queue, packed, by the same."""
        self.page_quota = NO_QUOTA
        """Pages that may still be leased: bounded where several processes share a limit."""
        self._desk = Desk() if desk is None else desk
        self._desk.take(txn.id())
        self.leased: dict[bytes, int] = self._desk.leased
        """Tokens of hosts as far as they were asked for; 0 of those that are not leased."""
        self.origins = self._desk.origins
        """What is known of robots.txt files, as far as it was asked for: see `origins`."""
        self.passed = self._desk.passed
        """How far claims have come in queues of which much has to be passed over: see `passing`."""
        self.ledger: Ledger | None = None
        """What holds for all that is new, once something is: see `admission`."""
        self.covered: dict[int, list[bytes]] = {}
        """Fingerprints that leases cover, by token, as far as they were asked for; of late, or a few too many."""
        self._policies: dict[str, DomainPolicy] = {}
        self.blocks: Blocklist | None = None
        """What may not be asked for (T7); None where nothing is."""
        self.read_blocks()

    def write_back(self) -> None:
        """Write what changed of hosts, domains and tallies, the totals and the timeline's anchor."""
        changed: list[tuple[bytes, bytes]] = []
        desk = self._desk
        for key, domain in self._domain_states.items():
            raw = pack(domain)
            if raw != self._domains_read.get(key):
                changed.append((key + NO_HOST + STATE, raw))
            desk.domains[key] = (domain, raw)
        for key, host in self.hosts.items():
            raw = pack(host)
            if raw != self._hosts_read.get(key):
                changed.append((key + STATE, raw))
            desk.hosts[key] = (host, raw)
        changed += [(key, pack(tally)) for key, tally in self._tallies.items()]
        changed.sort()
        self.cursor.putmulti(changed)
        meta = self.db["meta"]
        self.txn.put(b"totals", pack(self.totals), db=meta)
        self.txn.put(b"ages", pack({age: counts for age, counts in self.ages.items() if any(counts)}), db=meta)
        self.txn.put(b"anchor", pack(self.timeline.anchor()), db=meta)
        desk.give_back()

    # Hosts and domains

    def host(self, key: bytes) -> HostState | None:
        """The state of a host, shared by all verbs of this book."""
        host = self.hosts.get(key)
        if host is None:
            kept = self._desk.hosts.get(key) or self._desk.old_hosts.get(key)
            if kept is None:
                raw = self.txn.get(key + STATE)
                if raw is None:
                    return None
                kept = (read_host(raw), raw)
            host, self._hosts_read[key] = kept
            self.hosts[key] = host
        referrers = self.tables.referrers
        if key in referrers:
            host.referrers |= referrers.pop(key)
        return host

    def count_referrers(self, hosts: int | None = None) -> None:
        """Count what waits of referring domains (of so many hosts, the oldest first), by reading the hosts."""
        for key in list(self.tables.referrers)[:hosts]:
            if self.host(key) is None:
                self.tables.referrers.pop(key, None)

    def known_host(self, key: bytes) -> HostState:
        """The state of a host that must exist."""
        host = self.hosts.get(key)
        if host is None or key in self.tables.referrers:
            host = self.host(key)
            if host is None:
                raise KeyError(key)
        return host

    def host_or_new(self, key: bytes, name: str) -> HostState:
        """The state of a host, made when it is met for the first time."""
        host = self.host(key)
        if host is None:
            host = self.hosts[key] = HostState(name, [0] * order.LANES)
            host.referrers = self.tables.referrers.pop(key, 0)
            self.totals.hosts += 1
        return host

    def domain(self, key: bytes, name: str = "") -> DomainState:
        """The state of the registrable domain that a host key (or the key of a domain) belongs to."""
        key = key[:DOMAIN_KEY_BYTES]
        domain = self._domain_states.get(key)
        if domain is None:
            kept = self._desk.domains.get(key) or self._desk.old_domains.get(key)
            if kept is not None:
                domain, self._domains_read[key] = kept
            elif (raw := self.txn.get(key + NO_HOST + STATE)) is None:
                domain = DomainState(name)
                self.totals.domains_met += 1
            else:
                domain, self._domains_read[key] = read_domain(raw), raw
            self._domain_states[key] = domain
        return domain

    def domain_seen(self, key: bytes) -> DomainState:
        """The state of the domain of a known host, for reading only: it is not written back."""
        key = key[:DOMAIN_KEY_BYTES]
        domain = self._domain_states.get(key)
        if domain is None:
            kept = self._desk.domains.get(key) or self._desk.old_domains.get(key)
            if kept is None:
                raw = self.txn.get(key + NO_HOST + STATE)
                if raw is None:
                    return self.domain(key)
                kept = self._desk.domains[key] = (read_domain(raw), raw)
            domain = kept[0]
        return domain

    def lowered(self, key: bytes) -> int:
        """By how many levels errors hold down the class of a host's domain (P4)."""
        return self.domain(key).health.lowered if self.totals.lowered else 0

    def policy_of(self, domain: DomainState) -> DomainPolicy:
        """What holds for a domain by a person's word (R4)."""
        if not domain.policed:
            return ORDINARY
        policy = self._policies.get(domain.name)
        if policy is None:
            raw = self.txn.get(domain.name.encode(), db=self.db["policies"])
            policy = self._policies[domain.name] = ORDINARY if raw is None else read_policy(raw)
        return policy

    def forget_policies(self) -> None:
        """A policy was changed in this book."""
        self._policies.clear()

    def read_blocks(self) -> None:
        """Read what may not be asked for, where it was changed since, by whomever."""
        version, blocks = self.tables.blocklist
        if version != self.totals.orders:
            with self.txn.cursor(db=self.db["blocks"]) as cursor:
                blocks = Blocklist(read_block(raw) for _, raw in cursor)
            self.tables.blocklist = (self.totals.orders, blocks)
        self.blocks = blocks or None

    # What was counted under patterns of URLs (T2): see `tallies`

    def tally(self, key: bytes) -> SkeletonTally | None:
        """What was counted under the key of a pattern, shared by all verbs; who changes it calls `keep_tally`."""
        desk = self._desk
        tally = desk.tallies.get(key)
        if tally is None:
            tally = desk.old_tallies.get(key)
            if tally is None:
                raw = self.txn.get(key)
                if raw is None:
                    return None
                tally = read_tally(raw)
            desk.tallies[key] = tally
        return tally

    def keep_tally(self, key: bytes, tally: SkeletonTally) -> None:
        """A tally is new, or was changed."""
        self._desk.tallies[key] = self._tallies[key] = tally

    def base_delay_ms(self, domain: DomainState) -> int:
        """The base delay of the hosts of a domain."""
        wanted = self.policy_of(domain).delay_s if domain.policed else None
        return self.policy.base_delay_ms if wanted is None else int(wanted * 1000)

    def delay_of(self, key: bytes, host: HostState) -> int:
        """The delay that a host is owed now, milliseconds."""
        base = self.base_delay_ms(self.domain(key)) if host.delay_ms < 0 else host.delay_ms
        return max(base, host.crawl_delay_ms)

    # Places of hosts: every move takes the host out of where it was

    def token_of(self, key: bytes) -> int:
        """The token of the lease that a host is under; 0 when it is under none."""
        token = self.leased.get(key)
        if token is None:
            raw = self.txn.get(key, db=self.db["leased"])
            token = self.leased[key] = 0 if raw is None else int.from_bytes(raw, "big")
        return token

    def lease(self, key: bytes, host: HostState, token: int) -> None:
        """Put a ready host among the leased ones. Its state stays as it is: whoever frees it takes it from there."""
        self._unready(key, host)
        self.txn.put(key, token.to_bytes(8, "big"), db=self.db["leased"])
        self.leased[key] = token
        self.totals.hosts_ready -= 1
        self.totals.hosts_leased += 1

    def free(self, key: bytes, host: HostState) -> None:
        """End the lease on a host; it is nowhere then."""
        self.txn.delete(key, db=self.db["leased"])
        self.leased[key] = 0
        self.totals.hosts_leased -= 1
        host.place, host.ready = _IDLE, []

    def leave(self, key: bytes, host: HostState) -> None:
        """Take a host that is not leased out of the index it is in."""
        place = host.place
        if place is _WAITING:
            self.txn.delete(host.next_at.to_bytes(8, "big") + key, db=self.db["waiting"])
            self.totals.hosts_waiting -= 1
        elif place is _READY:
            self._unready(key, host)
            host.ready = []
            self.totals.hosts_ready -= 1
        elif place is _PARKED:
            self.txn.delete(key, db=self.db["parked"])
        if host.reason:
            self._count_put_off(host, -1)
            host.reason = ""
        host.place = _IDLE

    def wait(self, key: bytes, host: HostState, until: int, reason: str = "") -> None:
        """Put a host among the waiting ones."""
        if host.place is not _IDLE or host.reason:
            self.leave(key, host)
        until = max(until, 0)
        host.place, host.next_at, host.reason = _WAITING, until, reason
        self.txn.put(until.to_bytes(8, "big") + key, b"", db=self.db["waiting"])
        self.totals.hosts_waiting += 1
        if reason:
            self._count_put_off(host, 1)

    def park(self, key: bytes, host: HostState, reason: str) -> None:
        """Put a host aside until something else changes."""
        self.leave(key, host)
        host.place, host.reason = _PARKED, reason
        self.txn.put(key, reason.encode(), db=self.db["parked"])
        self._count_put_off(host, 1)

    def make_ready(self, key: bytes, host: HostState, heads: dict[int, bytes] | None = None) -> None:
        """Put a host among the ready ones, once for each lane it has work in, and once by how long it has had work.

        `heads` is what `heads` would find, where the caller knows it.
        """
        heads = heads or self.heads(key, host)
        if not heads:
            self._rest_without_work(key, host)
            return
        if host.place is not _IDLE or host.reason:
            self.leave(key, host)
        pages, policy, counts = self.domain_seen(key).pages, self.policy, self.totals.ready
        host.work_since = host.work_since or self.now or 1
        since = 0 if policy.ordered else host.work_since
        ready = host.ready = [order.ready_key(lane, pages, place, since) for lane, place in heads.items()]
        ready.append(order.since_key(host.work_since, host.name, policy.random_seed))
        entries: list[tuple[bytes, bytes]] = []
        for place in ready:
            entries.append((place + key, b""))
            counts[place[0]] += 1
        self.ready.putmulti(entries)
        host.place = _READY
        self.totals.hosts_ready += 1

    def _unready(self, key: bytes, host: HostState) -> None:
        """Take a host out of the ready index."""
        delete, ready, counts = self.txn.delete, self.db["ready"], self.totals.ready
        for place in host.ready:
            delete(place + key, db=ready)
            counts[place[0]] -= 1

    def rest(self, key: bytes, host: HostState) -> None:
        """Put a free host where it belongs: waiting until it may be asked, or idle when it has no work."""
        if any(host.queued) or host.robots:
            self.wait(key, host, host.free_at)
        else:
            self._rest_without_work(key, host)

    def _rest_without_work(self, key: bytes, host: HostState) -> None:
        """Put a host whose queue is empty where it belongs: what lies on its shelves may come back."""
        host.work_since = 0
        if host.trap_at:
            self.wait(key, host, max(host.free_at, host.trap_at), DeferReason.TRAP)
        elif host.over:
            self.park(key, host, DeferReason.BUDGET)
        else:
            self.leave(key, host)

    def _count_put_off(self, host: HostState, sign: int) -> None:
        if host.reason:
            total = self.totals.put_off.get(host.reason, 0) + sign * max(1, sum(host.queued))
            self.totals.put_off[host.reason] = max(0, total)

    # The first of a host's queue

    def heads(self, key: bytes, host: HostState) -> dict[int, bytes]:
        """The best place of each lane that a host has work in by now; robots.txt counts as immediate work."""
        if host.robots:
            return {0: order.pack_place(0, 0, 0, order.tie_of(host.name.encode(), self.policy.random_seed))}
        lowered = self.lowered(key) if self.totals.lowered else 0
        heads: dict[int, bytes] = {}
        cursor, prefix = self.cursor, key + QUEUE
        for lane in compress(_LANES, host.queued):
            if cursor.set_range(prefix + bytes((lane,))):
                found = cursor.key()
                if not found.startswith(prefix):
                    break
                place = found[HOST_KEY_BYTES + 1 :]
                step = int.from_bytes(place[1:4], "big")
                now_lane = order.effective_lane(place[0], step, self.step, self.policy.priority, lowered)
                if now_lane not in heads or place[1:] < heads[now_lane][1:]:
                    heads[now_lane] = place
        return heads

    def first_robots(self, key: bytes) -> tuple[bytes, RobotsEntry] | None:
        """The robots.txt that waits in this host's queue."""
        prefix = key + ROBOTS
        if self.cursor.set_range(prefix) and self.cursor.key().startswith(prefix):
            return self.cursor.key(), read_robots(self.cursor.value())
        return None

    def count_queued(self, host: HostState, lane: int, by: int, admitted_s: int) -> None:
        """URLs came into a host's queue, or left it."""
        if host.reason:
            self._count_put_off(host, -1)  # it is counted with all that it has queued
        host.queued[lane] += by
        self.totals.queued[lane] += by
        self._ages_at(admitted_s)[order.LEVELS[lane]] += by
        if host.reason:
            self._count_put_off(host, 1)
        if by > 0 and not host.work_since:
            host.work_since = self.now or 1

    def ages_now(self) -> list[int]:
        """URLs by class that are queued and were admitted at the present time."""
        return self._ages_at(self.wall_s)

    def _ages_at(self, admitted_s: int) -> list[int]:
        age = admitted_s // AGE_STEP_S
        counts = self.ages.get(age)
        if counts is None:
            counts = self.ages[age] = [0, 0, 0, 0]
        return counts

    # Waiting for a time

    def delay(self, url_key: bytes, record: UrlRecord, until: int, reason: str) -> None:
        """Put a URL into the time index."""
        record.due_at = until = max(1, until)
        self.txn.put(until.to_bytes(8, "big") + url_key, reason.encode(), db=self.db["due"])
        self.totals.delayed[reason] = self.totals.delayed.get(reason, 0) + 1

    def end_delay(self, url_key: bytes, record: UrlRecord) -> None:
        """Take a URL out of the time index."""
        if not record.due_at:
            return
        raw = self.txn.pop(time_key(record.due_at) + url_key, db=self.db["due"])
        if raw is not None:
            reason = raw.decode()
            self.totals.delayed[reason] = max(0, self.totals.delayed.get(reason, 0) - 1)
        record.due_at = 0

    # URLs

    def put_url(self, url_key: bytes, record: UrlRecord) -> None:
        """Write a URL's record."""
        self.txn.put(url_key, pack(record))
