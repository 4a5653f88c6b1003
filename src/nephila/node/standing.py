"""Where a crawl stands, for `status`: put together from counters that are kept with every change.

Nothing is scanned, whatever the size of the crawl: totals and ages are one record each in the frontier, captures and
bytes one row in the catalogue, policies and blocks as many as people have made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from nephila.frontier.embedded.book import AGE_STEP_S
from nephila.model.listing import ListTotals
from nephila.model.summary import SpoolStanding
from nephila.model.task import Level

from .operated import OperatedView

_HOUR_S, _DAY_S = 3600, 86_400
AGES: Mapping[str, float] = {
    "under_4h": 4 * _HOUR_S,
    "under_1d": _DAY_S,
    "under_7d": 7 * _DAY_S,
    "under_30d": 30 * _DAY_S,
    "longer": float("inf"),
}
"""How long ago queued URLs were found, by upper bound in seconds."""

NO_LISTS = ListTotals()

NAMED = 20
"""Paused domains that are named; the rest is only counted."""


@dataclass(frozen=True, slots=True)
class CrawlStatus:
    """Where a crawl stands."""

    directory: str
    running: bool
    cycle: int
    pages: int
    captures: int
    bytes: int
    """On the wire, over all runs."""
    hosts: int
    domains: int
    queued: Mapping[str, int] = field(default_factory=dict)
    """URLs in the queues by class; `due_again` says how many of them were fetched before."""
    due_again: Mapping[str, int] = field(default_factory=dict)
    ages: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The same by class and by how long ago they were found, exact to two hours."""
    waiting_for_a_time: Mapping[str, int] = field(default_factory=dict)
    hosts_put_off: Mapping[str, int] = field(default_factory=dict)
    """Queued URLs of hosts that wait as a whole, by reason."""
    parked: Mapping[str, int] = field(default_factory=dict)
    """URLs that are known and kept, but not queued, by reason."""
    planned: int = 0
    """Fetched URLs whose next visit is planned."""
    known: int = 0
    """URLs that are known, refused ones apart."""
    urls: Mapping[str, int] = field(default_factory=dict)
    gone: int = 0
    traps: int = 0
    starving: int = 0
    """Fetches that went to hosts which had waited too long; `draws` is how many were chosen in all."""
    draws: int = 0
    target_domains: int = 0
    """Coverage mode: so many registrable domains are wanted first; 0 when it is off."""
    paused: int = 0
    """Domains that a person paused."""
    paused_domains: Sequence[str] = ()
    """Some of them."""
    policies: int = 0
    blocks: int = 0
    hosts_by_place: Mapping[str, int] = field(default_factory=dict)
    lists: Mapping[str, int] = field(default_factory=dict)
    """What sitemaps and feeds have brought over all runs (X3): `ListTotals`, by name."""
    plugins: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What plugins did over all runs, by name: calls, failures, overruns (of their deadline), lost (records or events
    that did not reach them), off (processes in which it is switched off)."""
    rendering: Mapping[str, int] = field(default_factory=dict)
    """Of the last run: pages shown to browsers, those that gained by it, pages that needed one and had none, pages that
    wait, browsers; empty where there was nothing of it (J2)."""
    spool: SpoolStanding | None = None
    """What waits for its upload; None where the archive lies in the crawl directory."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What the catalogue has counted."""

    captures: int
    bytes: int


def standing(
    view: OperatedView,
    stored: Stored,
    directory: str,
    target_domains: int,
    *,
    running: bool,
    lists: ListTotals = NO_LISTS,
    plugins: Mapping[str, Mapping[str, int]],
) -> CrawlStatus:
    """The status from what the frontier and the catalogue have counted."""
    snapshot, policies = view.snapshot(), view.policies()
    paused = sorted(domain for domain, policy in policies.items() if policy.paused)
    now_s = view.timeline.wall_of(view.timeline.now()) // 1000
    return CrawlStatus(
        directory=directory,
        running=running,
        cycle=snapshot.cycle,
        pages=snapshot.pages,
        captures=stored.captures,
        bytes=stored.bytes,
        hosts=snapshot.hosts,
        domains=snapshot.domains,
        queued=snapshot.queued,
        due_again={name: snapshot.due_again.get(name, 0) for name in snapshot.queued},
        ages=by_age(view.ages(), now_s),
        waiting_for_a_time=snapshot.delayed,
        hosts_put_off=snapshot.waiting_for,
        parked=snapshot.parked,
        planned=snapshot.planned,
        known=snapshot.urls,
        urls=snapshot.states,
        gone=snapshot.gone,
        traps=snapshot.traps,
        starving=snapshot.reserved,
        draws=snapshot.draws,
        target_domains=target_domains,
        paused=len(paused),
        paused_domains=tuple(paused[:NAMED]),
        policies=len(policies),
        blocks=len(view.blocks()),
        hosts_by_place={
            "ready": snapshot.hosts_ready,
            "waiting": snapshot.hosts_waiting,
            "leased": snapshot.hosts_leased,
        },
        lists=asdict(lists),
        plugins=plugins,
    )


def by_age(counts: Mapping[int, Sequence[int]], now_s: int) -> dict[str, dict[str, int]]:
    """Counts by step of admission and class as counts by class and age; a step counts as its middle."""
    ages = {level.name.lower(): dict.fromkeys(AGES, 0) for level in Level}
    for step, by_level in counts.items():
        age_s = now_s - (step + 0.5) * AGE_STEP_S
        name = next(name for name, limit_s in AGES.items() if age_s < limit_s)
        for level, count in zip(Level, by_level, strict=True):
            ages[level.name.lower()][name] += count
    return ages
