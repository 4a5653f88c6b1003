"""What the frontier in memory remembers: URLs, hosts, domains, leases.

Plain and mutable; what could be counted is not remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from nephila.frontier import order
from nephila.frontier.health import Health
from nephila.frontier.lifecycle import State
from nephila.frontier.rank import SEED_RANK, Part, Share
from nephila.frontier.traps import SkeletonTally, TrapState
from nephila.interfaces.recrawl import History, RecrawlPolicy
from nephila.interfaces.repute import Repute
from nephila.model.outcome import DeferReason, OriginRules
from nephila.model.settings import (
    BudgetSettings,
    FrontierSettings,
    PolitenessSettings,
    PrioritySettings,
    TrapSettings,
)
from nephila.model.task import Level, RobotsTask
from nephila.urls import Fingerprint, registrable_domain


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for the whole crawl."""

    settings: FrontierSettings = FrontierSettings()
    base_delay_ms: int = 1000
    """Of a host that was never asked."""
    max_pages_per_host: int = 0
    robots: bool = True
    """Whether pages wait for the rules of their origin."""
    random_seed: int = 0
    verify_every: int = 0
    ordered: bool = False
    """One exchange at a time: the order must not depend on time."""
    ordered_wait_ms: int = 120_000
    priority: PrioritySettings = PrioritySettings()
    budget: BudgetSettings = BudgetSettings()
    traps: TrapSettings = TrapSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    recrawl: RecrawlPolicy | None = None
    repute: Repute | None = None
    target_domains: int = 0
    lease_span_ms: int = 0
    """How long a lease may last through the delays of its host."""


@dataclass(slots=True)
class Capture:
    """The last capture of a URL."""

    status: int
    segment: str
    offset: int
    end: int
    digest: bytes
    etag: str
    last_modified: str
    page: bool
    changed_at_s: int
    """When the content was last seen to differ."""
    pending: bool = True
    """Its segment is not confirmed up to its end."""


@dataclass(slots=True, eq=False)
class Url:
    """One known URL."""

    host: str
    fingerprint: Fingerprint
    url: str
    """As it is asked for."""
    rank: int
    hops: int
    cycle: int
    admitted_s: int
    via: Url | None
    state: State = State.QUEUED
    level: Level = Level.MEDIUM
    depth: int = 0
    place: order.Place | None = None
    """Where it stands in its queue, or on its shelf."""
    turn: int = 0
    """Among URLs that were queued together, and so have one place: the order in which they were given."""
    shelf: tuple[DeferReason, bytes] | None = None
    """Why it is parked, and (in a trap) the pattern that holds it."""
    asked: bool = False
    """It was asked for, or put back on its own: it no longer goes with those that it was found with."""
    retries: int = 0
    due_at: int = 0
    due_reason: str = ""
    settled_s: int = 0
    reason: str = ""
    detail: str = ""
    fetched: int = 0
    """How often it was answered for good."""
    capture: Capture | None = None
    trail: tuple[str, ...] = ()
    history: History = History()
    gone: bool = False

    @property
    def queued(self) -> bool:
        """Whether it waits in its host's queue (or is leased from there)."""
        return self.place is not None and self.shelf is None

    @property
    def spot(self) -> order.Place:
        """Its place, which it must have."""
        if self.place is None:
            raise ValueError(self)
        return self.place

    @property
    def tail(self) -> bytes:
        """What tells it from others of its host: the hash that breaks ties is over this."""
        for mark, scheme in (("s", "https://"), ("h", "http://")):
            rest = self.url.removeprefix(scheme + self.host)
            if rest != self.url and rest[:1] in {"/", ":", "?"}:
                return (mark + rest).encode()
        return b"=" + self.url.encode()


class Standing(Enum):
    """Where a host stands, when it is not leased."""

    IDLE = 0
    WAITING = 1
    READY = 2
    PARKED = 3


@dataclass(slots=True, eq=False)
class Domain:
    """One registrable domain."""

    name: str
    pages: int = 0
    hosts: int = 0
    hosts_over: int = 0
    useful: int = 0
    referrers: int = 0
    looked_for: int = 0
    """URLs that were queued to fetch a first page of it, in coverage mode (S4)."""
    paused_until: int = 0
    health: Health = Health()


@dataclass(slots=True, eq=False)
class Host:
    """One host, with all of its URLs."""

    name: str
    domain: Domain
    urls: dict[Fingerprint, Url] = field(default_factory=dict)
    robots: dict[str, RobotsTask] = field(default_factory=dict)
    """robots.txt files that wait in its queue, by the origin they are for."""
    tallies: dict[str, SkeletonTally] = field(default_factory=dict)
    token: int = 0
    """Of the lease that it is under."""
    standing: Standing = Standing.IDLE
    next_at: int = 0
    reason: str = ""
    ready: list[bytes] = field(default_factory=list)
    """Its keys among the ready hosts, as `order.ready_key` made them when it became ready."""
    free_at: int = 0
    released_at: int = 0
    slept_ms: int = 0
    delay_ms: int = -1
    crawl_delay_ms: int = 0
    fetched: int = 0
    cycle: int = 0
    fetched_in_cycle: int = 0
    lied_in: int = 0
    work_since: int = 0
    admitted: int = 0
    fresh: int = 0
    referrers: int = 0
    trap_at: int = 0
    over: bool = False

    def queue(self) -> list[Url]:
        """What waits, by its place."""
        return sorted((url for url in self.urls.values() if url.queued), key=lambda url: (url.spot, url.turn))

    def shelved(self, reason: DeferReason | None = None, group: bytes = b"") -> list[Url]:
        """What is parked (for a reason, under a pattern), best first."""
        found = [
            (url.shelf[1], url.spot, url.turn, url)
            for url in self.urls.values()
            if url.shelf and (reason is None or url.shelf[0] is reason) and url.shelf[1].startswith(group)
        ]
        return [url for *_, url in sorted(found, key=lambda one: one[:3])]

    @property
    def flagged(self) -> bool:
        """Whether any of its patterns is slowed or quarantined."""
        return any(tally.state is not TrapState.NORMAL for tally in self.tallies.values())


@dataclass(slots=True)
class LeaseNote:
    """One lease."""

    host: Host
    expires_at: int
    pages: list[Url]
    """Still to be settled."""
    origin: str = ""


@dataclass(slots=True)
class Origin:
    """What is known of an origin's robots.txt."""

    rules: OriginRules
    stored: bool = True
    """Whether rules were ever fetched: a redirect alone is none."""
    moved_at: int = 0


class Refused(NamedTuple):
    """A URL that was not admitted."""

    url: str
    reason: str
    detail: str
    at_s: int
    via: Url | None


@dataclass(frozen=True, slots=True)
class Source:
    """The page that links were found on."""

    page: Url | None = None
    share: Share | None = None
    salt: int = 0
    domain_hash: int = 0
    first_rank: int = SEED_RANK
    """The rank of what is new where nothing is shared out."""

    def is_inside(self, host: Host) -> bool:
        """Whether a host belongs to the page's registrable domain."""
        return self.page is not None and registrable_domain(self.page.host) == host.domain.name

    def part_for(self, host: Host) -> Part | None:
        """What a link to a host brings."""
        if self.share is None:
            return None
        return self.share.inside if self.is_inside(host) else self.share.abroad


def every_url(hosts: dict[str, Host]) -> Iterator[Url]:
    """All URLs there are."""
    for host in hosts.values():
        yield from host.urls.values()
