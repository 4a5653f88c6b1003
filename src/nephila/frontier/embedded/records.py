"""The packed nouns of the store: MessagePack arrays, a record costs its content and a few bytes.

Field order is the format. A field is only ever added at the end, with a default; anything else is a new number in
`tables.FORMAT`. Those that are made for every page are left out of garbage collection (`gc=False`): nothing in them can
lead back to them.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from nephila.frontier.health import Health
from nephila.frontier.lifecycle import State
from nephila.frontier.order import LANES
from nephila.frontier.rank import FIRST_MEAN
from nephila.interfaces.recrawl import History
from nephila.model.outcome import RulesKind
from nephila.model.task import Level


class CaptureNote(msgspec.Struct, array_like=True, frozen=True, gc=False):
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


class Fate(msgspec.Struct, array_like=True, gc=False):
    """What came of asking for a URL."""

    settled_s: int = 0
    reason: str = ""
    detail: str = ""
    capture: CaptureNote | None = None
    trail: tuple[str, ...] = ()
    history: History = History()
    fetched: int = 0
    """How often it was answered for good, over all cycles."""
    gone: bool = False
    """Proven gone (R5)."""


class UrlRecord(msgspec.Struct, array_like=True, gc=False):
    """One URL that has been asked for at least once, or that was put back into its queue one by one.

    A URL that only waits in its queue has no record: its host's bundles hold all there is to know of it.
    """

    state: State
    rank: int
    """0..127 (see `frontier.rank`). State and rank are single bytes at the front, read and written without the rest."""
    level: Level
    depth: int
    hops: int
    retries: int
    cycle: int
    admitted_s: int
    """UTC seconds."""
    tail: str
    """The spelling to fetch, as `tables.shorten` cuts it."""
    suffix: bytes
    """The second half of the fingerprint; the key holds the first."""
    via: bytes = b""
    """Key of the page it was found on; empty for a seed."""
    place: bytes = b""
    """Its place in the queue while QUEUED."""
    due_at: int = 0
    """On the timeline, while it waits for a time or for its next visit."""
    fate: Fate | None = None


class Spelling(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """How a packed UrlRecord begins: as much of it as who asks for its spelling alone has to read."""

    state: int
    rank: int
    level: int
    depth: int
    hops: int
    retries: int
    cycle: int
    admitted_s: int
    tail: str


RANK_AT = 2
"""Where the rank stands in a packed UrlRecord: after the array's mark and the state."""


class Place(IntEnum):
    """Where a host stands: in exactly one of these."""

    IDLE = 0
    """It has no work."""
    WAITING = 1
    READY = 2
    """While it is leased as well: see `HostState`."""
    PARKED = 4
    """It has work, but nothing of it may be done until something else changes."""


class HostState(msgspec.Struct, array_like=True, gc=False):
    """One host: its queue's figures, its politeness, where it stands.

    While a host is leased nothing of this is written: that it is leased stands in the table `leased` alone.
    """

    name: str
    queued: list[int]
    """URLs in its queue, by lane."""
    place: Place = Place.IDLE
    next_at: int = 0
    """Its key in the waiting index while WAITING."""
    free_at: int = 0
    """Politeness: nobody may ask it before this time."""
    released_at: int = 0
    delay_ms: int = -1
    """The adaptive delay; -1 until it was asked for the first time."""
    crawl_delay_ms: int = 0
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
    robots: int = 0
    """robots.txt files that wait in its queue."""
    work_since: int = 0
    """Timeline: since when it has had work without being asked (F7)."""
    admitted: int = 0
    """URLs that were let into its queue, as its budget counts them (F5)."""
    fresh: int = 0
    """Pages that brought new content."""
    referrers: int = 0
    """Registrable domains that link to it, as `budget.mark_referrer` counts them."""
    shelved: int = 0
    """URLs that are parked: over budget, in a trap, put off for coverage."""
    flagged: int = 0
    """Skeletons that are slowed or quarantined (T2)."""
    trap_at: int = 0
    """Timeline: when one of the URLs parked as a trap may be tried; 0 when there is none."""
    sections: bool = False
    """Its queue is counted by first path segment (T1)."""
    outgrown: bool = False
    """It has many times the URLs of its like, and earns less for it (T5)."""
    over: bool = False
    """It is one host more than its domain has earned (F5): all it has is parked."""

    @property
    def queue_length(self) -> int:
        """URLs in its queue."""
        return sum(self.queued)


class DomainState(msgspec.Struct, array_like=True, gc=False):
    """One registrable domain."""

    name: str
    pages: int = 0
    hosts: int = 0
    """Hosts that were taken on."""
    hosts_over: int = 0
    """Hosts that wait until it has earned them (F5)."""
    useful: int = 0
    """Hosts that brought new content."""
    referrers: int = 0
    queued: int = 0
    """URLs in the queues of its hosts, while coverage is looked for (S4)."""
    paused_until: int = 0
    """Timeline: too many errors (P4)."""
    health: Health = Health()
    policed: bool = False
    """Whether there is a policy for it (R4)."""


class LeaseRecord(msgspec.Struct, array_like=True, gc=False):
    """One lease, keyed by its token."""

    host_key: bytes
    expires_at: int
    entries: list[bytes]
    """Place and fingerprint of the pages that are still to be settled."""
    origin: str = ""
    """Set for a robots task."""
    holder: int = 0
    """Which of several processes has it; 0 where there is one."""


class RobotsEntry(msgspec.Struct, array_like=True, frozen=True):
    """A robots.txt that waits to be fetched, in the queue of the host that has it."""

    origin: str
    url: str
    hops: int


class OriginNote(msgspec.Struct, array_like=True, frozen=True, gc=False):
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
    refreshed: bytes = b""
    """Up to where the classes of hosts that have been ready for long were looked at (F7)."""
    hosts: int = 0
    hosts_ready: int = 0
    ready: list[int] = msgspec.field(default_factory=lambda: [0] * (LANES + 1))
    """Ready hosts by lane; the last counts those that are ready at all, by how long they have had work."""
    hosts_waiting: int = 0
    hosts_leased: int = 0
    domains: int = 0
    """Registrable domains from which a page was fetched."""
    domains_met: int = 0
    urls: int = 0
    """URLs that are known."""
    pages: int = 0
    pages_in_cycle: int = 0
    pending: int = 0
    completed: int = 0
    dropped: int = 0
    dead: int = 0
    refused: int = 0
    gone: int = 0
    """Pages that are proven gone (R5)."""
    queued: list[int] = msgspec.field(default_factory=lambda: [0] * LANES)
    delayed: dict[str, int] = msgspec.field(default_factory=dict)
    put_off: dict[str, int] = msgspec.field(default_factory=dict)
    """Queued URLs of hosts that are put off as a whole, by reason."""
    shelved: dict[str, int] = msgspec.field(default_factory=dict)
    """Parked URLs, by reason."""
    traps: int = 0
    """Skeletons that are slowed or quarantined."""
    outgrown: int = 0
    """Hosts with many times the URLs of their like (T5)."""
    reserved: int = 0
    """Fetches that went to starving hosts."""
    mean_rank: int = FIRST_MEAN
    """The running mean of ranks, as `rank.next_mean` keeps it."""
    cycle_open: bool = False
    """A cycle was begun by hand and has not come to its end."""
    sweep: bytes | None = None
    """Where the sweep of a new cycle has come to; None when there is none."""
    replanning: list[tuple[bytes, bytes]] = msgspec.field(default_factory=list)
    """Domains (or all, by an empty key) whose planned visits are looked at again, and where that has come to."""
    policies: int = 0
    """Domains that there is a policy for."""
    orders: int = 0
    """Counts the changes of policies and blocks: whoever has read them at another count reads them again."""
    lowered: int = 0
    """Domains whose class is lowered by errors (P4): while there are none, none is read to find out."""
    covered: bool = False
    """The wanted number of domains was reached: what was put off for it comes back (S4)."""
