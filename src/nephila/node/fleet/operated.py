"""The frontier of a fleet as people operate it: what they change is seen by whoever looks next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nephila.frontier.embedded.lending import Lent
from nephila.frontier.redis import RedisFrontier, RedisFrontierView
from nephila.frontier.redis.clocks import EngineTimeline
from nephila.interfaces.frontier import NOWHERE, Admission, Found, FrontierSnapshot, Settled, UrlStory
from nephila.model.outcome import Release, Settlement
from nephila.model.policy import Block, DomainPolicy
from nephila.model.task import Candidate, Level, Refusal, Token

from .frontier import FleetFrontier
from .visiting import Visits

COUNTED_FOR_S = 1.0
"""Counters are this old at most, however many look at them."""


class OperatedFleetFrontier(FleetFrontier):
    """An `OperatedFrontier`: verbs go the way of a worker's, so that scope and regions are kept."""

    def __init__(self, inner: RedisFrontier, tell: Callable[[], Awaitable[None]], visits: Visits, group: str) -> None:
        """`group` is the one whose crawl is operated; `visits` knows the regions of the others."""
        super().__init__(inner, tell, visits.border(group))
        self._own = inner
        self._visits = visits
        self._group = group
        inner.view.counted_for_s = COUNTED_FOR_S

    @property
    def view(self) -> RedisFrontierView:
        """The reading side."""
        return self._own.view

    @property
    def timeline(self) -> EngineTimeline:
        """The engine's time."""
        return self._own.timeline

    def snapshot(self) -> FrontierSnapshot:
        """As they were heard last."""
        return self.view.snapshot()

    def refresh(self) -> FrontierSnapshot:
        """The same: they are never old."""
        return self.view.snapshot()

    async def admit(
        self, candidates: Sequence[Candidate], refused: Sequence[Refusal] = (), found: Found = NOWHERE
    ) -> Admission:
        """As the interface."""
        admission = await super().admit(candidates, refused, found)
        self.view.forget_counters()
        return admission

    async def revive(self, stories: Sequence[UrlStory]) -> int:
        """Put dead letters back."""
        count = await self._own.revive(stories)
        self.view.forget_counters()
        return count

    async def recall(self, stories: Sequence[UrlStory], level: Level) -> int:
        """Queue URLs that have ended once more."""
        count = await self._own.recall(stories, level)
        self.view.forget_counters()
        return count

    async def set_policy(self, domain: str, policy: DomainPolicy | None, was: DomainPolicy | None = None) -> bool:
        """Let a policy hold; UsageError for a domain that another group asks."""
        if self._border is not None:
            self._border.check_own(domain)
        is_set = await self._own.set_policy(domain, policy, was)
        self.view.forget_counters()
        return is_set

    async def block(self, block: Block) -> None:
        """Ask no more for something, in no region: a link to it may be met anywhere."""
        for frontier in (self._own, *await self._visits.elsewhere(self._group)):
            await frontier.block(block)
        self.view.forget_counters()

    async def unblock(self, pattern: str) -> bool:
        """Take a block back, in all regions."""
        frontiers = (self._own, *await self._visits.elsewhere(self._group))
        removed = any([await frontier.unblock(pattern) for frontier in frontiers])
        self.view.forget_counters()
        return removed

    async def release_trap(self, host: str, skeleton_key: bytes) -> int:
        """Let a pattern start anew."""
        back = await self._own.release_trap(host, skeleton_key)
        self.view.forget_counters()
        return back

    async def lend(self, hosts: int, lease_s: float) -> Lent:
        """Lease hosts to a worker outside."""
        lent = await self._own.lend(hosts, lease_s)
        self.view.forget_counters()
        return lent

    async def take_back(self, token: Token, settlement: Settlement, release: Release) -> Settled:
        """Settle what was lent: its links go the way of any others."""
        await self._tell()
        settlements = [settlement] if self._border is None else await self._border.settle([settlement])
        settled = await self._own.take_back(token, settlements[0], release)
        self.view.forget_counters()
        return settled
