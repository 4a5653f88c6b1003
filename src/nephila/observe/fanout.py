"""Several listeners as one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

from nephila.interfaces.events import EventSink
from nephila.model.events import Event


class Fanout:
    """An `EventSink` that hands everything on to others, in their order."""

    def __init__(self, sinks: Iterable[EventSink]) -> None:
        self._sinks = tuple(sinks)

    def add(self, sink: EventSink) -> None:
        """Hand on to one more from now on."""
        self._sinks = (*self._sinks, sink)

    def emit(self, event: Event) -> None:
        """Hand one event to each."""
        for sink in self._sinks:
            sink.emit(event)

    def flush(self) -> None:
        """Flush each."""
        for sink in self._sinks:
            sink.flush()

    def close(self) -> None:
        """Close each, the last first; one that fails keeps none of the others open."""
        with ExitStack() as stack:
            for sink in self._sinks:
                stack.callback(sink.close)
