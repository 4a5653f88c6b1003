"""What every frontier promises (`interfaces.frontier`), as checks that any engine can be held against.

A check is an async method of `FrontierContract`; `nephila.testing.contracts.frontier.checks()` names them all. The
harness gives it a fresh frontier under a virtual clock and opens it again on request, as after a crash: what was
answered must still be true then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from nephila.interfaces.frontier import Frontier, FrontierView
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
from nephila.model.task import Candidate, Lease, Level, Pace, PageTask, RobotsTask
from nephila.testing.clock import VirtualClock
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

DELAY_MS = 1000
LEASE_S = 60.0
SEGMENT = SegmentId("segment-1")


class Harness(Protocol):
    """How the suite gets at an engine."""

    clock: VirtualClock
    robots: bool

    @property
    def frontier(self) -> Frontier:
        """The engine under test, as it is open now."""

    @property
    def view(self) -> FrontierView:
        """Its reading side."""

    async def reopen(self) -> None:
        """Close without ceremony and open again on the same data."""

    async def begin_cycle(self) -> None:
        """Begin a new cycle."""


def addresses(*urls: str) -> list[Address]:
    """Addresses under a fixed secret."""
    identifier = Identifier(7, NormalRules(), UrlLimits())
    found = [identifier.identify(url) for url in urls]
    assert all(isinstance(address, Address) for address in found), found
    return [address for address in found if isinstance(address, Address)]


def candidates(*urls: str, depth: int = 0, level: Level = Level.MEDIUM) -> list[Candidate]:
    """Candidates for URLs."""
    return [Candidate(address, depth, level) for address in addresses(*urls)]


def release(wait_ms: int = DELAY_MS) -> Release:
    """An ordinary release."""
    return Release(wait_ms, Pace(DELAY_MS))


def done(offset: int = 0, length: int = 100) -> Done:
    """A page stored at an offset."""
    return Done(RecordRef(SEGMENT, offset, length, offset + length), 200, digest=b"d" * 32)


class FrontierContract:
    """The promises. Rules for robots.txt are given to every origin first, but where a check says otherwise."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness

    @property
    def frontier(self) -> Frontier:
        """The engine under test, as it is open now."""
        return self.harness.frontier

    async def claim_pages(self, hosts: int = 100) -> list[Lease]:
        """Claim, answering robots tasks with "no restrictions" until only pages come."""
        pages: list[Lease] = []
        for _ in range(200):
            leases = await self.frontier.claim(hosts - len(pages), LEASE_S)
            robots = [lease for lease in leases if isinstance(lease.tasks[0], RobotsTask)]
            pages += [lease for lease in leases if lease not in robots]
            for lease in robots:
                task = lease.tasks[0]
                assert isinstance(task, RobotsTask)
                await self.frontier.settle(lease.token, [Settlement(task, self.allow_all(task.origin))], release(0))
            if not robots:
                return pages
        raise AssertionError("robots tasks without end")

    def allow_all(self, origin: str, kind: RulesKind = RulesKind.ALLOW_ALL, fresh_ms: int = 86_400_000) -> RulesLearned:
        """Rules that forbid nothing (or another kind)."""
        wall, now = self.harness.clock.wall_ms(), self.frontier.snapshot().now
        return RulesLearned(OriginRules(origin, kind, b"", wall, now + fresh_ms))

    async def end(self, lease: Lease, outcome: Outcome, links: Sequence[Candidate] = ()) -> bool:
        """Settle the first task of a lease and free the host."""
        settled = await self.frontier.settle(lease.token, [Settlement(lease.tasks[0], outcome, links)], release())
        return settled.accepted

    def urls(self, leases: Sequence[Lease]) -> list[str]:
        """What was claimed."""
        return [task.url for lease in leases for task in lease.tasks]

    # Admission

    async def check_admitting_twice_adds_once(self) -> None:
        """F2, D1: a known URL is never taken for new."""
        first = await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2"))
        again = await self.frontier.admit(candidates("https://a.test/2", "https://a.test/2?utm_source=x"))
        assert (first.added, first.known) == (2, 0)
        assert (again.added, again.known) == (0, 2)

    async def check_admitted_urls_survive_a_crash(self) -> None:
        """F10: what `admit` answered is durable."""
        await self.frontier.admit(candidates("https://a.test/1"))
        await self.harness.reopen()
        assert (await self.frontier.admit(candidates("https://a.test/1"))).known == 1
        assert self.urls(await self.claim_pages()) == ["https://a.test/1"]

    async def check_a_url_found_nearer_to_a_seed_moves_up(self) -> None:
        """S3, F6: the depth of a waiting URL is the least one it was found at."""
        await self.frontier.admit(candidates("https://a.test/deep", depth=5))
        await self.frontier.admit(candidates("https://a.test/deep", depth=2))
        (lease,) = await self.claim_pages()
        assert isinstance(lease.tasks[0], PageTask)
        assert lease.tasks[0].depth == 2

    # Claiming

    async def check_a_leased_host_is_not_claimed_again(self) -> None:
        """P2, F3: at most one lease on a host exists at any time."""
        await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2", "https://b.test/1"))
        leases = await self.claim_pages()
        assert sorted(lease.host for lease in leases) == ["a.test", "b.test"]
        assert await self.claim_pages() == []

    async def check_a_host_rests_its_delay_after_a_settle(self) -> None:
        """P2: nobody may ask a host before its delay is over."""
        await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2"))
        (lease,) = await self.claim_pages()
        assert await self.end(lease, done())
        assert await self.claim_pages() == []
        self.harness.clock.advance(DELAY_MS / 1000 + 0.001)
        (second,) = await self.claim_pages()
        assert second.tasks[0].url != lease.tasks[0].url

    async def check_the_delay_survives_a_crash(self) -> None:
        """P2, F10: the delay holds across restarts."""
        await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2"))
        (lease,) = await self.claim_pages()
        await self.end(lease, done())
        await self.harness.reopen()
        assert await self.claim_pages() == []
        self.harness.clock.advance(DELAY_MS / 1000 + 0.001)
        assert len(await self.claim_pages()) == 1

    async def check_a_wall_clock_jump_neither_hurries_nor_freezes_a_host(self) -> None:
        """P2: politeness hangs on steady time (DESIGN section 11)."""
        await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2", "https://a.test/3"))
        (lease,) = await self.claim_pages()
        await self.end(lease, done())
        self.harness.clock.jump_wall(7200)
        assert await self.claim_pages() == []
        self.harness.clock.jump_wall(-14_400)
        self.harness.clock.advance(DELAY_MS / 1000 + 0.001)
        assert len(await self.claim_pages()) == 1

    async def check_a_host_waits_a_full_delay_after_a_reboot(self) -> None:
        """P2: the clock that knew how long it rested is gone, so the host rests anew."""
        await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2"))
        (lease,) = await self.claim_pages()
        await self.end(lease, done())
        self.harness.clock.advance(DELAY_MS / 2000)
        self.harness.clock.reboot()
        self.harness.clock.jump_wall(3600)
        await self.harness.reopen()
        self.harness.clock.advance(DELAY_MS / 1000 - 0.2)
        assert await self.claim_pages() == []
        self.harness.clock.advance(0.3)
        assert len(await self.claim_pages()) == 1

    async def check_immediate_goes_before_everything(self) -> None:
        """F1: highest priority among those that may go now."""
        await self.frontier.admit(candidates("https://a.test/high", level=Level.HIGH))
        await self.frontier.admit(candidates("https://b.test/now", level=Level.IMMEDIATE, depth=9))
        (lease,) = await self.claim_pages(1)
        assert self.urls([lease]) == ["https://b.test/now"]

    async def check_fewest_pages_of_the_domain_then_depth(self) -> None:
        """F6: domain-fair order within equal priority, then the least depth."""
        await self.frontier.admit(candidates("https://www.a.test/1"))
        (lease,) = await self.claim_pages()
        await self.end(lease, done())
        await self.frontier.admit(candidates("https://blog.a.test/shallow", depth=0))
        await self.frontier.admit(candidates("https://c.test/deep", depth=3))
        await self.frontier.admit(candidates("https://b.test/middle", depth=2))
        order = [self.urls(await self.claim_pages(1))[0] for _ in range(3)]
        assert order == ["https://b.test/middle", "https://c.test/deep", "https://blog.a.test/shallow"]

    async def check_no_level_starves(self) -> None:
        """F1: high, medium and low are drawn 80/15/5."""
        drawn = dict.fromkeys((Level.HIGH, Level.MEDIUM, Level.LOW), 0)
        for level in drawn:
            await self.frontier.admit(candidates(*(f"https://h{level}-{i}.test/" for i in range(60)), level=level))
        for _ in range(60):
            (lease,) = await self.claim_pages(1)
            assert isinstance(lease.tasks[0], PageTask)
            drawn[lease.tasks[0].level] += 1
        assert drawn[Level.HIGH] > drawn[Level.MEDIUM] > drawn[Level.LOW] > 0, drawn

    # Settling

    async def check_a_page_is_pending_until_its_segment_is_confirmed(self) -> None:
        """F2: stored_pending, then completed."""
        await self.frontier.admit(candidates("https://a.test/1"))
        (lease,) = await self.claim_pages()
        await self.end(lease, done(0, 100))
        assert self.frontier.snapshot().states["pending"] == 1
        assert await self.frontier.confirm(SEGMENT, 99) == 0
        assert await self.frontier.confirm(SEGMENT, 100) == 1
        states = self.frontier.snapshot().states
        assert (states["pending"], states["completed"]) == (0, 1)

    async def check_a_settle_with_an_old_token_changes_nothing(self) -> None:
        """F3: a late result of an expired lease is dropped, never stored twice."""
        await self.frontier.admit(candidates("https://a.test/1"))
        (late,) = await self.claim_pages()
        self.harness.clock.advance(LEASE_S + 1)
        assert await self.frontier.reap() == 1
        assert not await self.end(late, done(), candidates("https://a.test/from-late"))
        self.harness.clock.advance(DELAY_MS / 1000 + 0.001)
        (lease,) = await self.claim_pages()
        assert self.urls([lease]) == ["https://a.test/1"]
        assert not await self.end(late, done())
        assert await self.end(lease, done())
        assert not await self.end(lease, done())

    async def check_an_expired_lease_returns_its_urls_and_the_host_rests(self) -> None:
        """F3, P2: a reaped host waits one full delay more."""
        await self.frontier.admit(candidates("https://a.test/1"))
        await self.claim_pages()
        self.harness.clock.advance(LEASE_S + 1)
        assert await self.frontier.reap() == 1
        assert await self.claim_pages() == []
        self.harness.clock.advance(DELAY_MS / 1000 + 0.001)
        assert self.urls(await self.claim_pages()) == ["https://a.test/1"]

    async def check_a_renewed_lease_outlives_its_first_end(self) -> None:
        """F3: leases are renewed by heartbeat."""
        await self.frontier.admit(candidates("https://a.test/1"))
        (lease,) = await self.claim_pages()
        self.harness.clock.advance(LEASE_S - 1)
        assert await self.frontier.renew([lease.token], LEASE_S) == {lease.token}
        self.harness.clock.advance(LEASE_S - 1)
        assert await self.frontier.reap() == 0
        assert await self.end(lease, done())
        assert await self.frontier.renew([lease.token], LEASE_S) == set()

    async def check_links_travel_with_the_settle(self) -> None:
        """F2: result and new work become durable in one act."""
        await self.frontier.admit(candidates("https://a.test/1"))
        (lease,) = await self.claim_pages()
        await self.end(lease, done(), candidates("https://b.test/x", "https://a.test/1", depth=1))
        await self.harness.reopen()
        (found,) = await self.claim_pages()
        assert self.urls([found]) == ["https://b.test/x"]
        story = self.harness.view.story("b.test", addresses("https://b.test/x")[0].fingerprint)
        assert story is not None
        assert story.via == "https://a.test/1"

    async def check_a_retry_waits_and_counts(self) -> None:
        """F2, H5: failed -> (retry) queued."""
        await self.frontier.admit(candidates("https://a.test/1"))
        (lease,) = await self.claim_pages()
        await self.end(lease, Retry(5000, "timeout"))
        self.harness.clock.advance(4)
        assert await self.claim_pages() == []
        assert dict(self.frontier.snapshot().delayed) == {"retry": 1}
        self.harness.clock.advance(1.1)
        (again,) = await self.claim_pages()
        assert isinstance(again.tasks[0], PageTask)
        assert again.tasks[0].retries == 1

    async def check_a_deferral_costs_no_retry(self) -> None:
        """F2: deferred costs no retry."""
        await self.frontier.admit(candidates("https://a.test/1"))
        (lease,) = await self.claim_pages()
        await self.end(lease, Deferred(2000, DeferReason.DNS))
        self.harness.clock.advance(2.1)
        (again,) = await self.claim_pages()
        assert isinstance(again.tasks[0], PageTask)
        assert again.tasks[0].retries == 0

    async def check_dead_letters_are_listed_and_put_back(self) -> None:
        """F9: dead letters can be listed, inspected and put back."""
        await self.frontier.admit(candidates("https://a.test/1"))
        (lease,) = await self.claim_pages()
        await self.end(lease, Dead("tls", "certificate expired"))
        (letter,) = self.harness.view.dead(10)
        assert (letter.url, letter.reason, letter.detail) == ("https://a.test/1", "tls", "certificate expired")
        assert await self.harness.view.revive([letter]) == 1
        assert self.harness.view.dead(10) == []
        self.harness.clock.advance(1.1)
        assert self.urls(await self.claim_pages()) == ["https://a.test/1"]

    async def check_a_dropped_url_stays_dropped_and_explained(self) -> None:
        """F2, T8: decided against for this cycle, with its reason."""
        await self.frontier.admit(candidates("https://a.test/1"))
        (lease,) = await self.claim_pages()
        await self.end(lease, Dropped("robots", "line 3: Disallow: /"))
        self.harness.clock.advance(5)
        assert (await self.frontier.admit(candidates("https://a.test/1"))).known == 1
        assert await self.claim_pages() == []
        story = self.harness.view.story("a.test", addresses("https://a.test/1")[0].fingerprint)
        assert story is not None
        assert (story.state, story.reason, story.detail) == ("dropped", "robots", "line 3: Disallow: /")

    async def check_a_respelled_url_comes_back_under_its_new_spelling(self) -> None:
        """U2, H2: a redirect to the same key, one hop further."""
        await self.frontier.admit(candidates("https://a.test/x"))
        (lease,) = await self.claim_pages()
        await self.end(lease, Respelled(addresses("https://a.test/x/")[0]))
        self.harness.clock.advance(1.1)
        (again,) = await self.claim_pages()
        task = again.tasks[0]
        assert isinstance(task, PageTask)
        assert (task.url, task.hops, task.trail) == ("https://a.test/x/", 1, ("https://a.test/x",))

    # Cycles

    async def check_a_url_is_fetched_once_a_cycle(self) -> None:
        """F2: `--new-cycle` starts one."""
        await self.frontier.admit(candidates("https://a.test/1"))
        (lease,) = await self.claim_pages()
        await self.end(lease, done())
        await self.frontier.confirm(SEGMENT, 100)
        self.harness.clock.advance(5)
        await self.frontier.admit(candidates("https://a.test/1"))
        assert await self.claim_pages() == []
        await self.harness.begin_cycle()
        self.harness.clock.advance(0.01)
        await self.claim_pages(0)
        (again,) = await self.claim_pages()
        task = again.tasks[0]
        assert isinstance(task, PageTask)
        assert (task.cycle, task.digest) == (2, b"d" * 32)

    # robots.txt

    async def check_robots_comes_before_the_first_page(self) -> None:
        """P1: pages become claimable when rules are in force."""
        if not self.harness.robots:
            return
        await self.frontier.admit(candidates("https://a.test:8443/1"))
        (lease,) = await self.frontier.claim(10, LEASE_S)
        assert lease.tasks == (RobotsTask("https://a.test:8443", "https://a.test:8443/robots.txt"),)
        outcome = self.allow_all("https://a.test:8443")
        await self.frontier.settle(lease.token, [Settlement(lease.tasks[0], outcome)], release())
        assert await self.frontier.claim(10, LEASE_S) == []
        self.harness.clock.advance(1.1)
        (page,) = await self.frontier.claim(10, LEASE_S)
        assert page.rules_at == outcome.rules.stored_at
        rules = self.harness.view.rules("https://a.test:8443")
        assert rules == outcome.rules

    async def check_stale_rules_are_asked_for_again(self) -> None:
        """P1: cached 24 h."""
        if not self.harness.robots:
            return
        await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2"))
        (lease,) = await self.claim_pages()
        await self.end(lease, done())
        self.harness.clock.advance(90_000)
        (again,) = await self.frontier.claim(10, LEASE_S)
        assert isinstance(again.tasks[0], RobotsTask)

    async def check_pages_wait_while_robots_is_unavailable(self) -> None:
        """P1: 5xx or unreachable means disallowed, tried again later."""
        if not self.harness.robots:
            return
        await self.frontier.admit(candidates("https://a.test/1"))
        (lease,) = await self.frontier.claim(10, LEASE_S)
        outcome = self.allow_all("https://a.test", RulesKind.UNAVAILABLE, fresh_ms=300_000)
        await self.frontier.settle(lease.token, [Settlement(lease.tasks[0], outcome)], release())
        self.harness.clock.advance(200)
        assert await self.frontier.claim(10, LEASE_S) == []
        assert dict(self.frontier.snapshot().waiting_for) == {"robots_unavailable": 1}
        self.harness.clock.advance(101)
        (again,) = await self.frontier.claim(10, LEASE_S)
        assert isinstance(again.tasks[0], RobotsTask)

    async def check_a_redirected_robots_goes_through_its_own_host(self) -> None:
        """P1: each redirect hop goes through its own host's queue."""
        if not self.harness.robots:
            return
        await self.frontier.admit(candidates("https://a.test/1"))
        (lease,) = await self.frontier.claim(10, LEASE_S)
        moved = RulesMoved("https://a.test", addresses("https://www.a.test/robots.txt")[0], 1)
        await self.frontier.settle(lease.token, [Settlement(lease.tasks[0], moved)], release())
        (hop,) = await self.frontier.claim(10, LEASE_S)
        assert hop.host == "www.a.test"
        assert hop.tasks == (RobotsTask("https://a.test", "https://www.a.test/robots.txt", 1),)
        await self.frontier.settle(hop.token, [Settlement(hop.tasks[0], self.allow_all("https://a.test"))], release())
        self.harness.clock.advance(1.1)
        assert self.urls(await self.frontier.claim(10, LEASE_S)) == ["https://a.test/1"]

    # Counters

    async def check_counters_tell_what_waits(self) -> None:
        """F2: every transition is counted."""
        await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2", "https://b.test/1"))
        await self.frontier.admit(candidates("https://c.test/1", level=Level.LOW))
        snapshot = self.frontier.snapshot()
        assert dict(snapshot.queued) == {"immediate": 0, "high": 0, "medium": 3, "low": 1}
        assert snapshot.hosts == 3
        leases = await self.claim_pages()
        assert self.frontier.snapshot().hosts_leased == 3
        for offset, lease in enumerate(leases):
            await self.end(lease, done(offset * 100))
        snapshot = self.frontier.snapshot()
        assert sum(snapshot.queued.values()) == 1
        assert (snapshot.hosts_leased, snapshot.hosts_waiting, snapshot.hosts_ready) == (0, 1, 0)
        assert (snapshot.pages, snapshot.domains) == (3, 3)
        assert snapshot.next_in_ms is not None
        assert 0 < snapshot.next_in_ms <= DELAY_MS + 1


def checks() -> list[str]:
    """The names of all checks."""
    return [name for name in vars(FrontierContract) if name.startswith("check_")]


Check = Callable[[FrontierContract], Awaitable[None]]
