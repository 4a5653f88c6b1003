"""When processes were frozen: in that time nothing was read, kept or synced, and no promise of a process counts."""

from __future__ import annotations


class Naps:
    """Spans of the servers' clock, in milliseconds."""

    def __init__(self) -> None:
        self._spans: list[tuple[float, float]] = []

    def add(self, began_ms: float, ended_ms: float) -> None:
        """Somebody was frozen from then to then."""
        self._spans.append((began_ms, ended_ms))

    def awake_before(self, at_ms: float, span_ms: float) -> float:
        """The moment that lies so long before another, counting only time in which nobody was frozen."""
        for began_ms, ended_ms in sorted(self._spans, key=lambda one: one[1], reverse=True):
            if ended_ms < at_ms - span_ms:
                break
            if began_ms < at_ms:
                span_ms -= max(0.0, at_ms - ended_ms)
                at_ms = began_ms
        return at_ms - span_ms
