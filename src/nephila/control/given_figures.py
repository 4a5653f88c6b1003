"""What a client gets of figures: the status, steps of charts, alerts. See `given`."""

from __future__ import annotations

from .given import Count, Given


class StatusAnswer(Given):
    """Where the crawl stands. Nothing of this is found by scanning."""

    directory: str
    running: bool
    stopping: bool
    cycle: int
    started_at: int
    uptime_s: float
    pages_crawled_today: Count
    pages_this_month: Count
    crawl_rate: float
    """Pages a second over the last ten seconds."""
    avg_pages_per_sec: float
    """Over this run."""
    bytes_per_s: float
    """Over the last minute."""
    frontier_size: Count
    """URLs that are queued or wait for a time."""
    frontier: dict[str, int]
    """Queued URLs by class."""
    due_again: dict[str, int]
    """Of these, how many were fetched before."""
    waiting: dict[str, int]
    """URLs that wait for a time of their own, by reason."""
    put_off: dict[str, int]
    """Queued URLs of hosts that wait as a whole, by reason."""
    parked: dict[str, int]
    """URLs that are known and kept, but not queued, by reason."""
    urls: dict[str, int]
    """URLs by where they stand."""
    known: Count
    pages: Count
    """Stored, over all runs."""
    captures: Count
    bytes: Count
    """On the wire, over all runs."""
    hosts: dict[str, int]
    """All, and how many are ready, waiting, leased."""
    domains: Count
    """Registrable domains from which a page was fetched."""
    domains_active: Count
    """Hosts that are being asked, or could be now."""
    active_workers: Count
    """Processes of the crawl, and workers outside that were heard of in the last minutes."""
    in_flight: Count
    errors_today: Count
    errors_last_hour: dict[str, int]
    """By kind."""
    latency_s: dict[str, float | None]
    """p50, p95 and p99 of the last five minutes."""
    duplicates: Count
    """Of this run, near-duplicates included."""
    traps: Count
    dead_letters: Count
    paused: Count
    """Domains that a person paused."""
    policies: Count
    blocks: Count
    alerts: Count


class Step(Given):
    """One step of a chart: what came in it, and how things stood at its end."""

    at: int
    span_s: float
    """How much of it there is: less than a whole step for the one that goes on. Rates are over this."""
    pages: Count
    responses: Count
    bytes: Count
    duplicates: Count
    errors: dict[str, int]
    statuses: dict[str, int]
    latency_s: dict[str, float | None]
    frontier: dict[str, int]
    waiting: Count
    parked: Count
    in_flight: Count
    hosts: dict[str, int]


class SeriesAnswer(Given):
    """Figures over time."""

    step_s: int
    steps: list[Step]


class WorkerGiven(Given):
    """Somebody who works on the crawl: a worker of a fleet, or the processes of a crawl directory together."""

    id: str
    name: str
    group: str
    """That has a region of its own; empty for most."""
    state: str
    """working, idle, leaving or silent."""
    version: str
    started_at: int
    silent_s: float
    pages: Count
    """Of its run, as the errors."""
    errors: Count
    pages_per_s: float
    in_flight: Count
    cpu_s: float
    memory_bytes: Count
    open_files: Count
    disk_free_bytes: Count
    spool_segments: Count
    """What waits for its upload."""
    spool_bytes: Count
    waits_for: str
    """What it cannot go on without, in words."""


class WorkersAnswer(Given):
    """Who works on the crawl."""

    workers: list[WorkerGiven]
    outside: Count
    """Workers of others, that lease over HTTP here and were heard of in the last minutes."""


class AlertGiven(Given):
    """Something that is wrong now."""

    name: str
    since_at: int
    value: float
    threshold: float
    summary: str


class AlertsAnswer(Given):
    """All that is wrong now."""

    alerts: list[AlertGiven]
    rules: list[str]
    """The names of all alerts that are looked for."""
