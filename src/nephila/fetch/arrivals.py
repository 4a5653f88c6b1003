"""When answers came: looked at often, as a loop that has much to do only learns of it later.

A turn of a busy loop takes some tens of milliseconds, and what comes meanwhile lies in its socket. A host's rest begins
with the end of its answer, not with the moment in which somebody had time to read it; and what the wait says of the
server would be wrong, too. So the sockets stand in a second epoll set as well, which says of each once that something
new came (edges, not levels), and which is looked at between any two answers: a microsecond each time, while the
interpreter's lock is kept.

What must stay true: a moment that is told is never earlier than the last byte. So with it the kernel's count of bytes
is noted that had come by then. Where it is another one when the answer is read, something came since, and nobody saw
it: the answer has come when it was read.
"""

from __future__ import annotations

import asyncio
import select
import socket
import sys

from nephila.interfaces.clock import Clock
from nephila.native import AVAILABLE, native

MOST_AT_ONCE = 256
"""Sockets that one call tells of; there may be more."""

_INFO_BYTES = 136
"""Of Linux's `struct tcp_info`, up to and with `tcpi_bytes_received`: the last eight."""


def plain_received(number: int) -> int:
    """The bytes that have come in a socket so far; -1 where the kernel does not count them."""
    try:
        found = socket.socket(fileno=number)
    except OSError:
        return -1
    try:
        told = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    except OSError:
        return -1
    finally:
        found.detach()
    return int.from_bytes(told[-8:], sys.byteorder) if len(told) == _INFO_BYTES else -1


def plain_readable(watched: select.epoll, _number: int) -> list[int]:
    """The sockets with something new: the number of one and the bytes that have come in it, then the next."""
    found = watched.poll(0, MOST_AT_ONCE)
    return [figure for number, _ in found for figure in (number, plain_received(number))]


def _fast_readable(_watched: select.epoll, number: int) -> list[int]:
    return native.readable(number)


readable = _fast_readable if AVAILABLE else plain_readable
received = native.received if AVAILABLE else plain_received


class Arrivals:
    """The sockets of a fetcher, and when something came in each."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._set = select.epoll()
        self._number = self._set.fileno()
        self._came: dict[int, tuple[int, int]] = {}
        """By socket: when somebody saw that something had come, and how many bytes had by then."""

    def watch(self, transport: asyncio.BaseTransport) -> int:
        """Watch the socket of an open connection until that is closed; the number to ask for it by, -1 for none."""
        found = transport.get_extra_info("socket")
        if found is None or self._number < 0:
            return -1
        number: int = found.fileno()
        self._came.pop(number, None)
        try:
            self._set.register(number, select.EPOLLIN | select.EPOLLET)
        except FileExistsError:  # TLS that was begun on it: the same socket under another transport
            return number
        except OSError:  # no room for one more: its answers have come when they are read
            return -1
        return number

    def look(self) -> None:
        """Note what has come since the last look."""
        while self._number >= 0 and (found := readable(self._set, self._number)):
            now_ms, came = self._clock.steady_ms(), self._came
            for at in range(0, len(found), 2):
                came[found[at]] = now_ms, found[at + 1]
            if len(found) < 2 * MOST_AT_ONCE:
                return

    def came_ms(self, number: int) -> int | None:
        """When the last bytes came of what was just read of a socket; None where that is all that is known."""
        seen = self._came.pop(number, None)
        if seen is None:
            return None
        came_ms, count = seen
        return came_ms if count >= 0 and received(number) == count else None

    def close(self) -> None:
        """Watch nothing any more."""
        self._number = -1
        self._set.close()
