"""What a frontier promises of what comes back: outcomes, links, retries, the end of leases, cycles."""

from __future__ import annotations

from nephila.model.outcome import (
    Dead,
    DeferReason,
    Deferred,
    Dropped,
    Respelled,
    Retry,
)
from nephila.model.task import PageTask

from .case import DELAY_MS, LEASE_S, SEGMENT, FrontierCase, addresses, candidates, done


class SettlingChecks(FrontierCase):
    """Settlements and cycles."""

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
