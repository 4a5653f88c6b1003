"""The figures of all workers as those of one crawl. Pure but for what it remembers.

Counts add up; hosts and domains are told as marks that are the same in every process, so that a host which two workers
have asked is one host. What a worker has told stays when it dies, and the next one under its number counts from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from nephila.model.settings import LimitSettings
from nephila.model.summary import CrawlSnapshot
from nephila.observe.distinct import Distinct
from nephila.observe.limit import Used, nearest_limit

from .messages import Beat, Figures

Key = TypeVar("Key", str, int)


class Roll:
    """What every worker has told."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self._present: dict[int, Figures] = {}
        self._past: list[Figures] = []
        self._peaks: dict[int, int] = {}
        self._hosts, self._domains = Distinct(), Distinct()

    def hear(self, worker: int, beat: Beat) -> None:
        """A worker tells how far it is."""
        self._present[worker] = beat.figures
        self._peaks[worker] = max(self._peaks.get(worker, 0), beat.figures.peak_rss_bytes)
        self._meet(beat.hosts, beat.domains)

    def _meet(self, hosts: Iterable[int], domains: Iterable[int]) -> None:
        for host in hosts:
            self._hosts.add(host)
        for domain in domains:
            self._domains.add(domain)

    def strike(self, worker: int) -> None:
        """A worker has ended: nothing of it is in flight any more, and it is not going to count further."""
        figures = self._present.pop(worker, None)
        if figures is not None:
            self._past.append(figures)

    @property
    def peak_rss_bytes(self) -> int:
        """Memory of the workers at most, as if all had needed it at the same time."""
        return sum(self._peaks.values())

    @property
    def bytes(self) -> int:
        """What all workers have received."""
        return sum(one.bytes for one in (*self._present.values(), *self._past))

    def snapshot(
        self,
        own: CrawlSnapshot,
        met: tuple[Iterable[int], Iterable[int]],
        *,
        queued: int,
        stopping: bool,
        least_pages: int = 0,
    ) -> CrawlSnapshot:
        """The figures of the crawl: `own` and `met` are what the supervisor has counted and met itself.

        `least_pages`: what the frontier knows to have been stored in this run. It is more than was told where a worker
        died before it could tell.
        """
        self._meet(*met)
        present = list(self._present.values())
        told = [*present, *self._past]
        latencies = [one.latencies for one in told]
        merged = replace(
            own,
            pages=max(least_pages, own.pages + sum(one.pages for one in told)),
            responses=own.responses + sum(one.responses for one in told),
            bytes=own.bytes + sum(one.bytes for one in told),
            duplicates=own.duplicates + sum(one.duplicates for one in told),
            near_duplicates=own.near_duplicates + sum(one.near_duplicates for one in told),
            lists=own.lists + sum(one.lists for one in told),
            listed=own.listed + sum(one.listed for one in told),
            plugins=_added(own.plugins, *(one.plugins for one in told)),
            rendered=own.rendered + sum(one.rendered for one in told),
            render_gained=own.render_gained + sum(one.render_gained for one in told),
            visit_parts=own.visit_parts + sum(one.visit_parts for one in told),
            render_resources=own.render_resources + sum(one.render_resources for one in told),
            render_missed=_added(own.render_missed, *(one.render_missed for one in told)),
            render_queue=sum(one.render_queue for one in present),
            browsers=sum(one.browsers for one in present),
            browser_bytes=sum(one.browser_bytes for one in present),
            errors=_added(own.errors, *(one.errors for one in told)),
            refused=_added(own.refused, *(one.refused for one in told)),
            statuses=_added(own.statuses, *(one.statuses for one in told)),
            latencies=tuple(map(sum, zip(*(one for one in (own.latencies, *latencies) if one), strict=True))),
            latency_ms=own.latency_ms + sum(one.latency_ms for one in told),
            lookups=(sum(one.lookups[0] for one in told), sum(one.lookups[1] for one in told)),
            hosts=len(self._hosts),
            domains=len(self._domains),
            in_flight=sum(one.in_flight for one in present),
            pages_per_s=own.pages_per_s + sum(one.pages_per_s for one in present),
            queued=queued,
            stopping=stopping,
        )
        limit = nearest_limit(self._limits, Used(merged.pages, merged.domains, merged.bytes, merged.elapsed_s))
        if limit is None:
            return merged
        return replace(merged, limit=limit.flag, limit_share=limit.share, limit_left_s=limit.left_s)


def _added(*counts: Mapping[Key, int]) -> dict[Key, int]:
    total: Counter[Key] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)
