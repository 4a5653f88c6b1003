"""Answers remembered: how long each holds, and the last good one for the day that no resolver answers (H4).

An address holds for its time to live, within the settings' bounds. That a name does not exist holds for as long as its
zone says (RFC 2308), within the same bounds; where it does not say, and for a failure, as long as the settings say. The
last good addresses are kept beside, for `stale_s` from when they were learned; a name that is said not to exist has
none.
"""

from __future__ import annotations

from typing import NamedTuple

from nephila.interfaces.network import Resolved, Unresolved
from nephila.model.exchange import FailureKind
from nephila.model.settings import DnsSettings


class _Entry(NamedTuple):
    answer: Resolved | Unresolved
    until_ms: int
    last_good: Resolved | None
    good_ms: int
    """When the last good answer came."""


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

    def last_good(self, name: str, now_ms: int) -> Resolved | None:
        """The last addresses that were known, unless they are too old to be used."""
        entry = self._entries.get(name)
        if entry is None or now_ms - entry.good_ms > self._settings.stale_s * 1000:
            return None
        return entry.last_good

    def store(self, name: str, answer: Resolved | Unresolved, now_ms: int) -> None:
        """Remember an answer for its time. A stale one is held like a failure: resolvers are asked again soon."""
        settings = self._settings
        before = self._entries.pop(name, None)
        good, good_ms = (before.last_good, before.good_ms) if before is not None else (None, now_ms)
        holds_s = settings.negative_ttl_s
        if isinstance(answer, Unresolved):
            if answer.kind is FailureKind.NO_SUCH_NAME:
                good = None
            if answer.ttl_s:
                holds_s = self._bounded(answer.ttl_s)
        elif not answer.stale:
            good, good_ms = answer, now_ms
            holds_s = self._bounded(answer.ttl_s)
        while len(self._entries) >= settings.cache_size:
            del self._entries[next(iter(self._entries))]
        self._entries[name] = _Entry(answer, now_ms + int(holds_s * 1000), good, good_ms)

    def _bounded(self, ttl_s: float) -> float:
        return min(max(ttl_s, self._settings.min_ttl_s), self._settings.max_ttl_s)
