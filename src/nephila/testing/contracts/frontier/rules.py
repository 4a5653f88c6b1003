"""What a frontier promises of robots.txt, which comes before the pages of an origin; and of what it counts."""

from __future__ import annotations

from nephila.model.outcome import (
    RulesKind,
    RulesMoved,
    Settlement,
)
from nephila.model.task import Level, RobotsTask

from .case import DELAY_MS, LEASE_S, FrontierCase, addresses, candidates, done, release


class RulesChecks(FrontierCase):
    """Rules of origins, and counters."""

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

    async def check_rules_are_known_of_names_that_end_with_a_dot(self) -> None:
        """P1: such an origin has rules of its own, and its host is the one without the dot, with a port or without."""
        if not self.harness.robots:
            return
        names = [
            "https://a.test.",
            "https://b.test.:8443",
            "http://c.test.:8080",
            "http://d.test.:80",
            "http://[::1]:81",
        ]
        urls = [address.url for address in addresses(*(f"{name}/1" for name in names))]
        await self.frontier.admit(candidates(*urls))
        leases = await self.claim_pages()
        assert sorted(self.urls(leases)) == sorted(urls)
        assert sorted(lease.host for lease in leases) == ["[::1]", "a.test", "b.test", "c.test", "d.test"]

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
