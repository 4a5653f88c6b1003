"""Warnings about a crawl as a whole, on standard error as they come; those about single URLs are for ``-v``."""

from __future__ import annotations

from collections.abc import Callable

from nephila.model.events import Event, EventKind

from .output import printable


class WarningSink:
    """An `EventSink` that writes one line a warning through `write`, which gets it without a line end."""

    glances = True

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def emit(self, event: Event) -> None:
        """Write it, if it is a warning that concerns no single URL."""
        if event.kind is EventKind.WARNING and not event.url:
            self._write(f"Warning: {printable(event.detail)}.")

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is to be closed."""
