"""Listeners to what happens (O1)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from nephila.model.events import Event


class EventSink(Protocol):
    """Takes events as they happen. Must not block and must not raise: a full disk is told once, then counted."""

    def emit(self, event: Event) -> None:
        """Take one event."""

    def flush(self) -> None:
        """Hand everything taken so far to the operating system."""

    def close(self) -> None:
        """Flush and close."""


@runtime_checkable
class GlancingSink(EventSink, Protocol):
    """A listener for which warnings and the latest few exchanges will do, where events come from other processes."""

    @property
    def glances(self) -> bool:
        """True."""
