"""One connection to one Valkey server: commands are written as they come, answers come back in the same order.

Lean, because it is on the way of every page: one task's request is one write and one future, and nothing is queued or
locked in between. What must stay true: answers are given to requests in order; when a connection ends, everything that
was not answered ends with `ConnectionLostError`, and nobody can know whether it was done.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any, cast

import hiredis

from nephila.model.errors import EngineAwayError, NephilaError

from .valkey_servers import ACCESS, ServerAddress, ValkeyServers

Reply = Any
"""What a server answers: bytes, int, None, or lists of them."""
Word = Any
"""A part of a command: text, bytes or a number."""


REACH = "see that it runs and can be reached"
UNSECURED = "see that it runs and can be reached, and that this is its port for TLS: redis:// where it has none"
SECURED = "see that it runs and can be reached; rediss:// where this is its port for TLS"
RIGHTS = "give the user the rights that docs/fleet.md names (ACL SETUSER)"
_ADVICE = {
    "without any password configured": "take REDISCLI_AUTH or fleet.password_file away, or set a password there",
    "NOAUTH": ACCESS,
    "WRONGPASS": ACCESS,
    "NOPERM": RIGHTS,
    "ACL failure": RIGHTS,
    "OOM": "give it more memory (maxmemory), or take out of it what is not needed",
    "MISCONF": "make room on its disk: it cannot write what it is told",
    "READONLY": "name its primary in fleet.servers",
    "CLUSTERDOWN": "mend the cluster: CLUSTER INFO and CLUSTER SHARDS tell what is missing",
    "certificate verify failed": "fleet.authorities names the authority that signed it",
}


def advice_on(told: str) -> str:
    """What to do about what a server says, or what was met on the way to it; empty where nothing is known."""
    return next((advice for words, advice in _ADVICE.items() if words in told), "")


class ConnectionLostError(Exception):
    """The connection ended before the answer: it may or may not have been done."""


class EngineError(NephilaError):
    """An engine of the fleet cannot be used as it is."""


class EngineSilentError(EngineError, EngineAwayError):
    """It does not answer: the same may work later."""


class RefusedError(Exception):
    """The server answered with an error; the first word of it is its kind."""

    @property
    def kind(self) -> str:
        """The kind of error, such as MOVED."""
        return str(self).partition(" ")[0]


class Connection(asyncio.Protocol):
    """An open connection."""

    def __init__(self, address: ServerAddress, timeout_s: float) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._reader = hiredis.Reader(replyError=RefusedError)
        self._waiting: deque[tuple[asyncio.Future[Reply], float]] = deque()
        self._transport: asyncio.Transport | None = None
        self._watch: asyncio.TimerHandle | None = None
        self.is_open = False

    @classmethod
    async def open(cls, address: ServerAddress, servers: ValkeyServers) -> Connection:
        """Connect and say who we are; raises OSError, TimeoutError, RefusedError or ConnectionLostError."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(servers.connect_timeout_s):
            _, connection = await loop.create_connection(
                lambda: cls(address, servers.timeout_s), address.host, address.port, ssl=servers.tls
            )
            try:
                if servers.entry:
                    await connection.request(servers.entry)
                await connection.request(("CLIENT", "SETNAME", "nephila"))
            except BaseException:
                connection.close()
                raise
        return connection

    def request(self, command: tuple[Word, ...]) -> asyncio.Future[Reply]:
        """Send a command; the future holds its answer."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        if self._transport is None or not self.is_open:
            future.set_exception(ConnectionLostError(f"no connection to {self.address}"))
            return future
        self._waiting.append((future, time.monotonic()))
        self._transport.write(hiredis.pack_command(command))
        if self._watch is None:
            self._watch = asyncio.get_running_loop().call_later(self._timeout_s / 2, self._look)
        return future

    def hurry(self, seconds: float) -> None:
        """From now on no request waits longer than that."""
        self._timeout_s = min(self._timeout_s, seconds)
        if self._watch is not None:
            self._watch.cancel()
            self._look()

    def close(self) -> None:
        """Close; what waits for an answer ends."""
        if self._transport is not None:
            self._transport.abort()
        self._end("closed")

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self._transport = cast("asyncio.Transport", transport)  # what uvloop gives is one in all but its class
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """Part of an answer, or several."""
        self._reader.feed(data)
        try:
            while self._waiting and (reply := self._reader.gets()) is not False:
                future, _ = self._waiting.popleft()
                if future.cancelled():
                    continue
                if isinstance(reply, RefusedError):
                    future.set_exception(reply)
                else:
                    future.set_result(reply)
        except hiredis.ProtocolError:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._end(str(exc) if exc else "closed by the server")

    def _end(self, why: str) -> None:
        self.is_open = False
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        waiting, self._waiting = self._waiting, deque()
        for future, _ in waiting:
            if not future.done():
                future.set_exception(ConnectionLostError(f"{self.address}: {why}"))

    def _look(self) -> None:
        """Take the connection for dead when the oldest request has waited too long."""
        self._watch = None
        if not self._waiting:
            return
        if time.monotonic() - self._waiting[0][1] > self._timeout_s:
            self.close()
        else:
            self._watch = asyncio.get_running_loop().call_later(self._timeout_s / 2, self._look)
