"""Checks of pages that are leased and settled together: how many a lease is for, and what each of them is told."""

from __future__ import annotations

from nephila.model.outcome import Dead, Outcome, Release, Settlement
from nephila.model.settings import RecrawlSettings
from nephila.model.task import Pace
from nephila.testing.contracts.frontier import DELAY_MS, LEASE_S, addresses, candidates, release

from .case import Options, PolicyCase

SPAN = Options(lease_span_s=5.0)
PAGES = tuple(f"https://a.test/{number}" for number in range(20))


class TogetherChecks(PolicyCase):
    """Several pages of a host."""

    async def check_a_lease_is_for_as_many_urls_as_are_asked_within_its_span(self) -> None:
        """P2, F3: the first at once, the others a delay apart."""
        await self.harness.configure(SPAN)
        await self.frontier.admit(candidates(*PAGES))
        (lease,) = await self.claim_pages()
        assert len(lease.tasks) == 6
        settlements = [Settlement(task, self.page()) for task in lease.tasks]
        for delay_ms, following in ((3 * DELAY_MS, 2), (6 * DELAY_MS, 1), (0, 8)):
            settled = await self.frontier.settle(lease.token, settlements, Release(0, Pace(delay_ms)))
            assert settled.accepted
            self.harness.clock.advance(0.01)
            (lease,) = await self.claim_pages()
            assert len(lease.tasks) == following
            settlements = []

    async def check_a_crawl_delay_makes_a_lease_shorter(self) -> None:
        """P1: what robots.txt asks for counts as the delay does."""
        await self.harness.configure(SPAN)
        await self.frontier.admit(candidates(*PAGES))
        (lease,) = await self.claim_pages()
        await self.frontier.settle(lease.token, [], Release(0, Pace(0, 4 * DELAY_MS)))
        self.harness.clock.advance(0.01)
        (lease,) = await self.claim_pages()
        assert len(lease.tasks) == 2

    async def check_a_host_without_a_span_is_leased_for_one_url(self) -> None:
        """P2: where it has a delay."""
        await self.harness.configure(Options())
        await self.frontier.admit(candidates(*PAGES))
        (lease,) = await self.claim_pages()
        assert len(lease.tasks) == 1

    async def check_each_page_that_was_settled_is_told_its_own(self) -> None:
        """F2, R2: what its links came to, and when it is visited next; the sums are those of all."""
        await self.harness.configure(Options(lease_span_s=5.0, recrawl=RecrawlSettings()))
        await self.frontier.admit(candidates(*PAGES[:3]))
        (lease,) = await self.claim_pages()
        links = (
            candidates("https://a.test/x", "https://b.test/x", "https://b.test/x", depth=1),
            candidates("https://a.test/x", "https://c.test/x", *PAGES[:1], depth=1),
            (),
        )
        outcomes: tuple[Outcome, ...] = (self.page(), self.page(status=404), Dead("tls", ""))
        given = zip(lease.tasks, outcomes, links, strict=True)
        settlements = [Settlement(task, outcome, found) for task, outcome, found in given]
        settled = await self.frontier.settle(lease.token, settlements, release())
        assert settled.accepted
        assert [(one.admission.added, one.admission.known) for one in settled.each] == [(2, 1), (1, 2), (0, 0)]
        assert (settled.admission.added, settled.admission.known) == (3, 3)
        assert [one.outlook for one in settled.each] == [self._outlook(url) for url in PAGES[:3]]
        assert settled.each[0].outlook is not None
        assert settled.outlook is settled.each[2].outlook is None
        assert all(one.accepted and not one.each for one in settled.each)

    async def check_one_page_alone_is_told_no_parts(self) -> None:
        """F2: what there is to tell is told once."""
        await self.harness.configure(SPAN)
        await self.frontier.admit(candidates(*PAGES[:2]))
        (lease,) = await self.claim_pages()
        one, other = (Settlement(task, self.page()) for task in lease.tasks)
        assert (await self.frontier.settle(lease.token, [one], None)).each == ()
        assert (await self.frontier.settle(lease.token, [other], release())).each == ()

    async def check_pages_of_a_lost_lease_are_refused_together(self) -> None:
        """F3: none of them counts, and all are asked again."""
        await self.harness.configure(SPAN)
        await self.frontier.admit(candidates(*PAGES[:3]))
        (late,) = await self.claim_pages()
        self.harness.clock.advance(LEASE_S + 1)
        await self.frontier.reap()
        settlements = [Settlement(task, self.page()) for task in late.tasks]
        settled = await self.frontier.settle(late.token, settlements, release())
        assert (settled.accepted, settled.each) == (False, ())
        self.harness.clock.advance(DELAY_MS / 1000 + 0.001)
        assert sorted(self.urls(await self.claim_pages())) == sorted(PAGES[:3])

    def _outlook(self, url: str) -> object:
        story = self.harness.view.story("a.test", addresses(url)[0].fingerprint)
        assert story is not None
        return story.outlook
