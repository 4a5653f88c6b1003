"""Listeners of the node's own: the page count that limits look at, and the heartbeat event (O1)."""

from __future__ import annotations

from collections.abc import Callable

from nephila.interfaces.clock import Clock
from nephila.interfaces.events import EventSink
from nephila.model.events import Event, EventKind
from nephila.model.summary import CrawlSnapshot

from .allowance import PageAllowance


class Heartbeat:
    """An `EventSink` that counts pages into the allowance and tells the figures after every so many."""

    def __init__(
        self,
        every: int,
        allowance: PageAllowance,
        figures: Callable[[], tuple[tuple[str, int], ...]],
        to: EventSink,
        clock: Clock,
    ) -> None:
        self._every = every
        self._allowance = allowance
        self._figures = figures
        self._to = to
        self._clock = clock
        self._pages = 0

    def emit(self, event: Event) -> None:
        """Count a page."""
        if not event.is_page():
            return
        self._allowance.pages += 1
        self._pages += 1
        if self._pages % self._every == 0:
            self._to.emit(Event(EventKind.HEARTBEAT, self._clock.wall_ms(), counts=self._figures()))

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is to be closed."""


def heartbeat_figures(snapshot: CrawlSnapshot) -> tuple[tuple[str, int], ...]:
    """What a heartbeat tells (O1)."""
    return (
        ("fetched", snapshot.pages),
        ("enqueued", snapshot.queued + snapshot.responses),
        ("errors", sum(snapshot.errors.values())),
        ("unique_domains", snapshot.domains),
        ("frontier_size", snapshot.queued),
    )
