"""When somebody is to be told that something is wrong (O2): a rule for each alert, a plain function of the figures.

A rule answers with the value that is too high or too low, or with None. Most look back over `alerts.window_s`, so that
a moment does not ring; a share is judged only where there are enough answers to speak of one. An alert lasts from the
first look that finds it to the first that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from nephila.model.settings import AlertSettings

from .logbook import FINE_S, Alert, Figures, Growth, Point

DAY_S = 86_400


class Rung(NamedTuple):
    """What a rule found."""

    value: float
    threshold: float
    summary: str


class Scene(NamedTuple):
    """What rules look at."""

    figures: Figures
    settings: AlertSettings
    window: Growth
    points: list[Point]
    """The steps of the window."""

    @property
    def span_s(self) -> float:
        """How long the window really is: a crawl that has just begun has no five minutes behind it."""
        return len(self.points) * float(FINE_S)

    @property
    def is_whole(self) -> bool:
        """Whether there are figures for all of the window."""
        return self.span_s >= self.settings.window_s


def _rate(scene: Scene) -> Rung | None:
    """Below target while hosts are ready that nobody asks: delays that are kept are no fault."""
    least = scene.settings.min_pages_per_s
    if not scene.is_whole or not all(point.ready for point in scene.points):
        return None
    value = scene.window.pages / scene.span_s
    return Rung(value, least, f"{value:.1f} pages a second with hosts ready to be asked") if value < least else None


def _errors(scene: Scene) -> Rung | None:
    errors = sum(scene.window.errors.values())
    asked = max(scene.window.responses, errors)
    return _share(scene, errors, asked, scene.settings.max_error_share, "of requests failed")


def _busy(scene: Scene) -> Rung | None:
    most = scene.settings.max_busy_per_host
    hosts = scene.figures.present.busy_hosts
    host, count = max(hosts.items(), key=lambda pair: pair[1], default=("", 0))
    return Rung(count, most, f"{host} answered 429 or 503 {count} times") if most and count > most else None


def _growth(scene: Scene) -> Rung | None:
    most = scene.settings.max_bytes_per_day
    if not most or not scene.is_whole:
        return None
    value = scene.window.bytes / scene.span_s * DAY_S
    return Rung(value, most, f"{value / 1e12:.1f} TB a day at the present rate") if value > most else None


def _frontier(scene: Scene) -> Rung | None:
    most = scene.settings.max_frontier
    if not most or not scene.is_whole:
        return None
    first, last = (sum(scene.points[at].queued.values()) for at in (0, -1))
    return Rung(last, most, f"{last:,} URLs are queued, and it grows") if last > most and last > first else None


def _names(scene: Scene) -> Rung | None:
    least, asked = scene.settings.min_dns_hit_share, scene.window.lookups
    if not least or asked < scene.settings.least_answers:
        return None
    value = scene.window.lookups_found / asked
    return Rung(value, least, f"{value:.0%} of names were in the cache") if value < least else None


def _duplicates(scene: Scene) -> Rung | None:
    duplicates = scene.window.duplicates + scene.window.near_duplicates
    return _share(scene, duplicates, scene.window.pages, scene.settings.max_duplicate_share, "of pages are duplicates")


def _latency(scene: Scene) -> Rung | None:
    most, answers = scene.settings.max_latency_s, sum(scene.window.latencies)
    if not most or answers < scene.settings.least_answers:
        return None
    value = scene.window.latency_ms / answers / 1000
    return Rung(value, most, f"an answer takes {value:.1f} s in the mean") if value > most else None


def _starving(scene: Scene) -> Rung | None:
    most, value = scene.settings.max_wait_s, scene.figures.present.longest_wait_s
    return Rung(value, most, f"a host has had work for {value / 3600:.0f} h") if most and value > most else None


def _descriptors(scene: Scene) -> Rung | None:
    most, process = scene.settings.max_descriptors_share, scene.figures.present.process
    value = process.open_files / process.max_files if process.max_files else 0.0
    told = f"{process.open_files:,} of {process.max_files:,} files are open"
    return Rung(value, most, told) if most and value > most else None


def _disk(scene: Scene) -> Rung | None:
    least, process = scene.settings.min_free_share, scene.figures.present.process
    value = process.disk_free_bytes / process.disk_bytes if process.disk_bytes else 1.0
    told = f"{process.disk_free_bytes / 1e9:.1f} GB are free on the disk of the crawl"
    return Rung(value, least, told) if value < least else None


def _violations(scene: Scene) -> Rung | None:
    most, value = scene.settings.max_violations, scene.figures.present.violations
    return Rung(value, most, f"{value} requests came before their time") if most and value >= most else None


def _rendering(scene: Scene) -> Rung | None:
    most, value = scene.settings.max_render_queue, scene.figures.present.render_queue
    return Rung(value, most, f"{value:,} pages wait to be rendered") if most and value > most else None


def _share(scene: Scene, part: int, whole: int, most: float, told: str) -> Rung | None:
    if not most or whole < scene.settings.least_answers:
        return None
    value = part / whole
    return Rung(value, most, f"{value:.0%} {told}") if value > most else None


RULES: Mapping[str, Callable[[Scene], Rung | None]] = MappingProxyType(
    {
        "rate_below_target": _rate,
        "error_rate": _errors,
        "busy_host": _busy,
        "storage_growth": _growth,
        "frontier_growth": _frontier,
        "render_queue": _rendering,
        "dns_hit_rate": _names,
        "duplicate_rate": _duplicates,
        "latency": _latency,
        "starvation": _starving,
        "file_descriptors": _descriptors,
        "disk_space": _disk,
        "politeness_violations": _violations,
    }
)
"""The alerts by name. The names are read by others and do not change."""


def judge(figures: Figures, settings: AlertSettings, now: int) -> list[Alert]:
    """What is wrong now; what was wrong before keeps the time since when it is."""
    since = now - int(settings.window_s * 1000)
    points = [point for point in figures.fine if since <= point.at + FINE_S * 1000 <= now]
    scene = Scene(figures, settings, figures.since(since), points)
    known = {alert.name: alert.since for alert in figures.present.alerts}
    found = ((name, rule(scene)) for name, rule in RULES.items())
    return [Alert(name, known.get(name, now), *rung) for name, rung in found if rung is not None]
