"""What every frontier promises of shares, budgets, policies, re-crawls and traps: the second half of its suite.

The checks need a crawl with settings of their own (`Options`) and the verbs of whoever operates it (`Operating`), so
the harness offers both; it begins empty with every `configure`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from xxhash import xxh3_64_digest

from nephila.interfaces.frontier import Found
from nephila.model.outcome import Dead, Done, Dropped, Outcome, Retry, Settlement
from nephila.model.policy import Block, DomainPolicy
from nephila.model.record import RecordRef
from nephila.model.rendering import RenderMode
from nephila.model.settings import (
    BudgetSettings,
    PolitenessSettings,
    PrioritySettings,
    RecrawlSettings,
    TrapSettings,
)
from nephila.model.task import Candidate, Lease, Level, PageTask, Refusal

from .frontier import SEGMENT, FrontierContract, Harness, addresses, candidates, done, release

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


@dataclass(frozen=True, slots=True)
class Options:
    """The settings that a check wants to be other than usual."""

    priority: PrioritySettings = PrioritySettings()
    budget: BudgetSettings = BudgetSettings()
    traps: TrapSettings = TrapSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    recrawl: RecrawlSettings | None = None
    """None: pages are fetched once a cycle."""
    target_domains: int = 0


class Operating(Protocol):
    """What whoever runs a crawl can do while it runs."""

    async def set_policy(self, domain: str, policy: DomainPolicy | None) -> None:
        """Let a policy hold for a registrable domain; None takes it back."""

    async def block(self, block: Block) -> None:
        """Ask no more for a domain, a host or a part of it."""

    async def unblock(self, pattern: str) -> bool:
        """Take a block back."""

    async def release_trap(self, host: str, skeleton_key: bytes) -> int:
        """Let a pattern start anew."""


class PolicyHarness(Harness, Protocol):
    """A harness that can be set up otherwise."""

    async def configure(self, options: Options) -> None:
        """Begin anew, empty, with these settings."""

    @property
    def operating(self) -> Operating:
        """The engine under test, for whoever operates it."""


class PolicyContract(FrontierContract):
    """The promises."""

    harness: PolicyHarness

    def __init__(self, harness: PolicyHarness) -> None:
        super().__init__(harness)
        self.end_of_segment = 0

    @property
    def operating(self) -> Operating:
        """The engine under test, as it is open now."""
        return self.harness.operating

    def page(self, *, status: int = 200, changed: bool = True, duplicate: bool = False) -> Done:
        """An answer that lies behind the last one."""
        self.end_of_segment += 100
        ref = RecordRef(SEGMENT, self.end_of_segment - 100, 100, self.end_of_segment)
        page = status < 400
        return Done(ref, status, b"d" * 32 * page, changed=changed, page=page, duplicate=duplicate)

    async def serve(self, outcome: Outcome | None = None, hosts: int = 1000) -> list[str]:
        """Claim what can be claimed and end each first task the same way; which URLs."""
        leases = await self.claim_pages(hosts)
        for lease in leases:
            await self.end(lease, outcome or self.page())
        return self.urls(leases)

    def tick(self, seconds: float = 1.1) -> None:
        """Let hosts rest."""
        self.harness.clock.advance(seconds)

    def state(self, url: str) -> tuple[str, str]:
        """Where a URL stands, and why."""
        (address,) = addresses(url)
        story = self.harness.view.story(address.host, address.fingerprint)
        assert story is not None
        return story.state, story.reason

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

    # Coming again

    async def check_a_page_is_due_again(self) -> None:
        """R2, F2: completed -> (due again) queued; the interval doubles until something changes, and halves then."""
        await self.harness.configure(Options(recrawl=RecrawlSettings()))
        await self.frontier.admit(candidates("https://a.test/1"))
        await self.serve()
        await self.frontier.confirm(SEGMENT, self.end_of_segment)
        assert self.frontier.snapshot().planned == 1
        self.tick(7 * DAY_S - 10)
        assert await self.claim_pages() == []
        self.tick(11)
        assert await self.serve(self.page(changed=False)) == ["https://a.test/1"]
        await self.frontier.confirm(SEGMENT, self.end_of_segment)
        self.tick(13 * DAY_S)
        assert await self.claim_pages() == []
        self.tick(1.1 * DAY_S)
        assert await self.serve(self.page(changed=True)) == ["https://a.test/1"]
        await self.frontier.confirm(SEGMENT, self.end_of_segment)
        self.tick(8 * DAY_S)
        assert await self.serve() == ["https://a.test/1"]

    async def check_a_list_is_known_as_the_source(self) -> None:
        """X3, T8: what stands in a sitemap was found there, refusals too."""
        frontier = self.harness.frontier
        sitemap, page, refused = addresses(
            "https://a.example/sitemap.xml", "https://a.example/listed", "https://a.example/private"
        )
        await frontier.admit([Candidate(sitemap, 1)])
        assert await self.serve() == [sitemap.url]
        found = Found(sitemap)
        admission = await frontier.admit([Candidate(page, 1)], [Refusal(refused, "excluded", "private")], found)
        assert admission.added == 1
        for address in (page, refused):
            story = self.harness.view.story(address.host, address.fingerprint)
            assert story is not None
            assert story.via == sitemap.url

    async def check_what_is_said_to_have_changed_is_due(self) -> None:
        """X3, R2: a later word than our visit makes a page due; an earlier one, or the same word again, does not."""
        await self.harness.configure(Options(recrawl=RecrawlSettings()))
        url = "https://a.example/listed"
        (page,) = addresses(url)
        sitemap = addresses("https://a.example/sitemap.xml")[0]
        frontier = self.harness.frontier
        await frontier.admit(candidates(url))
        assert await self.serve() == [url]
        self.tick(HOUR_S)
        visited_s = self.harness.clock.wall_ms() // 1000 - int(HOUR_S)
        before = await frontier.admit([Candidate(page, 1)], (), Found(sitemap, {page.fingerprint: visited_s - 10}))
        assert before.renewed == ()
        assert await self.serve() == []
        after = await frontier.admit([Candidate(page, 1)], (), Found(sitemap, {page.fingerprint: visited_s + 10}))
        assert after.renewed == (page.fingerprint,)
        again = await frontier.admit([Candidate(page, 1)], (), Found(sitemap, {page.fingerprint: visited_s + 10}))
        assert again.renewed == ()
        assert await self.serve() == [url]
        late = await frontier.admit([Candidate(page, 1)], (), Found(sitemap, {page.fingerprint: visited_s + 10}))
        assert late.renewed == ()

    async def check_gone_means_proven_gone(self) -> None:
        """R5: after repeated 404 over days, counted once however often it is asked for; and it may come back."""
        await self.harness.configure(Options(recrawl=RecrawlSettings(first_s=DAY_S)))
        await self.frontier.admit(candidates("https://a.test/1"))
        gone: list[int] = []
        for status in (404, 404, 404, 404, 200):
            assert await self.serve(self.page(status=status)) == ["https://a.test/1"]
            await self.frontier.confirm(SEGMENT, self.end_of_segment)
            gone.append(self.frontier.snapshot().gone)
            self.tick(40 * DAY_S)
        assert gone == [0, 0, 1, 1, 0]

    # Traps

    async def check_a_shape_without_yield_is_stopped(self) -> None:
        """T2: URLs of a shape that bring nothing new are parked; others of the host go on; a person lets them go."""
        await self.harness.configure(Options(traps=TrapSettings(slow_after=3, stop_after=5)))
        await self.frontier.admit(candidates(*(f"https://a.test/c?d={i}" for i in range(40))))
        fetched = 0
        while len(await self.serve(self.page(duplicate=True))) == 1:
            fetched += 1
            self.tick()
        snapshot = self.frontier.snapshot()
        assert 5 <= fetched <= 15
        assert snapshot.traps >= 1
        assert snapshot.parked["trap"] == 40 - fetched
        await self.frontier.admit(candidates("https://a.test/c?d=99"))
        assert self.state("https://a.test/c?d=99") == ("parked", "trap")
        assert await self.claim_pages() == []
        for pattern in ("/c?d", "*?d", "*"):
            await self.operating.release_trap("a.test", xxh3_64_digest(pattern.encode()))
        self.tick()
        assert len(await self.claim_pages()) == 1

    async def check_a_stopped_shape_is_tried_again(self) -> None:
        """T2: reversibly: one page each `probe_s`, though the host has nothing else to do."""
        await self.harness.configure(Options(traps=TrapSettings(slow_after=3, stop_after=5, probe_s=DAY_S)))
        await self.frontier.admit(candidates(*(f"https://a.test/c?d={i}" for i in range(40))))
        while len(await self.serve(self.page(duplicate=True))) == 1:
            self.tick()
        self.tick(DAY_S + 1)
        assert len(await self.serve(self.page(duplicate=True))) == 1
        self.tick()
        assert await self.claim_pages() == []

    async def check_somebody_who_wants_it_now_gets_it(self) -> None:
        """F1, F5: a parked URL that is asked for as immediate is fetched next."""
        await self.harness.configure(Options(budget=BudgetSettings(first_urls=1, urls_per_page=0)))
        await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2"))
        assert await self.serve() == ["https://a.test/1"]
        self.tick()
        assert await self.claim_pages() == []
        await self.frontier.admit(candidates("https://a.test/2", level=Level.IMMEDIATE))
        assert self.urls(await self.claim_pages()) == ["https://a.test/2"]

    # Stories

    async def check_refusals_are_remembered(self) -> None:
        """T8: which rule, from which page; a URL that was admitted tells its own story."""
        await self.harness.configure(Options())
        out, later = addresses("https://out.test/", "https://a.test/later")
        await self.frontier.admit(candidates("https://a.test/1"), [Refusal(later, "excluded", "/later")])
        (lease,) = await self.claim_pages()
        settlement = Settlement(lease.tasks[0], done(), (), (Refusal(out, "scope", "domain"),))
        await self.frontier.settle(lease.token, [settlement], release())
        story = self.harness.view.story("out.test", out.fingerprint)
        assert story is not None
        assert (story.state, story.reason, story.detail) == ("refused", "scope", "domain")
        assert story.via == "https://a.test/1"
        assert self.frontier.snapshot().states["refused"] == 2
        assert self.state("https://a.test/later") == ("refused", "excluded")
        await self.frontier.admit(candidates("https://a.test/later"))
        assert self.state("https://a.test/later")[0] == "queued"

    async def check_a_url_named_twice_in_one_call_is_one_url(self) -> None:
        """F2, S3: the nearest to a seed counts, in whatever order they are named."""
        await self.harness.configure(Options())
        near, far = candidates("https://a.test/1", depth=1), candidates("https://a.test/1", depth=5)
        admission = await self.frontier.admit([*near, *far])
        assert (admission.added, admission.known) == (1, 1)
        (lease,) = await self.claim_pages()
        assert _depth(lease) == 1

    async def check_what_a_policy_forbids_is_not_known(self) -> None:
        """S1, T8: refused is neither added nor known."""
        await self.harness.configure(Options())
        await self.operating.block(Block("a.test", "because"))
        admission = await self.frontier.admit(candidates("https://a.test/1", "https://b.test/1"))
        assert (admission.added, admission.known) == (1, 0)


def _depth(lease: Lease) -> int:
    (task,) = lease.tasks
    assert isinstance(task, PageTask)
    return task.depth


def checks() -> list[str]:
    """The names of all checks."""
    return [name for name in vars(PolicyContract) if name.startswith("check_")]
