"""What to fetch next, and what became of it.

Promises that every engine keeps, checked by the contract suite:

- Every verb is atomic and durable when it returns. A crash before that leaves nothing of it behind.
- A host is waiting, ready or leased, never two of them; at most one lease on a host exists at any time.
- A URL leaves its queue only when it is settled under the token it was claimed with. A settle with an old token changes
  nothing and answers False.
- `admit` is idempotent: a known URL is never taken for new; a new one is taken for known less than once in 10^9.
- Times are delays in, timeline milliseconds out. The timeline (`snapshot().now`) never runs backwards, whatever the
  wall clock does; after a reboot every host waits one full delay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nephila.interfaces.recrawl import Outlook
from nephila.model.noun import noun
from nephila.model.outcome import OriginRules, Release, Settlement
from nephila.model.record import SegmentId
from nephila.model.task import Candidate, Lease, Level, Refusal, Token
from nephila.urls import Address, Fingerprint


@noun
class Admission:
    """What became of the candidates."""

    added: int = 0
    known: int = 0
    cooling: int = 0
    """Of the known ones, those that were asked for again within their cooling time (S5)."""
    renewed: tuple[Fingerprint, ...] = ()
    """Of the known ones, those that are due now because they are said to have changed (`Found.changed`)."""


@noun
class Found:
    """Where candidates were found that no page links to: a sitemap or a feed (X3)."""

    via: Address | None = None
    """The list that they stand in; until it is settled, it is not told as their source."""
    changed: Mapping[Fingerprint, int] = field(default_factory=dict)
    """When some of them are said to have changed, in UTC seconds: one that was fetched before that is due now."""


NOWHERE = Found()


@noun
class Settled:
    """What became of a settle call."""

    accepted: bool
    """False: the token is not the host's any more; nothing was changed."""
    admission: Admission = Admission()
    outlook: Outlook | None = None
    """When the page that was settled is visited next, the last of them where there were several; None for one that is
    not to be visited again, or whose visit has not ended yet."""
    each: tuple[Settled, ...] = ()
    """Where several tasks were settled at once: what became of each of them, in their order. The sums are above."""


@dataclass(frozen=True, slots=True)
class FrontierSnapshot:
    """Counters, kept and never scanned for."""

    now: int
    """The timeline, milliseconds."""
    cycle: int
    queued: Mapping[str, int]
    """URLs that wait in host queues, by level name."""
    delayed: Mapping[str, int]
    """URLs that wait for a time, by reason (retry, cooling, ...)."""
    states: Mapping[str, int]
    """URLs by where they stand: pending, completed, dropped, dead, refused."""
    hosts: int
    hosts_ready: int
    hosts_waiting: int
    hosts_leased: int
    domains: int
    """Registrable domains from which a page was fetched."""
    pages: int
    """Pages settled, over all cycles."""
    pages_in_cycle: int
    next_in_ms: int | None
    """How long until something can be claimed; 0 when it can now, None when nothing waits for a time."""
    waiting_for: Mapping[str, int] = field(default_factory=dict)
    """Queued URLs of hosts that are put off as a whole, by reason."""
    due_again: Mapping[str, int] = field(default_factory=dict)
    """Of those in the queues, URLs that were fetched before, by level name."""
    parked: Mapping[str, int] = field(default_factory=dict)
    """URLs that are known and not queued, by reason: over budget, in a trap, put off for coverage."""
    planned: int = 0
    """Fetched URLs whose next visit is planned (R2)."""
    urls: int = 0
    """URLs that are known, refused ones apart."""
    gone: int = 0
    traps: int = 0
    """URL skeletons that are slowed or quarantined (T2)."""
    reserved: int = 0
    """Fetches that went to starving hosts (F7)."""
    draws: int = 0
    spilled: int = 0
    """Of those that are queued or parked, URLs that a fleet keeps outside its engine (F8)."""
    chunks: int = 0
    """In so many parts."""
    sweeping: bool = False
    """A new cycle was begun, and what ended before is still being queued for it (F2)."""


class Frontier(Protocol):
    """The seven verbs."""

    async def admit(
        self, candidates: Sequence[Candidate], refused: Sequence[Refusal] = (), found: Found = NOWHERE
    ) -> Admission:
        """Add those that are new; remember the refused ones for `why`."""

    async def claim(self, hosts: int, lease_s: float) -> list[Lease]:
        """Lease up to `hosts` hosts that may be asked now (or within the look-ahead), best first (F6)."""

    async def renew(self, tokens: Sequence[Token], lease_s: float) -> set[Token]:
        """Extend leases; those not in the answer are lost and their work must not be sent any more."""

    async def settle(self, token: Token, settlements: Sequence[Settlement], release: Release | None) -> Settled:
        """End tasks of a lease, links included, in one act. `release` frees the host; without it the lease goes on."""

    async def confirm(self, segment: SegmentId, upto: int) -> int:
        """Bytes of `segment` before `upto` are durable: complete the URLs that were pending on them; how many."""

    async def reap(self) -> int:
        """Return the hosts of expired leases to waiting, each for one full delay more; how many."""

    def snapshot(self) -> FrontierSnapshot:
        """Counters as of the last commit."""


@dataclass(frozen=True, slots=True)
class UrlStory:
    """All that the frontier knows of one URL."""

    url: str
    fingerprint: Fingerprint
    host: str
    state: str
    """queued, in_progress, delayed, parked, stored_pending, completed, dropped, dead_letter, refused."""
    level: Level
    depth: int
    via: str
    """URL of the page it was found on; empty for a seed."""
    hops: int
    retries: int
    cycle: int
    admitted_at: int
    settled_at: int
    reason: str = ""
    """The rule, failure kind or defer reason that explains the state."""
    detail: str = ""
    status: int = 0
    due_in_ms: int | None = None
    host_wait_ms: int = 0
    """How long the host itself must still rest."""
    segment: str = ""
    offset: int = -1
    digest: bytes = b""
    rank: int = 0
    """Its importance by the links that were met so far, 0..127 (R1)."""
    visits: int = 0
    changes: int = 0
    """Visits that found its content changed (R2)."""
    changed_at: int = 0
    """When it was last seen to differ."""
    interval_s: int = 0
    """The interval that was chosen for its next visit; 0 when none is planned."""
    missing: int = 0
    """Answers of 404 or 410 in a row, and since when (R5)."""
    missing_since: int = 0
    again: bool = False
    """Queued, and fetched before (F4)."""
    step: int = -1
    """While it is queued or parked: the step at which waiting will have made its score the highest (F7)."""
    outlook: Outlook | None = None
    """What its last visit has planned; None where nothing is."""


@dataclass(frozen=True, slots=True)
class Trap:
    """A pattern of URLs on one host that is slowed or quarantined, with its evidence (T2). Instants are UTC ms."""

    host: str
    pattern: str
    state: str
    """slowed or quarantined."""
    since: int
    next_try_at: int
    fetched: int
    fresh: int
    duplicates: int
    repeats: int
    errors: int
    barren: int
    """Wasted fetches that no new content has made good."""
    parked: int
    """URLs on its shelf."""
    parked_more: bool
    """There are more: they were not counted to the end."""
    evidence: str
    """The same in a sentence."""
    example: str = ""


class FrontierView(Protocol):
    """Reading, for workers (rules) and for people (`why`, `dead`). Works beside a running crawl."""

    def rules(self, origin: str) -> OriginRules | None:
        """The robots rules in force for an origin, None when none were ever fetched."""

    def story(self, host: str, fingerprint: Fingerprint) -> UrlStory | None:
        """What is known of a URL, None when it was never met."""

    def dead(self, limit: int, after: bytes = b"") -> list[UrlStory]:
        """Dead letters in key order (F9)."""

    async def revive(self, stories: Sequence[UrlStory]) -> int:
        """Put dead letters back into their queues, retries forgiven; how many."""
