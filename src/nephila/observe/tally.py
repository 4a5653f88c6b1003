"""The figures of a running crawl, counted from its events: what the live view and the summary show.

A listener like any other, so that the pipeline keeps no counters of its own, and the figures and the event files can
never disagree. No I/O; the clock is passed in. What is counted where:

- An answer is `fetch_ok`, or `robots_fetched` with a status. A page is one that `Event.is_page` says.
- What a page in a browser asked for is `visit_part`: an answer, and no page.
- An error is an `error` event, by its `reason`; what became of it (`retry`, `dead_letter`) counts nothing more.
- A refusal is `excluded_by_rule`, `trap`, `robots_disallow` or `cooldown_skip`. A page's refused links may come as one
  event whose `counts` are the numbers by reason; else the event's `reason`, or its kind, is counted once.

Hosts and domains are kept as 64-bit hashes: exact but for a collision in 10^7 crawls of a million hosts, and some
seventy bytes for each (`distinct`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from functools import lru_cache

from xxhash import xxh3_64_intdigest

from nephila.interfaces.clock import Clock
from nephila.model.events import NEAR, Event, EventKind
from nephila.model.exchange import FailureKind
from nephila.model.settings import LimitSettings
from nephila.model.summary import LATENCY_BOUNDS_S, CrawlSnapshot
from nephila.urls import registrable_domain

from .distinct import Distinct
from .limit import Used, nearest_limit
from .rate import RollingRate

_WINDOW_MS = 10_000
"""CrawlSnapshot.pages_per_s is over the last ten seconds."""

_NEVER_ASKED = frozenset({FailureKind.DNS.value, FailureKind.NO_SUCH_NAME.value, FailureKind.ADDRESS.value})
"""Failures before the host itself was asked anything."""

_REFUSALS = {
    EventKind.EXCLUDED_BY_RULE: "excluded",
    EventKind.TRAP: "trap",
    EventKind.ROBOTS_DISALLOW: "robots",
    EventKind.COOLDOWN_SKIP: "cooling",
}
"""Events that refuse, and the reason that is counted where they name none."""

_NO_LIMITS = LimitSettings()

HOSTS_AT_HAND = 16_384
"""Hosts that need not be hashed to be known again."""

_LATENCY_BOUNDS_MS = [int(bound * 1000) for bound in LATENCY_BOUNDS_S]


@lru_cache(maxsize=4096)
def _mark(name: str) -> int:
    return xxh3_64_intdigest(name.encode())


def _note(lately: set[str], host: str) -> None:
    if len(lately) >= HOSTS_AT_HAND:
        lately.clear()
    lately.add(host)


class Tally:
    """An `EventSink` that counts. `snapshot` may be asked at any time."""

    def __init__(self, clock: Clock, limits: LimitSettings = _NO_LIMITS, *, distinct: bool = False) -> None:
        """`distinct`: remember what is met for the first time, for `take_met`."""
        self._clock = clock
        self._limits = limits
        self._started_at = clock.steady_ms()
        self._rate = RollingRate(_WINDOW_MS, self._started_at)
        self._pages = 0
        self._responses = 0
        self.bytes = 0
        """Received so far."""
        self._duplicates = 0
        self._near_duplicates = 0
        self._lists = 0
        self._listed = 0
        self._errors: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._statuses: Counter[int] = Counter()
        self._latencies = [0] * (len(_LATENCY_BOUNDS_MS) + 1)
        self._latency_ms = 0
        self._plugins: Counter[str] = Counter()
        self._rendered = 0
        self._gained = 0
        self._parts = 0
        self._resources = 0
        self._render_missed: Counter[str] = Counter()
        self._hosts = Distinct()
        self._page_hosts = Distinct()
        self._domains = Distinct()
        self._new_hosts: list[int] = []
        self._new_domains: list[int] = []
        self._distinct = distinct
        self._met_lately: set[str] = set()
        self._paged_lately: set[str] = set()
        """Hosts that are among those that were met, and those that gave a page, for certain."""
        self._counting: dict[EventKind, Callable[[Event], None]] = {
            EventKind.FETCH_OK: self._count_fetch,
            EventKind.ROBOTS_FETCHED: self._count_answer,
            EventKind.ERROR: self._count_error,
            EventKind.DUPLICATE: self._count_duplicate,
            EventKind.LISTED: self._count_list,
            EventKind.PLUGIN_FAILED: self._count_plugin,
            EventKind.RENDERED: self._count_rendered,
            EventKind.RENDER_MISSED: self._count_missed,
            EventKind.VISIT_PART: self._count_part,
            EventKind.RENDER_RESOURCE: self._count_resource,
            **dict.fromkeys(_REFUSALS, self._count_refusal),
        }

    def emit(self, event: Event) -> None:
        """Count one event."""
        count = self._counting.get(event.kind)
        if count is not None:
            count(event)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is to be closed; the figures stay."""

    def take_met(self) -> tuple[list[int], list[int]]:
        """Marks of the hosts and of the domains that were met since the last call: the same in every process."""
        met = self._new_hosts, self._new_domains
        self._new_hosts, self._new_domains = [], []
        return met

    def snapshot(
        self,
        *,
        in_flight: int = 0,
        queued: int = 0,
        slow_hosts: int = 0,
        stopping: bool = False,
        lookups: tuple[int, int] = (0, 0),
    ) -> CrawlSnapshot:
        """The figures as of now, together with those that only the pipeline and the frontier know."""
        now = self._clock.steady_ms()
        elapsed_s = (now - self._started_at) / 1000
        limit = nearest_limit(self._limits, Used(self._pages, len(self._domains), self.bytes, elapsed_s))
        return CrawlSnapshot(
            elapsed_s=elapsed_s,
            pages=self._pages,
            responses=self._responses,
            bytes=self.bytes,
            in_flight=in_flight,
            queued=queued,
            hosts=len(self._hosts),
            domains=len(self._domains),
            duplicates=self._duplicates,
            errors=dict(self._errors),
            refused=dict(self._refused),
            statuses=dict(self._statuses),
            pages_per_s=self._rate.per_second(now),
            limit=limit.flag if limit else "",
            limit_share=limit.share if limit else 0.0,
            limit_left_s=limit.left_s if limit else None,
            stopping=stopping,
            slow_hosts=slow_hosts,
            near_duplicates=self._near_duplicates,
            latencies=tuple(self._latencies),
            latency_ms=self._latency_ms,
            lookups=lookups,
            lists=self._lists,
            listed=self._listed,
            plugins=dict(self._plugins),
            rendered=self._rendered,
            render_gained=self._gained,
            visit_parts=self._parts,
            render_resources=self._resources,
            render_missed=dict(self._render_missed),
        )

    def _count_answer(self, event: Event) -> None:
        if event.status is None:
            return
        self._responses += 1
        self.bytes += event.bytes or 0
        self._statuses[event.status] += 1
        if event.elapsed_ms is not None:
            self._latencies[bisect_left(_LATENCY_BOUNDS_MS, event.elapsed_ms)] += 1
            self._latency_ms += event.elapsed_ms
        if event.host not in self._met_lately:
            self._meet(event.host)

    def _meet(self, host: str) -> None:
        mark = _mark(host)
        if self._hosts.add(mark) and self._distinct:
            self._new_hosts.append(mark)
        _note(self._met_lately, host)

    def _count_fetch(self, event: Event) -> None:
        self._count_answer(event)
        if not event.is_page():
            return
        self._pages += 1
        self._rate.add(self._clock.steady_ms())
        if event.host not in self._paged_lately:
            self._meet_page_of(event.host)

    def _meet_page_of(self, host: str) -> None:
        if self._page_hosts.add(_mark(host)):
            domain = _mark(registrable_domain(host))
            if self._domains.add(domain) and self._distinct:
                self._new_domains.append(domain)
        _note(self._paged_lately, host)

    def _count_error(self, event: Event) -> None:
        self._errors[event.reason or "unknown"] += 1
        if event.host and event.reason not in _NEVER_ASKED:
            self._meet(event.host)

    def _count_duplicate(self, event: Event) -> None:
        if event.reason == NEAR:
            self._near_duplicates += 1
        else:
            self._duplicates += 1

    def _count_list(self, event: Event) -> None:
        self._lists += 1
        self._listed += dict(event.counts).get("added", 0)

    def _count_plugin(self, event: Event) -> None:
        self._plugins[event.reason] += 1

    def _count_rendered(self, event: Event) -> None:
        self._rendered += 1
        self._gained += dict(event.counts).get("gained", 0)

    def _count_missed(self, event: Event) -> None:
        self._render_missed[event.reason or "unknown"] += 1

    def _count_part(self, event: Event) -> None:
        self._parts += 1
        self._count_answer(event)

    def _count_resource(self, event: Event) -> None:
        self._resources += event.sent_ms is not None
        self._count_answer(event)

    def _count_refusal(self, event: Event) -> None:
        for reason, count in event.counts or ((event.reason or _REFUSALS[event.kind], 1),):
            self._refused[reason] += count
