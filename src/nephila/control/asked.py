"""What a client sends: bodies and query parameters.

Names are read by others and do not change; fields are added, never taken away. Instants end in `_at` and are UTC
milliseconds, 0 for never; durations and sizes have their unit in their name. What is not known to a type
is refused.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Url = Annotated[str, Meta(min_length=1, max_length=4096, description="A URL, or a bare domain: https is tried first.")]
Count = Annotated[int, Meta(ge=0)]
Priority = Literal["immediate", "high", "medium", "low"] | Annotated[int, Meta(ge=0, le=100)]
Limit = Annotated[int, Meta(ge=1, le=1000)]
LONGEST_DELAY_S = 86_400
MOST_QPS = 1000


class Asked(Struct, forbid_unknown_fields=True, kw_only=True):
    """What a client sends."""


class Nothing(Asked):
    """An empty object."""


# Seeds and re-crawls


class SeedsOrder(Asked):
    """URLs or bare domains to crawl from."""

    urls: Annotated[list[Url], Meta(min_length=1, max_length=10_000)]
    priority: Priority = "high"


class RecrawlOrder(Asked):
    """Known URLs to fetch once more."""

    urls: Annotated[list[Url], Meta(min_length=1, max_length=10_000)]
    priority: Priority = "immediate"


# Status


class SeriesAsked(Asked):
    """Which steps."""

    resolution: Literal["fine", "coarse"] = "fine"
    since_at: Annotated[int, Meta(ge=0, description="Only steps that begin at this instant or later.")] = 0


# Policies


class PolicyOrder(Asked):
    """What is to hold for a registrable domain; what is left out follows the settings of the crawl."""

    max_qps: Annotated[float, Meta(ge=1 / LONGEST_DELAY_S, le=MOST_QPS)] | None = None
    delay_s: Annotated[float, Meta(ge=0, le=LONGEST_DELAY_S)] | None = None
    """The same the other way round; where both are given they must agree."""
    crawl_depth: Annotated[int, Meta(ge=0, le=250)] | None = None
    tier: Literal["news", "high", "normal", "low"] = "normal"
    recrawl_interval_hours: Annotated[float, Meta(gt=0, le=87_600)] | None = None
    user_agent: Annotated[str, Meta(max_length=512)] = ""
    hours: Annotated[list[tuple[int, int]], Meta(max_length=24)] = []
    """Hours of the day, UTC, in which it may be asked: from the first up to, not including, the second."""
    paused: bool = False
    quality: Annotated[float, Meta(ge=0, le=1000)] = 1.0
    render: Literal["auto", "always", "never"] = "auto"
    """Whether its pages go through a browser."""


class PoliciesAsked(Asked):
    """Which page of the list."""

    limit: Limit = 100
    after: str = ""


class FeedbackOrder(Asked):
    """What downstream thinks of a domain's pages."""

    domain: Annotated[str, Meta(min_length=1, max_length=255)]
    quality: Annotated[float, Meta(ge=0, le=1000)]
    """A factor on what its hosts earn: 1 changes nothing."""


# Domains


class DomainsAsked(Asked):
    """Which domains, in which order."""

    search: Annotated[str, Meta(max_length=255, description="A part of the name.")] = ""
    sort: Literal["domain", "pages", "queued", "errors", "delay", "hosts"] = "queued"
    order: Literal["asc", "desc"] = "desc"
    offset: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    limit: Limit = 50


class DomainAsked(Asked):
    """How many of its hosts."""

    limit: Limit = 100
    after: Annotated[str, Meta(max_length=255, description="The host after which to go on.")] = ""


# Blocks


class BlockOrder(Asked):
    """What is not to be asked for any more, and why."""

    pattern: Annotated[str, Meta(min_length=1, max_length=400)]
    """A domain or host with all below it, or how URLs begin."""
    reason: Annotated[str, Meta(min_length=1, max_length=1000)]


class BlocksAsked(Asked):
    """Which page of the list."""

    limit: Limit = 100
    after: str = ""


class UnblockAsked(Asked):
    """Which block to take back."""

    pattern: Annotated[str, Meta(min_length=1, max_length=400)]


# Takedowns


class TakedownOrder(Asked):
    """What must not be kept: exactly these pages, and these domains with all below them."""

    reason: Annotated[str, Meta(min_length=1, max_length=1000)]
    urls: Annotated[list[Url], Meta(max_length=1000)] = []
    domains: Annotated[list[Annotated[str, Meta(min_length=1, max_length=255)]], Meta(max_length=1000)] = []


class TakedownsAsked(Asked):
    """Which page of the list."""

    limit: Limit = 100
    before: Annotated[str, Meta(max_length=20, pattern="^[0-9]*$", description="`next` of the page before.")] = ""


# Dead letters, pages, stories


class LettersAsked(Asked):
    """Which page of the list."""

    limit: Limit = 100
    after: Annotated[str, Meta(max_length=64, pattern="^[0-9a-f]*$", description="`next` of the page before.")] = ""


class RetryOrder(Asked):
    """Which to put back: some, or all."""

    urls: Annotated[list[Url], Meta(max_length=10_000)] = []
    all: bool = False


class PagesAsked(Asked):
    """One URL, or the newest pages of a host or of all."""

    url: Annotated[str, Meta(max_length=4096)] = ""
    host: Annotated[str, Meta(max_length=255)] = ""
    limit: Limit = 50


class WhyAsked(Asked):
    """Which URL."""

    url: Url


class TrapsAsked(Asked):
    """Which traps."""

    host: Annotated[str, Meta(max_length=255)] = ""
    limit: Annotated[int, Meta(ge=1, le=100)] = 100


# Workers outside


class LeaseOrder(Asked):
    """A worker asks for URLs, each of another host."""

    worker_id: Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[\x21-\x7e]+$")]
    batch_size: Annotated[int, Meta(ge=1, le=50)] = 50
    lease_duration_sec: Annotated[float, Meta(ge=10, le=3600)] = 300.0


class ResultOrder(Asked):
    """A URL was answered."""

    http_status: Annotated[int, Meta(ge=100, le=599)]
    storage_path: Annotated[str, Meta(min_length=1, max_length=400, pattern=r"^[\x21-\x7e]+$")]
    """Where the worker keeps it."""
    content_type: Annotated[str, Meta(max_length=200)] = ""
    content_hash: Annotated[str, Meta(pattern="^([0-9a-fA-F]{64})?$")] = ""
    """SHA-256 of the decoded body, in hexadecimal."""
    extracted_urls: Annotated[list[Annotated[str, Meta(max_length=4096)]], Meta(max_length=10_000)] = []
    length: Annotated[int, Meta(ge=0, le=2**53)] = 0
    elapsed_ms: Annotated[int, Meta(ge=0, le=3_600_000)] | None = None
    worker_id: Annotated[str, Meta(max_length=100)] = ""


class FailOrder(Asked):
    """A URL was not answered, or not well."""

    error: Annotated[str, Meta(min_length=1, max_length=1000)]
    http_status: Annotated[int, Meta(ge=100, le=599)] | None = None
    worker_id: Annotated[str, Meta(max_length=100)] = ""


class HeartbeatOrder(Asked):
    """A worker still works on it."""

    lease_duration_sec: Annotated[float, Meta(ge=10, le=3600)] = 300.0


# Changes, health


class ChangesAsked(Asked):
    """How many of the last changes."""

    limit: Limit = 100


class EventsAsked(Asked):
    """Which events."""

    kinds: Annotated[str, Meta(max_length=500, description="Names of events with commas between; all when empty.")] = ""
    follow: bool = True
    """Off: end after what there is."""
    backlog: Annotated[int, Meta(ge=0, le=1000, description="Events that were before, to begin with.")] = 0
    max_per_s: Annotated[int, Meta(ge=1, le=1000, description="What is over it is counted, not sent.")] = 50
