"""Bytes of bodies in memory at once, over all exchanges: back-pressure instead of an out-of-memory kill (Q5).

Every connection reports what it reads. Over the limit, a connection that brings more is paused, so its server is held
back by TCP itself; when an exchange ends, those that wait go on. The one that began first is never paused: it always
can finish (or run into its own time limit), so there is no deadlock, and waiting is in order of age, so it is fair.
The overshoot is bounded by one read of each connection.
"""

from __future__ import annotations

from typing import Protocol


class Pausable(Protocol):
    """A source of bytes that can be told to hold."""

    def pause(self) -> None:
        """Bring nothing more until resumed."""

    def resume(self) -> None:
        """Go on."""


class ByteBudget:
    """Counts the bytes that sources hold and pauses the younger ones while there are too many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[Pausable, int] = {}
        self._paused: set[Pausable] = set()
        self._total = 0

    @property
    def total(self) -> int:
        """Bytes held now."""
        return self._total

    def grow(self, source: Pausable, count: int) -> None:
        """`source` holds `count` bytes more."""
        held = self._held
        held[source] = held.get(source, 0) + count
        self._total += count
        if self._total > self._limit and source is not next(iter(held)):
            self._paused.add(source)
            source.pause()

    def release(self, source: Pausable) -> None:
        """`source` holds nothing any more, and is held back no longer: its connection may be kept and asked again."""
        self._total -= self._held.pop(source, 0)
        if self._paused:
            if source in self._paused:  # its answer has ended with what had come before it was paused (HTTP/2)
                self._paused.discard(source)
                source.resume()
            self._resume()

    def _resume(self) -> None:
        if self._total <= self._limit:
            for source in [source for source in self._held if source in self._paused]:
                self._paused.discard(source)
                source.resume()
            return
        oldest = next(iter(self._held), None)
        if oldest is not None and oldest in self._paused:
            self._paused.discard(oldest)
            oldest.resume()
