"""Which name server is asked first: in the order they were given, those that failed a short while ago last.

A server that does not answer rests for half a minute, twice as long each time, up to five minutes; one that refuses or
reports a failure, for five seconds: that may be the fault of the one name that was asked for, which says little of the
server. Resting means being asked last, not being left out: when all rest, the one whose rest ends first is asked first.
So a dead server costs its time limit once in a while, and the one that the user named first is the first again soon
after it has come back.
"""

from __future__ import annotations

from dataclasses import dataclass

from .dns_system import NameServer

FAILED_REST_MS = 5_000
SILENT_REST_MS = 30_000
LONGEST_REST_MS = 300_000


@dataclass(slots=True)
class _Standing:
    """How one server has done."""

    rests_until_ms: int = 0
    silences: int = 0
    """In a row."""


class ServerOrder:
    """Remembers which servers failed. Pure: time is passed in."""

    def __init__(self, servers: tuple[NameServer, ...]) -> None:
        self._standings = {server: _Standing() for server in servers}

    def at(self, now_ms: int) -> list[NameServer]:
        """All servers, in the order to ask them."""

        def rest(server: NameServer) -> int:
            until = self._standings[server].rests_until_ms
            return until if until > now_ms else 0

        return sorted(self._standings, key=rest)

    def answered(self, server: NameServer) -> None:
        """It gave an answer that was of use."""
        self._standings[server] = _Standing()

    def failed(self, server: NameServer, now_ms: int) -> None:
        """It answered that it cannot answer."""
        standing = self._standings[server]
        standing.silences = 0
        standing.rests_until_ms = max(standing.rests_until_ms, now_ms + FAILED_REST_MS)

    def silent(self, server: NameServer, now_ms: int) -> None:
        """Nothing came from it."""
        standing = self._standings[server]
        rest_ms = min(SILENT_REST_MS << min(standing.silences, 8), LONGEST_REST_MS)
        standing.silences += 1
        standing.rests_until_ms = now_ms + rest_ms
