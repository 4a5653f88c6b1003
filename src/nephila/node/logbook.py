"""A crawl's figures over time.

The last hour in steps of ten seconds, three days in steps of ten minutes, two months in days. Kept in memory while a
crawl runs and in `figures.json` in its directory, so that whoever looks at the directory from outside, also after the
end, is told the same without a scan.

The figures of a run begin at 0; what is written down is how much they have grown since the last look. Losing the last
few seconds to kill -9 costs these charts a few pages, and nothing else: the crawl's own books are elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.errors import StorageError, remedy
from nephila.model.summary import LATENCY_BOUNDS_S, CrawlSnapshot

FINE_S, FINE_POINTS = 10, 360
COARSE_S, COARSE_POINTS = 600, 432
DAYS = 62
BUSY_STATUSES = ("429", "503")


class Growth(msgspec.Struct):
    """How much came in a span of time."""

    pages: int = 0
    responses: int = 0
    bytes: int = 0
    duplicates: int = 0
    near_duplicates: int = 0
    errors: dict[str, int] = {}
    statuses: dict[str, int] = {}
    """By class (2xx), and 429 and 503 by themselves as well."""
    latencies: list[int] = []
    latency_ms: int = 0
    lookups: int = 0
    lookups_found: int = 0

    def add(self, other: Growth) -> None:
        """Count in what came in another span."""
        self.pages += other.pages
        self.responses += other.responses
        self.bytes += other.bytes
        self.duplicates += other.duplicates
        self.near_duplicates += other.near_duplicates
        self.latency_ms += other.latency_ms
        self.lookups += other.lookups
        self.lookups_found += other.lookups_found
        self.errors = _sum(self.errors, other.errors)
        self.statuses = _sum(self.statuses, other.statuses)
        padded = self.latencies or [0] * len(other.latencies)
        self.latencies = [a + b for a, b in zip(padded, other.latencies, strict=False)] or padded

    def quantile_s(self, share: float) -> float | None:
        """The answer time below which that share of the answers lies, as well as the buckets tell; None without any."""
        total = sum(self.latencies)
        if not total:
            return None
        wanted, below, lower = share * total, 0, 0.0
        for count, upper in zip(self.latencies, (*LATENCY_BOUNDS_S, 2 * LATENCY_BOUNDS_S[-1]), strict=True):
            if count and below + count >= wanted:
                return lower + (upper - lower) * (wanted - below) / count
            below, lower = below + count, upper
        return lower


class Point(msgspec.Struct):
    """One step of a chart: what came in it, and how things stood at its end."""

    at: int
    """Its beginning, UTC milliseconds."""
    growth: Growth
    queued: dict[str, int] = {}
    """By class."""
    waiting: int = 0
    """URLs that wait for a time of their own."""
    parked: int = 0
    in_flight: int = 0
    ready: int = 0
    resting: int = 0
    leased: int = 0


class Process(msgspec.Struct, frozen=True):
    """What the processes of a crawl use of their machine."""

    cpu_s: float = 0.0
    memory_bytes: int = 0
    open_files: int = 0
    max_files: int = 0
    disk_free_bytes: int = 0
    disk_bytes: int = 0


class Rendering(msgspec.Struct):
    """Pages and browsers, of this run (J2)."""

    rendered: int = 0
    gained: int = 0
    parts: int = 0
    """What pages in browsers asked for."""
    missed: dict[str, int] = {}
    browsers: int = 0
    memory_bytes: int = 0


class Present(msgspec.Struct):
    """How things stood at the last look. Counts are of this run."""

    at: int = 0
    running: bool = False
    stopping: bool = False
    started_at: int = 0
    pages_per_s: float = 0.0
    run: Growth = msgspec.field(default_factory=Growth)
    refused: dict[str, int] = {}
    hosts: int = 0
    in_flight: int = 0
    workers: int = 0
    process: Process = Process()
    longest_wait_s: float = 0.0
    stored_after: list[int] = []
    """Samples of pages by the time from discovery to storage: see `STORED_BOUNDS_S`."""
    stored_after_s: float = 0.0
    busy_hosts: dict[str, int] = {}
    """Hosts that answered 429 or 503 most often in the last minutes: a few."""
    render_queue: int = 0
    """Pages that wait to be rendered; 0 where nothing is rendered."""
    rendering: Rendering = msgspec.field(default_factory=Rendering)
    violations: int = 0
    """Requests that came too early, by the archive's own dates (P5)."""
    alerts: list[Alert] = []


def at_rest(present: Present) -> Present:
    """The same when nobody is at work, or nothing is heard of who is: counts stay, what was under way does not."""
    return msgspec.structs.replace(
        present,
        running=False,
        stopping=False,
        pages_per_s=0.0,
        in_flight=0,
        busy_hosts={},
        render_queue=0,
        rendering=msgspec.structs.replace(present.rendering, browsers=0, memory_bytes=0),
        process=msgspec.structs.replace(present.process, memory_bytes=0, open_files=0),
        alerts=[],
    )


class Alert(msgspec.Struct, frozen=True):
    """Something that somebody should know of (O2)."""

    name: str
    since: int
    """UTC milliseconds."""
    value: float
    threshold: float
    summary: str


class Figures(msgspec.Struct):
    """All of it, as it is kept."""

    present: Present = msgspec.field(default_factory=Present)
    fine: list[Point] = []
    coarse: list[Point] = []
    days: dict[str, Growth] = {}
    """By date, UTC."""

    def since(self, at: int) -> Growth:
        """What came since an instant of the last hour."""
        total = Growth()
        for point in reversed(self.fine):
            if point.at + FINE_S * 1000 <= at:
                break
            total.add(point.growth)
        return total

    def day(self, at: int) -> Growth:
        """What came on the day of an instant."""
        return self.days.get(date_of(at), Growth())

    def month(self, at: int) -> Growth:
        """What came in the month of an instant."""
        total = Growth()
        for date, growth in self.days.items():
            if date.startswith(date_of(at)[:7]):
                total.add(growth)
        return total


class Logbook:
    """Writes the figures down."""

    def __init__(self, path: Path, started_at: int) -> None:
        self._path = path
        self.figures = read_figures(path) or Figures()
        self.figures.present = Present(running=True, started_at=started_at)
        self._before = Growth()

    def record(self, at: int, snapshot: CrawlSnapshot, frontier: FrontierSnapshot) -> None:
        """Take a look."""
        now = total_of(snapshot)
        grown = _difference(now, self._before)
        self._before = now
        figures, present = self.figures, self.figures.present
        present.at, present.run = at, now
        present.stopping, present.pages_per_s = snapshot.stopping, snapshot.pages_per_s
        present.refused, present.hosts, present.in_flight = dict(snapshot.refused), snapshot.hosts, snapshot.in_flight
        present.render_queue = snapshot.render_queue
        present.rendering = Rendering(
            snapshot.rendered,
            snapshot.render_gained,
            snapshot.visit_parts,
            dict(snapshot.render_missed),
            snapshot.browsers,
            snapshot.browser_bytes,
        )
        for points, step_s, most in (
            (figures.fine, FINE_S, FINE_POINTS),
            (figures.coarse, COARSE_S, COARSE_POINTS),
        ):
            point = _point_at(points, at - at % (step_s * 1000), most)
            point.growth.add(grown)
            point.queued = dict(frontier.queued)
            point.waiting, point.parked = sum(frontier.delayed.values()), sum(frontier.parked.values())
            point.in_flight = snapshot.in_flight
            point.ready, point.resting = frontier.hosts_ready, frontier.hosts_waiting
            point.leased = frontier.hosts_leased
        figures.days.setdefault(date_of(at), Growth()).add(grown)
        while len(figures.days) > DAYS:
            del figures.days[min(figures.days)]

    def save(self) -> None:
        """Write it beside the crawl; whoever reads it sees the old or the new, never half of it."""
        draft = self._path.with_name(self._path.name + ".new")
        try:
            draft.write_bytes(_encode(self.figures))
            draft.replace(self._path)
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror}", remedy(error)) from error

    def close(self) -> None:
        """The run has ended: its figures stay."""
        self.figures.present = at_rest(self.figures.present)
        self.save()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Figures).decode


def read_figures(path: Path) -> Figures | None:
    """The figures that a crawl has left or is writing; None where there are none, or of another form."""
    try:
        return _decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


class FiguresFile:
    """Reads the figures of a crawl that another process runs, when they have changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._figures = Figures()

    def read(self) -> Figures:
        """As they were written last; empty ones where there are none."""
        try:
            found = self._path.stat()
        except OSError:
            return Figures()
        stamp = (found.st_mtime_ns, found.st_ino)
        if stamp != self._stamp:
            self._figures = read_figures(self._path) or Figures()
            self._stamp = stamp
        return self._figures


def date_of(at: int) -> str:
    """The date of an instant, UTC."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d")


def status_classes(statuses: Mapping[int, int]) -> dict[str, int]:
    """Answers by class, with 429 and 503 by themselves as well: bounded, whatever servers send."""
    found: dict[str, int] = {}
    for status, count in statuses.items():
        name = f"{status // 100}xx" if 100 <= status < 600 else "other"
        found[name] = found.get(name, 0) + count
        if str(status) in BUSY_STATUSES:
            found[str(status)] = found.get(str(status), 0) + count
    return found


def _point_at(points: list[Point], at: int, most: int) -> Point:
    """The step that an instant falls into; a clock that was set back goes on in the last one."""
    if not points or points[-1].at < at:
        points.append(Point(at, Growth()))
        while len(points) > most:
            del points[0]
    return points[-1]


def total_of(snapshot: CrawlSnapshot) -> Growth:
    """What a run has counted up to now."""
    return Growth(
        pages=snapshot.pages,
        responses=snapshot.responses,
        bytes=snapshot.bytes,
        duplicates=snapshot.duplicates,
        near_duplicates=snapshot.near_duplicates,
        errors=dict(snapshot.errors),
        statuses=status_classes(snapshot.statuses),
        latencies=list(snapshot.latencies),
        latency_ms=snapshot.latency_ms,
        lookups=snapshot.lookups[0],
        lookups_found=snapshot.lookups[1],
    )


def _difference(now: Growth, before: Growth) -> Growth:
    """What has come since; never less than nothing, should a process that died have told less than it did."""
    return Growth(
        pages=max(0, now.pages - before.pages),
        responses=max(0, now.responses - before.responses),
        bytes=max(0, now.bytes - before.bytes),
        duplicates=max(0, now.duplicates - before.duplicates),
        near_duplicates=max(0, now.near_duplicates - before.near_duplicates),
        errors=_grown(now.errors, before.errors),
        statuses=_grown(now.statuses, before.statuses),
        latencies=[
            max(0, a - b) for a, b in zip(now.latencies, before.latencies or [0] * len(now.latencies), strict=False)
        ],
        latency_ms=max(0, now.latency_ms - before.latency_ms),
        lookups=max(0, now.lookups - before.lookups),
        lookups_found=max(0, now.lookups_found - before.lookups_found),
    )


def _grown(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    return {name: count - before.get(name, 0) for name, count in now.items() if count > before.get(name, 0)}


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    total = dict(one)
    for name, count in other.items():
        total[name] = total.get(name, 0) + count
    return total


def steps(points: Iterable[Point], since: int) -> list[Point]:
    """The steps that end after an instant."""
    return [point for point in points if point.at >= since]
