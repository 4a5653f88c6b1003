"""Leases of the dead: what recovery meets of them in the archive, and how their hosts rest when all was met.

A lease may have several captures, which are settled one by one; its host is free only when the last of them was met. It
rests as the answers asked for, and for what a browser had asked it for on top (J3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from nephila.frontier.embedded import LmdbFrontier
from nephila.model.outcome import OriginRules, Release
from nephila.model.policy import DomainPolicy
from nephila.model.record import Capture
from nephila.model.task import Lease, Pace, PartTask, Task, Token
from nephila.pipeline import Pipeline
from nephila.urls import Address, Identifier, origin_of, registrable_domain

from .frontiers import NodeFrontier

UNSEEN_PARTS = 2
"""Requests of a visit that may have been sent and left nothing in the archive: as many as there are at once."""


class LeftLeases:
    """The leases whose captures recovery goes through."""

    def __init__(
        self, frontier: NodeFrontier, pipeline: Pipeline, identifier: Identifier, is_visited: Callable[[str], bool]
    ) -> None:
        """`is_visited`: whether browsers are shown pages of a host, which may ask for more than the archive knows."""
        self._frontier = frontier
        self._pipeline = pipeline
        self._identifier = identifier
        self._is_visited = is_visited
        self._visits: dict[Token, list[Capture]] = {}
        """Parts of visits whose pages were not met yet."""
        self._rests: dict[Token, Release] = {}
        """Leases of which pages were settled, and how their hosts rest: more may follow in the archive."""

    def of(self, capture: Capture) -> Lease:
        """As much of the lease of a capture as settling needs."""
        address = self._identifier.identify(capture.task.url)
        host = address.host if isinstance(address, Address) else ""
        return self._on(capture.token, host, () if isinstance(capture.task, PartTask) else (capture.task,))

    def meet_part(self, part: Capture) -> None:
        """What a browser has asked for; its page comes behind it, if it was stored."""
        self._visits.setdefault(part.token, []).append(part)

    def rest_after(self, lease: Lease, capture: Capture, rules: OriginRules | None) -> Release:
        """How the host rests after a page, and after the parts of its visit that were met; not less than before."""
        release = self._pipeline.rest_after(lease, capture.fetched, rules)
        if parts := self._visits.pop(capture.token, None):
            release = replace(release, wait_ms=release.wait_ms + self._after_visit(parts).wait_ms)
        before = self._rests.get(capture.token)
        return release if before is None else replace(release, wait_ms=max(before.wait_ms, release.wait_ms))

    def settled(self, capture: Capture, release: Release) -> None:
        """A page was settled; its lease ends when all of them were met."""
        self._rests[capture.token] = release

    async def end(self) -> None:
        """Free the hosts of the leases whose pages were settled: all of them were met."""
        rests, self._rests = self._rests, {}
        for token, release in rests.items():
            await self._frontier.settle(token, [], release)

    async def end_visits(self, holder: int | None = None) -> None:
        """Give back the hosts of visits that were cut short: they rest as many delays as requests were made (J3).

        What was on the wire has left nothing in the archive; so many delays more.
        """
        visits, self._visits = self._visits, {}
        if not isinstance(self._frontier, LmdbFrontier):
            return  # of a fleet's workers: their leases last until their hosts have rested
        for token, host in self._frontier.view.leases(holder):
            parts = visits.get(token, [])
            if not parts and not self._is_visited(host):
                continue
            one = self._pipeline.rest_after(self._on(token, host, ()), None, None)
            more = self._after_visit(parts).wait_ms if parts else 0
            await self._frontier.settle(token, [], replace(one, wait_ms=more + one.wait_ms * (1 + UNSEEN_PARTS)))

    def _after_visit(self, parts: Sequence[Capture]) -> Release:
        """As many delays as there are parts."""
        rests = [
            self._pipeline.rest_after(self.of(part), part.fetched, self._frontier.view.rules(origin_of(part.task.url)))
            for part in parts
        ]
        return replace(rests[-1], wait_ms=sum(rest.wait_ms for rest in rests))

    def _on(self, token: Token, host: str, tasks: tuple[Task, ...]) -> Lease:
        """A lease of a host, what a policy of its domain asks for included (R4)."""
        domain = registrable_domain(host)
        policy = self._frontier.view.policy(domain) or DomainPolicy()
        state = self._frontier.view.host(host)
        base_ms = -1 if policy.delay_s is None else int(policy.delay_s * 1000)
        pace = Pace(max(0, state.delay_ms), state.crawl_delay_ms, base_ms) if state is not None else Pace(0, 0, base_ms)
        return Lease(token, host, domain, tasks, 0, 0, pace, user_agent=policy.user_agent)
