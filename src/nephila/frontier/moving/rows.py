"""What a frontier knows, row by row, in words that belong to no engine.

Every row is one JSON object with its kind. Instants are UTC milliseconds (`_at`) or UTC seconds (`_s`), 0 for never;
bytes are hexadecimal; a URL is spelled out. What has its default is left out.

The order of rows: `crawl` first; what concerns the whole crawl (`scope`, `policy`, `block`, `mark`, `orphan`); then
each `domain` before its hosts, and after a `host` all that is its own (`url`, `robots`, `tally`); `origin` and
`refused` last. The URLs of a queue or a shelf stand in their order, and those that were found together follow each
other.

What must stay true: a field is only ever added, with a default. Anything else is another `VERSION`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from nephila.frontier.traps import SkeletonTally, TrapState
from nephila.model.policy import Block, DomainPolicy

VERSION = 1


class CrawlRow(msgspec.Struct, tag="crawl", tag_field="kind", omit_defaults=True, frozen=True, kw_only=True):
    """The crawl as a whole."""

    version: int = 0
    secret: str
    """Fingerprints are seeded with it: they mean nothing under another one."""
    urls: dict[str, Any] = {}
    """The settings `urls.*` of the crawl: the normal form that fingerprints are made of."""
    config: str = ""
    """What the crawl was asked for (TOML), for a directory that has no settings of its own."""
    exported_at: int
    step: int
    """The step in force at `exported_at` (see `frontier.order`); places in queues are told in such steps."""
    step_ms: int
    cycle: int = 1
    cycle_open: bool = False
    sweeping: bool = False
    """A new cycle was begun, and not all URLs were looked at for it."""
    covered: bool = False
    mean_rank: int
    draws: int = 0
    reserved: int = 0
    tokens: int = 0
    """No lease had a larger token: archives name captures by them."""
    pages: int = 0
    pages_in_cycle: int = 0


class AskedFor(NamedTuple):
    """The settings of an exported crawl, as far as they travel."""

    urls: dict[str, Any]
    config: str = ""


class ScopeRow(msgspec.Struct, tag="scope", tag_field="kind", frozen=True):
    """What the seeds allow, as the crawl directory keeps it."""

    lines: str


class PolicyRow(msgspec.Struct, tag="policy", tag_field="kind", frozen=True):
    """What a person decided for a registrable domain (R4)."""

    domain: str
    policy: DomainPolicy


class BlockRow(msgspec.Struct, tag="block", tag_field="kind", frozen=True):
    """What may not be asked for (T7)."""

    block: Block


class MarkRow(msgspec.Struct, tag="mark", tag_field="kind", frozen=True):
    """Up to where a segment of the archive is confirmed."""

    segment: str
    upto: int


class OrphanRow(msgspec.Struct, tag="orphan", tag_field="kind", frozen=True):
    """A capture whose settle was refused: it belongs to nobody."""

    segment: str
    offset: int


class DomainRow(msgspec.Struct, tag="domain", tag_field="kind", omit_defaults=True, frozen=True):
    """A registrable domain."""

    name: str
    pages: int = 0
    hosts: int = 0
    hosts_over: int = 0
    useful: int = 0
    referrers: int = 0
    """64 bits, one for each kind of domain that links to it."""
    looked_for: int = 0
    """URLs that were queued to find a first page (S4)."""
    paused_until_at: int = 0
    window: str = ""
    """Errors among the last requests, as the bits of a hexadecimal number (P4)."""
    server_errors: int = 0
    lowered: int = 0
    successes: int = 0


class HostRow(msgspec.Struct, tag="host", tag_field="kind", omit_defaults=True, frozen=True):
    """A host: its pace, its rests, its budget."""

    name: str
    fetched: int = 0
    cycle: int = 0
    fetched_in_cycle: int = 0
    lied_in: int = 0
    free_at: int = 0
    """What it was promised; after an import it rests one full delay at least."""
    released_at: int = 0
    delay_ms: int = -1
    crawl_delay_ms: int = 0
    mean_ms: int = 0
    work_since_at: int = 0
    admitted: int = 0
    fresh: int = 0
    referrers: int = 0
    trap_at: int = 0
    over: bool = False
    outgrown: bool = False
    reason: str = ""
    """Why it is put off as a whole: until `until_at`, or (`parked`) until something else changes."""
    until_at: int = 0
    parked: bool = False


class UrlState(StrEnum):
    """Where a URL is."""

    QUEUED = "queued"
    PARKED = "parked"
    DELAYED = "delayed"
    DONE = "done"
    DROPPED = "dropped"
    DEAD = "dead"


class CaptureRow(msgspec.Struct, omit_defaults=True, frozen=True):
    """What the last capture of a URL left behind."""

    status: int
    segment: str
    offset: int
    end: int
    digest: str = ""
    etag: str = ""
    last_modified: str = ""
    changed_s: int = 0
    count: int = 1
    page: bool = True
    pending: bool = False
    """Its bytes are not confirmed yet."""


class UrlRow(msgspec.Struct, tag="url", tag_field="kind", omit_defaults=True, frozen=True, kw_only=True):
    """A URL of the host above."""

    fp: str
    url: str
    state: UrlState = UrlState.QUEUED
    rank: int
    level: int
    depth: int
    hops: int = 0
    retries: int = 0
    cycle: int = 1
    admitted_s: int
    via: str = ""
    lane: int = -1
    """Its place while it is queued or parked: lane, step, (depth,) tie."""
    step: int = -1
    tie: str = ""
    shelf: str = ""
    """Why it is parked."""
    group: str = ""
    """The pattern of a trap that holds it, hashed; `section` where its section of the host is full."""
    asked: bool = False
    """It was asked for, or put back on its own; what follows is said of such URLs only."""
    settled_s: int = 0
    reason: str = ""
    detail: str = ""
    trail: tuple[str, ...] = ()
    history: tuple[int, ...] = ()
    fetched: int = 0
    gone: bool = False
    due_at: int = 0
    due_reason: str = ""
    capture: CaptureRow | None = None


SECTION = "section"
"""The group of URLs that are parked because there are too many of their section (T1)."""


class RobotsRow(msgspec.Struct, tag="robots", tag_field="kind", frozen=True):
    """A robots.txt that waits in the queue of the host above."""

    origin: str
    url: str
    hops: int


class TallyRow(msgspec.Struct, tag="tally", tag_field="kind", frozen=True):
    """What a kind of URLs of the host above has brought (T2); the fields are those of `SkeletonTally`."""

    tally: dict[str, Any]


class OriginRow(msgspec.Struct, tag="origin", tag_field="kind", omit_defaults=True, frozen=True):
    """The robots.txt of an origin (P1)."""

    origin: str
    rules: str
    """The kind of rules, as `RulesKind`."""
    stored_at: int
    fresh_until_at: int
    status: int = 0
    failing_since_at: int = 0
    detail: str = ""
    moved_at: int = 0
    body: str = ""
    """Base64."""


class RefusedRow(msgspec.Struct, tag="refused", tag_field="kind", omit_defaults=True, frozen=True):
    """A URL that was not admitted, and why (T8)."""

    host: str
    fp: str
    url: str
    reason: str
    detail: str
    at_s: int
    via: str = ""


Row = (
    CrawlRow | ScopeRow | PolicyRow | BlockRow | MarkRow | OrphanRow | DomainRow | HostRow | UrlRow | RobotsRow
    | TallyRow | OriginRow | RefusedRow
)  # fmt: skip
KINDS: Mapping[type, str] = {
    CrawlRow: "crawl", ScopeRow: "scope", PolicyRow: "policy", BlockRow: "block", MarkRow: "mark",
    OrphanRow: "orphan", DomainRow: "domain", HostRow: "host", UrlRow: "url", RobotsRow: "robots",
    TallyRow: "tally", OriginRow: "origin", RefusedRow: "refused",
}  # fmt: skip

_RINGS = ("texts", "shapes")


def tally_row(tally: SkeletonTally) -> TallyRow:
    """A tally as a row."""
    told: dict[str, Any] = msgspec.structs.asdict(tally)
    told["state"] = tally.state.name.lower()
    return TallyRow(told | {ring: told[ring].hex() for ring in _RINGS})


def tally_in(row: TallyRow) -> SkeletonTally:
    """The tally of a row."""
    told = dict(row.tally)
    told["state"] = TrapState[told["state"].upper()]
    told |= {ring: bytes.fromhex(told[ring]) for ring in _RINGS}
    return SkeletonTally(**told)
