"""What a client gets: the bodies of answers.

Names are read by others and do not change; fields are added, never taken away. Instants end in `_at` and are UTC
milliseconds, 0 for never; durations and sizes have their unit in their name.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=0)]


class Given(Struct, kw_only=True):
    """What a client gets."""


# Problems


class Problem(Given, omit_defaults=True):
    """RFC 9457: what is wrong with a request, for programs (`type`) and for people."""

    type: str
    title: str
    status: int
    detail: str = ""
    hint: str = ""
    """What to do about it."""


# Seeds and re-crawls


class Refused(Given):
    """A URL that was refused, and why."""

    url: str
    reason: str
    detail: str


class SeedsAnswer(Given):
    """What became of the seeds."""

    added: Count
    duplicates: Count
    """Already known."""
    refused: list[Refused]


class RecrawlAnswer(Given):
    """What became of them."""

    queued: Count
    unknown: list[str]
    """Never met by this crawl: give them as seeds."""
    refused: list[Refused]


# Policies


class PolicyGiven(Given):
    """What holds for a registrable domain by a person's word."""

    domain: str
    max_qps: float | None
    delay_s: float | None
    crawl_depth: int | None
    tier: str
    recrawl_interval_hours: float | None
    user_agent: str
    hours: list[tuple[int, int]]
    paused: bool
    quality: float
    render: str


class PoliciesAnswer(Given):
    """Policies by domain."""

    policies: list[PolicyGiven]
    total: Count
    next: str
    """Where the next page begins (`after`); empty at the end."""


# Domains


class DomainGiven(Given):
    """One registrable domain, its hosts added up."""

    domain: str
    state: str
    """leased, ready, waiting, parked or idle."""
    reason: str
    """Why it is held back as a whole; empty when it is not."""
    pages: Count
    hosts: Count
    queued: Count
    parked: Count
    errors: Count
    """Among its last hundred requests."""
    delay_ms: int
    mean_ms: int
    paused: bool
    blocked: bool
    policy: bool


class DomainsAnswer(Given):
    """A page of the list."""

    domains: list[DomainGiven]
    total: Count
    offset: Count
    complete: bool
    """False while the list is still being put together after the start."""


class HostGiven(Given):
    """One host."""

    host: str
    state: str
    reason: str
    queued: Count
    fetched: Count
    parked: Count
    delay_ms: int
    mean_ms: int
    next_at: int
    last_at: int


class DomainAnswer(Given):
    """All that is known of one registrable domain."""

    domain: DomainGiven
    policy: PolicyGiven
    blocked_by: str
    """The block that it is under, with its reason; empty when there is none."""
    last_crawled_at: int
    total_requests: Count
    avg_response_ms: float
    robots_txt: str
    hosts: list[HostGiven]


# Blocks


class BlockGiven(Given):
    """A block."""

    pattern: str
    reason: str
    blocked_at: int


class BlocksAnswer(Given):
    """Blocks by pattern."""

    blocks: list[BlockGiven]
    total: Count
    next: str


# Takedowns


class RewrittenGiven(Given):
    """A file that was rewritten, as its receipt in the chain says."""

    file: str
    at: str
    was: str
    """SHA-256 of the whole file before."""
    now: str
    removed: Count
    """Captures that were taken out; of an event file, 1 for all lines that were masked."""


class TakedownGiven(Given):
    """A takedown."""

    id: str
    state: Literal["pending", "done"]
    """pending: it is blocked; a crawl that runs, or `nephila purge`, takes out what was stored."""
    urls: list[str]
    domains: list[str]
    reason: str
    who: str
    ordered_at: int
    done_at: int
    captures: Count
    """Captures that were taken out of the archive."""
    emptied: Count
    """Captures of other pages that had their payload from those."""
    files: list[RewrittenGiven]
    head: str
    """The head of the chain that has all receipts in it."""
    outside: list[str]
    """Where workers outside keep what they fetched of it: delete it there."""


class TakedownsAnswer(Given):
    """Takedowns, the newest first."""

    takedowns: list[TakedownGiven]
    total: Count
    next: str
    """Where the next page begins (`before`); empty at the end."""


# Dead letters, pages, stories


class Letter(Given):
    """A URL that was given up."""

    url: str
    host: str
    kind: str
    detail: str
    retries: Count
    at: int


class LettersAnswer(Given):
    """Dead letters in the order of the store."""

    dead_letters: list[Letter]
    total: Count
    next: str


class RetryAnswer(Given):
    """How many were put back."""

    revived: Count
    not_dead: list[str]
    """Those that are no dead letters."""


class PageGiven(Given):
    """One capture of a page."""

    url: str
    status: int
    content_type: str
    length: Count
    title: str
    depth: int
    crawled_at: int
    crawl_count: int
    duplicate_of: str
    near_duplicate_of: str
    storage_key: str


class PagesAnswer(Given):
    """Pages, newest first."""

    pages: list[PageGiven]


class Line(Given):
    """One line of a story."""

    label: str
    text: str


class WhyAnswer(Given):
    """The story of a URL: in lines for people, as data for programs."""

    found: bool
    lines: list[Line]
    data: dict[str, Any]


class TrapGiven(Given):
    """URLs of one shape on one host that are held back."""

    host: str
    pattern: str
    state: str
    since_at: int
    next_try_at: int
    fetched: Count
    parked: Count
    evidence: str
    example: str


class TrapsAnswer(Given):
    """Traps."""

    traps: list[TrapGiven]
    total: Count


# Workers outside


class TaskGiven(Given):
    """A URL to fetch: robots.txt allows it, and its host may be asked now, once."""

    task_id: str
    url: str
    domain: str
    timeout_at: int
    depth: int
    user_agent: str
    etag: str
    last_modified: str


class LeaseAnswer(Given):
    """What there is to do."""

    tasks: list[TaskGiven]
    waiting_for_robots: Count
    """Hosts whose robots.txt the crawl has to fetch before they can be lent."""


class ResultAnswer(Given):
    """What became of it."""

    status: Literal["completed"]
    new_urls_enqueued: Count
    duplicates_skipped: Count
    refused: Count


class FailAnswer(Given):
    """Whether it is tried again."""

    will_retry: bool
    retry_count: Count


class HeartbeatAnswer(Given):
    """Until when it is his."""

    timeout_at: int


# Changes, health


class ChangeGiven(Given):
    """Something that a person or a program changed."""

    at: int
    who: str
    """The name of the token, `loopback` where there is none; `command line (USER)` for a command."""
    what: str
    target: str
    before: Any = None
    after: Any = None
    state: Literal["begun", "done", "failed"] = "done"
    """begun: it was to be done, and whether it was is not on record; `after` is what was wanted then."""


class ChangesAnswer(Given):
    """Changes, the newest first."""

    changes: list[ChangeGiven]


class HealthAnswer(Given):
    """That it answers."""

    status: Literal["ok"]
