"""Who hears the events of a simulated crawl."""

from __future__ import annotations

from dataclasses import dataclass

from nephila.model.events import Event, EventKind

from .happenings import Happened, Happening


@dataclass(slots=True)
class Listener:
    """Hears the events: counts the late results, and keeps warnings for who looks into a failed seed."""

    happened: Happened
    warnings: list[str]

    def emit(self, event: Event) -> None:
        """Look at one."""
        if event.kind is EventKind.WARNING:
            self.warnings.append(f"{event.reason} {event.url} {event.detail}")
        if event.kind is EventKind.LATE_RESULT:
            self.happened[Happening.LATE_RESULT] += 1

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is open."""
