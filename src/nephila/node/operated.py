"""What those who operate a crawl ask of its frontier, whichever engine it is on: the desk, `why`, `status`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from nephila.frontier.embedded.lending import Lent
from nephila.interfaces.frontier import Frontier, FrontierSnapshot, Settled, Trap, UrlStory
from nephila.model.outcome import OriginRules, Release, Settlement
from nephila.model.policy import Block, DomainPolicy
from nephila.model.task import Level, PageTask, Token
from nephila.urls import Address, Fingerprint

from .frontiers import HostPace, Moments


class Timeline(Moments, Protocol):
    """The frontier's own time, and what it is for people."""

    def wall_of(self, moment: int) -> int:
        """The UTC milliseconds that a moment corresponds to."""


class HostStanding(HostPace, Protocol):
    """Where a host stands, and what it has earned."""

    @property
    def reason(self) -> str:
        """Why it is put off as a whole."""

    @property
    def fetched_in_cycle(self) -> int:
        """Pages, as `max_pages_per_host` counts them."""

    @property
    def queue_length(self) -> int:
        """URLs in its queue."""

    @property
    def admitted(self) -> int:
        """URLs that were let into its queue, as its budget counts them."""

    @property
    def fresh(self) -> int:
        """Pages that brought new content."""

    @property
    def referrers(self) -> int:
        """Domains that link to it, as `budget.mark_referrer` counts them."""

    @property
    def over(self) -> bool:
        """Whether it is one host more than its domain has earned."""


class DomainStanding(Protocol):
    """What is known of a registrable domain."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def hosts(self) -> int:
        """Hosts that were taken on."""

    @property
    def hosts_over(self) -> int:
        """Hosts that wait until it has earned them."""

    @property
    def useful(self) -> int:
        """Hosts that brought new content."""

    @property
    def referrers(self) -> int:
        """Domains that link to it."""

    @property
    def paused_until(self) -> int:
        """Until when it is left alone for its errors, on the timeline."""


class OperatedView(Protocol):
    """The reading side, for people. Synchronous: an engine may be waited for, so that it is asked in a thread."""

    @property
    def timeline(self) -> Timeline:
        """Its time."""

    def snapshot(self) -> FrontierSnapshot:
        """Counters."""

    def ages(self) -> Mapping[int, Sequence[int]]:
        """Queued URLs by the time they were admitted, and class."""

    def mean_rank(self) -> int:
        """What ranks are compared with."""

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL."""

    def stories(self, addresses: Sequence[Address]) -> list[UrlStory | None]:
        """The same of each of many."""

    def task(self, host: str, fingerprint: Fingerprint) -> PageTask | None:
        """A page as it would be leased now."""

    def rules(self, origin: str) -> OriginRules | None:
        """The robots rules in force for an origin."""

    def host(self, name: str) -> HostStanding | None:
        """Where a host stands."""

    def domain(self, name: str) -> DomainStanding | None:
        """What is known of a domain."""

    def policy(self, domain: str) -> DomainPolicy | None:
        """What a person has decided about a domain."""

    def policies(self) -> Mapping[str, DomainPolicy]:
        """All of that."""

    def blocks(self) -> Sequence[Block]:
        """What may not be asked for."""

    def dead(self, limit: int, after: bytes = b"") -> list[UrlStory]:
        """Dead letters in an order that stays."""

    def key_of(self, story: UrlStory) -> bytes:
        """Where a page of `dead` ended, for the next one."""

    def traps(self, limit: int, host: str = "") -> list[Trap]:
        """Patterns that are slowed or quarantined, with their evidence."""


class OperatedFrontier(Frontier, Protocol):
    """A frontier that people operate."""

    @property
    def secret(self) -> int:
        """The crawl's secret."""

    @property
    def timeline(self) -> Timeline:
        """Its time."""

    @property
    def view(self) -> OperatedView:
        """Its reading side."""

    def refresh(self) -> FrontierSnapshot:
        """Counters as they are now, whoever has changed them. May wait for an engine."""

    async def revive(self, stories: Sequence[UrlStory]) -> int:
        """Put dead letters back into their queues."""

    async def recall(self, stories: Sequence[UrlStory], level: Level) -> int:
        """Queue URLs that have ended once more, in a class."""

    async def set_policy(self, domain: str, policy: DomainPolicy | None, was: DomainPolicy | None = None) -> bool:
        """Let a policy hold for a registrable domain; None takes it back.

        `was` is what held when it was thought out, `DomainPolicy()` where nothing did: False where that has changed.
        """

    async def block(self, block: Block) -> None:
        """Ask no more for a domain, a host or a part of it."""

    async def unblock(self, pattern: str) -> bool:
        """Take a block back; False when there was none."""

    async def release_trap(self, host: str, skeleton_key: bytes) -> int:
        """Let a pattern start anew; how many URLs come back."""

    async def lend(self, hosts: int, lease_s: float) -> Lent:
        """Lease up to so many hosts, one URL each, to a worker outside."""

    async def take_back(self, token: Token, settlement: Settlement, release: Release) -> Settled:
        """Settle what was lent; refused where the lease was lost, or never was lent."""
