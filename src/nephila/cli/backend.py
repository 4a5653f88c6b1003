"""The one door from the command line to the crawler.

Commands take what they need from the `Backend` in click's context. The real one imports `node` and `testing` at the
moment they are called, which keeps start-up fast; tests put their own in its place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:  # start-up: `nephila --help` needs none of them
    from nephila.config import Configured
    from nephila.interfaces.events import EventSink
    from nephila.interfaces.queries import CatalogueQueries
    from nephila.interfaces.retention import Choice
    from nephila.model.summary import CrawlSummary
    from nephila.node.audit import Audit
    from nephila.node.exporting import Exported, ExportOrder, Looked
    from nephila.node.importance.renewing import Importance
    from nephila.node.noting import Changing, Noting
    from nephila.node.retention import Retained
    from nephila.report import CrawlReport
    from nephila.seeds import SeedSource
    from nephila.testing.sim.campaign import Campaign
    from nephila.testing.sim.runner import Verdict

    from .needs import (
        DemoResult,
        Insight,
        Operator,
        Purger,
        RankCrawl,
        Retainer,
        RunCrawl,
        RunDemo,
        RunSimulation,
        Serve,
        View,
    )


def _run_simulation(state: Path | None, runs: int, start: int, tell: Callable[[Verdict, Campaign], None]) -> Campaign:
    from nephila.testing.sim.campaign import go_on  # noqa: PLC0415 - start-up

    return go_on(state, runs, start, tell)


def _run_crawl(
    out: Path,
    configured: Configured,
    seeds: Sequence[SeedSource],
    *,
    new_cycle: bool = False,
    listeners: Sequence[EventSink] = (),
    view: View | None = None,
    serve: Serve | None = None,
    named: Mapping[str, object] | None = None,
) -> CrawlSummary:
    from nephila.node.noting import GivenSeeds  # noqa: PLC0415 - start-up
    from nephila.node.run import run_crawl  # noqa: PLC0415 - start-up

    given = None if named is None else GivenSeeds(_noting_in(out), named)
    return run_crawl(
        out, configured, seeds, new_cycle=new_cycle, listeners=listeners, view=view, serve=serve, given=given
    )


def _noting_in(out: Path) -> Noting:
    def noting(
        what: str, target: str, before: object = None, wanted: object = None
    ) -> AbstractContextManager[Changing]:
        from nephila.control.by_command import noting_in  # noqa: PLC0415 - start-up: most commands change nothing

        return noting_in(out)(what, target, before, wanted)

    return noting


def _run_flush(out: Path, configured: Configured, listeners: Sequence[EventSink] = ()) -> CrawlSummary:
    from nephila.node.run import run_flush  # noqa: PLC0415 - start-up

    return run_flush(out, configured, listeners=listeners)


def _open_view(out: Path) -> Insight:
    from nephila.node.inspect import open_view  # noqa: PLC0415 - start-up

    return open_view(out, _noting_in(out))


def _open_fleet_view(configured: Configured) -> Insight:
    from nephila.node.fleet.looking import open_fleet_view  # noqa: PLC0415 - start-up

    return open_fleet_view(configured)


def _report_on(crawl: Path | Configured) -> CrawlReport:
    """A crawl directory, or the crawl of a fleet by its settings."""
    if isinstance(crawl, Path):
        from nephila.node.reporting import report_on  # noqa: PLC0415 - start-up

        return report_on(crawl)
    from nephila.node.fleet.reporting import report_on_fleet  # noqa: PLC0415 - start-up

    return report_on_fleet(crawl)


def _open_operator(out: Path) -> Operator:
    from nephila.node.operating import open_operator  # noqa: PLC0415 - start-up

    return open_operator(out, _noting_in(out))


def _open_fleet_operator(configured: Configured) -> Operator:
    from nephila.node.fleet.operating import open_fleet_operator  # noqa: PLC0415 - start-up

    return open_fleet_operator(configured)


def _open_purge(out: Path) -> Purger:
    from nephila.node.takedown.ordering import open_purge  # noqa: PLC0415 - start-up

    return open_purge(out, _noting_in(out))


def _open_fleet_purge(configured: Configured, tell: Callable[[str], None]) -> Purger:
    from nephila.node.fleet.purging import open_fleet_purge  # noqa: PLC0415 - start-up

    return open_fleet_purge(configured, tell)


def _foresee_retention(out: Path | None, configured: Configured) -> Choice:
    """Of a crawl directory, or of the fleet that the settings name."""
    if out is None:
        from nephila.node.fleet.retaining import foresee_fleet  # noqa: PLC0415 - start-up

        return foresee_fleet(configured)
    from nephila.node.retention.ordering import foresee  # noqa: PLC0415 - start-up

    return foresee(out, configured)


def _retain(
    out: Path | None,
    configured: Configured,
    elsewhere: str,
    *,
    listeners: Sequence[EventSink],
    tell: Callable[[int, int], None],
    say: Callable[[str], None],
) -> Retained:
    if out is None:
        from nephila.node.fleet.retaining import retain_fleet  # noqa: PLC0415 - start-up

        return retain_fleet(configured, elsewhere, tell, say)
    from nephila.node.retention.ordering import retain  # noqa: PLC0415 - start-up

    return retain(out, configured, elsewhere, listeners, tell)


def _mark_indexed(crawl: Path | Configured, lines: Iterable[str]) -> tuple[int, int]:
    if isinstance(crawl, Path):
        from nephila.node.retention.ordering import mark_indexed  # noqa: PLC0415 - start-up

        return mark_indexed(crawl, lines)
    from nephila.node.fleet.retaining import mark_indexed_of_fleet  # noqa: PLC0415 - start-up

    return mark_indexed_of_fleet(crawl, lines)


def _audit(crawl: Path | Configured, host: str, expect: Sequence[str]) -> Audit:
    """A crawl directory, or the crawl of a fleet by its settings."""
    if isinstance(crawl, Path):
        from nephila.node.audit import audit  # noqa: PLC0415 - start-up

        return audit(crawl, host=host, expect=expect)
    from nephila.node.fleet.looking import audit_of_fleet  # noqa: PLC0415 - start-up

    return audit_of_fleet(crawl, host, expect)


def _export(crawl: Path | Configured, order: ExportOrder, tell: Callable[[Looked], None]) -> Exported:
    """Of a crawl directory, or of the crawl of a fleet by its settings."""
    from nephila.node.exporting import export, source_of_directory  # noqa: PLC0415 - start-up

    if isinstance(crawl, Path):
        with source_of_directory(crawl) as source:
            return export(source, order, tell)
    from nephila.node.fleet.exporting import source_of_fleet  # noqa: PLC0415 - start-up

    with source_of_fleet(crawl) as source:
        return export(source, order, tell)


def _open_queries(crawl: Path | Configured) -> CatalogueQueries:
    from nephila.node.querying import open_queries  # noqa: PLC0415 - start-up

    return open_queries(crawl)


def _rank_crawl(
    crawl: Path | Configured,
    *,
    pages: int,
    domains: int,
    anew: bool,
    publishing: bool,
    every_s: float,
    waiting: Callable[[], None],
    reading: Callable[[int], None],
) -> Importance | None:
    if isinstance(crawl, Path):
        from nephila.node.importance.premises import importance_of  # noqa: PLC0415 - start-up

        return importance_of(crawl, pages=pages, domains=domains, anew=anew, waiting=waiting, reading=reading)
    from nephila.node.fleet.ranking import importance_of_fleet  # noqa: PLC0415 - start-up

    return importance_of_fleet(
        crawl,
        pages=pages,
        domains=domains,
        anew=anew,
        publishing=publishing,
        every_s=every_s,
        waiting=waiting,
        reading=reading,
    )


def _run_demo(out: Path, *, pages: int, listeners: Sequence[EventSink] = (), view: View | None = None) -> DemoResult:
    from .demonstration import demonstrate  # noqa: PLC0415 - start-up

    return demonstrate(out, _run_crawl, pages=pages, listeners=listeners, view=view)


@dataclass(frozen=True, slots=True)
class Backend:
    """What the commands stand on."""

    run_crawl: RunCrawl = _run_crawl
    open_view: Callable[[Path], Insight] = _open_view
    run_demo: RunDemo = _run_demo
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    open_operator: Callable[[Path], Operator] = _open_operator
    report_on: Callable[[Path | Configured], CrawlReport] = _report_on
    audit: Callable[[Path | Configured, str, Sequence[str]], Audit] = _audit
    run_simulation: RunSimulation = _run_simulation
    rank_crawl: RankCrawl = _rank_crawl
    open_purge: Callable[[Path], Purger] = _open_purge
    run_flush: Callable[[Path, Configured, Sequence[EventSink]], CrawlSummary] = _run_flush
    open_fleet_view: Callable[[Configured], Insight] = _open_fleet_view
    open_fleet_operator: Callable[[Configured], Operator] = _open_fleet_operator
    open_fleet_purge: Callable[[Configured, Callable[[str], None]], Purger] = _open_fleet_purge
    export: Callable[[Path | Configured, ExportOrder, Callable[[Looked], None]], Exported] = _export
    open_queries: Callable[[Path | Configured], CatalogueQueries] = _open_queries
    foresee_retention: Callable[[Path | None, Configured], Choice] = _foresee_retention
    retain: Retainer = _retain
    mark_indexed: Callable[[Path | Configured, Iterable[str]], tuple[int, int]] = _mark_indexed


def backend_of(ctx: click.Context) -> Backend:
    """The backend that was put into the context, or the real one."""
    return ctx.obj if isinstance(ctx.obj, Backend) else Backend()
