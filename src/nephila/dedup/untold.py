"""What was kept of hosts, and not told to the other workers of a fleet yet.

Nothing is taken out before it was told, so a server that is away costs nothing but time; there is one entry a host.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class Untold(Generic[T]):
    """Notes by host. May be used from several threads."""

    def __init__(self, says: Callable[[T], bool]) -> None:
        """`says` tells a note that is worth telling from one that says nothing yet."""
        self.says = says
        self._lock = threading.Lock()
        self._notes: dict[str, T] = {}

    def __contains__(self, host: str) -> bool:
        return host in self._notes

    def keep(self, host: str, note: T) -> None:
        """To be told, in place of an earlier one."""
        if self.says(note):
            with self._lock:
                self._notes[host] = note

    def all(self) -> dict[str, T]:
        """What is to be told now."""
        with self._lock:
            return dict(self._notes)

    def told(self, notes: Mapping[str, T]) -> None:
        """These were; what was kept meanwhile stays."""
        with self._lock:
            for host, note in notes.items():
                if self._notes.get(host) is note:
                    del self._notes[host]
