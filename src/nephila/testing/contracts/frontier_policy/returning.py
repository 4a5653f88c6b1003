"""What a frontier promises of pages that are fetched again, shapes that bring nothing, and what it can tell."""

from __future__ import annotations

from dataclasses import replace

from xxhash import xxh3_64_digest

from nephila.interfaces.frontier import Found
from nephila.model.outcome import Retry, Settlement
from nephila.model.policy import Block
from nephila.model.settings import BudgetSettings, RecrawlSettings, TrapSettings
from nephila.model.task import Candidate, Level, Refusal
from nephila.testing.contracts.frontier import SEGMENT, addresses, candidates, done, release

from .case import DAY_S, HOUR_S, Options, PolicyCase, depth_of


class ReturningChecks(PolicyCase):
    """Visits, traps and stories."""

    # Coming again

    async def check_a_page_is_due_again(self) -> None:
        """R2, F2: completed -> (due again) queued; the interval doubles until something changes, and halves then."""
        await self.harness.configure(Options(recrawl=RecrawlSettings(policy="simple")))
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

    async def check_visits_that_are_planned_come_nearer_under_shorter_intervals(self) -> None:
        """R2: settings that are given when a crawl goes on hold for what was planned under others, in every state."""
        await self.harness.configure(Options(recrawl=RecrawlSettings()))
        known, once, missing = "https://a.test/1", "https://b.test/1", "https://c.test/1"
        await self.frontier.admit(candidates(known))
        for changed in (True, False, False):
            assert await self.serve(self.page(changed=changed)) == [known]
            await self.frontier.confirm(SEGMENT, self.end_of_segment)
            self.tick(30 * DAY_S)
        assert await self.serve(self.page(changed=False)) == [known]
        await self.frontier.admit(candidates(once, missing))
        for lease in await self.claim_pages():
            status = 404 if lease.tasks[0].url == missing else 200
            await self.frontier.settle(lease.token, [Settlement(lease.tasks[0], self.page(status=status))], release())
        await self.frontier.confirm(SEGMENT, self.end_of_segment)

        def intervals() -> list[int]:
            stories = [self.harness.view.story(one.host, one.fingerprint) for one in addresses(known, once, missing)]
            return [0 if story is None else story.interval_s for story in stories]

        first = intervals()
        assert min(first) >= 7 * DAY_S
        await self.harness.go_on(
            Options(recrawl=RecrawlSettings(max_s=60 * DAY_S, first_s=8 * DAY_S, price_s=2 * DAY_S))
        )
        assert await self.claim_pages() == []
        assert intervals() == first, "what is to come later does so from the next visit on"
        await self.harness.go_on(Options(recrawl=RecrawlSettings(first_s=DAY_S, price_s=HOUR_S, gone_max_s=2 * DAY_S)))
        assert await self.claim_pages() == []
        assert intervals()[1:] == [DAY_S, 2 * DAY_S]
        assert DAY_S < intervals()[0] < first[0] / 2
        await self.harness.go_on(Options(recrawl=RecrawlSettings(first_s=DAY_S, max_s=DAY_S)))
        assert await self.claim_pages() == []
        assert intervals() == [DAY_S, DAY_S, 2 * DAY_S]
        self.tick(DAY_S + 1)
        assert sorted(await self.serve()) == [known, once]

    async def check_settling_tells_when_a_page_is_visited_next(self) -> None:
        """R2, W3: what was planned, in UTC, and how often the page changes once there are visits to compare."""
        await self.harness.configure(Options(recrawl=RecrawlSettings()))
        (address,) = addresses("https://a.test/1")
        await self.frontier.admit(candidates(address.url))
        for visit, changed in enumerate((True, False, True)):
            (lease,) = await self.claim_pages()
            wall_s = self.harness.clock.wall_ms() // 1000
            settled = await self.frontier.settle(
                lease.token, [Settlement(lease.tasks[0], self.page(changed=changed))], release()
            )
            story = self.harness.view.story(address.host, address.fingerprint)
            assert story is not None
            assert settled.outlook is not None
            assert settled.outlook == story.outlook
            assert settled.outlook.next_at == (wall_s + story.interval_s) * 1000
            assert (settled.outlook.change_rate is None) == (visit == 0)
            self.tick(story.interval_s + 10)
        (lease,) = await self.claim_pages()
        retry = Retry(1000, "timeout")
        assert (await self.frontier.settle(lease.token, [Settlement(lease.tasks[0], retry)], release())).outlook is None

    async def check_what_visits_have_shown_is_remembered(self) -> None:
        """R2: how often a page changes is estimated from all of its visits, and its interval follows from that."""
        await self.harness.configure(Options(recrawl=RecrawlSettings()))
        (address,) = addresses("https://a.test/1")
        await self.frontier.admit(candidates(address.url))
        rates, waits = list[float](), list[int]()
        for changed in (True, False, False, True, True, True):
            assert await self.serve(self.page(changed=changed)) == [address.url]
            story = self.harness.view.story(address.host, address.fingerprint)
            assert story is not None
            assert story.outlook is not None
            rates.append(story.outlook.change_rate or 0.0)
            waits.append(story.interval_s)
            await self.frontier.confirm(SEGMENT, self.end_of_segment)
            self.tick(story.interval_s + 10)
        assert rates[1] > rates[2] > 0
        assert rates[2] < rates[3] < rates[4] < rates[5]
        assert waits[0] < waits[1] < waits[2] > waits[3] > waits[4] > waits[5]

    async def check_a_page_that_says_the_same_has_not_changed(self) -> None:
        """R2: though its bytes have; when it was last seen to change goes by that, too."""
        await self.harness.configure(Options(recrawl=RecrawlSettings()))
        (address,) = addresses("https://a.test/1")
        await self.frontier.admit(candidates(address.url))
        found = list[tuple[int, int]]()
        for text in (b"one text", b"one text", b"\xff" * 8, b"\xff" * 8):
            assert await self.serve(replace(self.page(), said=text)) == [address.url]
            story = self.harness.view.story(address.host, address.fingerprint)
            assert story is not None
            found.append((story.changes, story.changed_at))
            await self.frontier.confirm(SEGMENT, self.end_of_segment)
            self.tick(story.interval_s + 10)
        assert [changes for changes, _ in found] == [0, 0, 1, 1]
        assert found[0][1] == found[1][1] < found[2][1] == found[3][1]

    async def check_nothing_is_told_of_a_next_visit_that_is_not_planned(self) -> None:
        """R2, W3: where pages are not visited again."""
        await self.harness.configure(Options(recrawl=None))
        await self.frontier.admit(candidates("https://a.test/1"))
        (lease,) = await self.claim_pages()
        settled = await self.frontier.settle(lease.token, [Settlement(lease.tasks[0], self.page())], release())
        assert settled.accepted
        assert settled.outlook is None

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
        assert depth_of(lease) == 1

    async def check_what_a_policy_forbids_is_not_known(self) -> None:
        """S1, T8: refused is neither added nor known."""
        await self.harness.configure(Options())
        await self.operating.block(Block("a.test", "because"))
        admission = await self.frontier.admit(candidates("https://a.test/1", "https://b.test/1"))
        assert (admission.added, admission.known) == (1, 0)
