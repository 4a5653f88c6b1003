"""Connections kept between exchanges: a polite host is asked again in a second, and TLS costs as much as a page.

Keyed by origin; the address and the proxy of a kept connection are those it was opened with, and both were judged
then. A connection is kept for the shorter of our own limit and what the server promised. One timer sweeps all of them.

A broad crawl goes round its hosts. Were the connection that has been idle longest to make room when there is none, it
would be the one whose host is next, and with one host more than places not a single connection would be used twice. So
those that are here stay, and the newcomer goes. Hosts come and go, too: now and then a newcomer takes the place of the
oldest, so seldom that the whole pool is turned over in no less than `TURNOVER` times the life of a connection.
"""

from __future__ import annotations

import asyncio

from .connection import Connection

_MARGIN_S = 1.0
"""We give up a connection so long before the server says that it will: a request must not meet its end."""


TURNOVER = 2.0
"""Of 4,096 places for 5,000 hosts that come round in 10 s it costs one in twelve; of 32 places one is given in 4 s."""


class ConnectionPool:
    """At most `size` idle connections."""

    def __init__(self, keep_alive_s: float, size: int) -> None:
        self._keep_alive_s = keep_alive_s
        self._size = size
        self._idle: dict[str, list[Connection]] = {}
        self._count = 0
        self._turn_at = 0.0
        self._sweeper: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return self._count

    def take(self, origin: str) -> Connection | None:
        """The connection that was used last, still open as far as we know; None when there is none."""
        kept = self._idle.get(origin)
        now = asyncio.get_running_loop().time()
        found = None
        while kept and found is None:
            connection = kept.pop()
            self._count -= 1
            if connection.idle_until > now and connection.usable:
                found = connection
            else:
                connection.abort()
        if kept is not None and not kept:
            del self._idle[origin]
        return found

    def put(self, origin: str, connection: Connection, promised_s: float | None) -> None:
        """Keep a connection whose last exchange is complete, or close it."""
        keep_s = self._keep_alive_s if promised_s is None else min(self._keep_alive_s, promised_s - _MARGIN_S)
        if keep_s <= 0 or not connection.usable:
            connection.abort()
            return
        if self._count >= self._size and not self._makes_room():
            connection.abort()
            return
        connection.idle_until = asyncio.get_running_loop().time() + keep_s
        self.put_back(origin, connection)

    def put_back(self, origin: str, connection: Connection) -> None:
        """Return a connection that was taken and not used: it is kept no longer than it would have been."""
        self._idle.setdefault(origin, []).append(connection)
        self._count += 1
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(self._keep_alive_s / 2, self._sweep)

    def close(self) -> None:
        """Close every idle connection."""
        for kept in self._idle.values():
            for connection in kept:
                connection.abort()
        self._idle.clear()
        self._count = 0
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def _makes_room(self) -> bool:
        """Whether there is a place for a newcomer to a full pool."""
        now = asyncio.get_running_loop().time()
        if now < self._turn_at or not self._idle:
            return False
        self._turn_at = now + TURNOVER * self._keep_alive_s / self._size
        self._evict()
        return True

    def _evict(self) -> None:
        origin = next(iter(self._idle))
        kept = self._idle[origin]
        kept.pop(0).abort()
        self._count -= 1
        if not kept:
            del self._idle[origin]

    def _sweep(self) -> None:
        """Close what has been idle too long or has ended meanwhile; runs only while there is something to watch."""
        now = asyncio.get_running_loop().time()
        self._sweeper = None
        for origin in list(self._idle):
            alive = []
            for connection in self._idle[origin]:
                if connection.usable and connection.idle_until > now:
                    alive.append(connection)
                else:
                    connection.abort()
                    self._count -= 1
            if alive:
                self._idle[origin] = alive
            else:
                del self._idle[origin]
        if self._idle:
            self._sweeper = asyncio.get_running_loop().call_later(self._keep_alive_s / 2, self._sweep)
