"""A web of hostile and honest hosts on loopback, each host with an address of its own, and the name server for them.

Everything listens on all addresses of a network namespace that has loopback only (`namespace`); whom a connection is
for is told by the address that it came to. When each request arrived is written down, and so is every connection to an
address that nobody may connect to.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from dnslib import QTYPE, RCODE, RR, A, DNSRecord
from hostile_answers import BEHAVIOURS, PRIVATE, RESET, ROBOTS, Piece, counted, honest_page, links
from hostile_tls import TLS, HostileTls

RESOLVER_PORT = 5353
HONEST_ADDRESS, HOSTILE_ADDRESS = "127.2.0.{}", "127.3.0.{}"
_NOT_FOUND = counted(b"", b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n")
EARLY = "early"
"""The host that answers before it is asked."""


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class HostileWeb:
    """All hosts, and what they have seen."""

    def __init__(self, honest: int, pages: int, seed: int) -> None:
        self._pages = pages
        self._seed = seed
        self._asked: Counter[str] = Counter()
        self.tls = HostileTls()
        kinds = [*BEHAVIOURS, *ROBOTS, EARLY]
        self.honest = {f"good{number}.test": HONEST_ADDRESS.format(number + 1) for number in range(honest)}
        self.hostile = {f"{kind}.{kind}-bad.test": HOSTILE_ADDRESS.format(at + 1) for at, kind in enumerate(kinds)}
        self.secure = {f"{kind}.{kind}-tls.test": HOSTILE_ADDRESS.format(at + 101) for at, kind in enumerate(TLS)}
        self._names = {address: name for name, address in (self.honest | self.hostile | self.secure).items()}
        self.arrivals: dict[str, list[float]] = defaultdict(list)
        """When requests for pages came to honest hosts, by host."""
        self.fetched: dict[str, set[str]] = defaultdict(set)
        self.connections: Counter[str] = Counter()
        """By address."""

    def seeds(self, *, hostile: bool) -> list[str]:
        """A front page of each host."""
        plain = [f"http://{name}/" for name in (*self.honest, *(self.hostile if hostile else ()))]
        return plain + ([f"https://{name}/" for name in self.secure] if hostile else [])

    def trespasses(self) -> dict[str, int]:
        """Connections to addresses that nobody may connect to."""
        known = {*self.honest.values(), *self.hostile.values(), *self.secure.values()}
        return {address: count for address, count in self.connections.items() if address not in known}

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listen."""
        running: set[asyncio.Task[None]] = set()

        def serve(kind: Serve) -> Serve:
            async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = asyncio.current_task()
                assert task is not None
                running.add(task)
                with suppress(asyncio.CancelledError):  # only we do that, at the end
                    await kind(reader, writer)
                running.discard(task)
                writer.close()

            return one

        plain = await asyncio.start_server(serve(self._plain), "0.0.0.0", 80, backlog=1024)  # noqa: S104 - a namespace
        secure = await asyncio.start_server(serve(self._secure), "0.0.0.0", 443, backlog=1024)  # noqa: S104 - the same
        loop = asyncio.get_running_loop()
        names, _ = await loop.create_datagram_endpoint(lambda: _Names(self), ("127.0.0.1", RESOLVER_PORT))
        try:
            yield
        finally:
            plain.close()
            secure.close()
            names.close()
            for task in running:
                task.cancel()
            await asyncio.gather(*running)

    def address_of(self, name: str) -> str | None:
        """Of any host, those that pages mint included."""
        found = {**self.honest, **self.hostile, **self.secure}.get(name)
        return found or (HOSTILE_ADDRESS.format(1) if name.endswith(".minted.test") else None)

    async def _plain(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = writer.get_extra_info("sockname")[0]
        self.connections[address] += 1
        name = self._names.get(address, "")
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            if name.startswith(f"{EARLY}."):
                writer.write(counted(links()))
            while name:
                head = await reader.readuntil(b"\r\n\r\n")
                now, path = time.monotonic(), head.split(b" ", 2)[1].decode("latin-1")
                if not await _send(writer, self._answer(name, path, now)):
                    break

    def _answer(self, name: str, path: str, now: float) -> Iterable[Piece]:
        if name in self.honest:
            if path == "/robots.txt":
                return (_NOT_FOUND,)
            self.arrivals[name].append(now)
            if path == "/sitemap.xml":
                return (_NOT_FOUND,)
            self.fetched[name].add(path)
            return (honest_page(name, int(path.rpartition("/")[2] or 0), self._pages),)
        kind = name.partition(".")[0]
        self._asked[name] += 1
        chance = random.Random(f"{self._seed} {name} {self._asked[name]}")
        hostile = ROBOTS if path == "/robots.txt" else BEHAVIOURS
        if kind in hostile:
            return [*hostile[kind](path, chance), RESET] if kind not in _ENDLESS else hostile[kind](path, chance)
        return (_NOT_FOUND,) if path == "/robots.txt" else (counted(links()),)

    async def _secure(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = writer.get_extra_info("sockname")[0]
        self.connections[address] += 1
        name = self._names.get(address, "")
        with suppress(OSError):  # ssl.SSLError is one
            if name:
                await self.tls.serve(name.partition(".")[0], reader, writer)


_ENDLESS = frozenset(
    kind for kind in (*BEHAVIOURS, *ROBOTS) if "endless" in kind or kind in {"switching", "surplus-answers"}
)


async def _send(writer: asyncio.StreamWriter, pieces: Iterable[Piece]) -> bool:
    """Send the pieces; whether the connection goes on."""
    for piece in pieces:
        if isinstance(piece, bytes):
            writer.write(piece)
            await writer.drain()
        elif isinstance(piece, float):
            await asyncio.sleep(piece)
        else:
            await asyncio.sleep(0.02)
            wire: socket.socket = writer.get_extra_info("socket")
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
    return True


class _Names(asyncio.DatagramProtocol):
    """Names to addresses; what is not known does not exist."""

    def __init__(self, web: HostileWeb) -> None:
        self._web = web

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        request = DNSRecord.parse(data)
        reply = request.reply()
        address = self._web.address_of(str(request.q.qname).rstrip("."))
        if address is None:
            reply.header.rcode = RCODE.NXDOMAIN
        elif request.q.qtype == QTYPE.A:
            reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A(address), ttl=60))
        self._transport.sendto(reply.pack(), addr)


__all__ = ["PRIVATE", "RESOLVER_PORT", "HostileWeb"]
