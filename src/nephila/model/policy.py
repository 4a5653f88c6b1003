"""What is decided for one registrable domain, or for a part of the web, by hand, while a crawl runs (R4, T7)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .rendering import RenderMode


class Tier(StrEnum):
    """How much a domain matters to whoever runs the crawl: points of the score, and the first re-crawl interval."""

    NEWS = "news"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class DomainPolicy:
    """What holds for one registrable domain; what is not set here follows the settings of the crawl.

    It is read at every claim and at every admission, so that a change takes effect with the next one.
    """

    delay_s: float | None = None
    """Seconds between two requests to one of its hosts; a longer Crawl-delay still binds."""
    max_depth: int | None = None
    tier: Tier = Tier.NORMAL
    recrawl_s: float | None = None
    """A fixed interval between two visits of a page."""
    user_agent: str = ""
    hours: tuple[tuple[int, int], ...] = ()
    """Hours of the day, UTC, in which it may be asked: from the first up to, not including, the second, over midnight
    when that is smaller. None given means all."""
    paused: bool = False
    quality: float = 1.0
    """What downstream thinks of its pages: a factor on the budget that its hosts earn (F5)."""
    render: RenderMode = RenderMode.AUTO
    """Whether its pages go through a browser (J1)."""


@dataclass(frozen=True, slots=True)
class Block:
    """Something that is not to be asked for any more: a domain, a host, URLs that begin so, or exactly one URL."""

    pattern: str
    """``example.org`` (a registrable domain or a host, with all below it), ``https://example.org/part``, or
    ``https://example.org/page$`` for this URL alone."""
    reason: str
    at: int = 0
    """UTC milliseconds."""
    fingerprint: bytes = b""
    """Of a pattern that means one URL, where it is known: every spelling of that URL has it."""
