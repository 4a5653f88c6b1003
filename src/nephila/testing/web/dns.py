"""A name server for the simulated web: A records for its hosts, NXDOMAIN for all other names, over UDP and TCP.

Only what stub resolvers send is understood (one question, class IN, no compression in it): RFC 1035, 4.1. A host that
exists has no other record than A, so that other types get an empty answer.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from ipaddress import IPv4Address

_HEADER = struct.Struct("!6H")
_TYPE_A, _CLASS_IN = 1, 1
_FLAGS_ANSWER = 0x8580  # a response, authoritative, recursion desired and available
_FORMAT_ERROR, _NO_SUCH_NAME = 1, 3
_POINTER_TO_QUESTION = 0xC00C  # RFC 1035, 4.1.4: the name at offset 12, right behind the header
_TTL_S = 300

Lookup = Callable[[str], str | None]


def answer_query(query: bytes, lookup: Lookup) -> bytes:
    """The response to one DNS message; empty when the message is too short to be answered."""
    if len(query) < _HEADER.size:
        return b""
    ident, _, questions, *_ = _HEADER.unpack_from(query)
    read = _read_name(query)
    if read is None or questions != 1:
        return _HEADER.pack(ident, _FLAGS_ANSWER | _FORMAT_ERROR, 0, 0, 0, 0)
    name, end = read
    kind, klass = struct.unpack_from("!2H", query, end)
    question = query[_HEADER.size : end + 4]
    address = lookup(name)
    if address is None:
        return _HEADER.pack(ident, _FLAGS_ANSWER | _NO_SUCH_NAME, 1, 0, 0, 0) + question
    if (kind, klass) != (_TYPE_A, _CLASS_IN):
        return _HEADER.pack(ident, _FLAGS_ANSWER, 1, 0, 0, 0) + question
    record = struct.pack("!3HIH", _POINTER_TO_QUESTION, _TYPE_A, _CLASS_IN, _TTL_S, 4) + IPv4Address(address).packed
    return _HEADER.pack(ident, _FLAGS_ANSWER, 1, 1, 0, 0) + question + record


def _read_name(query: bytes) -> tuple[str, int] | None:
    """The first question's name and the offset behind it, None when it does not fit the message."""
    labels, at = [], _HEADER.size
    while at < len(query) and query[at]:
        length = query[at]
        if length > 63:
            return None
        labels.append(query[at + 1 : at + 1 + length].decode("latin-1").lower())
        at += 1 + length
    return (".".join(labels), at + 1) if at + 5 <= len(query) else None


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]  # narrower
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        response = answer_query(data, self._lookup)
        if response:
            self._transport.sendto(response, addr)


class _Stream(asyncio.Protocol):
    """RFC 1035, 4.2.2: each message behind its length in two bytes."""

    def __init__(self, lookup: Lookup, open_streams: set[_Stream]) -> None:
        self._lookup = lookup
        self._open_streams = open_streams
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream protocol gets a Transport
        self._open_streams.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._open_streams.discard(self)

    def close(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 2:
            end = 2 + int.from_bytes(self._buffer[:2])
            if len(self._buffer) < end:
                return
            response = answer_query(self._buffer[2:end], self._lookup)
            self._buffer = self._buffer[end:]
            self._transport.write(len(response).to_bytes(2) + response)


class DnsServer:
    """Serves `lookup` on a free port of 127.0.0.1, the same for UDP and TCP."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._tcp: asyncio.Server | None = None
        self._udp: asyncio.DatagramTransport | None = None
        self._streams: set[_Stream] = set()
        self.port = 0

    async def start(self) -> None:
        """Bind and serve."""
        loop = asyncio.get_running_loop()
        self._tcp = await loop.create_server(lambda: _Stream(self._lookup, self._streams), "127.0.0.1", 0)
        self.port = self._tcp.sockets[0].getsockname()[1]
        self._udp, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(self._lookup), local_addr=("127.0.0.1", self.port)
        )

    async def stop(self) -> None:
        """Close both."""
        if self._udp:
            self._udp.close()
        if self._tcp:
            self._tcp.close()
            for stream in list(self._streams):  # from Python 3.12 on, waiting includes the clients
                stream.close()
            await self._tcp.wait_closed()
