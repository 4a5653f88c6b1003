"""The packed nouns of the store: MessagePack arrays, a record costs its content and a few bytes.

Field order is the format. A field is only ever added at the end, with a default; anything else is a new number in
`tables.FORMAT`.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from nephila.frontier.lifecycle import State
from nephila.model.outcome import RulesKind
from nephila.model.task import Level


class CaptureNote(msgspec.Struct, array_like=True, frozen=True):
    """What the last capture of a URL left behind."""

    status: int
    segment: str
    offset: int
    end: int
    digest: bytes = b""
    etag: str = ""
    last_modified: str = ""
    changed_at: int = 0
    """UTC seconds when the content was last seen to differ."""
    count: int = 1
    page: bool = True


class UrlRecord(msgspec.Struct, array_like=True):
    """One URL, keyed by host and fingerprint."""

    state: State
    level: Level
    depth: int
    hops: int
    retries: int
    cycle: int
    admitted_s: int
    """UTC seconds."""
    tail: str
    """The spelling to fetch, as `tables.shorten` cuts it."""
    via: bytes = b""
    """Key prefix of the page it was found on; empty for a seed."""
    settled_s: int = 0
    reason: str = ""
    detail: str = ""
    due_at: int = 0
    """On the timeline, while DELAYED."""
    capture: CaptureNote | None = None
    trail: tuple[str, ...] = ()


class Place(IntEnum):
    """Where a host stands: in exactly one of these."""

    IDLE = 0
    """It has no work."""
    WAITING = 1
    READY = 2
    LEASED = 3
    PARKED = 4
    """It has work, but nothing of it may be done until something else changes."""


class HostState(msgspec.Struct, array_like=True):
    """One host: its queue's figures, its politeness, where it stands."""

    name: str
    domain: str
    queued: list[int]
    """URLs in its queue, by level."""
    place: Place = Place.IDLE
    next_at: int = 0
    """Its key in the waiting index while WAITING."""
    free_at: int = 0
    """Politeness: nobody may ask it before this time."""
    released_at: int = 0
    delay_ms: int = -1
    """The adaptive delay; -1 until it was asked for the first time."""
    crawl_delay_ms: int = 0
    token: int = 0
    ready: list[bytes] = []
    """Its keys in the ready index while READY."""
    fetched: int = 0
    cycle: int = 0
    fetched_in_cycle: int = 0
    """Pages, as `max_pages_per_host` counts them."""
    mean_ms: int = 0
    reason: str = ""
    """Why it is put off as a whole."""
    lied_in: int = 0
    """The last cycle in which its validators were found to be wrong."""
    slept_ms: int = 0
    """`Timeline.slept_ms` when `free_at` was set."""


class LeaseRecord(msgspec.Struct, array_like=True):
    """One lease, keyed by its token."""

    host_key: bytes
    expires_at: int
    entries: list[bytes]
    """Queue keys (without the host) of the pages that are still to be settled."""
    origin: str = ""
    """Set for a robots task."""


class RobotsEntry(msgspec.Struct, array_like=True, frozen=True):
    """A robots.txt that waits to be fetched, in the queue of the host that has it."""

    origin: str
    url: str
    hops: int


class OriginNote(msgspec.Struct, array_like=True, frozen=True):
    """What is known of an origin's robots.txt; its text lies apart."""

    kind: RulesKind
    stored_at: int
    fresh_until: int
    status: int = 0
    failing_since: int = 0
    detail: str = ""
    moved_at: int = 0
    """Timeline: since when a redirect of it waits in another host's queue; 0 when none does."""


class RefusalNote(msgspec.Struct, array_like=True, frozen=True):
    """A URL that was not admitted, and why."""

    url: str
    reason: str
    detail: str
    at_s: int
    via: bytes = b""


class Totals(msgspec.Struct):
    """Counters that are kept with every change and never scanned for."""

    cycle: int = 1
    next_token: int = 1
    draws: int = 0
    hosts: int = 0
    hosts_ready: int = 0
    hosts_waiting: int = 0
    hosts_leased: int = 0
    domains: int = 0
    pages: int = 0
    pages_in_cycle: int = 0
    pending: int = 0
    completed: int = 0
    dropped: int = 0
    dead: int = 0
    refused: int = 0
    queued: list[int] = msgspec.field(default_factory=lambda: [0, 0, 0, 0])
    delayed: dict[str, int] = msgspec.field(default_factory=dict)
    put_off: dict[str, int] = msgspec.field(default_factory=dict)
    """Queued URLs of hosts that are put off as a whole, by reason."""
    cycle_open: bool = False
    """A cycle was begun by hand and has not come to its end."""
    sweep: bytes | None = None
    """Where the sweep of a new cycle has come to; None when there is none."""
