"""Notes on hosts that go along with them from worker to worker (N3): one noun a host, and the last writer's holds.

A host is with one worker at a time, so two of them hardly ever write the same; where they do, some observations are
lost, and made again. What is brought from elsewhere never takes the place of what was not told yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from .untold import Untold

T = TypeVar("T")

_pack = msgspec.msgpack.Encoder().encode


class KeptNotes(Protocol[T]):
    """What notes are kept in here."""

    def of(self, host: str) -> T | None:
        """What is known of a host."""

    def keep(self, host: str, known: T) -> None:
        """From now on this is known."""


class SharedTable(Protocol):
    """Notes of one kind on their way between a worker and the servers."""

    letter: str

    def untold(self) -> tuple[dict[str, bytes], Callable[[], None]]:
        """What is to be told now, by host, and whom to call when that was done."""

    def bring(self, host: str, packed: bytes | None) -> None:
        """What the servers have of a host."""


class TravellingNotes(Generic[T]):
    """Implements `SharedTable` over notes that tell an `Untold` of what is kept."""

    def __init__(
        self,
        letter: str,
        kind: type[T],
        own: KeptNotes[T],
        untold: Untold[T],
        joined: Callable[[T, T | None], T] = lambda brought, _: brought,
    ) -> None:
        """`letter` names the table. `joined` makes one of what was brought and what is known here."""
        self.letter = letter
        self._read = msgspec.msgpack.Decoder(kind).decode
        self._own = own
        self._untold = untold
        self._joined = joined

    def untold(self) -> tuple[dict[str, bytes], Callable[[], None]]:
        """As the interface."""
        notes: Mapping[str, T] = self._untold.all()
        return {host: _pack(note) for host, note in notes.items()}, lambda: self._untold.told(notes)

    def bring(self, host: str, packed: bytes | None) -> None:
        """As the interface. What is known here alone, from before it was shared, is told."""
        if host in self._untold:
            return
        known = self._own.of(host)
        if packed is None:
            if known is not None:
                self._untold.keep(host, known)
            return
        try:
            brought = self._joined(self._read(packed), known)
        except (msgspec.MsgspecError, UnicodeDecodeError):  # of a version that writes it otherwise
            return
        if brought != known:
            self._own.keep(host, brought)
            self._untold.told({host: brought})
