"""What the sentence is made with: who does which verb, the settings of a worker, and what it hands on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from nephila.interfaces.archive import Archive
from nephila.interfaces.clock import Clock
from nephila.interfaces.duplicates import DigestIndex, SharedDigests
from nephila.interfaces.events import EventSink
from nephila.interfaces.extensions import Extensions
from nephila.interfaces.fetcher import Fetcher
from nephila.interfaces.frontier import Frontier, FrontierView
from nephila.interfaces.ledger import Ledger
from nephila.interfaces.politeness import Politeness
from nephila.model.errors import NephilaError
from nephila.model.exchange import FailureKind, Fetched
from nephila.model.noun import noun
from nephila.model.page import Page
from nephila.model.record import SegmentId
from nephila.model.task import Candidate, Lease, PageTask, Refusal
from nephila.urls import Address

from .judgement import Judge
from .learning import Learning
from .listed import ListClause
from .near import NOT_COMPARED, NearPages
from .rendering import RenderClause
from .resting import ANOTHERS_CLOCK_MS


@noun
class CrawledPage:
    """A page that was stored, as a listener gets it."""

    task: PageTask
    fetched: Fetched
    page: Page | None
    duplicate_of: str
    near_duplicate_of: str = ""


class Allowance(Protocol):
    """How many pages may still be asked for (S3)."""

    def take(self) -> bool:
        """One more request is to be sent; False when it might be one page too many."""

    def give(self) -> None:
        """That request has ended, and is counted if it was a page."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Who does which verb of the sentence."""

    frontier: Frontier
    view: FrontierView
    fetcher: Fetcher
    judge: Judge
    politeness: Politeness
    archive: Archive
    duplicates: DigestIndex
    ledger: Ledger
    events: EventSink
    clock: Clock
    near: NearPages = NOT_COMPARED
    learning: Learning | None = None
    """Who learns from what was settled; None for nobody."""
    lists: ListClause | None = None
    """Who reads sitemaps and feeds; None for nobody."""
    extensions: Extensions | None = None
    """The plugins; None where there are none, and then nothing is asked of anybody."""
    rendering: RenderClause | None = None
    """Who shows pages to a browser; None where nobody does."""
    shared: SharedDigests | None = None
    """`duplicates`, where workers on other machines add to them: asked before an answer is judged."""


@dataclass(frozen=True, slots=True)
class Conduct:
    """The settings of a worker."""

    fetch_limit_ms: int
    """What a fetch may take: the lease must outlast it when the request leaves."""
    types: tuple[str, ...] | None
    """Media types whose bodies are read; None means all."""
    robots_max_bytes: int
    now: Callable[[], int]
    """The frontier's timeline."""
    identify: Callable[[str], Address | None]
    expires_at: Callable[[Lease], int]
    """When a lease ends, renewals included."""
    allowance: Allowance
    twins: Callable[[str, FailureKind], Sequence[Candidate]] = lambda _origin, _kind: ()
    """Seeds to try over http when an https origin cannot be reached."""
    wanted: Callable[[Fetched], bool] = lambda _: True
    """Whether a body is of a type that the crawl keeps as a page."""
    worker_of: Callable[[SegmentId], str] = lambda _segment: "0"
    """Which process has written a segment: whoever settles its captures may be another one."""
    noted: Callable[[list[Refusal]], list[Refusal]] = lambda refused: refused
    """Hears which refusals of links were noted for good; says which of them are news."""
    deliver: Callable[[CrawledPage], Awaitable[None]] | None = None
    fatal: Callable[[NephilaError], None] = lambda _: None
    """Our own failure, such as a full disk: ends the crawl."""
    rounded_ms: int = ANOTHERS_CLOCK_MS
    """What rests are lengthened by for the sake of rounding: 0 where the frontier counts them by our own clock."""
    rests_by_lease: bool = False
    """Nobody else knows what a visit has asked for: if we die, its lease must last until its host has rested (J3)."""
    is_blocked: Callable[[str, str], bool] = lambda _host, _url: False
    """Whether a person has blocked a URL of a host (T7)."""
    span_ms: int = 0
    """How long a lease is meant to last through the delays of its host; 0: the host is given back while it rests."""
    together_s: float = 0.0
    """How long pages of a lease wait to be settled together; 0: each is settled for itself, and waited for."""
    excluded: Callable[[str], str] = lambda _url: ""
    """The pattern that keeps a URL out, empty where none does: it may have been queued under others (S2)."""
