"""What a frontier promises of what it is given and what it lends: admission, leases, pauses, order."""

from __future__ import annotations

from nephila.model.outcome import Dead
from nephila.model.settings.reach import LONGEST_URL
from nephila.model.task import Level, PageTask

from .case import DELAY_MS, FrontierCase, candidates, done


class ClaimingChecks(FrontierCase):
    """Admission and claims."""

    # Admission

    async def check_admitting_twice_adds_once(self) -> None:
        """F2, D1: a known URL is never taken for new."""
        first = await self.frontier.admit(candidates("https://a.test/1", "https://a.test/2"))
        again = await self.frontier.admit(candidates("https://a.test/2", "https://a.test/2?utm_source=x"))
        assert (first.added, first.known) == (2, 0)
        assert (again.added, again.known) == (0, 2)

    async def check_the_longest_urls_are_queued(self) -> None:
        """U4, F2: as long as the settings allow, however they are spelled; those that they are found on, too."""
        for number, host in enumerate(("a.test", "b.test.", "c.test:8080", "d.test.:81")):
            longest, following = (f"http://{host}/{end}".ljust(LONGEST_URL, "x") for end in "12")
            await self.frontier.admit(candidates(longest))
            (lease,) = await self.claim_pages()
            assert self.urls([lease]) == [longest]
            assert await self.end(lease, done(number * 100), candidates(following, depth=1))
            self.harness.clock.advance(1.1)
            (lease,) = await self.claim_pages()
            assert self.urls([lease]) == [following]
            await self.end(lease, Dead("timeout", ""))
            self.harness.clock.advance(1.1)

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
