"""F2, F3, F5, F10, P2, P4, R2, R4, S4, T2, T7: the embedded frontier under any sequence of verbs and clock jumps.

After every step all counters are held against a recount, and all indexes against the records (`recount`). Beside it a
model keeps what a user relies on: a host is never leased twice, nobody asks it before its rest is over or against a
person's word, no URL is lost, none is fetched again before its time, and an old token changes nothing.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from frontier_steps import (
    ADDRESSES,
    BLOCKS,
    DOMAINS,
    HOSTS,
    RECRAWL,
    URLS,
    address,
    blocked,
    forbidden,
    policies,
    some_answers,
    some_candidates,
    some_orders,
)
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nephila.frontier import traps
from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.embedded.tables import HOST_KEY_BYTES
from nephila.frontier.embedded.trapping import held
from nephila.frontier.policy import Policy
from nephila.model.outcome import (
    Dead,
    DeferReason,
    Deferred,
    Dropped,
    OriginRules,
    Outcome,
    Release,
    Respelled,
    Retry,
    RulesKind,
    RulesLearned,
    RulesMoved,
    Settlement,
)
from nephila.model.policy import Block, DomainPolicy
from nephila.model.record import RecordRef, SegmentId
from nephila.model.task import Candidate, Lease, Level, Pace, PageTask, Refusal, RobotsTask
from nephila.testing.clock import VirtualClock
from nephila.testing.recount import check_tables
from nephila.urls import registrable_domain

LEASE_S = 60.0
DAY_S = 86_400.0
some_outcomes = st.sampled_from(
    ["done", "done", "done", "done", "retry", "busy", "deferred", "dropped", "dead", "respelled"]
)
some_rules = st.sampled_from(["allow", "allow", "allow", "unavailable", "moved", "deferred"])


@dataclass
class Held:
    """A lease that somebody holds, and what is left of it."""

    lease: Lease
    open: list[PageTask | RobotsTask]
    expires_at: int


@dataclass(frozen=True)
class Fetched:
    """A page that was stored: in which cycle, in which segment, and when it is due again."""

    cycle: int
    segment: SegmentId
    due_at: int | None


class FrontierMachine(RuleBasedStateMachine):
    """The verbs as rules."""

    @initialize(policy=policies())
    def open(self, policy: Policy) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(traps, "TALLIED_FROM", 1)  # hosts are too small here for some of their pages not to count
        self.folder = Path(tempfile.mkdtemp(prefix="frontier-"))
        self.loop = asyncio.new_event_loop()
        self.clock = VirtualClock()
        self.policy = policy
        self.frontier = LmdbFrontier(self.folder, self.clock, self.policy, threaded=False)
        self.held: dict[str, Held] = {}
        self.lost: list[Lease] = []
        self.free_at: dict[str, int] = {}
        self.delay: dict[str, int] = {}
        self.known: set[bytes] = set()
        self.orders: dict[str, DomainPolicy] = {}
        self.blocks: set[str] = set()
        self.segment, self.end = 1, 0
        self.fetched: dict[bytes, Fetched] = {}
        self.pages = 0
        self.now = 0

    def teardown(self) -> None:
        if hasattr(self, "frontier"):
            self.do(self.frontier.close())
            self.loop.close()
            self.patch.undo()
            shutil.rmtree(self.folder)

    def do(self, verb: Any) -> Any:
        return self.loop.run_until_complete(verb)

    # Verbs

    @rule(candidates=some_candidates, refused=st.lists(st.sampled_from(URLS), max_size=3))
    def admit(self, candidates: list[Candidate], refused: list[str]) -> None:
        refusals = [Refusal(ADDRESSES[url], "scope") for url in refused]
        admission = self.do(self.frontier.admit(candidates, refusals))
        new, allowed = self.meet(candidates)
        assert (admission.added, admission.known) == (allowed, len(candidates) - new)

    def meet(self, candidates: list[Candidate]) -> tuple[int, int]:
        """Follow what an admission does: how many are new, and how many of those nobody forbids."""
        new = {one.address.fingerprint for one in candidates if one.address.fingerprint not in self.known}
        allowed = {
            one.address.fingerprint
            for one in candidates
            if not forbidden(one, self.blocks, self.orders.get(registrable_domain(one.address.host)))
        } & new
        self.known |= allowed
        for one in candidates:
            if one.level is Level.IMMEDIATE:
                self.fetched.pop(one.address.fingerprint, None)  # it may come again, because somebody wants it
        return len(new), len(allowed)

    @rule(hosts=st.integers(0, 4))
    def claim(self, hosts: int) -> None:
        leases = self.do(self.frontier.claim(hosts, LEASE_S))
        assert len(leases) <= hosts
        for lease in leases:
            assert lease.host not in self.held, "a leased host was claimed again"
            assert lease.not_before >= self.free_at.get(lease.host, 0), "claimed before its rest is over"
            assert lease.tasks
            self.check_orders(lease)
            self.held[lease.host] = Held(lease, list(lease.tasks), lease.expires_at)

    def check_orders(self, lease: Lease) -> None:
        """R4, T7: a person's word holds from the next claim on. F2: nothing is fetched again before its time."""
        order = self.orders.get(lease.domain, DomainPolicy())
        hour = datetime.fromtimestamp(self.clock.wall_ms() / 1000, UTC).hour
        assert not order.paused, "a paused domain was claimed"
        assert not order.hours or any(
            first <= hour < last if first < last else hour >= first or hour < last for first, last in order.hours
        ), "claimed outside of its hours"
        assert not blocked(lease.host, "", self.blocks), "a blocked host was claimed"
        for task in lease.tasks:
            if isinstance(task, PageTask):
                assert order.max_depth is None or task.depth <= order.max_depth, "deeper than its policy allows"
                assert not blocked("", task.url, self.blocks), "a blocked URL was claimed"
                self.check_due(lease, task)

    def check_due(self, lease: Lease, task: PageTask) -> None:
        before = self.fetched.get(task.fingerprint)
        if before is not None and before.cycle >= self.frontier.snapshot().cycle:
            ahead = self.policy.ordered_wait_ms if self.policy.ordered else self.policy.settings.look_ahead_ms
            assert before.due_at is not None, "fetched twice in a cycle"
            assert lease.claimed_at + ahead >= before.due_at, "fetched again before it was due"

    @precondition(lambda self: self.held)
    @rule(data=st.data(), frees=st.booleans())
    def settle(self, data: st.DataObject, frees: bool) -> None:
        host = data.draw(st.sampled_from(sorted(self.held)))
        if self.held[host].open:
            self.settle_next(data, host, frees=frees)

    def settle_next(self, data: st.DataObject, host: str, *, frees: bool) -> None:
        one = self.held[host]
        task = one.open.pop(0)
        links = data.draw(some_candidates)
        if isinstance(task, RobotsTask):
            ending, frees = self.robots_ending(task, data.draw(some_rules)), True
        else:
            ending = self.ending(data, task, data.draw(some_outcomes))
        wait = data.draw(st.sampled_from([0, 700, 1000, 5000]))
        reason = data.draw(st.sampled_from([None, None, DeferReason.RETRY_AFTER]))
        release = Release(wait, Pace(wait), 10, reason) if frees else None
        settled = self.do(self.frontier.settle(one.lease.token, [Settlement(task, ending, links)], release))
        assert settled.accepted
        if isinstance(task, PageTask):
            self.note_due(task)
        self.meet(links)
        if frees:
            self.freed(host, wait, wait)

    def note_due(self, task: PageTask) -> None:
        found = self.fetched.get(task.fingerprint)
        story = self.frontier.story(address(task.url).host, task.fingerprint)
        assert story is not None
        if found is not None and story.due_in_ms is not None:
            due_at = self.frontier.timeline.now() + story.due_in_ms
            self.fetched[task.fingerprint] = replace(found, due_at=due_at)

    @rule(data=st.data())
    def work(self, data: st.DataObject) -> None:
        """Claim and settle as a worker does, so that examples come further than single verbs would take them."""
        self.claim(4)
        for host in sorted(self.held):
            while host in self.held and self.held[host].open:
                self.settle_next(data, host, frees=len(self.held[host].open) == 1)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        host = data.draw(st.sampled_from(sorted(self.held)))
        lease = self.held[host].lease
        wait = max(0, lease.not_before - self.frontier.timeline.now())
        assert self.do(self.frontier.settle(lease.token, [], Release(wait, lease.pace))).accepted
        self.freed(host, wait, max(lease.pace.delay_ms, lease.pace.crawl_delay_ms))

    @precondition(lambda self: self.lost)
    @rule(data=st.data())
    def settle_late(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.lost))
        settlement = Settlement(lease.tasks[0], Dropped("late"), [Candidate(address("http://never.test/"), 0)])
        assert not self.do(self.frontier.settle(lease.token, [settlement], Release(0, Pace(0)))).accepted

    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        hosts = data.draw(st.lists(st.sampled_from(HOSTS), unique=True))
        asked = {self.held[host].lease.token: host for host in hosts if host in self.held}
        gone = [lease.token for lease in self.lost]
        assert self.do(self.frontier.renew([*asked, *gone], LEASE_S)) == set(asked)
        for host in asked.values():
            self.held[host].expires_at = self.frontier.timeline.now() + int(LEASE_S * 1000)

    @rule(everything=st.booleans())
    def reap(self, everything: bool) -> None:
        now = self.frontier.timeline.now()
        ended = [host for host, one in self.held.items() if everything or one.expires_at <= now]
        assert self.do(self.frontier.reap_all() if everything else self.frontier.reap()) == len(ended)
        for host in ended:
            lease = self.held[host].lease
            wanted = self.orders.get(lease.domain, DomainPolicy()).delay_s
            base = self.policy.base_delay_ms if wanted is None else int(wanted * 1000)
            delay = self.delay.get(host, base)
            self.freed(host, delay, delay)
            self.lost.append(lease)

    @rule(share=st.floats(0, 1))
    def confirm(self, share: float) -> None:
        self.do(self.frontier.confirm(self.name(), int(self.end * share)))

    @rule(share=st.floats(0, 1))
    def lose(self, share: float) -> None:
        lost = self.do(self.frontier.lose(self.name(), int(self.end * share)))
        pages = self.frontier.snapshot().pages
        assert self.pages - lost <= pages <= self.pages
        self.pages = pages
        self.fetched = {one: where for one, where in self.fetched.items() if where.segment != self.name()}
        self.segment, self.end = self.segment + 1, 0

    @rule()
    def begin_cycle(self) -> None:
        self.do(self.frontier.begin_cycle())

    @rule()
    def end_cycle(self) -> None:
        self.do(self.frontier.end_cycle())

    @rule(limit=st.integers(1, 3))
    def revive(self, limit: int) -> None:
        letters = self.frontier.dead(limit)
        for letter in letters:
            self.fetched.pop(letter.fingerprint, None)
        assert self.do(self.frontier.revive(letters)) == len(letters)
        assert self.do(self.frontier.revive(letters)) == 0

    # A person's word

    @rule(domain=st.sampled_from(DOMAINS), order=some_orders)
    def set_policy(self, domain: str, order: DomainPolicy) -> None:
        self.do(self.frontier.set_policy(domain, order))
        self.orders[domain] = order
        assert self.frontier.view.policies() == self.orders

    @rule(domain=st.sampled_from(DOMAINS))
    def take_policy_back(self, domain: str) -> None:
        self.do(self.frontier.set_policy(domain, None))
        self.orders.pop(domain, None)

    @rule(pattern=st.sampled_from(BLOCKS))
    def block(self, pattern: str) -> None:
        self.do(self.frontier.block(Block(pattern, "by hand")))
        self.blocks.add(pattern)

    @rule(pattern=st.sampled_from(BLOCKS))
    def unblock(self, pattern: str) -> None:
        assert self.do(self.frontier.unblock(pattern)) == (pattern in self.blocks)
        self.blocks.discard(pattern)

    @rule()
    def release_traps(self) -> None:
        names = {self.frontier._tables.host_key(host): host for host in HOSTS}
        for key in self.frontier._group.run_now(held):
            self.do(self.frontier.release_trap(names[key[:HOST_KEY_BYTES]], key[HOST_KEY_BYTES:]))
        assert self.frontier.snapshot().traps == 0

    # The world

    @rule(seconds=st.sampled_from([0.05, 0.7, 1.1, 5.0, 61.0, 700.0, DAY_S + 3600, 8 * DAY_S, 31 * DAY_S]))
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(seconds=st.sampled_from([-7200, 7200]))
    def jump_wall(self, seconds: int) -> None:
        self.clock.jump_wall(seconds)

    @rule(reboot=st.booleans(), limit=st.sampled_from([0, 3, 5]))
    def reopen(self, reboot: bool, limit: int) -> None:
        self.do(self.frontier.close())
        if reboot:
            self.clock.reboot()
        self.policy = replace(self.policy, max_pages_per_host=limit)
        self.frontier = LmdbFrontier(self.folder, self.clock, self.policy, threaded=False)
        if reboot:
            for host, delay in self.delay.items():
                if host not in self.held:
                    self.free_at[host] = max(self.free_at[host], self.frontier.timeline.now() + delay)

    # What must stay true

    @invariant()
    def counters_equal_a_recount(self) -> None:
        if hasattr(self, "frontier"):
            check_tables(self.frontier, RECRAWL)

    @invariant()
    def time_never_runs_backwards(self) -> None:
        if hasattr(self, "frontier"):
            snapshot = self.frontier.snapshot()
            assert snapshot.now >= self.now
            self.now = snapshot.now
            assert snapshot.pages == self.pages

    @invariant()
    def no_url_is_lost(self) -> None:
        if hasattr(self, "frontier"):
            for found in ADDRESSES.values():
                story = self.frontier.story(found.host, found.fingerprint)
                assert (story is not None and story.state != "refused") == (found.fingerprint in self.known)

    # Parts

    def name(self) -> SegmentId:
        return SegmentId(f"segment-{self.segment}")

    def freed(self, host: str, wait: int, delay: int) -> None:
        del self.held[host]
        self.free_at[host] = self.frontier.timeline.now() + wait
        self.delay[host] = delay

    def ending(self, data: st.DataObject, task: PageTask, outcome: str) -> Outcome:  # noqa: PLR0911 - a table
        match outcome:
            case "done":
                answer = data.draw(some_answers)
                start, self.end = self.end, self.end + 100
                self.pages += answer.page
                cycle = self.frontier.snapshot().cycle
                self.fetched[task.fingerprint] = Fetched(cycle, self.name(), None)
                return answer.stored(RecordRef(self.name(), start, 50, self.end))
            case "retry":
                return Retry(5000, "timeout", "no answer")
            case "busy":
                return Retry(5000, "http_5xx", "503")
            case "deferred":
                return Deferred(2000, DeferReason.DNS)
            case "dropped":
                return Dropped("robots", "line 1")
            case "dead":
                return Dead("tls", "expired")
            case _:
                other = task.url[:-1] if task.url.endswith("/") else f"{task.url}/"
                respelled = address(other)
                return Respelled(respelled if respelled.fingerprint == task.fingerprint else address(task.url))

    def robots_ending(self, task: RobotsTask, kind: str) -> Outcome:
        now, wall = self.frontier.timeline.now(), self.clock.wall_ms()
        match kind:
            case "allow":
                return RulesLearned(OriginRules(task.origin, RulesKind.ALLOW_ALL, b"", wall, now + 86_400_000))
            case "unavailable":
                return RulesLearned(OriginRules(task.origin, RulesKind.UNAVAILABLE, b"", wall, now + 300_000))
            case "moved" if task.hops < 2:
                return RulesMoved(task.origin, address("https://b.test/robots.txt"), task.hops + 1)
            case _:
                return Deferred(1000, DeferReason.DNS)


FrontierMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


class TestFrontierMachine(FrontierMachine.TestCase):  # type: ignore[misc,valid-type]
    """F2, F3, F5, F10, P2, P4, R2, R4, S4, T2, T7: see the module."""
