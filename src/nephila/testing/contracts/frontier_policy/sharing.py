"""What a frontier promises of shares and budgets: who comes first, and who has had enough."""

from __future__ import annotations

from dataclasses import replace

from nephila.model.outcome import Dead, Dropped
from nephila.model.settings import BudgetSettings, RecrawlSettings
from nephila.model.task import Level, PageTask
from nephila.testing.contracts.frontier import SEGMENT, candidates

from .case import DAY_S, Options, PolicyCase


class SharingChecks(PolicyCase):
    """Shares and budgets."""

    # Shares

    async def check_new_and_due_share_the_fetches(self) -> None:
        """F4: 30/70 while both have work; what one does not use goes to the other."""
        await self.harness.configure(Options(recrawl=RecrawlSettings()))
        await self.frontier.admit(candidates(*(f"https://old{i}.test/" for i in range(120))))
        assert len(await self.serve()) == 120
        await self.frontier.confirm(SEGMENT, self.end_of_segment)
        self.tick(7 * DAY_S + 1)
        await self.frontier.admit(candidates(*(f"https://new{i}.test/" for i in range(120))))
        again = [await self._claims_one_due() for _ in range(100)]
        assert 58 <= sum(again) <= 82, sum(again)
        assert len(await self.claim_pages(1000)) == 140

    async def _claims_one_due(self) -> bool:
        (lease,) = await self.claim_pages(1)
        (task,) = lease.tasks
        assert isinstance(task, PageTask)
        return bool(task.digest)

    async def check_waiting_lifts_a_url(self) -> None:
        """F7: a URL's priority grows with its wait: when its host has rested, its class is by its present score."""
        await self.harness.configure(Options())
        await self.frontier.admit(candidates("https://low.test/first", level=Level.HIGH))
        await self.frontier.admit(candidates("https://low.test/second", level=Level.LOW))
        assert await self.serve(Dropped("robots")) == ["https://low.test/first"]
        self.tick(26 * DAY_S)
        await self.frontier.admit(candidates("https://high.test/", level=Level.HIGH))
        assert self.urls(await self.claim_pages(1)) == ["https://low.test/second"]

    async def check_starving_hosts_have_a_reserve(self) -> None:
        """F7: up to a fifth of the fetches go to hosts that have waited a day."""
        await self.harness.configure(Options())
        await self.frontier.admit(candidates(*(f"https://low{i}.test/" for i in range(60)), level=Level.LOW))
        self.tick(DAY_S + 1)
        await self.frontier.admit(candidates(*(f"https://high{i}.test/" for i in range(120)), level=Level.HIGH))
        claimed = [self.urls(await self.claim_pages(1))[0] for _ in range(100)]
        reserved = self.frontier.snapshot().reserved
        assert 10 <= reserved <= 45 if self.harness.robots else 10 <= reserved <= 30, reserved
        assert 10 <= sum("low" in url for url in claimed) <= 40

    # Budgets

    async def check_what_is_over_budget_is_parked_and_comes_back(self) -> None:
        """F5, T1: a host begins small; each page with new content earns it more, a copy earns nothing."""
        await self.harness.configure(Options(budget=BudgetSettings(first_urls=2, urls_per_page=1)))
        await self.frontier.admit(candidates(*(f"https://a.test/{i}" for i in range(5))))
        assert dict(self.frontier.snapshot().parked) == {"over_budget": 3}
        assert self.state("https://a.test/4") == ("parked", "over_budget")
        assert len(await self.serve(self.page(duplicate=True))) == 1
        assert dict(self.frontier.snapshot().parked) == {"over_budget": 3}
        for left in (2, 1, 0, 0):
            self.tick()
            assert len(await self.serve()) == 1
            assert self.frontier.snapshot().parked.get("over_budget", 0) == left
        self.tick()
        assert await self.serve() == []

    async def check_a_redirect_gives_its_place_back(self) -> None:
        """F5, S1: a list of a site that has moved is asked for whole; what leads to known URLs keeps its place."""
        await self.harness.configure(Options(budget=BudgetSettings(first_urls=2, urls_per_page=0)))
        await self.frontier.admit(candidates(*(f"http://a.test/{i}" for i in range(5))))
        assert dict(self.frontier.snapshot().parked) == {"over_budget": 3}
        fetched: list[str] = []
        for _ in range(12):
            for lease in await self.claim_pages(10):
                (task,) = lease.tasks
                fetched.append(task.url)
                target = f"https://b.test/{task.url.rpartition('/')[2]}"
                moved = task.url.startswith("http:")
                outcome = replace(self.page(status=301), page=False) if moved else self.page(duplicate=True)
                await self.end(lease, outcome, candidates(target) if moved else ())
            self.tick()
        assert sum(url.startswith("http:") for url in fetched) == 5
        await self.frontier.admit(candidates("http://c.test/1", "http://c.test/2", "http://c.test/3"))
        fetched = []
        for _ in range(4):
            for lease in await self.claim_pages(10):
                fetched += [task.url for task in lease.tasks]
                await self.end(lease, replace(self.page(status=301), page=False), candidates("https://b.test/0"))
            self.tick()
        assert len([url for url in fetched if "//c.test/" in url]) == 2

    async def check_a_crowded_section_is_parked(self) -> None:
        """T1: so many URLs under one first path segment are queued; other sections are not held back by it."""
        await self.harness.configure(Options(budget=BudgetSettings(queued_per_prefix=10)))
        for first in (0, 6):
            await self.frontier.admit(candidates(*(f"https://a.test/s/{i}" for i in range(first, first + 6))))
        await self.frontier.admit(candidates(*(f"https://a.test/t/{i}" for i in range(3))))
        assert dict(self.frontier.snapshot().parked) == {"over_budget": 2}
        fetched: list[str] = []
        for _ in range(16):
            fetched += await self.serve()
            self.tick()
        assert len(fetched) == 15, "what was parked came back"

    async def check_a_domain_earns_its_hosts(self) -> None:
        """F5: wildcard DNS mints hosts for ever; a domain is given more of them when the first ones prove useful."""
        settings = BudgetSettings(first_hosts=1, hosts_per_useful_host=1)
        await self.harness.configure(Options(budget=settings))
        await self.frontier.admit(candidates(*(f"https://a.test/{i}" for i in range(3)), "https://www.a.test/"))
        assert self.state("https://www.a.test/") == ("parked", "over_budget")
        fetched: list[str] = []
        for _ in range(6):
            fetched += await self.serve()
            self.tick()
        assert fetched[-1] == "https://www.a.test/"
        assert len(fetched) == 4

    async def check_coverage_takes_one_url_of_a_domain(self) -> None:
        """S4: until enough registrable domains were fetched, only what adds one is queued; then the rest comes."""
        await self.harness.configure(Options(target_domains=2))
        await self.frontier.admit(candidates("https://a.test/1", "https://www.a.test/2", "https://b.test/1"))
        assert dict(self.frontier.snapshot().parked) == {"coverage": 1}
        assert sorted(await self.serve()) == ["https://a.test/1", "https://b.test/1"]
        self.tick()
        assert await self.serve() == ["https://www.a.test/2"]

    async def check_coverage_tries_another_url_where_the_first_failed(self) -> None:
        """S4: a domain counts when a page of it was fetched, not when one was asked for."""
        await self.harness.configure(Options(target_domains=2))
        await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2"))
        assert await self.serve(Dead("tls")) == ["https://a.test/1"]
        self.tick()
        assert await self.serve() == ["https://a.test/2"]
