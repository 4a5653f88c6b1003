"""A pipeline on a desk: the real frontier, politeness and sieve; a wire that follows a script; an archive in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from simulation import Recorder

from nephila.dedup import MemoryListings, MemoryRenderings
from nephila.dedup.digests import MemoryDigestIndex
from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.policy import Policy
from nephila.frontier.schedule import SimpleRecrawl
from nephila.frontier.scope import Scope
from nephila.frontier.sieve import ScopeSieve
from nephila.interfaces.catalogue import CaptureRow, ErrorRow
from nephila.interfaces.frontier import UrlStory
from nephila.interfaces.renderer import Renderer
from nephila.model.errors import NephilaError, StorageError
from nephila.model.exchange import Answer, FailureKind, Fetched, FetchFailed, FetchRequest
from nephila.model.page import Link, Page
from nephila.model.record import Capture, Original, RecordRef, SegmentId, StoredCapture
from nephila.model.settings import (
    FrontierSettings,
    PolitenessSettings,
    PrioritySettings,
    RecrawlSettings,
    RenderSettings,
    RobotsSettings,
    ScopeSettings,
    Settings,
    SitemapSettings,
)
from nephila.model.task import Candidate, Lease, PageTask
from nephila.node.reading import list_kind_of, list_reader, wanted_types
from nephila.parse import links_that_matter, parse_html, sign_of
from nephila.pipeline import (
    Conduct,
    CrawledPage,
    Formats,
    Holding,
    Judge,
    ListClause,
    Lists,
    Pipeline,
    RenderClause,
    ResourceNotes,
    Stages,
)
from nephila.politeness import StandardPoliteness
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual
from nephila.testing.renderer import MemoryShelf
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

SEGMENT = SegmentId("segment-1")
IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())
AGENT = "Nephila/0.1 (+https://nephila.invalid/bot)"
FRONTIER = FrontierSettings(sync=False, linger_ms=0, map_bytes=1 << 26, retry_waits_s=(5.0, 30.0), max_retries=2)


def address(url: str) -> Address:
    found = IDENTIFIER.identify(url)
    assert isinstance(found, Address)
    return found


def page_task(url: str, **fields: Any) -> PageTask:
    return replace(PageTask(address(url).fingerprint, url, 0, 1), **fields)


def answer(url: str, status: int = 200, body: bytes = b"", elapsed_ms: int = 10, **more: Any) -> Fetched:
    """An answer as the wire gives it; `headers` as a dict."""
    headers = tuple({"content-type": "text/html", **more.pop("headers", {})}.items())
    head = b"HTTP/1.1 %d X\r\n\r\n" % status
    return Fetched(
        url,
        b"GET",
        head,
        body,
        status,
        headers,
        body,
        "192.0.2.1",
        sent_at=1,
        ended_at=0,
        elapsed_ms=elapsed_ms,
        **more,
    )


def failure(url: str, kind: FailureKind = FailureKind.TIMEOUT, *, sent: bool = True) -> FetchFailed:
    return FetchFailed(url, kind, f"{kind} of {url}", sent)


Line = Answer | Callable[[FetchRequest], Awaitable[Answer]]


class ScriptedFetcher:
    """Answers by URL, each line of its script once, the last one for ever; 404 for what is not in it."""

    def __init__(self, clock: VirtualClock) -> None:
        self.script: dict[str, list[Line]] = {}
        self.asked: list[FetchRequest] = []
        self.at: list[int] = []
        self._clock = clock

    @property
    def urls(self) -> list[str]:
        return [request.url for request in self.asked]

    async def fetch(self, request: FetchRequest) -> Answer:
        self.asked.append(request)
        self.at.append(self._clock.steady_ms())
        lines = self.script.get(request.url, [answer(request.url, 404)])
        line = lines.pop(0) if len(lines) > 1 else lines[0]
        return await line(request) if callable(line) else line

    async def close(self) -> None:
        """Nothing is open."""


class MemoryArchive:
    """Captures in a list; a full disk when told so."""

    def __init__(self) -> None:
        self.captures: list[Capture] = []
        self.full = False

    def encode(self, capture: Capture) -> object:
        return None

    def append(self, capture: Capture, encoded: object = None) -> StoredCapture:
        if self.full:
            raise StorageError("the disk is full")
        self.captures.append(capture)
        offset = 100 * len(self.captures)
        kind = "revisit" if capture.revisit_of else "response"
        ref = RecordRef(SEGMENT, offset, 50, offset + 100)
        return StoredCapture(ref, f"urn:uuid:{offset}", "sha1:X", "", capture.fetched.sent_at, kind)


@dataclass
class MemoryLedger:
    """What the bookkeeping was told."""

    duplicates: MemoryDigestIndex = field(default_factory=MemoryDigestIndex)
    outstanding: set[int] = field(default_factory=set)
    rows: list[CaptureRow] = field(default_factory=list)
    disowned: list[int] = field(default_factory=list)
    errors: list[ErrorRow] = field(default_factory=list)

    def appended(self, segment: SegmentId, offset: int) -> None:
        self.outstanding.add(offset)

    def first_of_its_kind(self, segment: SegmentId, offset: int, digest: bytes, original: Original) -> None:
        """Here bytes are durable at once."""
        self.duplicates.remember(digest, original)

    def settled(self, segment: SegmentId, offset: int, row: CaptureRow | None) -> None:
        self.outstanding.remove(offset)
        if row is None:
            self.disowned.append(offset)
        else:
            self.rows.append(row)

    def failed(self, row: ErrorRow) -> None:
        self.errors.append(row)


class OpenAllowance:
    """Lets everything out, and counts."""

    def __init__(self) -> None:
        self.taken = self.given = 0
        self.limit = 1 << 30

    def take(self) -> bool:
        if self.taken >= self.limit:
            return False
        self.taken += 1
        return True

    def give(self) -> None:
        self.given += 1


class Worker:
    """A pipeline and what stands around it. `run` crawls until nothing can be claimed any more."""

    def __init__(
        self,
        path: Path,
        *,
        robots: bool = False,
        delay_s: float = 1.0,
        scope: str = "all",
        sitemaps: SitemapSettings | None = None,
        renderer: Renderer | None = None,
        places: int = 4,
        span_s: float = 0.0,
        together_s: float = 0.0,
    ) -> None:
        """`sitemaps`: read lists, under these settings. `renderer`: show pages to it, so many at once on their way.

        `span_s`: leases last so long through delays. `together_s`: their pages wait so long to be settled together.
        """
        self.clock = VirtualClock()
        recrawl = SimpleRecrawl(RecrawlSettings()) if sitemaps else None
        span_ms = int(span_s * 1000)
        policy = Policy(
            FRONTIER, base_delay_ms=int(delay_s * 1000), robots=robots, recrawl=recrawl, lease_span_ms=span_ms
        )
        self.frontier = LmdbFrontier(path, self.clock, policy, threaded=False)
        self.fetcher = ScriptedFetcher(self.clock)
        self.duplicates = MemoryDigestIndex()
        self.archive, self.ledger, self.recorder = MemoryArchive(), MemoryLedger(self.duplicates), Recorder()
        self.allowance = OpenAllowance()
        self.failures: list[NephilaError] = []
        self.delivered: list[CrawledPage] = []
        self.expiries: dict[int, int] = {}
        self.twins: dict[str, list[Candidate]] = {}
        self.broken_parser = False
        self.requisites: tuple[Link, ...] = ()
        """What every page is shown with."""
        settings = ScopeSettings(mode=scope)
        self.scope = Scope(settings, 15)
        sieve = ScopeSieve(IDENTIFIER, self.scope, settings, links_that_matter, lambda: None)
        politeness = StandardPoliteness(PolitenessSettings(delay_s=delay_s), RobotsSettings(), FRONTIER, AGENT)
        self.listings = MemoryListings()
        clause = None
        if sitemaps is not None:
            formats = Formats(list_kind_of, list_reader(Settings(sitemaps=sitemaps)))
            lists = Lists(sitemaps, self.listings, politeness, sieve, formats, address, ("text/html",))
            view, events, priority = self.frontier, self.recorder, PrioritySettings()
            clause = ListClause(lists, self.frontier, view, events, self.clock, priority, threaded=False)
        self.renderings = MemoryRenderings()
        rendering = None
        if renderer is not None:
            told = (self.recorder, self.clock, places)
            self.shelf = MemoryShelf(self.clock)
            notes = ResourceNotes(self.shelf, self.clock, RenderSettings().wait_s)
            holding = Holding(self.shelf, notes, RenderSettings(), self.clock)
            rendering = RenderClause(RenderSettings(), renderer, self.renderings, sign_of, *told, holding)
        self.judge = Judge(
            self._read, sieve, politeness, self.duplicates, max_hops=3, lists=clause.lists if clause else None
        )
        stages = Stages(
            self.frontier,
            self.frontier,
            self.fetcher,
            self.judge,
            politeness,
            self.archive,  # type: ignore[arg-type]  # the pipeline only appends
            self.duplicates,
            self.ledger,
            self.recorder,
            self.clock,
            lists=clause,
            rendering=rendering,
        )
        conduct = Conduct(
            fetch_limit_ms=30_000,
            types=("text/html",),
            robots_max_bytes=500_000,
            now=self.frontier.timeline.now,
            identify=address,
            expires_at=lambda lease: self.expiries.get(lease.token, lease.expires_at),
            allowance=self.allowance,
            wanted=wanted_types(("text/html",)),
            twins=lambda origin, _kind: self.twins.pop(origin, ()),
            noted=sieve.noted,
            deliver=None if together_s else self._deliver,
            fatal=self.failures.append,
            rounded_ms=0,
            span_ms=span_ms,
            together_s=together_s,
        )
        self.pipeline = Pipeline(stages, conduct)

    def _read(self, fetched: Fetched) -> Page:
        if self.broken_parser:
            raise ZeroDivisionError("a bug of ours")
        return replace(parse_html(fetched.body, fetched.url, "text/html", agent=AGENT), requisites=self.requisites)

    async def _deliver(self, page: CrawledPage) -> None:
        self.delivered.append(page)

    async def admit(self, *urls: str, depth: int = 0) -> None:
        for url in urls:
            self.scope.add_seed(address(url))
        await self.frontier.admit([Candidate(address(url), depth) for url in urls])

    async def claim(self, hosts: int = 10) -> list[Lease]:
        return await self.frontier.claim(hosts, 300)

    async def work(self, lease: Lease) -> None:
        """Work in a task of its own, as in a crawl."""
        await asyncio.create_task(self.pipeline.work(lease))

    async def crawl(self, *seeds: str, max_wait_s: float = 120.0) -> None:
        """From seeds until nothing can run within `max_wait_s`, or until we failed."""
        await self.admit(*seeds)
        while not self.failures:
            for lease in await self.claim():
                await self.work(lease)
            next_in = self.frontier.snapshot().next_in_ms
            if next_in is None or next_in > max_wait_s * 1000:
                return
            await asyncio.sleep(max(next_in, 1) / 1000)

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        """Run under virtual time, then close the frontier."""

        async def whole() -> Any:
            try:
                return await main()
            finally:
                await self.frontier.close()

        return run_virtual(whole, self.clock)

    def story(self, url: str) -> UrlStory:
        found = address(url)
        story = self.frontier.story(found.host, found.fingerprint)
        assert story is not None, f"{url} was never met"
        return story

    def script(self, *answers: Line) -> None:
        """Add answers to the script, by their own URLs."""
        for line in answers:
            assert not callable(line)
            self.fetcher.script.setdefault(line.url, []).append(line)


def linking(*urls: str) -> bytes:
    """A page with these links."""
    return b"<title>T</title>" + b"".join(b'<a href="%s">x</a>' % url.encode() for url in urls)


Seeds = Sequence[str]
