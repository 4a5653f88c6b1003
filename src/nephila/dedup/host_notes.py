"""What was learned of hosts, one noun a host, kept in memory or in a table of the environment of what was learned."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

import msgspec

from .learned import LearnedEnvironment
from .untold import Untold

AT_HAND = 16_384
"""Hosts that are not read again: what another process finds of one is seen when it is next read."""
_pack = msgspec.msgpack.Encoder().encode

T = TypeVar("T")


class MemoryHostNotes(Generic[T]):
    """In memory, for simulations and tests."""

    def __init__(self) -> None:
        self._known: dict[str, T] = {}

    def of(self, host: str) -> T | None:
        """As the interface."""
        return self._known.get(host)

    def keep(self, host: str, known: T) -> None:
        """As the interface."""
        self._known[host] = known

    def flush(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


class LmdbHostNotes(Generic[T]):
    """On disk. Does not close the environment: others may use it too."""

    def __init__(self, environment: LearnedEnvironment, table: str, kind: type[T]) -> None:
        self._env = environment
        self._table = table
        self._read = msgspec.msgpack.Decoder(kind).decode
        self._lock = threading.Lock()
        self._recent: dict[str, T] = {}
        self._at_hand: dict[str, T | None] = {}
        self.untold: Untold[T] | None = None
        """Hears what is kept, where other workers are to know it."""

    def of(self, host: str) -> T | None:
        """As the interface."""
        recent = self._recent.get(host)
        if recent is not None:
            return recent
        if host in self._at_hand:
            return self._at_hand[host]
        packed = self._env.get(self._table, host.encode())
        known = None if packed is None else self._read(packed)
        if len(self._at_hand) >= AT_HAND:
            self._at_hand.clear()
        self._at_hand[host] = known
        return known

    def keep(self, host: str, known: T) -> None:
        """As the interface."""
        with self._lock:
            self._recent[host] = known
            self._at_hand[host] = known
        if self.untold is not None:
            self.untold.keep(host, known)

    def flush(self) -> None:
        """As the interface."""
        with self._lock:
            batch, self._recent = self._recent, {}
            self._at_hand.update(batch)
        if not batch:
            return
        try:
            with self._env.writing() as txn:
                for host, known in sorted(batch.items()):
                    txn.put(host.encode(), _pack(known), db=self._env.db[self._table])
        except BaseException:
            with self._lock:
                self._recent = batch | self._recent
            raise

    def close(self) -> None:
        """As the interface."""
        self.flush()
