"""The server's side of a connection, the same over real sockets and in memory.

`WebProtocol` reads HTTP/1.1 requests off an asyncio transport, one at a time, asks the web what to answer, and sends it
as the answer says: after its delay, at its rate, with its fault. The auditor is told of each request when it has
arrived and of each answer just before its last byte is handed over: what it measures is never shorter than what the
client did.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from .auditor import Arrival, Auditor, Ticket
from .simulated import SimulatedWeb
from .trap_hosts import TrapWitness
from .wire import Fault, ServedAnswer

_DRIP_S = 0.1
"""A dripping answer sends a piece so often."""
_MAX_REQUEST_BYTES = 65_536
_RESET_AFTER_S = 0.02
"""Between the last bytes and the reset that follows them: a reset overtakes what is still in the kernel's buffer."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One answer as it really left, for comparisons byte for byte."""

    host: str
    target: str
    at_ms: float
    status: int
    wire: bytes
    complete: bool


class WebService:
    """What all connections of a server share: the web, the auditor, the clock, the counts of tries, the log."""

    def __init__(
        self,
        web: SimulatedWeb,
        auditor: Auditor | None,
        *,
        now_ms: Callable[[], float],
        wall_ms: Callable[[], int],
        log: list[Sent] | None = None,
    ) -> None:
        self.web = web
        self.now_ms = now_ms
        self.log = log
        self.connections: set[WebProtocol] = set()
        self.witness = TrapWitness(web.traps)
        self._auditor = auditor
        self._wall_ms = wall_ms
        self._tries: Counter[tuple[str, str]] = Counter()
        self._connected = 0

    def protocol(self, address: str) -> WebProtocol:
        """The server's end of a new connection to an address."""
        self._connected += 1
        return WebProtocol(self, address, self._connected)

    def answer(self, host: str, target: str, headers: dict[str, str]) -> ServedAnswer:
        """The web's answer, tries counted where they matter."""
        trap = self.web.traps.find(host)
        if trap is not None:
            self.witness.asked(trap, target)
        key = (host, self.web.canonical_target(host, target))
        answer = self.web.answer(host, target, headers, self._wall_ms(), self._tries.get(key, 0))
        if answer.counts_tries:
            self._tries[key] += 1
        return answer

    def arrived(self, arrival: Arrival) -> Ticket | None:
        """Tell the auditor, if there is one."""
        return self._auditor.arrived(arrival) if self._auditor else None

    def answered(self, ticket: Ticket | None, exchange: Exchange, *, complete: bool) -> None:
        """Tell auditor and log that an answer ended."""
        answer, at_ms = exchange.answer, self.now_ms()
        sent = exchange.sent_bytes
        if self._auditor and ticket is not None:
            self._auditor.answered(
                ticket,
                at_ms,
                answer.status if sent else 0,
                complete=complete,
                retry_after_ms=answer.retry_after_ms,
                respells=answer.respells,
            )
        if self.log is not None:
            arrival = exchange.arrival
            self.log.append(Sent(arrival.host, arrival.target, at_ms, answer.status, answer.wire[:sent], complete))


@dataclass(slots=True)
class Exchange:
    """The request that is being answered."""

    arrival: Arrival
    ticket: Ticket | None
    answer: ServedAnswer
    close: bool
    sent_bytes: int = 0


class WebProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, service: WebService, address: str, connection: int) -> None:
        self._service = service
        self._address = address
        self._connection = connection
        self._buffer = b""
        self._exchange: Exchange | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport
        self._loop: asyncio.AbstractEventLoop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request."""
        self._transport = transport  # type: ignore[assignment]  # a stream protocol gets a Transport
        self._loop = asyncio.get_running_loop()
        self._service.connections.add(self)
        self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request; answer it when it is whole and nothing else is being answered."""
        self._buffer += data
        if self._exchange is None:
            self._next_request()

    def eof_received(self) -> bool:
        """The client has said all: close, as simple servers do."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left, or we closed: an answer that was under way has ended here."""
        del exc
        self._service.connections.discard(self)
        if self._timer:
            self._timer.cancel()
        if self._exchange:
            exchange, self._exchange = self._exchange, None
            self._service.answered(exchange.ticket, exchange, complete=False)

    def close(self) -> None:
        """End the connection: the server shuts down."""
        self._transport.abort()

    def _wait_for_request(self) -> None:
        self._timer = self._loop.call_later(self._service.web.spec.timing.idle_s, self._transport.close)

    def _next_request(self) -> None:
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            if len(head) > _MAX_REQUEST_BYTES:
                self._transport.abort()
            return
        self._buffer = rest
        if self._timer:
            self._timer.cancel()
        request, *lines = head.decode("latin-1").split("\r\n")
        method, _, target = request.rpartition(" ")[0].partition(" ")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        host = headers.get("host", "").partition(":")[0].lower()
        if method != "GET" or not target.startswith("/"):
            self._transport.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            self._transport.close()
            return
        arrival = Arrival(host, self._address, target, self._service.now_ms(), self._connection, headers)
        ticket = self._service.arrived(arrival)
        answer = self._service.answer(host, target, headers)
        close = answer.close or headers.get("connection", "").lower() == "close" or request.endswith("1.0")
        self._exchange = Exchange(arrival, ticket, answer, close)
        if answer.delay_s:
            self._timer = self._loop.call_later(answer.delay_s, self._send)
        else:
            self._send()

    def _send(self) -> None:
        """Send all that goes at once; come back later for the rest."""
        exchange = self._exchange
        if exchange is None or self._transport.is_closing():
            return
        answer, out = exchange.answer, exchange.answer.sent
        if answer.bytes_per_s:
            piece = max(1, int(answer.bytes_per_s * _DRIP_S))
            end = exchange.sent_bytes + piece
            if end < len(out):
                self._transport.write(out[exchange.sent_bytes : end])
                exchange.sent_bytes = end
                self._timer = self._loop.call_later(_DRIP_S, self._send)
                return
            out = out[exchange.sent_bytes :]
        exchange.sent_bytes += len(out)
        if answer.fault is None:
            self._finish(exchange, out)
        else:
            self._break(answer.fault, out)

    def _finish(self, exchange: Exchange, out: bytes) -> None:
        self._exchange = None
        self._service.answered(exchange.ticket, exchange, complete=True)
        self._transport.write(out)
        if exchange.close:
            self._transport.close()
        else:
            self._wait_for_request()
            if self._buffer:
                self._next_request()

    def _break(self, fault: Fault, out: bytes) -> None:
        if out:
            self._transport.write(out)
        match fault:
            case Fault.CUT:
                self._transport.close()
            case Fault.RESET:
                self._timer = self._loop.call_later(_RESET_AFTER_S if out else 0, self._reset)
            case Fault.HANG:
                """The client will leave one day."""

    def _reset(self) -> None:
        connection = self._transport.get_extra_info("socket")
        if connection is not None:  # real sockets only reset, and do not close in order, when told not to linger
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()
