"""The frontier on disk and the plain one in memory, side by side: given the same, they must answer the same.

What is done with them is data (`Deed`), so that a run can be written down, repeated and shortened. Few hosts and few
paths, small budgets, impatient traps and short windows: so that the rules meet each other often.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from nephila.frontier import traps
from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.estimated import recrawl_of
from nephila.frontier.policy import Policy
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
from nephila.model.task import Candidate, Lease, Level, Pace, PageTask, Refusal, RobotsTask, Task, Validators
from nephila.testing.clock import VirtualClock
from nephila.testing.memory import MemoryFrontier, Rules
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
POLICIES = ("simple", "estimated")
BLOCKS = ("a.test", "www.b.test", "https://c.test/p/", "https://www.a.test/x")
ENDS = (
    *("page", "page", "page", "page", "same", "missing", "missing", "redirect", "retry", "error", "busy", "deferred"),
    *("dropped", "dead", "respelled", "duplicate", "duplicate", "duplicate", "lied"),
)
RULES_ENDS = ("none", "none", "none", "allow", "allow", "unavailable", "moved", "deferred")
TEXTS = (b"", b"text-one", b"text-two", b"three...")
LEVELS = (*(None,) * 9, *(Level.HIGH, Level.MEDIUM, Level.LOW) * 2, Level.IMMEDIATE)
WAITS_MS = (0, 0, 1000, 1000, 30_000, None)
ADVANCES_S = (0.001, 0.1, 1.0, 1.001, 5.0, 5.0, 31.0, 61.0, 3600.0, 86_400.0, 8 * 86_400.0, 25 * 86_400.0)


def address(url: str) -> Address:
    found = IDENTIFIER.identify(url)
    assert isinstance(found, Address)
    return found


ADDRESSES = tuple(address(path.format(host)) for host in HOSTS for path in PATHS)


@dataclass(frozen=True)
class Deed:
    """Something that is done with both: the name of a method of `Pair`, and what it is given."""

    name: str
    given: dict[str, Any] = field(default_factory=dict)


def some_candidates(random: Random, most: int = 6) -> list[Candidate]:
    """Different URLs, in any order."""
    return [
        Candidate(
            one,
            random.randint(0, 4),
            random.choice(LEVELS),
            hops=random.randint(0, 1),
            bonus=random.choice([0, 0, 15, 20, -20]),
        )
        for one in random.sample(ADDRESSES, random.randint(0, most))
    ]


def some_refusals(random: Random) -> list[Refusal]:
    if random.random() < 0.8:
        return []
    return [Refusal(one, "scope", "rule") for one in random.sample(ADDRESSES, random.randint(1, 2))]


def some_policy(random: Random) -> DomainPolicy | None:
    if random.random() < 0.4:
        return None
    return DomainPolicy(
        delay_s=random.choice([None, None, 0.0, 30.0]),
        max_depth=random.choice([None, None, None, 1]),
        tier=random.choice(list(Tier)),
        recrawl_s=random.choice([None, 3600.0]),
        user_agent=random.choice(["", "Other/1"]),
        hours=random.choice([(), (), (), ((2, 3),), ((22, 1),)]),
        paused=random.random() < 0.2,
        quality=random.choice([1.0, 0.5, 2.0]),
    )


_DEEDS: dict[str, tuple[int, Callable[[Random], dict[str, Any]]]] = {
    "admit": (10, lambda r: {"candidates": some_candidates(r), "refused": some_refusals(r)}),
    "claim": (25, lambda r: {"hosts": r.choice([1, 1, 2, 6])}),
    "settle": (
        50,
        lambda r: {
            "which": r.randrange(10),
            "kind": r.choice(ENDS),
            "rules_kind": r.choice(RULES_ENDS),
            "text": r.choice(TEXTS),
            "links": some_candidates(r, 4) if r.random() < 0.6 else [],
            "refused": some_refusals(r),
            "wait_ms": r.choice(WAITS_MS),
            "reason": DeferReason.RETRY_AFTER if r.random() < 0.1 else None,
            "more": r.choice([0, 0, 1, 2]),
        },
    ),
    "settle_late": (1, lambda r: {"which": r.randrange(10)}),
    "renew": (1, lambda _: {}),
    "reap": (2, lambda r: {"everything": r.random() < 0.2}),
    "confirm": (5, lambda r: {"back": r.choice([0, 0, 50, 150, 1000])}),
    "lose": (1, lambda r: {"back": r.choice([0, 150])}),
    "new_cycle": (1, lambda _: {}),
    "end_cycle": (1, lambda _: {}),
    "set_policy": (3, lambda r: {"domain": r.choice(DOMAINS), "policy": some_policy(r)}),
    "block": (1, lambda r: {"pattern": r.choice(BLOCKS)}),
    "unblock": (2, lambda r: {"pattern": r.choice(BLOCKS)}),
    "release_trap": (1, lambda r: {"host": r.choice(HOSTS), "pattern": r.choice(PATTERNS)}),
    "revive": (1, lambda _: {}),
    "advance": (25, lambda r: {"seconds": r.choice(ADVANCES_S)}),
    "jump": (1, lambda r: {"seconds": r.choice([3600.0, -3600.0, 40 * 86_400.0])}),
    "reopen": (1, lambda r: {"reboot": r.random() < 0.4}),
}
_WEIGHTS = [weight for weight, _ in _DEEDS.values()]


def some_deed(random: Random, name: str = "") -> Deed:
    """Something to do: of the given kind, or the usual ones more often."""
    name = name or random.choices(list(_DEEDS), _WEIGHTS)[0]
    return Deed(name, _DEEDS[name][1](random))


def some_rules(random: Random, *, robots: bool) -> Policy:
    """The settings of a crawl."""
    return Policy(
        FrontierSettings(
            linger_ms=0,
            map_bytes=1 << 26,
            cooldown_s=random.choice([0.0, 0.0, 500.0]),
            max_refusals=8,
            look_ahead_ms=random.choice([0, 100]),
            urls_per_lease=3,
        ),
        random.choice([0, 1000]),
        random.choice([0, 0, 0, 3]),
        robots=robots,
        random_seed=3,
        verify_every=random.choice([0, 2]),
        ordered=random.random() < 0.25,
        priority=PrioritySettings(ageing_s=random.choice([86_400.0, 30 * 86_400.0])),
        budget=BudgetSettings(
            queued_per_host=6,
            first_urls=random.choice([2, 4, 6]),
            urls_per_page=1,
            urls_per_referrer=1,
            first_hosts=random.choice([1, 2]),
            hosts_per_useful_host=1,
            hosts_per_referrer=0,
        ),
        traps=TrapSettings(slow_after=2, stop_after=4, slow_s=60, probe_s=86_400, poured_per_hour=3),
        politeness=PolitenessSettings(pause_window=10, pause_share=random.choice([0.3, 0.6]), demote_after=2),
        recrawl=recrawl_of(RecrawlSettings(enabled=random.random() < 0.6, policy=random.choice(POLICIES))),
        target_domains=random.choice([0, 0, 0, 2]),
        lease_span_ms=random.choice([0, 1000, 60_000]),
    )


class Pair:
    """Both, under one clock."""

    def __init__(self, policy: Policy) -> None:
        self.tallied_from, traps.TALLIED_FROM = traps.TALLIED_FROM, 1
        self.folder = Path(tempfile.mkdtemp(prefix="frontier-pair-"))
        self.loop = asyncio.new_event_loop()
        self.clock = VirtualClock()
        self.policy = policy
        rules = Rules(**{field.name: getattr(policy, field.name) for field in fields(Rules)})
        self.disk = LmdbFrontier(self.folder, self.clock, policy, threaded=False, alone=True)
        self.model = MemoryFrontier(self.clock, rules)
        self.held: list[tuple[Lease, list[Task]]] = []
        self.old: list[Lease] = []
        self.end = 0

    def close(self) -> None:
        self.loop.run_until_complete(self.disk.close())
        self.loop.close()
        shutil.rmtree(self.folder)
        traps.TALLIED_FROM = self.tallied_from

    def do(self, deed: Deed) -> None:
        """Do the same with both, and compare all that can be seen."""
        getattr(self, deed.name)(**deed.given)
        self.compare()

    def both(self, verb: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        """The answers must be the same."""
        expected = self.loop.run_until_complete(verb(self.model))
        found = self.loop.run_until_complete(verb(self.disk))
        assert found == expected, (found, expected)
        return found

    # Verbs

    def admit(self, candidates: list[Candidate], refused: list[Refusal]) -> None:
        self.both(lambda frontier: frontier.admit(candidates, refused))

    def claim(self, hosts: int) -> None:
        for lease in self.both(lambda frontier: frontier.claim(hosts, LEASE_S)):
            self.held.append((lease, list(lease.tasks)))

    def settle(  # noqa: PLR0917 - a deed's
        self,
        which: int,
        kind: str,
        rules_kind: str,
        text: bytes,
        links: list[Candidate],
        refused: list[Refusal],
        wait_ms: int | None,
        reason: DeferReason | None,
        more: int = 0,
    ) -> None:
        """End a task of a lease, and so many of its others that have brought the same in the same call."""
        if not self.held:
            return
        lease, left = self.held[which % len(self.held)]
        settlements: list[Settlement] = []
        for task in left[: 1 + more]:
            if isinstance(task, RobotsTask):
                settlements.append(Settlement(task, self.rules_outcome(task, rules_kind)))
            else:
                outcome = self.page_outcome(task, kind, text, len(links))
                settlements.append(Settlement(task, outcome, links, refused if not settlements else ()))
        release = None
        if len(left) == len(settlements) or wait_ms is not None:
            release = Release(wait_ms or 0, Pace(lease.pace.delay_ms, lease.pace.crawl_delay_ms), 300, reason)
        settled = self.both(lambda frontier: frontier.settle(lease.token, settlements, release))
        if settled.accepted:
            del left[: len(settlements)]
        if release is not None or not settled.accepted:
            self.held = [one for one in self.held if one[0] is not lease]
            self.old.append(lease)

    def page_outcome(  # noqa: C901, PLR0911 - one for each kind
        self, task: PageTask, kind: str, text: bytes, links: int
    ) -> Outcome:
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

    def settle_late(self, which: int) -> None:
        if self.old:
            lease = self.old[which % len(self.old)]
            settlement = Settlement(lease.tasks[0], Dropped("late"))
            release = Release(0, Pace(1000))
            assert not self.both(lambda frontier: frontier.settle(lease.token, [settlement], release)).accepted

    def renew(self) -> None:
        tokens = [lease.token for lease, _ in self.held[:2]] + [lease.token for lease in self.old[-1:]]
        self.both(lambda frontier: frontier.renew(tokens, LEASE_S))

    def reap(self, everything: bool) -> None:
        self.both(lambda frontier: frontier.reap_all() if everything else frontier.reap())
        live = self.model.leases
        self.old += [lease for lease, _ in self.held if lease.token not in live]
        self.held = [one for one in self.held if one[0].token in live]

    def confirm(self, back: int) -> None:
        self.both(lambda frontier: frontier.confirm(SEGMENT, max(0, self.end - back)))

    def lose(self, back: int) -> None:
        self.both(lambda frontier: frontier.lose(SEGMENT, max(0, self.end - back)))

    def new_cycle(self) -> None:
        self.both(lambda frontier: frontier.begin_cycle())

    def end_cycle(self) -> None:
        self.both(lambda frontier: frontier.end_cycle())

    def set_policy(self, domain: str, policy: DomainPolicy | None) -> None:
        self.both(lambda frontier: frontier.set_policy(domain, policy))

    def block(self, pattern: str) -> None:
        self.both(lambda frontier: frontier.block(Block(pattern, "because")))

    def unblock(self, pattern: str) -> None:
        self.both(lambda frontier: frontier.unblock(pattern))

    def release_trap(self, host: str, pattern: str) -> None:
        self.both(lambda frontier: frontier.release_trap(host, group_of(pattern)))

    def revive(self) -> None:
        stories = self.model.dead(2)
        self.both(lambda frontier: frontier.revive(stories))

    # Time

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def jump(self, seconds: float) -> None:
        self.clock.jump_wall(seconds)

    def reopen(self, reboot: bool) -> None:
        self.both(lambda frontier: frontier.reap())  # a last word of both, as closing the one on disk may write
        self.loop.run_until_complete(self.disk.close())
        if reboot:
            self.clock.reboot()
        self.disk = LmdbFrontier(self.folder, self.clock, self.policy, threaded=False, alone=True)
        self.loop.run_until_complete(self.model.reopen())

    # What both tell

    def compare(self) -> None:
        """Counters and stories."""
        found, expected = asdict(self.disk.snapshot()), asdict(self.model.snapshot())
        assert found == expected, _differences(found, expected)
        for one in ADDRESSES:
            theirs = self.disk.story(one.host, one.fingerprint)
            ours = self.model.story(one.host, one.fingerprint)
            if theirs != ours:
                assert theirs is not None, (one.url, ours)
                assert ours is not None, (one.url, theirs)
                raise AssertionError(one.url, _differences(asdict(theirs), asdict(ours)))


def _differences(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (found[name], expected[name]) for name in found if found[name] != expected[name]}
