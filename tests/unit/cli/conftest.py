"""Fakes of what the command line stands on, and a way to run it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nephila.cli.backend import Backend
from nephila.cli.main import cli
from nephila.cli.needs import RunningCrawl, View
from nephila.config import Configured
from nephila.interfaces.catalogue import DomainFigures, PageRow
from nephila.interfaces.frontier import Trap, UrlStory
from nephila.model.alias import AliasKind, AliasRule, AliasState
from nephila.model.policy import Block, DomainPolicy
from nephila.model.summary import CrawlSnapshot, CrawlSummary, StoppedBy
from nephila.model.task import Level
from nephila.node.operating import check_policy
from nephila.node.standing import CrawlStatus
from nephila.report import Coverage, CrawlReport, ErrorHost, Moment, Queue, Repetition, Spread, Timeline
from nephila.seeds import Seed, SeedReport
from nephila.urls import Fingerprint

SNAPSHOT = CrawlSnapshot(
    elapsed_s=83.4,
    pages=1234,
    responses=1300,
    bytes=31_200_000,
    in_flight=35,
    queued=1_023_300,
    hosts=12,
    domains=4,
    duplicates=3,
    errors={"timeout": 12, "dns": 3, "http_5xx": 2},
    refused={"scope": 40_321, "excluded": 31},
    statuses={200: 1234, 404: 66},
    pages_per_s=14.83,
    limit="max-pages",
    limit_share=0.43,
    limit_left_s=131.0,
    slow_hosts=2,
)

SUMMARY = CrawlSummary(
    pages=1234,
    responses=1300,
    bytes=31_200_000,
    errors={"timeout": 12, "martian": 1},
    hosts=12,
    domains=4,
    duplicates=3,
    refused={"scope": 40_321, "depth": 5},
    statuses={404: 66, 200: 1234},
    seconds=83.4,
    pages_per_s=14.8,
    cpu_s=1.25,
    peak_rss_bytes=120_000_000,
    stopped_by=StoppedBy.DONE,
    remaining=7,
    remaining_by_reason={"robots_unavailable": 7},
    dead=2,
    out="crawl-example.org",
    total_pages=2000,
)

SEEDS = SeedReport(added=3, known=1, refused={"malformed": 1}, examples=())

STORY = UrlStory(
    url="https://example.org/x",
    fingerprint=Fingerprint(b"\x01\xff"),
    host="example.org",
    state="dead_letter",
    level=Level.HIGH,
    depth=2,
    via="https://example.org/",
    hops=0,
    retries=3,
    cycle=1,
    admitted_at=1_700_000_000_000,
    settled_at=1_700_000_060_000,
    reason="timeout",
    detail="timeout: no answer \x1b[31mwithin 30 s",
)

PAGE = PageRow(
    url="https://example.org/a",
    status=200,
    content_type="text/html",
    length=31_200,
    title="A\x1b]0;owned\x07 title",
    depth=1,
    crawled_at=1_700_000_000_000,
    crawl_count=1,
    duplicate_of="",
    storage_key="nephila-1.warc.gz:0",
)


TRAP = Trap(
    host="calendar.test",
    pattern="/calendar/{date}",
    state="quarantined",
    since=1_700_000_000_000,
    next_try_at=1_700_604_800_000,
    fetched=1057,
    fresh=7,
    duplicates=1000,
    repeats=50,
    errors=0,
    barren=50,
    parked=20_000,
    parked_more=True,
    evidence="they brought nothing",
    example="https://calendar.test/calendar/2031-07-28\x1b[2J",
)

ALIAS = AliasRule(
    id="0123abcd",
    kind=AliasKind.PARAMETER,
    domain="shop.test",
    pattern="/item/{n}?ref",
    target="",
    state=AliasState.SUSPENDED,
    since=1_700_000_000_000,
    agreed=1070,
    against=1,
    hints=20,
    places=40,
    caught=12_345,
    example=("https://shop.test/item/1?ref=a\x1b[2J", "https://shop.test/item/1"),
    counter_example=("https://shop.test/item/2?ref=a", "https://shop.test/item/2?ref=b"),
)

STATUS = CrawlStatus(
    directory="my crawl",
    running=True,
    cycle=2,
    pages=1234,
    captures=1300,
    bytes=31_200_000,
    hosts=120,
    domains=45,
    queued={"immediate": 1, "high": 1_234_567, "medium": 20, "low": 3},
    due_again={"immediate": 0, "high": 34_567, "medium": 0, "low": 3},
    ages={
        "immediate": {"under_4h": 1},
        "high": {"under_4h": 567, "under_1d": 4000, "under_7d": 30_000, "under_30d": 200_000, "longer": 1_000_000},
        "medium": {"under_1d": 20},
        "low": {"longer": 3},
    },
    waiting_for_a_time={"retry": 3},
    hosts_put_off={"paused": 12, "trap": 1},
    parked={"over_budget": 1203, "trap": 30},
    planned=1234,
    known=2_000_000,
    urls={"pending": 0, "completed": 1234, "dead": 2},
    gone=5,
    traps=3,
    starving=40,
    draws=1300,
    target_domains=100,
    paused=22,
    paused_domains=("a.org", "b.org"),
    policies=23,
    blocks=1,
    hosts_by_place={"ready": 3, "waiting": 100, "leased": 5},
)

REPORT = CrawlReport(
    directory="crawls/my <crawl>",
    running=True,
    made_at=1_700_000_100_000,
    cycle=2,
    pages=1234,
    answers=1300,
    robots=12,
    hosts=120,
    bytes=31_200_000,
    timeline=Timeline(
        1_700_000_000_000, 2000, [Moment(number * 20, number * 22, number % 3, 500_000) for number in range(11)]
    ),
    ended_at=1_700_000_022_000,
    statuses={200: 1234, 404: 66},
    types={"text/html": 1200, "x/\x1b[2J<b>": 34},
    depths=dict.fromkeys(range(9), 100),
    sizes=Spread({12: 900, 16: 300}, 3000, 40_000, 60_000, 65_000, 9_000_000),
    latencies=Spread({6: 1000, 11: 300}, 40, 1200, 1900, 2000, 400_000),
    repetition=Repetition(30, 20, 10),
    truncated=3,
    errors={"timeout": 12, "martian": 1},
    error_hosts=[ErrorHost("slow.test<script>", 12, {"timeout": 12}), ErrorHost("b.test", 1, {"martian": 1})],
    coverage=Coverage(45, {0: 3, 1: 40, 3: 5}, [DomainFigures("a.test", 700, 720, 41.5, 1_700_000_020_000)]),
    queue=Queue({"high": 7, "low": 0}, {"retry": 3}, {"trap": 20}, 2),
    traps=[TRAP],
    traps_in_all=3,
)


@dataclass
class FakeCrawl:
    """A crawl that stands still."""

    now: CrawlSnapshot = SNAPSHOT
    seed_report: SeedReport | None = SEEDS

    def snapshot(self) -> CrawlSnapshot:
        return self.now


@dataclass
class Ran:
    """What `run_crawl` was called with."""

    out: Path
    configured: Configured
    seeds: list[Seed]
    new_cycle: bool
    listeners: Sequence[Any]


@dataclass
class Answer:
    """Of `why`."""

    lines: Sequence[tuple[str, str]]
    found: bool
    data: dict[str, object]


@dataclass
class Demo:
    """Of `demo`."""

    summary: CrawlSummary
    verdict: Sequence[tuple[str, str]]
    passed: bool
    example: str = "http://site1.test/"


@dataclass
class FakeOperator:
    """Keeps what it is told."""

    known: dict[str, DomainPolicy] = field(default_factory=dict)
    listed: list[Block] = field(default_factory=list)
    trapped: list[Trap] = field(default_factory=lambda: [TRAP])
    released: list[tuple[str, str]] = field(default_factory=list)
    learned: list[AliasRule] = field(default_factory=lambda: [ALIAS])
    decided: list[tuple[str, str, str]] = field(default_factory=list)
    meanwhile: DomainPolicy | None = None
    """What somebody else sets right before the next policy that is set here."""

    def domain_of(self, text: str) -> tuple[str, str]:
        return ".".join(text.split(".")[-2:]), text

    def policies(self) -> dict[str, DomainPolicy]:
        return self.known

    def set_policy(self, domain: str, policy: DomainPolicy | None, was: DomainPolicy | None = None) -> bool:
        if policy is not None:
            check_policy(policy)
        if self.meanwhile is not None:
            self.known[domain], self.meanwhile = self.meanwhile, None
        if was is not None and self.known.get(domain, DomainPolicy()) != was:
            return False
        self.known.pop(domain, None)
        if policy is not None:
            self.known[domain] = policy
        return True

    def blocks(self) -> list[Block]:
        return self.listed

    def block(self, pattern: str, reason: str) -> Block:
        self.listed.append(Block(pattern, reason, 1_700_000_000_000))
        return self.listed[-1]

    def unblock(self, pattern: str) -> bool:
        kept = [one for one in self.listed if one.pattern != pattern]
        removed = len(kept) < len(self.listed)
        self.listed = kept
        return removed

    def traps(self, limit: int, host: str) -> tuple[list[Trap], int]:
        return [one for one in self.trapped if host in ("", one.host)][:limit], len(self.trapped)

    def release_trap(self, host: str, pattern: str) -> tuple[int, int]:
        self.released.append((host, pattern))
        return 700, 500

    def aliases(self, domain: str) -> list[AliasRule]:
        return [one for one in self.learned if domain in ("", one.domain)]

    def undo_alias(self, name: str, domain: str) -> AliasRule:
        self.decided.append(("undo", name, domain))
        return replace(ALIAS, state=AliasState.UNDONE)

    def redo_alias(self, name: str, domain: str) -> AliasRule:
        self.decided.append(("redo", name, domain))
        return ALIAS


@dataclass
class FakeNode:
    """Stands in for `node`: remembers the calls, lets the view run for a moment, answers with `summary`."""

    summary: CrawlSummary = SUMMARY
    raises: BaseException | None = None
    crawl: RunningCrawl = field(default_factory=FakeCrawl)
    ran: list[Ran] = field(default_factory=list)
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    found: bool = True
    standing: CrawlStatus = STATUS
    reported: CrawlReport = REPORT
    orders: FakeOperator = field(default_factory=FakeOperator)
    environ: dict[str, str] = field(default_factory=lambda: {"TERM": "xterm"})

    def run_crawl(
        self,
        out: Path,
        configured: Configured,
        seeds: Sequence[Any],
        *,
        new_cycle: bool = False,
        listeners: Sequence[Any] = (),
        view: View | None = None,
        named: Mapping[str, object] | None = None,
    ) -> CrawlSummary:
        if self.raises is not None:
            raise self.raises
        self.ran.append(Ran(out, configured, [seed for source in seeds for seed in source], new_cycle, listeners))
        if view is not None:
            asyncio.run(run_for_a_moment(view, self.crawl))
        return replace(self.summary, out=str(out))

    def open_view(self, out: Path) -> FakeNode:
        self.asked.append(("open", out))
        if self.raises is not None:
            raise self.raises
        return self

    def status(self) -> CrawlStatus:
        return self.standing

    def why(self, url: str) -> Answer:
        lines = [("state", "completed"), ("found on", "https://example.org/\x1b[2J")]
        return Answer(lines, self.found, {"state": "completed", "fingerprint": b"\x01"})

    def dead(self, limit: int) -> list[UrlStory]:
        return [STORY][:limit]

    def revive(self, urls: Sequence[str] | None) -> int:
        self.asked.append(("revive", urls))
        return 2 if urls is None else len(urls)

    def pages(self, host: str, status: int | None, like: str, limit: int) -> Iterator[PageRow]:
        self.asked.append(("pages", host, status, like, limit))
        return iter([PAGE])

    def open_operator(self, out: Path) -> FakeOperator:
        if self.raises is not None:
            raise self.raises
        return self.orders

    def report_on(self, crawl: Path | Configured) -> CrawlReport:
        self.asked.append(("report", crawl))
        if self.raises is not None:
            raise self.raises
        return self.reported

    def run_demo(self, out: Path, *, pages: int, listeners: Sequence[Any] = (), view: View | None = None) -> Demo:
        self.asked.append(("demo", out, pages))
        return Demo(replace(self.summary, out=str(out)), [("violations", "0")], self.found)

    def backend(self) -> Backend:
        return Backend(self.run_crawl, self.open_view, self.run_demo, self.environ, self.open_operator, self.report_on)


async def run_for_a_moment(view: View, crawl: RunningCrawl) -> None:
    """Run a view as the node does: beside the crawl, cancelled at its end."""
    task = asyncio.ensure_future(view(crawl))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def node() -> FakeNode:
    return FakeNode()


@pytest.fixture
def invoke(node: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command line against the fake node, in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(cli, list(args), input=stdin, obj=node.backend(), standalone_mode=True)

    return run
