"""Figures as flat counts, by names that a script on a server can add up without knowing what they mean.

What a worker has counted since its start is one such record, and so is what came in a step of a chart. A name is that
of a field of `Growth`, or a letter and what is counted by: ``e.timeout`` are errors, ``s.2xx`` answers, ``l.3`` answers
by the time they took, ``r.scope`` URLs that were refused, ``a.2`` pages by the time they took from discovery to
storage, ``m.no_browser`` pages that missed a browser. Levels, which are set and not added up, begin with ``=``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.summary import LATENCY_BOUNDS_S, CrawlSnapshot
from nephila.node.logbook import Growth, Point, Present, Rendering, total_of
from nephila.node.watching import STORED_BOUNDS_S

Flat = dict[str, int]

_PLAIN = (
    "pages", "responses", "bytes", "duplicates", "near_duplicates", "latency_ms", "lookups", "lookups_found",
)  # fmt: skip
_BUCKETS = len(LATENCY_BOUNDS_S) + 1
_STORED = len(STORED_BOUNDS_S) + 1


def counted(snapshot: CrawlSnapshot, present: Present) -> Flat:
    """What a run has counted, of all that only grows."""
    growth = total_of(snapshot)
    flat = {name: getattr(growth, name) for name in _PLAIN}
    flat |= _named("e", growth.errors) | _named("s", growth.statuses) | _numbered("l", growth.latencies)
    flat |= _named("r", snapshot.refused) | _numbered("a", present.stored_after)
    flat |= _named("m", snapshot.render_missed)
    flat |= {
        "rendered": snapshot.rendered,
        "gained": snapshot.render_gained,
        "parts": snapshot.visit_parts,
        "stored_ms": int(present.stored_after_s * 1000),
        "violations": present.violations,
        "cpu_ms": int(present.process.cpu_s * 1000),
    }
    return {name: count for name, count in flat.items() if count}


def levels(frontier: FrontierSnapshot) -> Flat:
    """How things stand in the frontier."""
    return {
        **_named("=q", frontier.queued),
        "=waiting": sum(frontier.delayed.values()),
        "=parked": sum(frontier.parked.values()),
        "=ready": frontier.hosts_ready,
        "=resting": frontier.hosts_waiting,
        "=leased": frontier.hosts_leased,
    }


def growth_of(flat: Mapping[str, int]) -> Growth:
    """The figures that are charted."""
    return Growth(
        **{name: flat.get(name, 0) for name in _PLAIN},
        errors=_under("e", flat),
        statuses=_under("s", flat),
        latencies=_list("l", flat, _BUCKETS),
    )


def point_of(at: int, flat: Mapping[str, int], span_ms: int) -> Point:
    """A step of a chart that is, or was up to now, so long. Requests on the way are the mean over it."""
    return Point(
        at=at,
        growth=growth_of(flat),
        queued=_under("=q", flat),
        waiting=flat.get("=waiting", 0),
        parked=flat.get("=parked", 0),
        in_flight=round(flat.get("in_flight_ms", 0) / max(1, span_ms)),
        ready=flat.get("=ready", 0),
        resting=flat.get("=resting", 0),
        leased=flat.get("=leased", 0),
    )


def put_counts(present: Present, flat: Mapping[str, int]) -> None:
    """Let the counts of a run stand in a record of this moment."""
    present.run = growth_of(flat)
    present.refused = _under("r", flat)
    present.stored_after = _list("a", flat, _STORED)
    present.stored_after_s = flat.get("stored_ms", 0) / 1000
    present.violations = flat.get("violations", 0)
    present.process = msgspec.structs.replace(present.process, cpu_s=flat.get("cpu_ms", 0) / 1000)
    rendering = present.rendering
    present.rendering = Rendering(
        flat.get("rendered", 0),
        flat.get("gained", 0),
        flat.get("parts", 0),
        _under("m", flat),
        rendering.browsers,
        rendering.memory_bytes,
    )


def less(flat: Mapping[str, int], before: Mapping[str, int]) -> Flat:
    """What has come since."""
    return {name: max(0, count - before.get(name, 0)) for name, count in flat.items()}


def _named(letter: str, counts: Mapping[str, int]) -> Flat:
    return {f"{letter}.{name}": count for name, count in counts.items()}


def _numbered(letter: str, counts: Iterable[int]) -> Flat:
    return {f"{letter}.{place}": count for place, count in enumerate(counts)}


def _under(letter: str, flat: Mapping[str, int]) -> dict[str, int]:
    prefix = f"{letter}."
    return {name[len(prefix) :]: count for name, count in flat.items() if name.startswith(prefix)}


def _list(letter: str, flat: Mapping[str, int], length: int) -> list[int]:
    return [flat.get(f"{letter}.{place}", 0) for place in range(length)]
