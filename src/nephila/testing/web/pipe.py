"""Connections in memory that behave like asyncio's over sockets.

Two `PipeTransport`s are each other's far end. What is written on one side arrives on the other after the latency, in
order, in segments. Each side has a window, as TCP has: a reader that pauses lets the writer's buffer fill, and its
protocol is told to pause. Closing flushes first; aborting throws away and resets the far end.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Iterable
from typing import Any

_WINDOW_BYTES = 256 * 1024
"""Bytes on their way or unread at the far end: about what Linux lets a loopback connection have."""
_HIGH_WATER_BYTES = 64 * 1024
"""asyncio's own default."""

NOWHERE = contextvars.Context()
"""What is on its way belongs to no process: it arrives whatever becomes of who sent it."""

_EOF = b""
_Item = bytes | ConnectionResetError


class PipeTransport(asyncio.Transport):
    """One end of a connection."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        latency_s: float,
        segment_bytes: int,
        extra: dict[str, Any],
        context: contextvars.Context | None = None,
    ) -> None:
        """`context`: that of the process which this end belongs to; what arrives is handed over there."""
        super().__init__(extra)
        self._context = context
        self._loop = loop
        self._latency_s = latency_s
        self._segment_bytes = segment_bytes
        self._far: PipeTransport
        self._protocol: asyncio.Protocol
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._window_used = 0
        self._on_the_way: deque[_Item] = deque()
        self._inbox: deque[_Item] = deque()
        self._reading = True
        self._closing = False
        self._lost = False
        self._severed = False
        self._eof_written = False
        self._eof_shipped = False
        self._writer_paused = False
        self._high, self._low = _HIGH_WATER_BYTES, _HIGH_WATER_BYTES // 4

    def attach(self, far: PipeTransport, protocol: asyncio.Protocol) -> None:
        """Join the two ends, and this one to its protocol."""
        self._far = far
        self._protocol = protocol

    # What asyncio.Transport promises.

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand the connection to another protocol."""
        self._protocol = protocol  # type: ignore[assignment]  # streams have stream protocols

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Who gets the data."""
        return self._protocol

    def is_closing(self) -> bool:
        """Whether it was closed or is about to be."""
        return self._closing or self._severed

    def is_reading(self) -> bool:
        """Whether data is being delivered."""
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        """Deliver nothing until `resume_reading`; the writer's window fills meanwhile."""
        self._reading = False

    def resume_reading(self) -> None:
        """Deliver what has come meanwhile."""
        if not self._reading:
            self._reading = True
            self._loop.call_soon(self._deliver, context=self._context)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """When the protocol is told to pause and to resume writing."""
        if high is None:
            high = _HIGH_WATER_BYTES if low is None else 4 * low
        low = high // 4 if low is None else low
        if not high >= low >= 0:
            message = f"high ({high!r}) must be >= low ({low!r}) must be >= 0"
            raise ValueError(message)
        self._high, self._low = high, low
        self._tell_writer()

    def get_write_buffer_size(self) -> int:
        """Bytes that have not left yet."""
        return self._unsent_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """The marks as they are set: low, high."""
        return self._low, self._high

    def write(self, data: bytes | bytearray | memoryview[int]) -> None:
        """Send, or keep until the far end has room."""
        if self._eof_written:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self._closing or self._severed:
            return
        copy = bytes(data)
        size = self._segment_bytes
        self._unsent.extend(copy[at : at + size] for at in range(0, len(copy), size))
        self._unsent_bytes += len(copy)
        self._pump()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[int]]) -> None:
        """Send them joined."""
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        """One direction can be closed."""
        return True

    def write_eof(self) -> None:
        """Tell the far end that no more will come, and keep reading."""
        if not self._eof_written and not self._closing:
            self._eof_written = True
            self._pump()

    def close(self) -> None:
        """Send what is left, then tell both sides."""
        if not self._closing:
            self._closing = True
            self._pump()

    def abort(self) -> None:
        """Throw away what is left and reset the connection."""
        if self._lost:
            return
        self._closing = True
        self._unsent.clear()
        self._unsent_bytes = 0
        self._ship(ConnectionResetError(104, "Connection reset by peer"))
        self._lose(None)

    def sever(self) -> None:
        """The process at this end was killed, or is out of reach: the far end is reset, and this one told nothing.

        What has arrived can still be read; nothing more comes, and nothing can be sent.
        """
        if not self._lost and not self._severed:
            self._severed = True
            self._unsent.clear()
            self._unsent_bytes = 0
            self._ship(ConnectionResetError(104, "Connection reset by peer"))

    # The way to the far end.

    def _pump(self) -> None:
        """Let go as much as the window allows; afterwards the end of the stream, when there is one."""
        while self._unsent and self._window_used < _WINDOW_BYTES:
            data = self._unsent.popleft()
            self._unsent_bytes -= len(data)
            self._window_used += len(data)
            self._ship(data)
        self._tell_writer()
        if not self._unsent and (self._closing or self._eof_written) and not self._lost:
            if not self._eof_shipped:
                self._eof_shipped = True
                self._ship(_EOF)
            if self._closing:
                self._lose(None)

    def _ship(self, item: _Item) -> None:
        if self._severed and isinstance(item, bytes):
            return
        self._on_the_way.append(item)
        self._loop.call_later(self._latency_s, self._land, context=NOWHERE)

    def _land(self) -> None:
        # One landing for each shipping, taken from a queue: timers of one instant have no order of their own.
        self._far._arrive(self._on_the_way.popleft())  # noqa: SLF001 - the two ends are one thing

    def _tell_writer(self) -> None:
        if self._closing or self._lost:
            return
        if not self._writer_paused and self._unsent_bytes > self._high:
            self._writer_paused = True
            self._protocol.pause_writing()
        elif self._writer_paused and self._unsent_bytes <= self._low:
            self._writer_paused = False
            self._protocol.resume_writing()

    # What comes from the far end.

    def _arrive(self, item: _Item) -> None:
        if self._severed:
            return
        if self._lost:
            if item and isinstance(item, bytes):  # nobody is here any more: the kernel answers with a reset
                self._ship(ConnectionResetError(104, "Connection reset by peer"))
            return
        self._inbox.append(item)
        if self._context is None:
            self._deliver()
        else:
            self._loop.call_soon(self._deliver, context=self._context)

    def _deliver(self) -> None:
        while self._inbox and self._reading and not self._lost:
            item = self._inbox.popleft()
            if isinstance(item, ConnectionResetError):
                self._closing = True
                self._lose(item)
            elif item:
                self._far._window_used -= len(item)  # noqa: SLF001 - the two ends are one thing
                if not self._closing:
                    self._protocol.data_received(item)
                self._far._pump()  # noqa: SLF001 - the two ends are one thing
            elif not self._closing and not self._protocol.eof_received():
                self.close()

    def _lose(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = True
            self._loop.call_soon(self._protocol.connection_lost, error, context=self._context)
