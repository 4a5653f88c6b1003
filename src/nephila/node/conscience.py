"""Whether hosts were really left alone as long as they must be, from what was archived (P5).

It shares nothing with what decides when to ask: not the frontier's timeline, not the pace, only the instants that the
archive wrote into the records, as the catalogue lists them. Read a little at a time, as rows come in, whichever process
wrote them. An answer that was never archived (a timeout) is not seen here; the auditor on the servers' side, in the
tests, sees those too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import NamedTuple

HOSTS_REMEMBERED = 100_000
TOLERANCE_MS = 50
"""Instants are rounded to milliseconds, and a wall clock is corrected now and then by a few."""


class Sent(NamedTuple):
    """One exchange: when its request left, when its answer had come. UTC milliseconds."""

    host: str
    at: int
    ended_at: int
    part: bool = False
    """Whether a page in a browser asked for it: within a visit there is no delay (J3)."""


class Conscience:
    """Counts requests that came before their time."""

    def __init__(self, delay_ms: Callable[[str], int], most_ms: int | None = None) -> None:
        """`delay_ms` is the least time that a host must be left alone, by the settings and the policy of its domain.

        It is asked only about hosts that were left alone for less than `most_ms`, where that is given.
        """
        self._delay_ms = delay_ms
        self._most_ms = most_ms
        self._last: dict[str, Sent] = {}
        self._parts: dict[str, int] = {}
        """Of hosts whose last request was part of a visit, how many there were: so many delays more (J3)."""
        self.violations = 0
        self.example = ""

    def look(self, sent: Iterable[Sent]) -> None:
        """Look at exchanges that were recorded since the last call."""
        for one in sorted(sent, key=attrgetter("at")):
            last, is_part = self._last.pop(one.host, None), one.part
            if last is not None and one != last:
                first, second = (last, one) if last.at <= one.at else (one, last)
                if not second.part and self._is_early(second.at - first.ended_at + TOLERANCE_MS, one.host):
                    self.violations += 1
                    self.example = self.example or one.host
                one = one if one.ended_at > last.ended_at else last  # noqa: PLW2901 - what is remembered
            if is_part:
                self._parts[one.host] = self._parts.get(one.host, 0) + 1
            else:
                self._parts.pop(one.host, None)
            self._last[one.host] = one
            if len(self._last) > HOSTS_REMEMBERED:
                host = next(iter(self._last))
                del self._last[host]
                self._parts.pop(host, None)

    def _is_early(self, left_ms: int, host: str) -> bool:
        """Whether a host was left alone for too short a time."""
        delays = 1 + self._parts.get(host, 0)
        if self._most_ms is not None and left_ms >= self._most_ms * delays:
            return False
        return left_ms < self._delay_ms(host) * delays
