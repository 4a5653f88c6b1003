"""F2, F3, F10, P2: the embedded frontier under any sequence of verbs, crashes, reboots and clock jumps.

After every step all counters are held against a recount, and all indexes against the records (`recount`). Beside it a
model keeps what a user relies on: a host is never leased twice, nobody asks it before its rest is over, no URL is
lost, and an old token changes nothing.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from recount import check_tables

from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.embedded.book import Policy
from nephila.model.outcome import (
    Dead,
    DeferReason,
    Deferred,
    Done,
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
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import FrontierSettings
from nephila.model.task import Candidate, Lease, Level, Pace, PageTask, Refusal, RobotsTask
from nephila.testing.clock import VirtualClock
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

HOSTS = ("a.test", "www.a.test", "b.test")
URLS = tuple(f"{scheme}://{host}/{path}" for host in HOSTS for scheme in ("http", "https") for path in ("", "1/", "2"))
IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())
LEASE_S = 60.0


def address(url: str) -> Address:
    found = IDENTIFIER.identify(url)
    assert isinstance(found, Address)
    return found


some_candidates = st.lists(
    st.tuples(st.sampled_from([address(url) for url in URLS]), st.integers(0, 3), st.sampled_from(Level)).map(
        lambda fields: Candidate(*fields)
    ),
    max_size=6,
)
some_outcomes = st.sampled_from(["done", "answer", "retry", "deferred", "dropped", "dead", "respelled"])
some_rules = st.sampled_from(["allow", "allow", "allow", "unavailable", "moved", "deferred"])


@dataclass
class Held:
    """A lease that somebody holds, and what is left of it."""

    lease: Lease
    open: list[PageTask | RobotsTask]
    expires_at: int


class FrontierMachine(RuleBasedStateMachine):
    """The verbs as rules."""

    @initialize(
        base=st.sampled_from([0, 1000]),
        limit=st.sampled_from([0, 3]),
        robots=st.booleans(),
        ordered=st.booleans(),
        cooldown=st.sampled_from([0.0, 500.0]),
    )
    def open(self, base: int, limit: int, robots: bool, ordered: bool, cooldown: float) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="frontier-"))
        self.loop = asyncio.new_event_loop()
        self.clock = VirtualClock()
        frontier = FrontierSettings(sync=False, linger_ms=0, map_bytes=1 << 26, cooldown_s=cooldown, max_refusals=5)
        self.policy = Policy(frontier, base, limit, robots=robots, ordered=ordered)
        self.frontier = LmdbFrontier(self.folder, self.clock, self.policy, threaded=False)
        self.held: dict[str, Held] = {}
        self.lost: list[Lease] = []
        self.free_at: dict[str, int] = {}
        self.delay: dict[str, int] = {}
        self.known: set[bytes] = set()
        self.segment, self.end = 1, 0
        self.done_in: dict[bytes, tuple[int, SegmentId]] = {}
        self.pages = 0
        self.now = 0

    def teardown(self) -> None:
        if hasattr(self, "frontier"):
            self.do(self.frontier.close())
            self.loop.close()
            shutil.rmtree(self.folder)

    def do(self, verb: Any) -> Any:
        return self.loop.run_until_complete(verb)

    # Verbs

    @rule(candidates=some_candidates, refused=st.lists(st.sampled_from(URLS), max_size=3))
    def admit(self, candidates: list[Candidate], refused: list[str]) -> None:
        refusals = [Refusal(address(url), "scope") for url in refused]
        admission = self.do(self.frontier.admit(candidates, refusals))
        new = {candidate.address.fingerprint for candidate in candidates} - self.known
        assert admission.added == len(new)
        assert admission.added + admission.known == len(candidates)
        self.known |= new

    @rule(hosts=st.integers(0, 4))
    def claim(self, hosts: int) -> None:
        leases = self.do(self.frontier.claim(hosts, LEASE_S))
        assert len(leases) <= hosts
        for lease in leases:
            assert lease.host not in self.held, "a leased host was claimed again"
            assert lease.not_before >= self.free_at.get(lease.host, 0), "claimed before its rest is over"
            assert lease.tasks
            self.held[lease.host] = Held(lease, list(lease.tasks), lease.expires_at)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), frees=st.booleans())
    def settle(self, data: st.DataObject, frees: bool) -> None:
        host = data.draw(st.sampled_from(sorted(self.held)))
        if self.held[host].open:
            self.settle_next(data, host, frees=frees)

    def settle_next(self, data: st.DataObject, host: str, *, frees: bool) -> None:
        held = self.held[host]
        task = held.open.pop(0)
        if isinstance(task, RobotsTask):
            ending, frees = self.robots_ending(task, data.draw(some_rules)), True
        else:
            ending = self.ending(task, data.draw(some_outcomes))
        links = data.draw(some_candidates)
        wait = data.draw(st.sampled_from([0, 700, 1000, 5000]))
        reason = data.draw(st.sampled_from([None, None, DeferReason.RETRY_AFTER]))
        release = Release(wait, Pace(wait), 10, reason) if frees else None
        settled = self.do(self.frontier.settle(held.lease.token, [Settlement(task, ending, links)], release))
        assert settled.accepted
        self.known |= {candidate.address.fingerprint for candidate in links}
        if frees:
            self.freed(host, wait, wait)

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
        ended = [host for host, held in self.held.items() if everything or held.expires_at <= now]
        assert self.do(self.frontier.reap_all() if everything else self.frontier.reap()) == len(ended)
        for host in ended:
            lease = self.held[host].lease
            delay = self.delay.get(host, self.policy.base_delay_ms)
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
        self.done_in = {one: (cycle, where) for one, (cycle, where) in self.done_in.items() if where != self.name()}
        self.segment, self.end = self.segment + 1, 0

    @rule()
    def begin_cycle(self) -> None:
        self.do(self.frontier.begin_cycle())

    @rule(limit=st.integers(1, 3))
    def revive(self, limit: int) -> None:
        letters = self.frontier.dead(limit)
        assert self.do(self.frontier.revive(letters)) == len(letters)
        assert self.do(self.frontier.revive(letters)) == 0

    # The world

    @rule(seconds=st.sampled_from([0.05, 0.7, 1.1, 5.0, 61.0, 700.0, 90_000.0]))
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
            check_tables(self.frontier)

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
            for url in URLS:
                found = address(url)
                story = self.frontier.story(found.host, found.fingerprint)
                assert (story is not None and story.state != "refused") == (found.fingerprint in self.known)

    # Parts

    def name(self) -> SegmentId:
        return SegmentId(f"segment-{self.segment}")

    def freed(self, host: str, wait: int, delay: int) -> None:
        del self.held[host]
        self.free_at[host] = self.frontier.timeline.now() + wait
        self.delay[host] = delay

    def ending(self, task: PageTask, outcome: str) -> Outcome:
        match outcome:
            case "done" | "answer":
                start, self.end = self.end, self.end + 100
                self.pages += outcome == "done"
                cycle = self.frontier.snapshot().cycle
                assert self.done_in.get(task.fingerprint, (0, ""))[0] < cycle, "fetched twice in a cycle"
                self.done_in[task.fingerprint] = (cycle, self.name())
                return Done(RecordRef(self.name(), start, 50, self.end), 200, b"d" * 32, page=outcome == "done")
            case "retry":
                return Retry(5000, "timeout", "no answer")
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
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


class TestFrontierMachine(FrontierMachine.TestCase):  # type: ignore[misc,name-defined]
    """F2, F3, F10, P2: see the module."""
