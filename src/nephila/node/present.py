"""The figures of this moment for whoever looks: of a crawl that runs, here or elsewhere, or of one that stands still.

Where a crawl has written its figures down they are taken from there. A crawl that never did (one of the library's, or
of an earlier version) is told from its catalogue, by an index and up to a limit: nothing is ever counted to the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from nephila.interfaces.catalogue import CatalogueSights

from .desk import Desk
from .logbook import Alert, Figures, Growth, Present, at_rest

MOST_COUNTED = 200_000
HOUR_MS, MINUTE_MS = 3_600_000, 60_000
STALE_MS = 30_000
"""Figures of a crawl in another process that are older than this are no longer those of this moment."""


@dataclass(frozen=True, slots=True)
class Now:
    """What is shown at a glance."""

    at: int
    running: bool
    stopping: bool
    started_at: int
    pages_today: int
    pages_month: int
    pages_per_s: float
    errors_today: int
    errors_hour: dict[str, int]
    run: Growth
    minute: Growth
    """What came in the last minute, and in the last five."""
    minutes: Growth
    workers: int
    in_flight: int
    alerts: list[Alert]


async def present(desk: Desk) -> Now:
    """The figures of this moment."""
    figures, at = desk.figures(), desk.clock.wall_ms()
    told, running = told_last(desk, figures), desk.is_running()
    today, month, errors_today, errors_hour = _counted(figures, at)
    if not figures.days:
        today, month, errors_today, errors_hour = await desk.ask_catalogue(lambda one: _looked_up(one, at))
    return Now(
        at=at,
        running=running,
        stopping=told.stopping,
        started_at=told.started_at,
        pages_today=today,
        pages_month=month,
        pages_per_s=told.pages_per_s,
        errors_today=errors_today,
        errors_hour=errors_hour,
        run=told.run,
        minute=figures.since(at - MINUTE_MS),
        minutes=figures.since(at - 5 * MINUTE_MS),
        workers=told.workers if running else 0,
        in_flight=told.in_flight,
        alerts=told.alerts,
    )


def told_last(desk: Desk, figures: Figures) -> Present:
    """What the crawl told last of this moment; of one that was killed, and could not say that it ended, at rest."""
    told = figures.present
    fresh = desk.is_running() and (desk.crawls or desk.clock.wall_ms() - told.at < STALE_MS)
    return told if fresh else at_rest(told)


def _counted(figures: Figures, at: int) -> tuple[int, int, int, dict[str, int]]:
    today = figures.day(at)
    hour = figures.since(at - HOUR_MS)
    return today.pages, figures.month(at).pages, sum(today.errors.values()), hour.errors


def _looked_up(catalogue: CatalogueSights, at: int) -> tuple[int, int, int, dict[str, int]]:
    midnight = datetime.fromtimestamp(at / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    day_ms, month_ms = (int(one.timestamp() * 1000) for one in (midnight, midnight.replace(day=1)))
    errors_today = sum(catalogue.errors_since(day_ms, MOST_COUNTED).values())
    return (
        catalogue.pages_since(day_ms, MOST_COUNTED),
        catalogue.pages_since(month_ms, MOST_COUNTED),
        errors_today,
        catalogue.errors_since(at - HOUR_MS, MOST_COUNTED),
    )
