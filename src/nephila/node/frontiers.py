"""What a node asks of a frontier, whichever engine it is on, beyond the seven verbs: opening, recovering, ending.

The engine in the crawl directory has all of it, and more that only makes sense on one machine (`embedded_of`). An
engine on a server has this much.

Whoever operates a crawl, over HTTP or on the command line, asks more of it (`operated`), and both engines have that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from nephila.frontier.embedded import LmdbFrontier
from nephila.interfaces.frontier import Frontier, UrlStory
from nephila.model.outcome import OriginRules
from nephila.model.policy import Block, DomainPolicy
from nephila.model.record import SegmentId
from nephila.model.task import PageTask, Token
from nephila.urls import Fingerprint


class Moments(Protocol):
    """The frontier's own time."""

    def now(self) -> int:
        """The present moment on its timeline, in milliseconds."""


class HostPace(Protocol):
    """How a host is to be treated, as far as it was learned."""

    @property
    def delay_ms(self) -> int:
        """The adaptive delay; negative until it was asked for the first time."""

    @property
    def crawl_delay_ms(self) -> int:
        """What its robots.txt asks for."""


class Remains(Protocol):
    """The reading side, as going on after a crash needs it."""

    def marks(self, segments: Collection[SegmentId] | None = None) -> Mapping[SegmentId, int]:
        """Up to where these segments are confirmed; without a word, all that there ever were."""

    def pending_segments(self) -> set[SegmentId]:
        """Segments on which pages wait."""

    def orphans(self, segment: SegmentId) -> set[int]:
        """Offsets of captures that belong to nobody."""

    def holds(self, token: Token, fingerprint: Fingerprint | None, origin: str = "") -> bool:
        """Whether a lease still waits for that page, or for the robots.txt of that origin."""

    def task(self, host: str, fingerprint: Fingerprint) -> PageTask | None:
        """A page as it would be leased now."""

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""

    def rules(self, origin: str) -> OriginRules | None:
        """The robots rules in force for an origin."""

    def policy(self, domain: str) -> DomainPolicy | None:
        """What a person has decided about a domain."""

    def host(self, name: str) -> HostPace | None:
        """What is known of a host."""

    def blocks(self) -> Sequence[Block]:
        """What people have blocked (T7)."""


class NodeFrontier(Frontier, Protocol):
    """A frontier that a node can open, recover, work on and close."""

    @property
    def secret(self) -> int:
        """The crawl's secret: fingerprints are seeded with it."""

    @property
    def timeline(self) -> Moments:
        """Its time."""

    @property
    def view(self) -> Remains:
        """Its reading side."""

    def rules(self, origin: str) -> OriginRules | None:
        """The robots rules in force for an origin."""

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""

    def dead(self, limit: int, after: bytes = b"") -> list[UrlStory]:
        """Dead letters in key order."""

    async def revive(self, stories: Sequence[UrlStory]) -> int:
        """Put dead letters back into their queues."""

    async def disown(self, segment: SegmentId, offset: int) -> None:
        """A capture that was stored, but whose settle was refused."""

    async def lose(self, segment: SegmentId, valid_end: int) -> int:
        """Queue again the pages whose bytes are gone."""

    async def reap_all(self) -> int:
        """Return the hosts of all leases whose holders are known to be dead: all of the crawl's own."""

    async def begin_cycle(self) -> bool:
        """Begin a new cycle, unless one that was begun so is still open."""

    async def end_cycle(self) -> bool:
        """Nothing is left to do in this cycle; False where somebody has begun another one, which there is to do."""

    def check_readers(self) -> int:
        """Free what readers that died have left; how many."""

    async def close(self) -> None:
        """Finish what was handed in, and close."""


def embedded_of(frontier: NodeFrontier) -> LmdbFrontier:
    """The engine in the crawl directory, for what only makes sense on one machine."""
    if not isinstance(frontier, LmdbFrontier):
        raise TypeError(f"{type(frontier).__name__} is not the engine of a crawl directory")
    return frontier
