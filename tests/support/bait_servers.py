"""Servers around the bait: listeners that count, a site that leads astray, names that change their answers, proxies.

The proxies do whatever they are asked, and resolve names by the same name server: what keeps the crawler off the bait
behind them is the crawler alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from bait import ALIASES, BAIT, PUBLIC, PUBLIC_6, robots_redirects, zone
from dnslib import AAAA, CNAME, QTYPE, RCODE, RR, A, DNSRecord
from namespace import bound, scoped

RESOLVER_PORT, HTTP_PROXY_PORT, SOCKS_PORT = 5353, 3128, 1080
PORTS = (80, 443)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Names(asyncio.DatagramProtocol):
    """A name server whose answers take turns: each question for A begins the next one."""

    def __init__(self) -> None:
        self._zone = zone()
        self._asked: Counter[str] = Counter()

    def begin(self) -> None:
        """Let every name begin with its first answer."""
        self._asked.clear()

    def turn(self, name: str) -> tuple[str, ...]:
        """The next answer for a name."""
        self._asked[name] += 1
        return self._now(name)

    def _now(self, name: str) -> tuple[str, ...]:
        answers = self._zone.get(name, ((),))
        return answers[(self._asked[name] - 1) % len(answers)]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        request = DNSRecord.parse(data)
        asked, kind = str(request.q.qname).rstrip("."), QTYPE[request.q.qtype]
        name = ALIASES.get(asked, asked)
        addresses = self.turn(name) if kind == "A" else self._now(name)
        reply = request.reply()
        if name != asked:
            reply.add_answer(RR(asked, QTYPE.CNAME, rdata=CNAME(name), ttl=0))
        if not addresses:
            reply.header.rcode = RCODE.NXDOMAIN
        for address in addresses:
            packed = tuple(ip_address(address).packed)
            if kind == ("A" if len(packed) == 4 else "AAAA"):
                record = A(packed) if kind == "A" else AAAA(packed)
                reply.add_answer(RR(name, getattr(QTYPE, kind), rdata=record, ttl=0))
        self._transport.sendto(reply.pack(), addr)


class Servers:
    """All of them, on the loopback of a namespace that has the addresses."""

    def __init__(self) -> None:
        self.accepted: Counter[str] = Counter()
        """Connections to the bait, by its address."""
        self.proxied: Counter[str] = Counter()
        """What the proxies were asked for: hosts as they were named to them."""
        self._links: Sequence[str] = ()
        self._redirects: Sequence[str] = ()
        self._names = Names()
        self._robots = robots_redirects()

    def begin(self, links: Sequence[str], redirects: Sequence[str]) -> None:
        """Forget what was counted. The site's front page links to `links`, its ``/go/N`` leads to the Nth redirect."""
        self._links, self._redirects = links, redirects
        self.accepted.clear()
        self.proxied.clear()
        self._names.begin()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listen on all addresses."""
        async with AsyncExitStack() as stack:
            for address in BAIT:
                for port in PORTS:
                    await self._listen(stack, self._counting(address), address, port)
            for address in (PUBLIC, PUBLIC_6):
                await self._listen(stack, self._site, address, 80)
            await self._listen(stack, self._http_proxy, "127.0.0.1", HTTP_PROXY_PORT)
            await self._listen(stack, self._socks_proxy, "127.0.0.1", SOCKS_PORT)
            transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: self._names, ("127.0.0.1", RESOLVER_PORT)
            )
            stack.callback(transport.close)
            yield

    async def knock(self) -> Mapping[str, int]:
        """Connect to every bait once: proves that the listeners would have told."""
        self.accepted.clear()
        for address in BAIT:
            with suppress(OSError):
                _, writer = await asyncio.open_connection(scoped(address), 80)
                writer.close()
                await writer.wait_closed()
        return dict(self.accepted)

    async def _listen(self, stack: AsyncExitStack, serve: Serve, address: str, port: int) -> None:
        server = await asyncio.start_server(serve, sock=bound(address, port))
        stack.callback(server.close)

    def _counting(self, address: str) -> Serve:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.accepted[address] += 1
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                path = _path(await reader.readuntil(b"\r\n\r\n"))
                writer.write(_answer(404, "") if path == "/robots.txt" else _answer(200, f"<p>{address} {path}</p>"))
                await writer.drain()
            writer.close()

        return serve

    async def _site(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            host, path = _header(head, "host"), _path(head)
            writer.write(self._page(host, path))
            await writer.drain()
        writer.close()

    def _page(self, host: str, path: str) -> bytes:
        if path == "/robots.txt":
            astray = self._robots.get(host)
            return _answer(302, "", astray.url) if astray else _answer(404, "")
        if path.startswith("/go/"):
            return _answer(302, "", self._redirects[int(path.removeprefix("/go/"))])
        links = self._links if path == "/" else ()
        return _answer(200, f"<p>{host}{path}</p>" + "".join(f'<a href="{link}">.</a>' for link in links))

    # -- proxies that do as they are told ---------------------------------------------------------------------------

    async def _http_proxy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            verb, where = head.decode().split(" ")[:2]
            if verb == "CONNECT":
                asked = urlsplit(f"//{where}")
                await self._pass_on(reader, writer, asked, b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                await self._pass_on(reader, writer, urlsplit(where), b"", head)
        writer.close()

    async def _socks_proxy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readexactly((await reader.readexactly(2))[1])
            writer.write(b"\x05\x00")
            kind = (await reader.readexactly(4))[3]
            if kind == 3:
                host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
            else:
                host = str(ip_address(await reader.readexactly(4 if kind == 1 else 16)))
            port = int.from_bytes(await reader.readexactly(2))
            asked = urlsplit(f"//[{host}]:{port}" if ":" in host else f"//{host}:{port}")
            await self._pass_on(reader, writer, asked, b"\x05\x00\x00\x01" + bytes(6))
        writer.close()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        asked: SplitResult,
        ready: bytes,
        first: bytes = b"",
    ) -> None:
        host, port = asked.hostname or "", asked.port or 80
        self.proxied[host] += 1
        try:
            address = str(ip_address(host))
        except ValueError:
            address = (self._names.turn(host) or ("0.0.0.0",))[0]  # noqa: S104 - nobody's address
        far_reader, far_writer = await asyncio.open_connection(scoped(address), port)
        writer.write(ready)
        far_writer.write(first or await reader.readuntil(b"\r\n\r\n"))
        while data := await far_reader.read(65_536):
            writer.write(data)
        far_writer.close()


def _header(head: bytes, name: str) -> str:
    for line in head.decode("latin-1").split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name:
            return value.strip()
    return ""


def _path(head: bytes) -> str:
    """The path of a request line, whether it is in origin or in absolute form."""
    target = head.split(b" ")[1].decode("latin-1")
    return "/" + target.split("/", 3)[3] if target.startswith("http") else target


def _answer(status: int, body: str, location: str = "") -> bytes:
    where = f"Location: {location}\r\n" if location else ""
    content = body.encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n{where}"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
