"""The frontier as a worker of a fleet uses it: whatever lets something into the scope is told before it is admitted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from nephila.interfaces.frontier import NOWHERE, Admission, Found, FrontierSnapshot, Settled, UrlStory
from nephila.model.outcome import OriginRules, Release, Settlement
from nephila.model.record import SegmentId
from nephila.model.task import Candidate, Lease, Refusal, Token
from nephila.node.frontiers import Moments, NodeFrontier, Remains
from nephila.urls import Fingerprint

from .regions import Border


class FleetFrontier:
    """A `NodeFrontier` over another one. `tell` is awaited before candidates or links are handed over.

    `border` sorts them by region, where there are any.
    """

    def __init__(self, inner: NodeFrontier, tell: Callable[[], Awaitable[None]], border: Border | None = None) -> None:
        self._inner = inner
        self._tell = tell
        self._border = border

    async def admit(
        self, candidates: Sequence[Candidate], refused: Sequence[Refusal] = (), found: Found = NOWHERE
    ) -> Admission:
        """As the interface."""
        await self._tell()
        if self._border is None:
            return await self._inner.admit(candidates, refused, found)
        own, others, abroad = await self._border.admit(candidates)
        here = await self._inner.admit(own, [*refused, *others], found)
        return replace(here, added=here.added + abroad.added, known=here.known + abroad.known)

    async def claim(self, hosts: int, lease_s: float) -> list[Lease]:
        """As the interface."""
        return await self._inner.claim(hosts, lease_s)

    async def renew(self, tokens: Sequence[Token], lease_s: float) -> set[Token]:
        """As the interface."""
        return await self._inner.renew(tokens, lease_s)

    async def settle(self, token: Token, settlements: Sequence[Settlement], release: Release | None) -> Settled:
        """As the interface."""
        await self._tell()
        if self._border is not None:
            settlements = await self._border.settle(settlements)
        return await self._inner.settle(token, settlements, release)

    async def confirm(self, segment: SegmentId, upto: int) -> int:
        """As the interface."""
        return await self._inner.confirm(segment, upto)

    async def reap(self) -> int:
        """As the interface."""
        return await self._inner.reap()

    def snapshot(self) -> FrontierSnapshot:
        """As the interface."""
        return self._inner.snapshot()

    # As `NodeFrontier`

    @property
    def secret(self) -> int:
        """The crawl's."""
        return self._inner.secret

    @property
    def timeline(self) -> Moments:
        """The engine's time."""
        return self._inner.timeline

    @property
    def view(self) -> Remains:
        """The reading side."""
        return self._inner.view

    def rules(self, origin: str) -> OriginRules | None:
        """The robots rules in force for an origin: shared, for they are the frontier's (P1)."""
        return self._inner.rules(origin)

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""
        return self._inner.story(host, fingerprint)

    def dead(self, limit: int, after: bytes = b"") -> list[UrlStory]:
        """Dead letters."""
        return self._inner.dead(limit, after)

    async def revive(self, stories: Sequence[UrlStory]) -> int:
        """Put dead letters back."""
        return await self._inner.revive(stories)

    async def disown(self, segment: SegmentId, offset: int) -> None:
        """A capture belongs to nobody."""
        await self._inner.disown(segment, offset)

    async def lose(self, segment: SegmentId, valid_end: int) -> int:
        """Queue again the pages whose bytes are gone."""
        return await self._inner.lose(segment, valid_end)

    async def reap_all(self) -> int:
        """Nobody knows of a fleet that all its workers are dead."""
        raise TypeError("the leases of a fleet's workers expire one by one")

    async def begin_cycle(self) -> bool:
        """Begin a new cycle, unless one is open."""
        return await self._inner.begin_cycle()

    async def end_cycle(self) -> bool:
        """Nothing is left to do in this cycle; False where another was begun."""
        return await self._inner.end_cycle()

    def check_readers(self) -> int:
        """As the interface."""
        return self._inner.check_readers()

    async def close(self) -> None:
        """As the interface."""
        await self._inner.close()
