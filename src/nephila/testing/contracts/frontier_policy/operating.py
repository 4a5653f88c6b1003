"""What a frontier promises to whoever operates a crawl: policies, blocks, domains that fail."""

from __future__ import annotations

from nephila.model.outcome import Retry
from nephila.model.policy import Block, DomainPolicy
from nephila.model.rendering import RenderMode
from nephila.model.settings import PolitenessSettings, RecrawlSettings
from nephila.testing.contracts.frontier import SEGMENT, addresses, candidates

from .case import DAY_S, HOUR_S, Options, PolicyCase


class OperatingChecks(PolicyCase):
    """Policies, blocks and health."""

    # Policies

    async def check_a_paused_domain_is_not_asked(self) -> None:
        """R4: pause and resume take effect with the next claim."""
        await self.harness.configure(Options())
        await self.frontier.admit(candidates("https://www.a.test/1"))
        await self.operating.set_policy("a.test", DomainPolicy(paused=True))
        assert await self.claim_pages() == []
        assert dict(self.frontier.snapshot().waiting_for) == {"paused": 1}
        await self.operating.set_policy("a.test", None)
        assert self.urls(await self.claim_pages()) == ["https://www.a.test/1"]

    async def check_a_policy_replaces_only_what_it_was_made_from(self) -> None:
        """C1, R4: of two who change the same policy at once, the second is told, and undoes nothing."""
        await self.harness.configure(Options())
        await self.frontier.admit(candidates("https://www.a.test/1"))
        ordinary, paused, worse = DomainPolicy(), DomainPolicy(paused=True), DomainPolicy(quality=0.5)
        assert await self.operating.set_policy("a.test", paused, ordinary)
        assert not await self.operating.set_policy("a.test", worse, ordinary)
        assert await self.claim_pages() == []
        assert await self.operating.set_policy("a.test", DomainPolicy(paused=True, quality=0.5), paused)
        assert not await self.operating.set_policy("a.test", None, paused)
        assert await self.operating.set_policy("a.test", None, DomainPolicy(paused=True, quality=0.5))
        assert await self.operating.set_policy("a.test", None, ordinary)
        assert self.urls(await self.claim_pages()) == ["https://www.a.test/1"]

    async def check_a_policy_sets_the_delay(self) -> None:
        """R4, P2: a longer delay binds at once, though the host was told a shorter one."""
        await self.harness.configure(Options())
        await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2"))
        assert len(await self.serve()) == 1
        await self.operating.set_policy("a.test", DomainPolicy(delay_s=10))
        self.tick()
        assert await self.claim_pages() == []
        self.tick(9)
        (lease,) = await self.claim_pages()
        assert lease.pace.base_ms == 10_000

    async def check_a_policy_sets_the_depth(self) -> None:
        """R4, T8: what is deeper ends unasked where it is queued, and is refused where it is new."""
        await self.harness.configure(Options())
        await self.frontier.admit(candidates("https://a.test/3", depth=3))
        await self.operating.set_policy("a.test", DomainPolicy(max_depth=2))
        await self.frontier.admit(candidates("https://a.test/4", depth=4))
        assert await self.claim_pages() == []
        assert self.state("https://a.test/3") == ("dropped", "policy_depth")
        assert self.state("https://a.test/4") == ("refused", "policy_depth")

    async def check_a_policy_sets_the_hours(self) -> None:
        """R4: a domain may be asked at certain hours only."""
        await self.harness.configure(Options())
        await self.frontier.admit(candidates("https://a.test/1"))
        await self.operating.set_policy("a.test", DomainPolicy(hours=((2, 3),)))
        assert await self.claim_pages() == []
        assert dict(self.frontier.snapshot().waiting_for) == {"hours": 1}
        self.tick(2 * HOUR_S + 1)
        assert len(await self.claim_pages()) == 1

    async def check_a_policy_names_the_agent(self) -> None:
        """R4, P6, J1: another User-Agent for a domain, and whether its pages go through a browser."""
        await self.harness.configure(Options())
        await self.frontier.admit(candidates("https://a.test/1"))
        await self.operating.set_policy("a.test", DomainPolicy(user_agent="Other/1", render=RenderMode.ALWAYS))
        (lease,) = await self.claim_pages()
        assert lease.user_agent == "Other/1"
        assert lease.render is RenderMode.ALWAYS

    async def check_a_policy_sets_the_interval(self) -> None:
        """R4, R2: a fixed interval between two visits."""
        await self.harness.configure(Options(recrawl=RecrawlSettings()))
        await self.operating.set_policy("a.test", DomainPolicy(recrawl_s=HOUR_S))
        await self.frontier.admit(candidates("https://a.test/1"))
        await self.serve()
        await self.frontier.confirm(SEGMENT, self.end_of_segment)
        self.tick(HOUR_S - 1)
        assert await self.claim_pages() == []
        self.tick(2)
        assert len(await self.claim_pages()) == 1

    async def check_an_interval_holds_for_visits_that_are_planned(self) -> None:
        """R4, R2: a shorter one brings them nearer, a longer one moves them away, counted from the visit both times."""
        await self.harness.configure(Options(recrawl=RecrawlSettings()))
        await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2", "https://b.test/1"))
        for _ in range(3):
            await self.serve()
            self.tick(2)
        await self.frontier.confirm(SEGMENT, self.end_of_segment)
        assert await self.claim_pages() == []
        self.tick(HOUR_S)
        await self.operating.set_policy("a.test", DomainPolicy(recrawl_s=2 * HOUR_S))
        assert await self.claim_pages() == []
        self.tick(HOUR_S - 60)
        assert await self.claim_pages() == []
        await self.operating.set_policy("a.test", DomainPolicy(recrawl_s=9 * DAY_S))
        self.tick(8 * DAY_S)
        assert self.urls(await self.claim_pages()) == ["https://b.test/1"], "what was planned for others stays"
        self.tick(DAY_S)
        first = await self.serve()
        self.tick()
        assert sorted([*first, *await self.serve()]) == ["https://a.test/1", "https://a.test/2"]

    async def check_what_is_overdue_by_an_interval_is_due_at_once(self) -> None:
        """R4, R2: and the plan that people are shown is the one that holds."""
        await self.harness.configure(Options(recrawl=RecrawlSettings()))
        (address,) = addresses("https://a.test/1")
        await self.frontier.admit(candidates(address.url))
        await self.serve()
        await self.frontier.confirm(SEGMENT, self.end_of_segment)
        self.tick(DAY_S)
        await self.operating.set_policy("a.test", DomainPolicy(recrawl_s=HOUR_S))
        assert self.frontier.snapshot().next_in_ms == 0, "a claim has something to do"
        assert await self.serve() == [address.url]
        await self.frontier.confirm(SEGMENT, self.end_of_segment)
        await self.operating.set_policy("a.test", DomainPolicy(recrawl_s=DAY_S))
        assert await self.claim_pages() == []
        story = self.harness.view.story(address.host, address.fingerprint)
        assert story is not None
        assert story.interval_s == DAY_S
        assert story.due_in_ms is not None
        assert story.due_in_ms // 1000 == DAY_S
        await self.operating.set_policy("a.test", None)
        self.tick(DAY_S)
        assert await self.serve() == [address.url], "what is taken back holds until the next visit"

    # Blocks

    async def check_a_blocked_host_is_not_asked(self) -> None:
        """T7, T8: blocked by hand with a reason, for what is queued and for what is new, until it is taken back."""
        await self.harness.configure(Options())
        await self.frontier.admit(candidates("https://www.a.test/1"))
        await self.operating.block(Block("a.test", "they asked us to"))
        assert await self.claim_pages() == []
        assert dict(self.frontier.snapshot().waiting_for) == {"blocked": 1}
        assert (await self.frontier.admit(candidates("https://a.test/2"))).added == 0
        assert self.state("https://a.test/2") == ("refused", "blocked")
        assert await self.operating.unblock("a.test")
        assert not await self.operating.unblock("a.test")
        assert self.urls(await self.claim_pages()) == ["https://www.a.test/1"]

    async def check_a_blocked_part_is_not_asked(self) -> None:
        """T7: URLs that begin so; the rest of the host goes on."""
        await self.harness.configure(Options())
        await self.frontier.admit(candidates("https://a.test/no/1", "https://a.test/yes"))
        await self.operating.block(Block("https://a.test/no/", "private"))
        assert await self.serve() == ["https://a.test/yes"]
        self.tick()
        assert await self.serve() == []
        assert self.state("https://a.test/no/1") == ("dropped", "blocked")

    async def check_one_page_is_blocked_and_no_other(self) -> None:
        """T7, K2: queued or new, however it is spelled; until it is taken back."""
        await self.harness.configure(Options())
        blocked, other = "https://a.test/one", "https://a.test/one/more"
        (page,) = addresses(blocked)
        await self.frontier.admit(candidates(blocked, other))
        await self.operating.block(Block(f"{blocked}$", "they asked us to", 0, page.fingerprint))
        assert await self.serve() == [other]
        self.tick()
        assert await self.serve() == []
        assert self.state(blocked) == ("dropped", "blocked")
        await self.operating.block(Block("https://a.test/two$", "by its spelling alone"))
        fresh = candidates("https://a.test/two", "https://a.test/two2", f"{blocked}?utm_source=x")
        assert (await self.frontier.admit(fresh)).added == 1
        assert await self.serve() == ["https://a.test/two2"]
        assert await self.operating.unblock("https://a.test/two$")
        assert (await self.frontier.admit(candidates("https://a.test/two"))).added == 1

    async def check_a_block_may_be_as_long_as_a_url(self) -> None:
        """T7, K2: two that begin alike are two, and each can be taken back."""
        await self.harness.configure(Options())
        first, second, third = (f"https://a.test/?q={'x' * 1900}{end}" for end in "123")
        for url in (first, second):
            await self.operating.block(Block(url, "they asked us to"))
        assert (await self.frontier.admit(candidates(first, second, third))).added == 1
        assert await self.serve() == [third]
        assert await self.operating.unblock(first)
        assert not await self.operating.unblock(first)
        assert (await self.frontier.admit(candidates(first, second))).added == 1
        assert self.state(second) == ("refused", "blocked")

    # Health

    async def check_many_errors_pause_a_domain(self) -> None:
        """P4: more than half errors among the last requests: an hour of rest for all of its hosts."""
        await self.harness.configure(Options(politeness=PolitenessSettings(pause_window=10)))
        await self.frontier.admit(candidates(*(f"https://a.test/{i}" for i in range(10)), "https://www.a.test/"))
        failure = Retry(10 * 60_000, "timeout")
        for _ in range(3):
            assert len(await self.serve(failure)) >= 1
            self.tick()
        asked = 0
        while asked < 10 and await self.serve(failure):
            asked += 1
            self.tick()
        assert asked < 6
        assert "domain_errors" in self.frontier.snapshot().waiting_for
        self.tick(HOUR_S)
        assert len(await self.claim_pages()) >= 1

    async def check_missing_pages_are_no_errors(self) -> None:
        """P4: a 404 says nothing bad of the server."""
        await self.harness.configure(Options(politeness=PolitenessSettings(pause_window=10)))
        await self.frontier.admit(candidates(*(f"https://a.test/{i}" for i in range(12))))
        for _ in range(12):
            assert len(await self.serve(self.page(status=404))) == 1
            self.tick()
