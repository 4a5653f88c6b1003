"""From one timeline to another: instants and steps of an export, as an engine counts them.

An importing engine begins its timeline at UTC, so that an instant is what it is. Steps are counted from the step that
was in force when the export was made; where a step is worth another time in the new crawl, ages are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from .rows import CrawlRow

_MOST_STEPS = 0xFF_FFFF


@dataclass(frozen=True, slots=True)
class Shift:
    """Of one import."""

    exported: CrawlRow
    step_ms: int
    """What a step is worth in the target."""
    ordered: bool = False
    """The target's order does not depend on time: its step is always 0."""

    def step(self, step: int) -> int:
        """A step of the export as a step of the target."""
        ahead = (step - self.exported.step) * self.exported.step_ms // self.step_ms
        base = 0 if self.ordered else self.exported.exported_at // self.step_ms
        return max(0, min(base + ahead, _MOST_STEPS))
