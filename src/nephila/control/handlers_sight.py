"""Sight: status, charts, alerts, domains, pages, stories, traps, changes, health. Nothing here scans a store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict

from nephila.frontier.blocklist import Blocklist
from nephila.interfaces.catalogue import CaptureRow, PageRow
from nephila.interfaces.census import DomainFigures, HostFigures
from nephila.model.plain import plain
from nephila.model.policy import DomainPolicy
from nephila.node import ordering
from nephila.node.alarms import RULES
from nephila.node.desk import Desk
from nephila.node.logbook import COARSE_S, FINE_S, Growth, Point, steps
from nephila.node.operated import OperatedView
from nephila.node.present import present, told_last
from nephila.urls import Address

from . import asked, given, given_figures
from .endpoint import Call, Endpoint
from .problems import ProblemError
from .shown import policy_given

HOUR_MS = 3_600_000
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


async def status(call: Call[None, None]) -> given_figures.StatusAnswer:
    """Where the crawl stands."""
    desk = call.desk
    known = await desk.status()
    now = await present(desk)
    snapshot = await desk.counters()
    waiting = sum(known.waiting_for_a_time.values())
    uptime_s = max(0, now.at - now.started_at) / 1000 if now.running and now.started_at else 0.0
    return given_figures.StatusAnswer(
        directory=known.directory,
        running=known.running,
        stopping=now.stopping,
        cycle=known.cycle,
        started_at=now.started_at,
        uptime_s=uptime_s,
        pages_crawled_today=now.pages_today,
        pages_this_month=now.pages_month,
        crawl_rate=now.pages_per_s,
        avg_pages_per_sec=now.run.pages / uptime_s if uptime_s else 0.0,
        bytes_per_s=now.minute.bytes / 60,
        frontier_size=sum(known.queued.values()) + waiting,
        frontier=dict(known.queued),
        due_again=dict(known.due_again),
        waiting=dict(known.waiting_for_a_time),
        put_off=dict(known.hosts_put_off),
        parked=dict(known.parked),
        urls=dict(known.urls),
        known=known.known,
        pages=known.pages,
        captures=known.captures,
        bytes=known.bytes,
        hosts={"all": known.hosts, **known.hosts_by_place},
        domains=known.domains,
        domains_active=snapshot.hosts_ready + snapshot.hosts_leased,
        active_workers=now.workers + desk.workers.active(now.at),
        in_flight=now.in_flight,
        errors_today=now.errors_today,
        errors_last_hour=now.errors_hour,
        latency_s=_quantiles(now.minutes),
        duplicates=now.run.duplicates + now.run.near_duplicates,
        traps=known.traps,
        dead_letters=known.urls.get("dead", 0),
        paused=known.paused,
        policies=known.policies,
        blocks=known.blocks,
        alerts=len(now.alerts),
    )


def _quantiles(growth: Growth) -> dict[str, float | None]:
    return {name: growth.quantile_s(share) for name, share in QUANTILES.items()}


def _step(point: Point, until: int) -> given_figures.Step:
    came = point.growth
    return given_figures.Step(
        at=point.at,
        span_s=max(1.0, (until - point.at) / 1000),
        pages=came.pages,
        responses=came.responses,
        bytes=came.bytes,
        duplicates=came.duplicates + came.near_duplicates,
        errors=came.errors,
        statuses=came.statuses,
        latency_s=_quantiles(came),
        frontier=point.queued,
        waiting=point.waiting,
        parked=point.parked,
        in_flight=point.in_flight,
        hosts={"ready": point.ready, "waiting": point.resting, "leased": point.leased},
    )


async def series(call: Call[None, asked.SeriesAsked]) -> given_figures.SeriesAnswer:
    """Figures over time."""
    figures = call.desk.figures()
    fine = call.query.resolution == "fine"
    points = steps(figures.fine if fine else figures.coarse, call.query.since_at)
    step_s = FINE_S if fine else COARSE_S
    drawn = [_step(point, min(point.at + step_s * 1000, figures.present.at)) for point in points]
    return given_figures.SeriesAnswer(step_s=step_s, steps=drawn)


async def alerts(call: Call[None, None]) -> given_figures.AlertsAnswer:
    """What is wrong now."""
    found = [
        given_figures.AlertGiven(
            name=one.name, since_at=one.since, value=one.value, threshold=one.threshold, summary=one.summary
        )
        for one in told_last(call.desk, call.desk.figures()).alerts
    ]
    return given_figures.AlertsAnswer(alerts=found, rules=list(RULES))


async def workers(call: Call[None, None]) -> given_figures.WorkersAnswer:
    """Who works on the crawl."""
    desk = call.desk
    found = [given_figures.WorkerGiven(**asdict(one)) for one in desk.at_work()]
    return given_figures.WorkersAnswer(workers=found, outside=desk.workers.active(desk.clock.wall_ms()))


# Domains


def _domain_given(figures: DomainFigures, policy: DomainPolicy | None, blocks: Blocklist) -> given.DomainGiven:
    return given.DomainGiven(
        domain=figures.domain,
        state=figures.state,
        reason=figures.reason,
        pages=figures.pages,
        hosts=figures.hosts,
        queued=figures.queued,
        parked=figures.parked,
        errors=figures.errors,
        delay_ms=figures.delay_ms,
        mean_ms=figures.mean_ms,
        paused=policy is not None and policy.paused,
        blocked=blocks.of_host(figures.domain) is not None,
        policy=policy is not None,
    )


async def list_domains(call: Call[None, asked.DomainsAsked]) -> given.DomainsAnswer:
    """A page of the list of domains."""
    query, desk = call.query, call.desk
    listed = await desk.roster.list(
        search=query.search,
        sort=query.sort,
        descending=query.order == "desc",
        offset=query.offset,
        limit=query.limit,
    )
    found = await asyncio.to_thread(_domains_given, desk, listed.names)
    return given.DomainsAnswer(domains=found, total=listed.total, offset=query.offset, complete=listed.complete)


def _domains_given(desk: Desk, names: Sequence[str]) -> list[given.DomainGiven]:
    """The rows of a page, read afresh. In a thread."""
    view = desk.frontier.view
    blocks, policies = Blocklist(view.blocks()), view.policies()
    return [_domain_given(figures, policies.get(figures.domain), blocks) for figures in desk.census.named(names)]


async def get_domain(call: Call[None, asked.DomainAsked]) -> given.DomainAnswer:
    """All that is known of one domain."""
    desk = call.desk
    name = ordering.domain_named(desk, call.path["domain"])

    def look(view: OperatedView) -> tuple[list[DomainFigures], list[HostFigures], DomainPolicy | None, Blocklist]:
        found = desk.census.named([name])
        hosts = desk.census.hosts(name, call.query.limit, call.query.after) if found else []
        return found, hosts, view.policy(name), Blocklist(view.blocks())

    known, hosts, policy, blocks = await desk.look(look)
    if not known:
        raise ProblemError(404, f"this crawl has never met {name}")
    block = blocks.of_host(name)
    row = await desk.ask_catalogue(lambda catalogue: catalogue.domain(name))
    last_at, _, requests, mean_ms, robots = row or (0, 0, 0, 0.0, "")
    return given.DomainAnswer(
        domain=_domain_given(known[0], policy, blocks),
        policy=policy_given(name, policy),
        blocked_by="" if block is None else f"{block.pattern}: {block.reason}",
        last_crawled_at=last_at,
        total_requests=requests,
        avg_response_ms=mean_ms,
        robots_txt=robots,
        hosts=[given.HostGiven(**one._asdict()) for one in hosts],
    )


# Pages and stories


async def pages(call: Call[None, asked.PagesAsked]) -> given.PagesAnswer:
    """The captures of one URL, or the newest pages."""
    query, desk = call.query, call.desk
    if query.url and query.host:
        raise ProblemError(422, "give either url or host")
    if not query.url:
        host = _host_named(desk, query.host)
        rows = [] if host is None else await desk.pages(host, query.limit)
        return given.PagesAnswer(pages=[_page(row) for row in rows])
    address = desk.identify(query.url)
    if not isinstance(address, Address):
        raise ProblemError(422, f"{query.url!r} is no URL: {address[1]}")
    captures = await desk.captures(address)
    return given.PagesAnswer(pages=[_capture(row, len(captures)) for row in captures[: query.limit]])


def _host_named(desk: Desk, text: str) -> str | None:
    """A host in the spelling that hosts have, empty where none was named; None for what can be no host."""
    address = desk.identify(text) if text else None
    return address.host if isinstance(address, Address) else None if text else ""


def _page(row: PageRow) -> given.PageGiven:
    return given.PageGiven(
        url=row.url,
        status=row.status,
        content_type=row.content_type,
        length=row.length,
        title=row.title,
        depth=row.depth,
        crawled_at=row.crawled_at,
        crawl_count=row.crawl_count,
        duplicate_of=row.duplicate_of,
        near_duplicate_of=row.near_duplicate_of,
        storage_key=row.storage_key,
    )


def _capture(row: CaptureRow, count: int) -> given.PageGiven:
    return given.PageGiven(
        url=row.url,
        status=row.status,
        content_type=row.content_type,
        length=row.length,
        title=row.title,
        depth=row.depth,
        crawled_at=row.at,
        crawl_count=count,
        duplicate_of=row.duplicate_of,
        near_duplicate_of=row.near_duplicate_of,
        storage_key=f"{row.segment}#{row.offset}",
    )


async def why(call: Call[None, asked.WhyAsked]) -> given.WhyAnswer:
    """The story of a URL."""
    answer = await call.desk.why(call.query.url)
    data = plain(answer.data)
    if not isinstance(data, dict):
        raise TypeError("a story is an object")
    lines = [given.Line(label=label, text=text) for label, text in answer.lines]
    return given.WhyAnswer(found=answer.found, lines=lines, data=data)


async def traps(call: Call[None, asked.TrapsAsked]) -> given.TrapsAnswer:
    """URLs of endless kinds that are held back."""
    host = _host_named(call.desk, call.query.host)
    found = [
        given.TrapGiven(
            host=one.host,
            pattern=one.pattern,
            state=one.state,
            since_at=one.since,
            next_try_at=one.next_try_at,
            fetched=one.fetched,
            parked=one.parked,
            evidence=one.evidence,
            example=one.example,
        )
        for one in ([] if host is None else await call.desk.look(lambda view: view.traps(call.query.limit, host)))
    ]
    return given.TrapsAnswer(traps=found, total=(await call.desk.counters()).traps)


async def changes(call: Call[None, asked.ChangesAsked]) -> given.ChangesAnswer:
    """What people and programs changed."""
    return given.ChangesAnswer(changes=call.changes.last(call.query.limit))


ENDPOINTS = (
    Endpoint("GET", "/status", "getStatus", "Where the crawl stands", given_figures.StatusAnswer, status, tag="sight"),
    Endpoint(
        "GET",
        "/series",
        "getSeries",
        "Figures over time",
        given_figures.SeriesAnswer,
        series,
        query=asked.SeriesAsked,
        tag="sight",
    ),
    Endpoint(
        "GET", "/workers", "listWorkers", "Who works on the crawl", given_figures.WorkersAnswer, workers, tag="sight"
    ),
    Endpoint("GET", "/alerts", "getAlerts", "What is wrong now", given_figures.AlertsAnswer, alerts, tag="sight"),
    Endpoint(
        "GET",
        "/domains",
        "listDomains",
        "Search and sort domains",
        given.DomainsAnswer,
        list_domains,
        query=asked.DomainsAsked,
        tag="domains",
    ),
    Endpoint(
        "GET",
        "/domains/{domain}",
        "getDomain",
        "All that is known of a domain",
        given.DomainAnswer,
        get_domain,
        query=asked.DomainAsked,
        problems=(404,),
        tag="domains",
    ),
    Endpoint(
        "GET",
        "/pages",
        "getPages",
        "Captures of a URL, or the newest pages",
        given.PagesAnswer,
        pages,
        query=asked.PagesAsked,
        tag="pages",
    ),
    Endpoint("GET", "/why", "why", "What became of a URL", given.WhyAnswer, why, query=asked.WhyAsked, tag="pages"),
    Endpoint(
        "GET",
        "/traps",
        "listTraps",
        "URLs of endless kinds that are held back",
        given.TrapsAnswer,
        traps,
        query=asked.TrapsAsked,
        tag="sight",
    ),
    Endpoint(
        "GET",
        "/changes",
        "listChanges",
        "Who changed what",
        given.ChangesAnswer,
        changes,
        query=asked.ChangesAsked,
        tag="sight",
    ),
)
