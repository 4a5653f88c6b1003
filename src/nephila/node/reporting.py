"""The report of a crawl, put together beside whoever may be working on it (O3).

The catalogue is read once from end to end, and whatever is told of pages is what it has: headline, charts and tables
add up. The frontier may count more, for it counts what was fetched: pages that were taken down since, and those that no
try brought whole. What is left to do comes from counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nephila.interfaces.catalogue import CatalogueReports
from nephila.interfaces.frontier import Trap
from nephila.report import Coverage, CrawlReport, Gathering, Queue, WorkerFigures

from .cataloguing import read_catalogue
from .clock import SystemClock
from .inspect import CrawlView, begun
from .operating import CrawlOperator
from .standing import CrawlStatus

LEADING = 20
TRAPS = 50
"""Of domains and of traps, those that are listed."""


def report_on(out: Path) -> CrawlReport:
    """What the crawl in a directory came to; raises `CrawlDirectoryError` when there is none."""
    directory, settings = begun(out)
    status = CrawlView(out).status()
    traps = CrawlOperator(out).traps(TRAPS)
    with read_catalogue(directory, settings) as catalogue:
        return put_together(status, traps, catalogue)


def put_together(
    status: CrawlStatus,
    traps: tuple[Sequence[Trap], int],
    catalogue: CatalogueReports,
    workers: Sequence[WorkerFigures] = (),
) -> CrawlReport:
    """The report from where a crawl stands, its traps and how many there are in all, and what was stored. Blocks."""
    gathered = Gathering()
    gathered.captures(catalogue.capture_figures())
    gathered.failures(catalogue.error_figures())
    by_pages = dict(sorted(catalogue.domains_by_pages().items()))
    leading = [one for one in catalogue.leading_domains(LEADING) if one.requests]
    reached = sum(domains for digits, domains in by_pages.items() if digits)
    listed, in_all = traps
    return CrawlReport(
        directory=status.directory,
        running=status.running,
        made_at=SystemClock().wall_ms(),
        cycle=status.cycle,
        pages=gathered.pages,
        answers=gathered.answers,
        robots=gathered.robots,
        hosts=status.hosts,
        bytes=gathered.bytes,
        timeline=gathered.timeline(),
        ended_at=gathered.ended_at,
        statuses=dict(sorted(gathered.statuses.items())),
        types=dict(gathered.types.most_common()),
        depths=dict(sorted(gathered.depths.items())),
        sizes=gathered.sizes(),
        latencies=gathered.latencies(),
        repetition=gathered.repetition(),
        truncated=gathered.truncated,
        errors=dict(gathered.errors.most_common()),
        error_hosts=gathered.error_hosts(),
        coverage=Coverage(reached, by_pages, leading),
        queue=Queue(status.queued, status.waiting_for_a_time, status.parked, status.urls.get("dead", 0)),
        traps=listed,
        traps_in_all=in_all,
        workers=workers,
    )
