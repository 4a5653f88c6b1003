"""Figures for Prometheus, in its text format: names and units by its conventions, labels that are bounded (O2).

No label names a host, a domain or a URL: a crawl meets millions. Counts of the run begin at 0 with each start, as
counters may (those of a fleet when it was at rest for minutes, whoever leaves meanwhile); what the frontier holds is
over all runs and told as gauges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from nephila import VERSION
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.summary import LATENCY_BOUNDS_S
from nephila.node.alarms import RULES
from nephila.node.desk import WorkerSeen
from nephila.node.logbook import Present
from nephila.node.watching import STORED_BOUNDS_S

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
WORKERS_SHOWN = 1000
"""Workers that have figures of their own here; all are in the sums."""
_OF_WORKERS: Sequence[tuple[str, str, str, Callable[[WorkerSeen], float]]] = (
    ("up", "gauge", "Whether a worker was heard of lately", lambda one: int(one.state != "silent")),
    ("pages_total", "counter", "Pages that a worker has stored in its run", lambda one: one.pages),
    ("errors_total", "counter", "Failed requests of a worker in its run", lambda one: one.errors),
    ("pages_per_second", "gauge", "Pages a second of a worker, over ten seconds", lambda one: one.pages_per_s),
    ("requests_in_flight", "gauge", "Exchanges of a worker at this moment", lambda one: one.in_flight),
    ("memory_bytes", "gauge", "Memory of a worker", lambda one: one.memory_bytes),
    ("spool_bytes", "gauge", "What waits for its upload on the disk of a worker", lambda one: one.spool_bytes),
    ("disk_free_bytes", "gauge", "Free on the disk of a worker", lambda one: one.disk_free_bytes),
)


def expose(
    present: Present,
    frontier: FrontierSnapshot,
    workers: Sequence[WorkerSeen],
    *,
    running: bool,
    now: int,
    outside: int,
) -> str:
    """All metrics."""
    lines = _lines(present, frontier, running=running, now=now, outside=outside)
    return "".join((*lines, *_workers(workers)))


def _workers(workers: Sequence[WorkerSeen]) -> Iterator[str]:
    """Each worker by itself, the first so many by name."""
    shown = {f'worker="{_escaped(one.name)}"': one for one in sorted(workers, key=_by_name)[:WORKERS_SHOWN]}
    for name, kind, help_text, pick in _OF_WORKERS:
        yield from _one(f"nephila_worker_{name}", kind, help_text, {who: pick(one) for who, one in shown.items()})


def _by_name(worker: WorkerSeen) -> tuple[str, str]:
    return worker.name, worker.id


def _lines(present: Present, frontier: FrontierSnapshot, *, running: bool, now: int, outside: int) -> Iterator[str]:
    run, process = present.run, present.process
    uptime_s = max(0, now - present.started_at) / 1000 if running and present.started_at else 0.0
    yield from _one("nephila_build_info", "gauge", "The version that answers", {f'version="{VERSION}"': 1})
    yield from _one("nephila_up", "gauge", "Whether somebody works on the crawl", {"": int(running)})
    yield from _one("nephila_uptime_seconds", "gauge", "Since the crawl was started", {"": uptime_s})
    yield from _one("nephila_pages_total", "counter", "Pages stored in this run", {"": run.pages})
    classes = {name: count for name, count in run.statuses.items() if not name.isdigit()}
    yield from _one("nephila_responses_total", "counter", "Answers by class of status", _labelled("class", classes))
    busy = {name: run.statuses.get(name, 0) for name in ("429", "503")}
    yield from _one("nephila_busy_responses_total", "counter", "Answers of 429 and 503", _labelled("status", busy))
    top = max(present.busy_hosts.values(), default=0)
    help_text = "Answers of 429 or 503 in five minutes from the host that gave most"
    yield from _one("nephila_busy_responses_from_one_host", "gauge", help_text, {"": top})
    yield from _one("nephila_received_bytes_total", "counter", "Bytes on the wire in this run", {"": run.bytes})
    yield from _one("nephila_errors_total", "counter", "Failed requests by kind", _labelled("kind", run.errors))
    refused = _labelled("reason", present.refused)
    yield from _one("nephila_refused_urls_total", "counter", "URLs that were not admitted, by reason", refused)
    duplicates = _labelled("kind", {"exact": run.duplicates, "near": run.near_duplicates})
    yield from _one("nephila_duplicates_total", "counter", "Pages that said what another one said", duplicates)
    yield from _histogram(
        "nephila_fetch_duration_seconds",
        "From sending to the end of the answer",
        LATENCY_BOUNDS_S,
        run.latencies,
        run.latency_ms / 1000,
    )
    yield from _histogram(
        "nephila_discovery_to_storage_seconds",
        "From discovery to storage, of pages that are sampled",
        STORED_BOUNDS_S,
        present.stored_after,
        present.stored_after_s,
    )
    names = _labelled("result", {"hit": run.lookups_found, "miss": run.lookups - run.lookups_found})
    yield from _one("nephila_dns_lookups_total", "counter", "Names looked up, by where they were found", names)
    yield from _frontier(frontier)
    help_text = "How long a host has had work without being asked, at most"
    yield from _one("nephila_longest_wait_seconds", "gauge", help_text, {"": present.longest_wait_s})
    yield from _one("nephila_requests_in_flight", "gauge", "Exchanges at this moment", {"": present.in_flight})
    workers = _labelled("kind", {"process": present.workers if running else 0, "outside": outside})
    yield from _one("nephila_workers", "gauge", "Processes of the crawl, and workers outside", workers)
    yield from _rendering(present)
    help_text = "Requests that came before their time, by the archive's own dates"
    yield from _one("nephila_politeness_violations_total", "counter", help_text, {"": present.violations})
    yield from _one("nephila_disk_free_bytes", "gauge", "Free on the disk of the crawl", {"": process.disk_free_bytes})
    yield from _one("nephila_disk_size_bytes", "gauge", "Size of the disk of the crawl", {"": process.disk_bytes})
    firing = {alert.name for alert in present.alerts}
    alerts = _labelled("alert", {name: int(name in firing) for name in RULES})
    yield from _one("nephila_alert", "gauge", "Alerts that the crawl itself judges: 1 while it lasts", alerts)
    yield from _one("process_cpu_seconds_total", "counter", "Processor time of all processes", {"": process.cpu_s})
    yield from _one("process_resident_memory_bytes", "gauge", "Memory of all processes", {"": process.memory_bytes})
    help_text = "Open files of the process that is nearest to its limit"
    yield from _one("process_open_fds", "gauge", help_text, {"": process.open_files})
    yield from _one("process_max_fds", "gauge", "Files that it may have open", {"": process.max_files})


def _rendering(present: Present) -> Iterator[str]:
    yield from _one("nephila_render_queue", "gauge", "Pages that wait to be rendered", {"": present.render_queue})
    rendering = present.rendering
    shown = _labelled("result", {"gained": rendering.gained, "nothing": rendering.rendered - rendering.gained})
    yield from _one("nephila_rendered_pages_total", "counter", "Pages shown to a browser, by what that brought", shown)
    missed = _labelled("reason", rendering.missed)
    yield from _one("nephila_render_missed_total", "counter", "Pages that needed a browser and had none", missed)
    parts = {"": rendering.parts}
    yield from _one("nephila_render_requests_total", "counter", "What pages in browsers asked their hosts for", parts)
    yield from _one("nephila_render_browsers", "gauge", "Browsers at this moment", {"": rendering.browsers})
    memory = {"": rendering.memory_bytes}
    yield from _one("nephila_render_memory_bytes", "gauge", "Memory of all browsers, as last measured", memory)


def _frontier(frontier: FrontierSnapshot) -> Iterator[str]:
    queued = _labelled("class", frontier.queued)
    yield from _one("nephila_frontier_queued_urls", "gauge", "Queued URLs by class", queued)
    due = _labelled("class", frontier.due_again)
    yield from _one("nephila_frontier_due_urls", "gauge", "Of these, URLs that were fetched before", due)
    waiting = _labelled("reason", frontier.delayed)
    yield from _one("nephila_frontier_waiting_urls", "gauge", "URLs that wait for a time, by reason", waiting)
    put_off = _labelled("reason", frontier.waiting_for)
    yield from _one("nephila_frontier_put_off_urls", "gauge", "Queued URLs of hosts that wait as a whole", put_off)
    parked = _labelled("reason", frontier.parked)
    yield from _one("nephila_frontier_parked_urls", "gauge", "URLs that are kept but not queued", parked)
    states = _labelled("state", frontier.states)
    yield from _one("nephila_frontier_urls", "gauge", "URLs that have ended, by how", states)
    spilled = "Queued and parked URLs that a fleet keeps in its database"
    yield from _one("nephila_frontier_spilled_urls", "gauge", spilled, {"": frontier.spilled})
    yield from _one("nephila_known_urls", "gauge", "URLs that are known", {"": frontier.urls})
    places = {"ready": frontier.hosts_ready, "waiting": frontier.hosts_waiting, "leased": frontier.hosts_leased}
    yield from _one("nephila_hosts", "gauge", "Hosts by where they stand", _labelled("place", places))
    yield from _one("nephila_known_hosts", "gauge", "Hosts that are known", {"": frontier.hosts})
    yield from _one("nephila_domains", "gauge", "Registrable domains with a stored page", {"": frontier.domains})
    yield from _one("nephila_stored_pages", "gauge", "Pages stored over all runs", {"": frontier.pages})
    yield from _one("nephila_traps", "gauge", "Shapes of URLs that are held back", {"": frontier.traps})
    yield from _one("nephila_gone_pages", "gauge", "Pages that are proven gone", {"": frontier.gone})
    starving = {"": frontier.reserved}
    yield from _one("nephila_starving_fetches", "gauge", "Fetches that went to hosts that starved", starving)


def _labelled(label: str, counts: Mapping[str, int]) -> dict[str, float]:
    return {f'{label}="{_escaped(name)}"': count for name, count in sorted(counts.items())}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _one(name: str, kind: str, help_text: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP {name} {help_text}.\n# TYPE {name} {kind}\n"
    for labels, value in values.items():
        yield f"{name}{{{labels}}} {_number(value)}\n" if labels else f"{name} {_number(value)}\n"


def _histogram(
    name: str, help_text: str, bounds: Sequence[float], counts: Sequence[int], total: float
) -> Iterator[str]:
    yield f"# HELP {name} {help_text}.\n# TYPE {name} histogram\n"
    below = 0
    for bound, count in zip(bounds, counts or [0] * len(bounds), strict=False):
        below += count
        yield f'{name}_bucket{{le="{_number(bound)}"}} {below}\n'
    yield f'{name}_bucket{{le="+Inf"}} {sum(counts)}\n{name}_sum {_number(total)}\n{name}_count {sum(counts)}\n'


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 6))
