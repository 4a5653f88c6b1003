"""Events on their way to listeners in another process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import attrgetter

from nephila.model.events import Event, EventKind

from .messages import EventFields

BUSY = frozenset({429, 503})
BUSY_TOLD = 50
"""Answers of one beat by which a host says that we ask too much: told to whoever watches for it, up to so many."""

LATEST = 5
"""Exchanges of one beat that are told where nobody wants them all: as many as the live view shows."""


_fields = attrgetter(*Event.__slots__)  # type: ignore[attr-defined]  # a noun has them


def unpacked(fields: EventFields) -> Event:
    """The event that was told."""
    kind, *rest = fields
    return Event(EventKind(kind), *rest)  # type: ignore[arg-type]  # the fields in their order


class Overheard:
    """An `EventSink` that keeps what is to be told with the next beat."""

    def __init__(self, *, everything: bool, urgent_bytes: int = 0) -> None:
        """`urgent_bytes`: when so many have come since the last beat, `urgent` is called; 0 means never."""
        self._everything = everything
        self._urgent_bytes = urgent_bytes
        self._bytes = 0
        self.urgent: Callable[[], object] = lambda: None
        self._kept: list[Event] = []
        self._latest: deque[Event] = deque(maxlen=LATEST)

    def emit(self, event: Event) -> None:
        """Keep it if somebody wants it."""
        if self._urgent_bytes and event.bytes:
            self._bytes += event.bytes
            if self._bytes >= self._urgent_bytes:
                self._bytes = 0
                self.urgent()
        busy = event.status in BUSY and event.kind is EventKind.FETCH_OK and len(self._kept) < BUSY_TOLD
        if self._everything or busy or event.kind is EventKind.WARNING:
            self._kept.append(event)
        elif event.kind in (EventKind.FETCH_OK, EventKind.ERROR):
            self._latest.append(event)

    def take(self) -> list[EventFields]:
        """What was kept since the last call."""
        taken = [_fields(event) for event in (*self._kept, *self._latest)]
        self._kept.clear()
        self._latest.clear()
        return taken

    def flush(self) -> None:
        """The next beat takes what there is."""

    def close(self) -> None:
        """Nothing is open."""
