"""Whether hosts were really left alone as long as they must be, from what was archived (P5).

It shares nothing with what decides when to ask: not the frontier's timeline, not the pace, only the instants that the
archive wrote into the records, as the catalogue lists them. Read a little at a time, as rows come in, whichever process
wrote them. An answer that was never archived (a timeout) is not seen here; the auditor on the servers' side, in the
tests, sees those too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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

    def __init__(self, delay_ms: Callable[[str], int]) -> None:
        """`delay_ms` is the least time that a host must be left alone, by the settings and the policy of its domain."""
        self._delay_ms = delay_ms
        self._last: dict[str, Sent] = {}
        self._parts: dict[str, int] = {}
        """Of hosts whose last request was part of a visit, how many there were: so many delays more (J3)."""
        self.violations = 0
        self.example = ""

    def look(self, sent: Iterable[Sent]) -> None:
        """Look at exchanges that were recorded since the last call."""
        for one in sorted(sent, key=lambda exchange: exchange.at):
            last, is_part = self._last.pop(one.host, None), one.part
            if last is not None and one != last:
                first, second = (last, one) if last.at <= one.at else (one, last)
                required_ms = self._delay_ms(one.host) * (1 + self._parts.get(one.host, 0))
                if not second.part and second.at + TOLERANCE_MS < first.ended_at + required_ms:
                    self.violations += 1
                    self.example = self.example or one.host
                one = max(last, one, key=lambda exchange: exchange.ended_at)  # noqa: PLW2901 - what is remembered
            if is_part:
                self._parts[one.host] = self._parts.get(one.host, 0) + 1
            else:
                self._parts.pop(one.host, None)
            self._last[one.host] = one
            if len(self._last) > HOSTS_REMEMBERED:
                host = next(iter(self._last))
                del self._last[host]
                self._parts.pop(host, None)
