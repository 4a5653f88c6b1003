"""What a worker is given to do: leases on hosts, with the tasks of that host in order.

A lease is on a *host*, because politeness is: whoever holds the lease is the only one who may ask that host. All times
here are on the frontier's own timeline (milliseconds that never run backwards; see `interfaces.frontier`), never on the
wall clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, NewType

from nephila.urls import Address, Fingerprint

from .noun import noun, quick
from .rendering import RenderMode

Token = NewType("Token", int)
"""Names one lease, once and for ever: a settle with another token than the host's present one is refused."""


class Level(IntEnum):
    """The front class of a URL (F1). Lower goes first; immediate always, the others by weighted draw."""

    IMMEDIATE = 0
    HIGH = 1
    MEDIUM = 2
    LOW = 3


@quick
class Candidate(NamedTuple):
    """A URL that wants to be admitted. A tuple, because a page brings eighty of them."""

    address: Address
    depth: int
    level: Level | None = None
    """The class it is to have whatever its score; None leaves it to the score (R1)."""
    hops: int = 0
    """Redirects followed to come here without a page in between (H2)."""
    bonus: int = 0
    """Points of its score for what is known of it: news, listed in a sitemap, no HTML."""


@quick
class Refusal(NamedTuple):
    """A URL that was found but may not be admitted, and the rule that says so. Kept for `why` (T8)."""

    address: Address
    reason: str
    """Machine-readable, e.g. ``scope``, ``excluded``, ``nofollow``, ``depth``, ``robots``."""
    detail: str = ""
    """The rule itself, e.g. the pattern that matched."""


@noun
class Validators:
    """What the last capture of a URL gives us for a conditional request (H3)."""

    etag: str = ""
    last_modified: str = ""

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified)


@noun
class PageTask:
    """Fetch this URL, judge it, store it."""

    fingerprint: Fingerprint
    url: str
    """The spelling to ask for: as the site wrote it, after WHATWG parsing."""
    depth: int
    level: Level
    hops: int = 0
    retries: int = 0
    cycle: int = 1
    validators: Validators = Validators()
    digest: bytes = b""
    """SHA-256 of the decoded body of the last capture, empty when there is none."""
    via: str = ""
    """The URL of the page it was found on; empty for a seed."""
    verify: bool = False
    """Ask in full although there are validators, to see whether they tell the truth (H3)."""
    trail: tuple[str, ...] = ()
    """Exact spellings asked for since the last page, oldest first: a repeated one is a redirect loop (T6)."""


@dataclass(frozen=True, slots=True)
class RobotsTask:
    """Fetch the robots.txt of `origin`, perhaps some redirects away from it."""

    origin: str
    url: str
    hops: int = 0


Task = PageTask | RobotsTask


@dataclass(frozen=True, slots=True)
class PartTask:
    """Something that a page in a browser asked for: part of a visit, and no work of the frontier's (J3)."""

    url: str
    page: str
    """The URL of the page that is visited."""


@noun
class Pace:
    """What politeness remembers of a host from one lease to the next."""

    delay_ms: int
    """The adaptive delay in force (P3)."""
    crawl_delay_ms: int = 0
    """What its robots.txt asks for; binds when longer."""
    base_ms: int = -1
    """The base delay that a policy of its domain sets (R4); -1 leaves it to the settings."""


@noun
class Lease:
    """The exclusive right to ask one host, until `expires_at`."""

    token: Token
    host: str
    domain: str
    tasks: tuple[Task, ...]
    """All of one origin, to be done in this order."""
    not_before: int
    """The first request may leave at this time, not earlier: hosts are claimed a moment ahead."""
    expires_at: int
    pace: Pace
    claimed_at: int = 0
    rules_at: int = 0
    """When the origin's robots rules were stored: the version to load through `FrontierView.rules`."""
    user_agent: str = ""
    """What a policy of the domain has us say instead of the crawl's own User-Agent (R4)."""
    render: RenderMode = RenderMode.AUTO
    """Whether a policy of the domain sends its pages through a browser, or keeps them from it (J1, R4)."""
