"""The report of a crawl as data. Instants are UTC milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nephila.interfaces.catalogue import DomainFigures
from nephila.interfaces.frontier import Trap


@dataclass(frozen=True, slots=True)
class Moment:
    """What happened within one step of the timeline."""

    pages: int = 0
    answers: int = 0
    """Pages, redirects, refusals and whatever else a server said; robots.txt apart."""
    errors: int = 0
    bytes: int = 0
    """On the wire."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A crawl, step by step from its first answer to its last."""

    begun_at: int = 0
    step_ms: int = 1000
    moments: Sequence[Moment] = ()


@dataclass(frozen=True, slots=True)
class Spread:
    """How a figure is spread over many: counts by power of two, and what half, nine in ten and 99 in 100 stay below."""

    counts: Mapping[int, int] = field(default_factory=dict)
    """By bit length: 0 is nothing, 1 is one, 2 is two and three, 3 is four to seven ..."""
    median: int = 0
    ninth: int = 0
    """Nine in ten are at most this."""
    ninety_ninth: int = 0
    most: int = 0
    total: int = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class ErrorHost:
    """A host that brought errors."""

    host: str
    errors: int
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How the pages are spread over registrable domains."""

    domains: int = 0
    by_pages: Mapping[int, int] = field(default_factory=dict)
    """Domains by the number of digits of their pages: 1 is one to nine, 2 is ten to 99; 0 is none."""
    leading: Sequence[DomainFigures] = ()


@dataclass(frozen=True, slots=True)
class Repetition:
    """Answers that brought nothing new."""

    exact: int = 0
    near: int = 0
    unchanged: int = 0
    """304, or the same bytes again."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What is left to do."""

    queued: Mapping[str, int] = field(default_factory=dict)
    """By class."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """By what they wait for."""
    parked: Mapping[str, int] = field(default_factory=dict)
    dead: int = 0


@dataclass(frozen=True, slots=True)
class WorkerFigures:
    """Somebody who is on the register of a fleet, and what it has said of its present run."""

    name: str
    state: str
    """working, idle, leaving or silent."""
    pages: int = 0
    errors: int = 0
    pages_per_s: float = 0.0
    waiting_bytes: int = 0
    """In its spool: stored, and in neither archive nor catalogue yet."""


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """What a crawl came to, as far as it got."""

    directory: str
    running: bool
    made_at: int
    cycle: int
    pages: int
    """Whole pages, and those that have not changed: what the timeline and the domains add up to. No longer among them
    are those that were taken down, which the frontier still counts as fetched."""
    answers: int
    robots: int
    """Answers for robots.txt."""
    hosts: int
    bytes: int
    """On the wire."""
    timeline: Timeline
    ended_at: int
    statuses: Mapping[int, int]
    types: Mapping[str, int]
    """Of pages, by media type."""
    depths: Mapping[int, int]
    """Of pages."""
    sizes: Spread
    """Bytes of pages, decoded."""
    latencies: Spread
    """Milliseconds from the request to the end of the answer."""
    repetition: Repetition
    truncated: int
    errors: Mapping[str, int]
    """By kind: exchanges that failed, and answers that say so (429, 5xx)."""
    error_hosts: Sequence[ErrorHost]
    coverage: Coverage
    queue: Queue
    traps: Sequence[Trap]
    traps_in_all: int
    workers: Sequence[WorkerFigures] = ()
    """Of a fleet: those who are there now. Whoever has left is in all other figures, and not here."""

    @property
    def seconds(self) -> float:
        """From the first answer to the last."""
        return max(0, self.ended_at - self.timeline.begun_at) / 1000 if self.timeline.moments else 0.0

    @property
    def pages_per_s(self) -> float:
        """On average."""
        return self.pages / self.seconds if self.seconds else 0.0

    @property
    def most_pages_per_s(self) -> float:
        """In the best step; the last is seldom a whole one, and is also told together with the one before it.

        So all the time of the average is in what the best is chosen of, which is never below it.
        """
        moments, step_s = self.timeline.moments, self.timeline.step_ms / 1000
        best = max((moment.pages for moment in moments), default=0) / step_s
        end_s = self.seconds - max(0, len(moments) - 2) * step_s
        return max(best, sum(moment.pages for moment in moments[-2:]) / end_s) if end_s > 0 else best

    @property
    def error_share(self) -> float:
        """Errors of all exchanges."""
        failed = sum(self.errors.values())
        return failed / max(1, failed + self.answers)
