"""One connection: bytes from the transport to whoever reads now, and nothing kept in between.

A connection serves one conversation at a time: `converse` writes a request and waits until the reader is finished, the
connection ends, or the deadline comes. Handshakes with proxies and HTTP exchanges are conversations with different
readers. Bytes that come while nobody reads spoil the connection: it is aborted, never reused.

Deadlines cost one timer per connection, not one per exchange: a timer that finds the deadline moved on sets itself
again. One that comes late (the process was stopped, or the machine slept) says nothing of the server: what has come
meanwhile lies in the socket, and is read before time is up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from nephila.interfaces.addresses import AddressPermit
from nephila.interfaces.clock import Clock
from nephila.model.exchange import FailureKind

from .arrivals import Arrivals
from .budget import ByteBudget

_TICK_S = 0.001
"""The resolution of uvloop's timers: one may fire so much early."""

LATE_S = 0.1
"""A timer that is later than this comes from a process that did not run. A busy loop is not as late as that."""
GRACE_S = 0.02
"""So long such a process may read what lies there, once in a conversation: some turns of the loop."""


class Reader(Protocol):
    """Somebody who makes sense of bytes."""

    finished: bool

    def feed(self, data: bytes) -> bool:
        """Take bytes; whether the reader has all that it wants."""

    def end(self, error: Exception | None = None) -> None:
        """The connection is over."""

    def expire(self) -> None:
        """Time is up."""

    def conclude(self) -> None:
        """The message is whole: the layer below has said so, as HTTP/2 does."""

    def refuse(self, kind: FailureKind, detail: str) -> None:
        """What came is no message, as the layer below has found."""


class Connection(asyncio.Protocol):
    """A protocol for transports of any kind, real or simulated."""

    __slots__ = (
        "_arrivals",
        "_before_answer",
        "_began_ms",
        "_budget",
        "_clock",
        "_counted",
        "_deadline",
        "_loop",
        "_reader",
        "_timer",
        "_timer_at",
        "_waiter",
        "_was_late",
        "_watched",
        "address",
        "bad_certificate",
        "ended_at",
        "ended_ms",
        "far_address",
        "header_bytes",
        "idle_until",
        "permit",
        "protocol",
        "stale_address",
        "transport",
        "wants_http1",
    )

    def __init__(
        self,
        budget: ByteBudget,
        clock: Clock,
        arrivals: Arrivals | None = None,
        before_answer: Callable[[], None] | None = None,
        header_bytes: int = 65_536,
    ) -> None:
        """`before_answer` is called by the loop right before whoever waits for an answer goes on with it.

        `header_bytes`: what a layer below may gather of a header block before it hands it on.
        """
        self._clock = clock
        self._arrivals = arrivals
        self._before_answer = before_answer
        self._watched = -1
        self._loop = asyncio.get_running_loop()
        self._began_ms = 0
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._was_late = False
        self._budget = budget
        self._counted = False
        self._reader: Reader | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.header_bytes = header_bytes
        self.protocol = ""
        """``h2`` where HTTP/2 is spoken; nothing for HTTP/1.1."""
        self.wants_http1 = False
        """The server has refused a request because it came over HTTP/2."""
        self.address = ""
        self.bad_certificate = ""
        self.stale_address = False
        """Opened to the last known address of its name: no name server answered."""
        self.far_address = ""
        """The host's own address, which limits are counted by; empty where a proxy finds it."""
        self.permit: AddressPermit | None = None
        """For the exchange that is to come or going on."""
        self.idle_until = 0.0
        self.ended_at = self.ended_ms = 0
        """When the last conversation was over, on both clocks: when its last bytes came, not when they were read. Who
        waits for it is told later still, in a turn of the loop, behind all that came in the same moment."""

    @property
    def usable(self) -> bool:
        """Open, as far as this side knows."""
        return self.transport is not None and not self.transport.is_closing()

    async def converse(self, request: bytes, reader: Reader, deadline: float) -> None:
        """Send `request` and return when `reader` is finished; cancelling closes the connection."""
        self._began_ms = self._clock.steady_ms()
        if self.transport is None or self.transport.is_closing():
            reader.end()
            self._note_end()
            return
        self._reader = reader
        self._was_late = False
        self._deadline = deadline
        self._waiter = self._loop.create_future()
        if self._timer is None or self._timer_at > deadline:  # a kept connection has one from an earlier conversation
            self._watch(deadline)
        try:
            self.transport.write(request)
            await self._waiter
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            self._reader = self._waiter = None
            if self._counted:
                self._counted = False
                self._budget.release(self)

    def abort(self) -> None:
        """End the connection at once."""
        if self.transport is not None:
            self.transport.abort()

    # -- what the transport calls ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the transport."""
        self.transport = cast("asyncio.Transport", transport)
        if self._arrivals is not None:
            self._watched = self._arrivals.watch(transport)

    def data_received(self, data: bytes) -> None:
        """Hand the bytes to the reader."""
        reader = self._reader
        if reader is None or reader.finished:
            self.abort()
        elif reader.feed(data):
            self._wake(None if self._watched < 0 or self._arrivals is None else self._arrivals.came_ms(self._watched))
        else:
            self._counted = True
            self._budget.grow(self, len(data))

    def eof_received(self) -> None:
        """The server has said all; the transport closes itself."""
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over."""
        self._end(exc)
        self.transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- what a layer of HTTP/2 calls ------------------------------------------------------------------------------

    def message_ended(self, error: Exception | None = None) -> None:
        """The answer is whole, or with an error: nothing more will come of it, while the connection may go on."""
        reader = self._reader
        if error is not None:
            self._end(error)
        elif reader is not None:
            reader.conclude()
            self._wake(None if self._watched < 0 or self._arrivals is None else self._arrivals.came_ms(self._watched))

    def message_broken(self, kind: FailureKind, detail: str) -> None:
        """What came is no answer."""
        if self._reader is not None:
            self._reader.refuse(kind, detail)
            self._wake()

    # -- what the budget calls -------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Hold the server back."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        """Let it go on."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def _watch(self, deadline: float) -> None:
        self._deadline = deadline
        if self._timer is not None:
            if self._timer_at <= deadline:
                return
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_at(deadline, self._look)

    def _look(self) -> None:
        """The timer: time is up for the present conversation, or for an earlier one that has long ended."""
        self._timer = None
        if self._reader is None:
            return
        now = self._loop.time()
        if now + _TICK_S < self._deadline:
            self._watch(self._deadline)
            return
        if now > self._timer_at + LATE_S and not self._was_late:
            self._was_late = True
            self._watch(now + GRACE_S)
            return
        self._reader.expire()
        self._wake()

    def _end(self, error: Exception | None) -> None:
        if self._reader is not None:
            self._reader.end(error)
            self._wake()

    def _wake(self, came_ms: int | None = None) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            self._note_end(came_ms)
            if self._before_answer is not None:
                self._loop.call_soon(self._before_answer)
            waiter.set_result(None)

    def _note_end(self, came_ms: int | None = None) -> None:
        now_ms = self._clock.steady_ms()
        self.ended_ms = now_ms if came_ms is None else max(came_ms, self._began_ms)
        self.ended_at = self._clock.wall_ms() - (now_ms - self.ended_ms)
