"""Connections to the control API: who connects and says nothing is not waited for.

Whoever reaches the port can connect, with a token or without. The library underneath answers so many connections and
waits for each of them as long as it likes to be silent, or to send a request letter by letter: a few hundred of those,
and nobody else is answered, nor has a crawl in the same process files left. So a connection has its time to bring the
head of a request, and its body; and there are never more than twice as many as are answered.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

from .bounds import Bounds


class BoundedConnection(H11Protocol):
    """A connection that is closed when a request does not come in time."""

    bounds = Bounds()

    _waiting: asyncio.TimerHandle | None = None
    _waits_for = ""
    """What the parser calls the state of the client since which it is waited for."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the parent says
        """Begin to wait, or hang up where there are far too many."""
        super().connection_made(transport)
        if len(self.connections) > 2 * self.bounds.connections:
            transport.abort()
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        self._wait()

    def on_response_complete(self) -> None:
        """The next request may come."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """There is nothing to wait for any more."""
        self._rest()
        super().connection_lost(exc)

    def _wait(self) -> None:
        """Wait for what is missing of a request, from when it was first missing."""
        state = str(self.conn.their_state)
        if state == self._waits_for:
            return
        self._rest()
        wait_s = {"IDLE": self.bounds.head_s, "SEND_BODY": self.bounds.body_s}.get(state)
        if wait_s is not None:
            self._waits_for = state
            self._waiting = self.loop.call_later(wait_s, self.transport.abort)

    def _rest(self) -> None:
        self._waits_for = ""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def connections_within(bounds: Bounds) -> type[H11Protocol]:
    """What connections are made of."""
    return type("Connection", (BoundedConnection,), {"bounds": bounds})
