"""F1, F2, F3, F4, F5, F6, F7, F9, F10, R1, R2, R4, R5, S4, S5, P1, P2, P4, T2, T7, T8: the frontier on disk against the
plain one in memory.

Both are given the same verbs under the same virtual clock, in any order: they must give the same answers, lease the same
hosts and URLs in the same order, count the same and tell the same stories. The one on disk has a random secret in its
keys, so nothing that is compared may depend on it.

Few hosts and few paths, small budgets, impatient traps and short windows: so that the rules meet each other often.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, reject, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier import traps
from nephila.frontier.embedded.book import Policy
from nephila.frontier.lifecycle import State
from nephila.frontier.schedule import SimpleRecrawl
from nephila.interfaces.frontier import Admission
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
from nephila.model.policy import Block, DomainPolicy, Tier
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import (
    BudgetSettings,
    FrontierSettings,
    PolitenessSettings,
    PrioritySettings,
    RecrawlSettings,
    TrapSettings,
)
from nephila.model.task import Candidate, Lease, Level, Pace, PageTask, Refusal, RobotsTask, Task, Token, Validators
from nephila.testing.clock import VirtualClock
from nephila.testing.memory import MemoryFrontier, Rules
from nephila.testing.memory.admitting import SEEDS
from nephila.testing.memory.nouns import Host, Source, Standing, Url
from nephila.testing.memory.shelves import group_of
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

T = TypeVar("T")

DOMAINS = ("a.test", "b.test", "c.test")
HOSTS = tuple(f"{prefix}{domain}" for domain in DOMAINS for prefix in ("", "www."))
PATHS = ("https://{}/", "https://{}/p/1", "https://{}/p/2", "http://{}/p/3", "https://{}/x?d=2031-01-01")
IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())
SEGMENT = SegmentId("segment")
LEASE_S = 60.0
PATTERNS = ("/p/{n}", "/p/*", "*?d", "*")


def address(url: str) -> Address:
    found = IDENTIFIER.identify(url)
    assert isinstance(found, Address)
    return found


ADDRESSES = tuple(address(path.format(host)) for host in HOSTS for path in PATHS)

some_candidates = st.lists(
    st.builds(
        Candidate,
        st.sampled_from(ADDRESSES),
        st.integers(0, 4),
        st.sampled_from([None, None, None, *Level]),
        hops=st.integers(0, 1),
        bonus=st.sampled_from([0, 0, 15, 20, -20]),
    ),
    max_size=6,
    unique_by=lambda candidate: candidate.address.fingerprint,
)
some_refusals = st.lists(st.builds(Refusal, st.sampled_from(ADDRESSES), st.just("scope"), st.just("rule")), max_size=2)
some_policies = st.builds(
    DomainPolicy,
    delay_s=st.sampled_from([None, None, 0.0, 30.0]),
    max_depth=st.sampled_from([None, None, 1]),
    tier=st.sampled_from(Tier),
    recrawl_s=st.sampled_from([None, 3600.0]),
    user_agent=st.sampled_from(["", "Other/1"]),
    hours=st.sampled_from([(), (), ((2, 3),), ((22, 1),)]),
    paused=st.sampled_from([False, False, True]),
    quality=st.sampled_from([1.0, 0.5, 2.0]),
)
some_blocks = st.sampled_from(["a.test", "www.b.test", "https://c.test/p/", "https://www.a.test/x"])
some_outcomes = st.sampled_from(
    ["page", "page", "page", "same", "missing", "redirect", "retry", "error", "busy", "deferred", "dropped", "dead"]
    + ["respelled", "duplicate", "lied"]
)
some_texts = st.sampled_from([b"", b"text-one", b"text-two", b"three..."])
some_releases = st.sampled_from([0, 0, 1000, 1000, 30_000, None])
some_advances = st.sampled_from([0.001, 0.1, 1.0, 1.001, 5.0, 61.0, 3600.0, 86_400.0, 8 * 86_400.0, 25 * 86_400.0])


class Unexplored(Exception):
    """Behind this point the two are known to differ."""


class Model(MemoryFrontier):
    """The frontier in memory, made to do what the one on disk is known to do otherwise."""

    def admit_all(
        self, candidates: Sequence[Candidate], source: Source = SEEDS, met: list[Candidate] | None = None
    ) -> Admission:
        """What a policy forbids counts as known there."""
        admission = super().admit_all(candidates, source, met)
        return replace(admission, known=len(candidates) - admission.added)

    def counts_link(self, url: Url, candidate: Candidate) -> bool:
        """A link to a URL that is queued again, or in a later cycle, does not raise its rank there."""
        if not url.asked:
            return True
        return url.state is not State.QUEUED and candidate.level is not Level.IMMEDIATE and self.cycle == 1

    def age_tie(self, host: Host) -> bytes:
        """Among hosts that starve equally long the secret decides there."""
        return self.host_key(host.name)

    def fetch_from_shelf(self, host: Host, url: Url, candidate: Candidate) -> None:
        """Its host is not woken there."""
        standing, host.standing = host.standing, Standing.PARKED
        super().fetch_from_shelf(host, url, candidate)
        host.standing = standing

    def draw_again(self) -> None:
        """claim raises KeyError(b"") there, or takes a host of another lane: nothing can be compared."""
        raise Unexplored

    def look_for_probe(self, host: Host) -> None:
        """An idle host is not woken for what a trap holds back there."""

    def become_ready(self, host: Host) -> None:
        """Nor is a probe looked for before it is picked."""
        self.make_ready(host)


class ModelMachine(RuleBasedStateMachine):
    """The verbs as rules, each given to both."""

    robots = False

    @initialize(
        base_ms=st.sampled_from([0, 1000]),
        limit=st.sampled_from([0, 0, 3]),
        ordered=st.sampled_from([False, False, True]),
        cooldown_s=st.sampled_from([0.0, 0.0, 500.0]),
        ahead_ms=st.sampled_from([0, 100]),
        wanted_domains=st.sampled_from([0, 0, 2]),
        recrawl=st.booleans(),
        first_hosts=st.integers(1, 2),
        verify_every=st.sampled_from([0, 2]),
        ageing_s=st.sampled_from([86_400.0, 30 * 86_400.0]),
    )
    def open(
        self,
        base_ms: int,
        limit: int,
        ordered: bool,
        cooldown_s: float,
        ahead_ms: int,
        wanted_domains: int,
        recrawl: bool,
        first_hosts: int,
        verify_every: int,
        ageing_s: float,
    ) -> None:
        self.tallied_from, traps.TALLIED_FROM = traps.TALLIED_FROM, 1
        self.folder = Path(tempfile.mkdtemp(prefix="frontier-model-"))
        self.loop = asyncio.new_event_loop()
        self.clock = VirtualClock()
        self.policy = Policy(
            FrontierSettings(
                sync=False,
                linger_ms=0,
                map_bytes=1 << 26,
                cooldown_s=cooldown_s,
                max_refusals=8,
                look_ahead_ms=ahead_ms,
                urls_per_lease=3,
            ),
            base_ms,
            limit,
            robots=self.robots,
            random_seed=3,
            verify_every=verify_every,
            ordered=ordered,
            priority=PrioritySettings(ageing_s=ageing_s),
            budget=BudgetSettings(
                queued_per_host=6,
                first_urls=4,
                urls_per_page=1,
                urls_per_referrer=1,
                first_hosts=first_hosts,
                hosts_per_useful_host=1,
                hosts_per_referrer=0,
            ),
            traps=TrapSettings(slow_after=2, stop_after=4, slow_s=60, probe_s=86_400, poured_per_hour=3),
            politeness=PolitenessSettings(pause_window=10, pause_share=0.3, demote_after=2),
            recrawl=SimpleRecrawl(RecrawlSettings()) if recrawl else None,
            target_domains=wanted_domains,
        )
        rules = Rules(**{field.name: getattr(self.policy, field.name) for field in fields(Rules)})
        self.disk = LmdbFrontier(self.folder, self.clock, self.policy, threaded=False)
        self.model = Model(self.clock, rules)
        self.model.host_key = self.disk._tables.host_key
        self.held: list[tuple[Lease, list[Task]]] = []
        self.old: list[Lease] = []
        self.end = 0

    def teardown(self) -> None:
        if hasattr(self, "disk"):
            self.loop.run_until_complete(self.disk.close())
            self.loop.close()
            shutil.rmtree(self.folder)
            traps.TALLIED_FROM = self.tallied_from

    def both(self, verb: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        """Do the same with both; the answers must be the same."""
        try:
            expected = self.loop.run_until_complete(verb(self.model))
        except Unexplored:
            reject()
        found = self.loop.run_until_complete(verb(self.disk))
        assert found == expected, (found, expected)
        return found

    # Verbs

    @rule(candidates=some_candidates, refused=some_refusals)
    def admit(self, candidates: list[Candidate], refused: list[Refusal]) -> None:
        self.both(lambda frontier: frontier.admit(candidates, refused))

    @rule(hosts=st.sampled_from([1, 1, 2, 6]))
    def claim(self, hosts: int) -> None:
        for lease in self.both(lambda frontier: frontier.claim(hosts, LEASE_S)):
            self.held.append((lease, list(lease.tasks)))

    @precondition(lambda self: self.held)
    @rule(
        data=st.data(),
        kind=some_outcomes,
        text=some_texts,
        links=some_candidates,
        refused=some_refusals,
        wait_ms=some_releases,
    )
    def settle(
        self,
        data: st.DataObject,
        kind: str,
        text: bytes,
        links: list[Candidate],
        refused: list[Refusal],
        wait_ms: int | None,
    ) -> None:
        lease, left = data.draw(st.sampled_from(self.held))
        task = left[0]
        if isinstance(task, RobotsTask):
            outcome, links = self.rules_outcome(task, data.draw(st.sampled_from(ROBOTS_ENDS))), []
        else:
            outcome = self.page_outcome(task, kind, text, len(links))
        release = None
        if len(left) == 1 or wait_ms is not None:
            reason = data.draw(st.sampled_from([None, None, None, DeferReason.RETRY_AFTER]))
            release = Release(wait_ms or 0, Pace(lease.pace.delay_ms, lease.pace.crawl_delay_ms), 300, reason)
        settlement = Settlement(task, outcome, links, refused)
        settled = self.both(lambda frontier: frontier.settle(lease.token, [settlement], release))
        if settled.accepted:
            left.remove(task)
        if release is not None or not settled.accepted:
            self.held = [one for one in self.held if one[0] is not lease]
            self.old.append(lease)

    def page_outcome(self, task: PageTask, kind: str, text: bytes, links: int) -> Outcome:
        self.end += 100
        ref = RecordRef(SEGMENT, self.end - 100, 90, self.end)
        tag = Validators(f'"{self.end}"')
        match kind:
            case "page" | "lied" | "duplicate":
                return Done(
                    ref,
                    200,
                    text.ljust(32, b"."),
                    tag,
                    duplicate=kind == "duplicate",
                    lied=kind == "lied",
                    text=text,
                    shape=text[:5],
                    outlinks=links + 1,
                )
            case "same":
                return Done(ref, 304, b"", tag, changed=False)
            case "missing":
                return Done(ref, 404, page=False)
            case "redirect":
                return Done(ref, 301, page=False)
            case "retry":
                return Retry(5_000, "timeout", "no answer")
            case "error":
                return Retry(30_000, "http_5xx")
            case "busy":
                return Deferred(10_000, DeferReason.ADDRESS)
            case "deferred":
                return Deferred(4_000_000, DeferReason.DNS)
            case "dropped":
                return Dropped("robots", "Disallow: /")
            case "dead":
                return Dead("http_5xx", "given up")
            case _:
                other = task.url.rstrip("/") + "/" if "?" not in task.url else task.url
                return Respelled(address(other))

    def rules_outcome(self, task: RobotsTask, kind: str) -> Outcome:
        now, wall = self.disk.snapshot().now, self.clock.wall_ms()
        match kind:
            case "allow":
                rules = OriginRules(task.origin, RulesKind.RULES, b"User-agent: *", wall, now + 86_400_000, 200)
                return RulesLearned(rules, 2000)
            case "none":
                return RulesLearned(OriginRules(task.origin, RulesKind.ALLOW_ALL, b"", wall, now + 86_400_000, 404))
            case "unavailable":
                rules = OriginRules(task.origin, RulesKind.UNAVAILABLE, b"", wall, now + 300_000, 503, now, "busy")
                return RulesLearned(rules)
            case "moved":
                return RulesMoved(task.origin, address("https://www.b.test/robots.txt"), task.hops + 1)
            case _:
                return Deferred(1000, DeferReason.STOPPED)

    @precondition(lambda self: self.old)
    @rule(data=st.data())
    def settle_late(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.old))
        settlement = Settlement(lease.tasks[0], Dropped("late"))
        settled = self.both(
            lambda frontier: frontier.settle(lease.token, [settlement], Release(0, Pace(1000)))
        )
        assert not settled.accepted

    @rule()
    def renew(self) -> None:
        tokens = [lease.token for lease, _ in self.held[:2]]
        tokens += [lease.token for lease in self.old[-1:]]
        self.both(lambda frontier: frontier.renew(tokens, LEASE_S))

    @rule(everything=st.booleans())
    def reap(self, everything: bool) -> None:
        self.both(lambda frontier: frontier.reap_all() if everything else frontier.reap())
        live = self.model.leases
        self.old += [lease for lease, _ in self.held if lease.token not in live]
        self.held = [one for one in self.held if one[0].token in live]

    @rule(back=st.sampled_from([0, 50, 150, 1000]))
    def confirm(self, back: int) -> None:
        self.both(lambda frontier: frontier.confirm(SEGMENT, max(0, self.end - back)))

    @rule(back=st.sampled_from([0, 150]))
    def lose(self, back: int) -> None:
        self.both(lambda frontier: frontier.lose(SEGMENT, max(0, self.end - back)))

    @rule()
    def new_cycle(self) -> None:
        self.both(lambda frontier: frontier.begin_cycle())

    @rule()
    def end_cycle(self) -> None:
        self.both(lambda frontier: frontier.end_cycle())

    @rule(domain=st.sampled_from(DOMAINS), policy=st.none() | some_policies)
    def set_policy(self, domain: str, policy: DomainPolicy | None) -> None:
        self.both(lambda frontier: frontier.set_policy(domain, policy))

    @rule(pattern=some_blocks)
    def block(self, pattern: str) -> None:
        self.both(lambda frontier: frontier.block(Block(pattern, "because")))

    @rule(pattern=some_blocks)
    def unblock(self, pattern: str) -> None:
        self.both(lambda frontier: frontier.unblock(pattern))

    @rule(host=st.sampled_from(HOSTS), pattern=st.sampled_from(PATTERNS))
    def release_trap(self, host: str, pattern: str) -> None:
        self.both(lambda frontier: frontier.release_trap(host, group_of(pattern)))

    @rule()
    def revive(self) -> None:
        stories = self.model.dead(2)
        self.both(lambda frontier: frontier.revive(stories))

    # Time

    @rule(seconds=some_advances)
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(seconds=st.sampled_from([3600.0, -3600.0, 40 * 86_400.0]))
    def jump(self, seconds: float) -> None:
        self.clock.jump_wall(seconds)

    @rule(reboot=st.booleans())
    def reopen(self, reboot: bool) -> None:
        if reboot:
            self.clock.reboot()
        self.loop.run_until_complete(self.disk.close())
        self.disk = LmdbFrontier(self.folder, self.clock, self.policy, threaded=False)
        self.loop.run_until_complete(self.model.reopen())

    # What both tell

    @invariant()
    def counters_agree(self) -> None:
        if hasattr(self, "disk"):
            found, expected = asdict(self.disk.snapshot()), asdict(self.model.snapshot())
            assert found == expected, {
                name: (found[name], expected[name]) for name in found if found[name] != expected[name]
            }

    @invariant()
    def stories_agree(self) -> None:
        if hasattr(self, "disk"):
            for one in ADDRESSES:
                found = self.disk.story(one.host, one.fingerprint)
                expected = self.model.story(one.host, one.fingerprint)
                if found != expected:
                    assert found is not None and expected is not None, (found, expected)
                    theirs, ours = asdict(found), asdict(expected)
                    raise AssertionError(one.url, {k: (theirs[k], ours[k]) for k in ours if theirs[k] != ours[k]})


ROBOTS_ENDS = ("none", "none", "allow", "unavailable", "moved", "deferred")


class RobotsMachine(ModelMachine):
    """The same, where pages wait for the rules of their origin."""

    robots = True


LIMITS = settings(
    max_examples=int(os.environ.get("N", "60")), stateful_step_count=int(os.environ.get("STEPS", "40")), deadline=None, report_multiple_bugs=False, phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck), print_blob=False
)
TestModel = ModelMachine.TestCase
TestModel.settings = LIMITS
TestModelWithRobots = RobotsMachine.TestCase
TestModelWithRobots.settings = LIMITS
