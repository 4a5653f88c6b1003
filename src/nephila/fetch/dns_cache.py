"""Answers remembered: how long each holds, and the last good one for the day that no resolver answers (H4)."""

from __future__ import annotations

from typing import NamedTuple

from nephila.interfaces.network import Resolved, Unresolved
from nephila.model.settings import DnsSettings


class _Entry(NamedTuple):
    answer: Resolved | Unresolved
    until_ms: int
    last_good: Resolved | None


class DnsCache:
    """Bounded: the name that was stored longest ago makes room. Expired entries stay as last known answers."""

    def __init__(self, settings: DnsSettings) -> None:
        self._settings = settings
        self._entries: dict[str, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, name: str, now_ms: int) -> Resolved | Unresolved | None:
        """The answer that still holds."""
        entry = self._entries.get(name)
        return entry.answer if entry is not None and entry.until_ms > now_ms else None

    def last_good(self, name: str) -> Resolved | None:
        """The last addresses that were known, however old."""
        entry = self._entries.get(name)
        return entry.last_good if entry is not None else None

    def store(self, name: str, answer: Resolved | Unresolved, now_ms: int) -> None:
        """Remember an answer for its time. A stale one is held like a failure: resolvers are asked again soon."""
        settings = self._settings
        good = self.last_good(name)
        if isinstance(answer, Unresolved) or answer.stale:
            holds_s = settings.negative_ttl_s
        else:
            good = answer
            holds_s = min(max(answer.ttl_s, settings.min_ttl_s), settings.max_ttl_s)
        self._entries.pop(name, None)
        while len(self._entries) >= settings.cache_size:
            del self._entries[next(iter(self._entries))]
        self._entries[name] = _Entry(answer, now_ms + int(holds_s * 1000), good)
