"""What a frontier promises of domains that the whole link graph says something of (R3)."""

from __future__ import annotations

from nephila.model.outcome import Dead, Settlement
from nephila.model.settings import RecrawlSettings
from nephila.model.task import Candidate
from nephila.testing.contracts.frontier import SEGMENT, addresses, candidates, release
from nephila.testing.repute import GivenRepute

from .case import DAY_S, Options, PolicyCase

_FIRST = {"high.test": 64, "low.test": 0}
_THEN = {"high.test": 0, "low.test": 64}
_POINTS = (4, 5)
"""Of a hundred: what the best of domains has before one that nobody links to, by the usual weights and rounded."""


class RankedChecks(PolicyCase):
    """Scores under ranks that come, change and go."""

    async def check_ranks_of_domains_count_from_the_next_link_on(self) -> None:
        """R1, R3: by what was computed last; a domain that it did not know is as before, and so are all without it."""
        repute = GivenRepute(_FIRST, _THEN, turn=0)
        await self.harness.configure(Options(repute=repute))
        for turn, ahead in ((0, ""), (1, "high"), (2, "low"), (3, "")):
            repute.turn = turn
            urls = [f"https://{name}.test/{turn}" for name in ("high", "low", "new")]
            await self.frontier.admit(candidates(f"https://seed.test/{turn}"))
            (lease,) = [one for one in await self.claim_pages(1000) if one.host == "seed.test"]
            links = [Candidate(address, 1, None) for address in addresses(*urls)]
            settlement = Settlement(lease.tasks[0], self.page(), links=links)
            await self.frontier.settle(lease.token, [settlement], release())
            steps = dict(zip(("high", "low", "new"), map(self._step, urls), strict=True))
            behind = max(steps.values()) - min(steps.values())
            assert behind in _POINTS if ahead else behind == 0, turn
            assert not ahead or min(steps, key=lambda name: steps[name]) == ahead, turn
            self.tick()

    async def check_ranks_of_domains_count_for_pages_that_are_due(self) -> None:
        """R2, R3: those that were computed last, not those of the last visit."""
        repute = GivenRepute(_FIRST, _THEN)
        await self.harness.configure(Options(recrawl=RecrawlSettings(policy="simple"), repute=repute))
        await self._visit_all()
        repute.turn = 2
        self.tick(8 * DAY_S)
        await self.claim_pages(1000)
        assert self._waiting("high") - self._waiting("low") in _POINTS

    async def check_ranks_of_domains_count_in_a_new_cycle(self) -> None:
        """F2, R3: likewise, for all that comes back with it."""
        repute = GivenRepute(_FIRST, _THEN)
        await self.harness.configure(Options(repute=repute))
        await self._visit_all()
        repute.turn = 2
        await self.harness.begin_cycle()
        await self.claim_pages(1000)
        assert self._waiting("high") - self._waiting("low") in _POINTS

    async def check_ranks_of_domains_count_for_dead_letters_that_are_put_back(self) -> None:
        """F9, R3: by what was computed last, too."""
        repute = GivenRepute(_FIRST, _THEN)
        await self.harness.configure(Options(repute=repute))
        urls = [f"https://{name}.test/1" for name in ("high", "low")]
        await self.frontier.admit([Candidate(address, 1, None) for address in addresses(*urls)])
        for lease in await self.claim_pages(1000):
            await self.frontier.settle(lease.token, [Settlement(lease.tasks[0], Dead("dns"))], release())
        repute.turn = 2
        assert await self.harness.view.revive(self.harness.view.dead(10)) == 2
        high, low = map(self._step, urls)
        assert high - low in _POINTS

    async def _visit_all(self) -> None:
        """Two pages of each domain are fetched."""
        urls = [f"https://{name}.test/{page}" for name in ("high", "low") for page in (1, 2)]
        await self.frontier.admit([Candidate(address, 1, None) for address in addresses(*urls)])
        served = list[str]()
        while len(served) < len(urls):
            served += await self.serve()
            self.tick()
        await self.frontier.confirm(SEGMENT, self.end_of_segment)

    def _step(self, url: str) -> int:
        (address,) = addresses(url)
        story = self.harness.view.story(address.host, address.fingerprint)
        assert story is not None
        assert story.state == "queued"
        return story.step

    def _waiting(self, name: str) -> int:
        """The step of the page of a domain that waits: the other one is leased."""
        urls = [f"https://{name}.test/{page}" for page in (1, 2)]
        (waiting,) = [url for url in urls if self.state(url)[0] == "queued"]
        return self._step(waiting)
