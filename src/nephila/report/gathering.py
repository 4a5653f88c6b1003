"""Figures added up row by row, in memory that does not grow with the crawl.

What must stay true: the timeline has at most `STEPS` steps (when it gets longer, steps are joined in pairs); hosts with
errors are counted exactly as long as there are fewer than `HOSTS` of them, and beyond that the ones that brought few
are forgotten first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from nephila.interfaces.catalogue import CaptureFigures, ErrorFigures
from nephila.model.exchange import told_type

from .document import ErrorHost, Moment, Repetition, Spread, Timeline

STEPS = 240
"""Of a timeline: more than a chart can show."""
HOSTS = 20_000
"""Hosts with errors that are counted one by one."""
SHOWN = 20
"""Of hosts and domains, those that lead."""
TYPES = 200
"""Media types that are counted one by one: servers make them up."""
OTHER = "other"
_FINE = 8
"""Parts of each power of two that percentiles are told by: within an eighth of the true figure."""


class Steps:
    """Counts by time, in steps that grow with the crawl."""

    def __init__(self) -> None:
        self._step_ms = 1000
        self._steps: dict[int, list[int]] = {}
        """Figures of a `Moment`."""
        self._first = self._last = 0
        """Instants."""

    def add(self, at: int, pages: int, answers: int, errors: int, wire_bytes: int) -> None:
        """Count at an instant."""
        self._first, self._last = (min(self._first, at), max(self._last, at)) if self._steps else (at, at)
        while self._last // self._step_ms - self._first // self._step_ms >= STEPS:
            self._join()
        step = self._steps.setdefault(at // self._step_ms, [0, 0, 0, 0])
        step[0] += pages
        step[1] += answers
        step[2] += errors
        step[3] += wire_bytes

    def timeline(self) -> Timeline:
        """What was counted, without gaps."""
        if not self._steps:
            return Timeline()
        first, last = self._first // self._step_ms, self._last // self._step_ms
        moments = tuple(Moment(*self._steps.get(step, ())) for step in range(first, last + 1))
        return Timeline(first * self._step_ms, self._step_ms, moments)

    def _join(self) -> None:
        self._step_ms *= 2
        joined: dict[int, list[int]] = {}
        for step, figures in self._steps.items():
            other = joined.get(step // 2)
            joined[step // 2] = (
                figures if other is None else [one + two for one, two in zip(figures, other, strict=True)]
            )
        self._steps = joined


class Measures:
    """Whole numbers, kept as counts by size."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._most = self._total = 0

    def add(self, figure: int) -> None:
        """Count one."""
        self._counts[_fine(figure)] += 1
        self._total += figure
        self._most = max(self._most, figure)

    def spread(self) -> Spread:
        """What was counted."""
        coarse: Counter[int] = Counter()
        for fine, count in self._counts.items():
            coarse[_least(fine).bit_length()] += count
        counts = dict(sorted(coarse.items()))
        return Spread(counts, self._below(0.5), self._below(0.9), self._below(0.99), self._most, self._total)

    def _below(self, share: float) -> int:
        """What that share of all is at most, told by the least of its part."""
        wanted, seen = share * self._counts.total(), 0
        for fine, count in sorted(self._counts.items()):
            seen += count
            if seen >= wanted:
                return _least(fine)
        return 0


def _fine(figure: int) -> int:
    """Which part of which power of two a figure is in; figures below sixteen are told apart."""
    bits = max(0, figure.bit_length() - 4)
    return bits * _FINE + (figure >> bits)


def _least(fine: int) -> int:
    """The least figure of a part."""
    if fine < 2 * _FINE:
        return fine
    bits = fine // _FINE - 1
    return (fine - bits * _FINE) << bits


class Gathering:
    """A report in the making."""

    def __init__(self) -> None:
        self.pages = self.answers = self.robots = self.bytes = self.truncated = 0
        self.ended_at = 0
        self.statuses: Counter[int] = Counter()
        self.types: Counter[str] = Counter()
        self.depths: Counter[int] = Counter()
        self.errors: Counter[str] = Counter()
        self._hosts: dict[str, Counter[str]] = {}
        self._steps = Steps()
        self._sizes, self._latencies = Measures(), Measures()
        self._exact = self._near = self._unchanged = 0

    def captures(self, rows: Iterable[CaptureFigures]) -> None:
        """Add answers."""
        for row in rows:
            self._capture(row)

    def failures(self, rows: Iterable[ErrorFigures]) -> None:
        """Add errors."""
        for row in rows:
            self.errors[row.kind] += 1
            self.ended_at = max(self.ended_at, row.at)
            self._steps.add(row.at, 0, 0, 1, 0)
            kinds = self._hosts.get(row.host)
            if kinds is None:
                if len(self._hosts) >= HOSTS:
                    self._forget_some()
                kinds = self._hosts[row.host] = Counter()
            kinds[row.kind] += 1

    def timeline(self) -> Timeline:
        """All, step by step."""
        return self._steps.timeline()

    def sizes(self) -> Spread:
        """Of pages, decoded."""
        return self._sizes.spread()

    def latencies(self) -> Spread:
        """Of answers."""
        return self._latencies.spread()

    def repetition(self) -> Repetition:
        """What brought nothing new."""
        return Repetition(self._exact, self._near, self._unchanged)

    def error_hosts(self) -> tuple[ErrorHost, ...]:
        """Those with most errors, the worst first."""
        ordered = sorted(self._hosts.items(), key=lambda item: (-item[1].total(), item[0]))[:SHOWN]
        return tuple(ErrorHost(host, kinds.total(), dict(kinds.most_common())) for host, kinds in ordered)

    def _capture(self, row: CaptureFigures) -> None:
        self.bytes += row.wire_bytes
        self.ended_at = max(self.ended_at, row.at + row.elapsed_ms)
        self._latencies.add(row.elapsed_ms)
        if row.robots:
            self.robots += 1
            self._steps.add(row.at, 0, 0, 0, row.wire_bytes)
            return
        self.answers += 1
        self.statuses[row.status] += 1
        self.truncated += row.truncated
        is_page = row.is_page
        self._steps.add(row.at, is_page, 1, 0, row.wire_bytes)
        if not is_page:
            return
        self.pages += 1
        self.depths[row.depth] += 1
        if row.status == 304 or not row.changed:
            self._unchanged += 1
            return
        self._sizes.add(row.length)
        self._exact += row.duplicate
        self._near += row.near
        media = told_type(row.content_type) or "none told"
        self.types[media if media in self.types or len(self.types) < TYPES else OTHER] += 1

    def _forget_some(self) -> None:
        kept = sorted(self._hosts.items(), key=lambda item: -item[1].total())[: HOSTS // 2]
        self._hosts = dict(kept)
