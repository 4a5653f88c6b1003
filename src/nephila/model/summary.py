"""The crawl in figures: while it runs (a snapshot) and when it ended (a summary)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

LATENCY_BOUNDS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0)
"""Upper bounds by which answer times are counted."""


class StoppedBy(StrEnum):
    """What ended a crawl. The exit code follows from it."""

    DONE = "done"
    """Nothing left that can run within --max-wait."""
    MAX_PAGES = "max_pages"
    MAX_DOMAINS = "max_domains"
    MAX_BYTES = "max_total_bytes"
    MAX_TIME = "max_time"
    DRAINED = "drained"
    """A worker of a fleet was told to leave."""
    INTERRUPT = "interrupt"
    UNSENT = "unsent"
    """Part of the archive could not be uploaded: it waits in the spool, and the same command brings it."""
    STORAGE = "storage"
    """The disk is full or refused: what was settled is safe, the same command goes on when there is room."""
    GONE = "gone"
    """The crawl directory was moved or removed: nothing more could be kept in it."""


@dataclass(frozen=True, slots=True)
class SpoolStanding:
    """What waits for its upload to the archive's store (W2)."""

    place: str = ""
    """Where the archive goes: ``s3://bucket/prefix``."""
    segments: int = 0
    bytes: int = 0
    oldest_s: float = 0.0
    """Since the oldest was begun; 0 where nobody knows, as of a fleet."""
    away: str = ""
    """Why the store does not take it, in words; empty while it does."""
    full: bool = False
    """No more may wait: fetching does."""

    def words(self) -> str:
        """For people: ``12 segments, 700 MB, oldest 3 min``."""
        if not self.segments:
            return "nothing waits"
        seconds, scaled = self.oldest_s, self.bytes / 1e6
        units = ((2 * 86_400, 86_400, "d"), (2 * 3600, 3600, "h"), (120, 60, "min"))
        age = next(
            (f"{seconds / one:.0f} {name}" for least, one, name in units if seconds >= least), f"{seconds:.0f} s"
        )
        amount = (
            f"{scaled / 1000:.1f} GB" if scaled >= 1000 else f"{scaled:.0f} MB" if scaled >= 10 else f"{scaled:.1f} MB"
        )
        told = f"{self.segments:,} segment{'' if self.segments == 1 else 's'}, {amount}"
        return f"{told}, oldest {age}" if seconds else told

    def holds_up(self) -> str:
        """What fetching waits for, or will when nothing changes, for those who look from afar; empty for nothing."""
        return "; ".join(filter(None, ("its spool is full: fetching waits" if self.full else "", self.away)))

    def trouble(self) -> str:
        """What is wrong, in brackets to be put behind that; nothing where nothing is."""
        return (" (full: fetching waits)" if self.full else "") + (f" ({self.away})" if self.away else "")


@dataclass(frozen=True, slots=True)
class CrawlSnapshot:
    """What the live view shows. All counts are of this run, but for the frontier's own."""

    elapsed_s: float
    pages: int
    """2xx and 304 answers stored."""
    responses: int
    """All answers stored, robots.txt included."""
    bytes: int
    """On the wire."""
    in_flight: int
    queued: int
    """Waiting in the frontier, whether for their host or for a time."""
    hosts: int
    """Hosts that were asked at least once."""
    domains: int
    duplicates: int
    errors: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    statuses: Mapping[int, int] = field(default_factory=dict)
    pages_per_s: float = 0.0
    """Over the last ten seconds."""
    limit: str = ""
    """The limit that will be reached first, as a flag name; empty when there is none."""
    limit_share: float = 0.0
    """How much of it is used, 0 to 1."""
    limit_left_s: float | None = None
    """Time left to it at the present rate."""
    stopping: bool = False
    slow_hosts: int = 0
    """Hosts whose delay is above the base delay."""
    near_duplicates: int = 0
    """Pages that say nearly what another one said before (D3); not among the duplicates."""
    latencies: tuple[int, ...] = ()
    """Answers by the time they took: one count for each bound of `LATENCY_BOUNDS_S`, and one for what is over all."""
    latency_ms: int = 0
    """The sum of their times."""
    lookups: tuple[int, int] = (0, 0)
    """Names that were looked up, and how many of them were found in the cache (H4)."""
    lists: int = 0
    """Sitemaps and feeds that were read (X3)."""
    listed: int = 0
    """URLs that they brought and that nobody had met before."""
    plugins: Mapping[str, int] = field(default_factory=dict)
    """Failures of plugins, by name (E1)."""
    rendered: int = 0
    """Pages that were shown to a browser (J2)."""
    render_gained: int = 0
    """Of those, the ones that it made more of."""
    visit_parts: int = 0
    """What pages in browsers asked their hosts for (J3)."""
    render_resources: int = 0
    """What was asked of other hosts for them: no pages."""
    render_missed: Mapping[str, int] = field(default_factory=dict)
    """Pages that need a browser and were judged as they came, by reason."""
    render_queue: int = 0
    """Pages that wait for a browser."""
    browsers: int = 0
    browser_bytes: int = 0
    """Memory of all browsers, as last measured."""
    spool: SpoolStanding | None = None
    """None where the archive lies in the crawl directory."""


@dataclass(frozen=True, slots=True)
class CrawlSummary:
    """The last word of a crawl: what `--json` prints and the summary table shows."""

    pages: int
    responses: int
    bytes: int
    errors: Mapping[str, int]
    hosts: int
    domains: int
    duplicates: int
    refused: Mapping[str, int]
    statuses: Mapping[int, int]
    seconds: float
    pages_per_s: float
    cpu_s: float
    peak_rss_bytes: int
    stopped_by: StoppedBy
    remaining: int
    """URLs that stay queued."""
    remaining_by_reason: Mapping[str, int]
    dead: int
    out: str
    """The crawl directory."""
    total_pages: int
    """Pages stored over all runs of this directory."""
    failure: str = ""
    """What the disk refused and what to do about it, where that ended the crawl."""
    parked: Mapping[str, int] = field(default_factory=dict)
    """URLs that are known and kept, but not queued, by reason: over budget, in a trap, put off for coverage."""
    traps: int = 0
    """Patterns of URLs that are slowed or quarantined (T2)."""
    planned: int = 0
    """Fetched URLs whose next visit is planned (R2); they are not among the remaining ones."""
    starving: int = 0
    """Fetches over all runs that went to hosts which had waited too long (F7)."""
    total_domains: int = 0
    """Registrable domains fetched from over all runs."""
    target_domains: int = 0
    """How many were wanted first (S4); 0 when there was no such wish."""
    near_duplicates: int = 0
    """Pages that say nearly what another one said before (D3); not among the duplicates."""
    lists: int = 0
    """Sitemaps and feeds that were read (X3)."""
    listed: int = 0
    """URLs that they brought and that nobody had met before."""
    plugins: Mapping[str, int] = field(default_factory=dict)
    """Failures of plugins, by name (E1)."""
    rendered: int = 0
    """Pages that were shown to a browser (J2)."""
    render_gained: int = 0
    """Of those, the ones that it made more of."""
    visit_parts: int = 0
    """What pages in browsers asked their hosts for (J3)."""
    render_resources: int = 0
    """What was asked of other hosts for them: no pages."""
    render_missed: Mapping[str, int] = field(default_factory=dict)
    """Pages that need a browser and were judged as they came, by reason."""
    spool: SpoolStanding | None = None
    """What stays in the spool; None where the archive lies in the crawl directory."""
    due_in_s: float | None = None
    """How long until something can be asked for; None where nothing waits for a time."""
    unanswered: bool = False
    """URLs are known, and no server has ever answered, in this run or another."""
