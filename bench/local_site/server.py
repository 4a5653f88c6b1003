"""Serves the site on loopback, cheaply, and counts what was asked for.

A process of its own, on a core of its own, so that it neither costs the crawler anything nor keeps it waiting: requests
are not parsed beyond what is needed, pages are written and compressed once and kept. It listens on loopback addresses
and refuses all others. It lives as long as its standard input: `counts` and `reset`, a line each, are answered with a
line of JSON.

    python server.py --pages 20000 --kilobytes 30 [--latency-ms 200] [--per-connection 10] [--tls PEM]
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import ipaddress
import json
import os
import socket
import ssl
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import cast

import uvloop
from isal import isal_zlib

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from local_site.pages import Plan, Site

ROBOTS = b"User-agent: *\nAllow: /\n"
KEPT_BYTES = 400_000_000
"""Room for pages that are ready to send; beyond it they are written anew for each request."""
LEVEL = 3
"""ISA-L's best, about that of a web server's gzip."""
BACKLOG = 1024


@dataclass(slots=True)
class Counts:
    """What was asked for since the last reset."""

    pages: set[tuple[int, int]] = field(default_factory=set)
    answers: int = 0
    page_answers: int = 0
    robots: int = 0
    missing: int = 0
    other: int = 0
    connections: int = 0
    bytes: int = 0
    first_at: float = 0.0
    last_at: float = 0.0

    def document(self) -> dict[str, float]:
        """As it is told: `pages` are different pages that were answered with 200, `busy_s` from first to last."""
        return {
            "pages": len(self.pages),
            "page_answers": self.page_answers,
            "answers": self.answers,
            "robots": self.robots,
            "missing": self.missing,
            "other": self.other,
            "connections": self.connections,
            "bytes": self.bytes,
            "busy_s": self.last_at - self.first_at,
            "server_cpu_s": time.process_time(),
        }


class Store:
    """Answers that are ready to send."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._kept: dict[tuple[int, int, bool], bytes] = {}
        self._bytes = 0
        self._date = formatdate(usegmt=True)

    def page(self, host: int, number: int, *, packed: bool) -> bytes:
        """Head and body."""
        key = (host, number, packed)
        known = self._kept.get(key)
        if known is not None:
            return known
        body = self.site.body(host, number)
        if packed:
            body = isal_zlib.compress(body, LEVEL, 31)
        answer = self.answer("200 OK", "text/html; charset=utf-8", body, "Content-Encoding: gzip\r\n" if packed else "")
        if self._bytes < KEPT_BYTES:
            self._kept[key] = answer
            self._bytes += len(answer)
        return answer

    def answer(self, status: str, media: str, body: bytes, more: str = "") -> bytes:
        """A head as servers send it, and the body."""
        return (
            f"HTTP/1.1 {status}\r\nDate: {self._date}\r\nServer: site\r\nContent-Type: {media}\r\n"
            f"Vary: Accept-Encoding\r\nCache-Control: max-age=600\r\n{more}Content-Length: {len(body)}\r\n"
        ).encode() + (b"\r\n" + body)


@dataclass(frozen=True, slots=True)
class Manner:
    """How the server answers."""

    latency_s: float = 0.0
    per_connection: int = 0
    """Answers after which a connection is closed; 0 for never."""
    rough: bool = False
    """Some links do not lead to what they look like: documents, pictures, nothing."""


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, store: Store, counts: Counts, manner: Manner, hosts: dict[str, int]) -> None:
        self._store = store
        self._counts = counts
        self._manner = manner
        self._hosts = hosts
        self._host = 0
        self._answered = 0
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The address that was called is the host."""
        self._transport = cast("asyncio.Transport", transport)
        self._host = self._hosts[transport.get_extra_info("sockname")[0]]
        self._counts.connections += 1

    def data_received(self, data: bytes) -> None:
        """Answer every whole request that is there."""
        data = self._pending + data if self._pending else data
        while data:
            request, end, data = data.partition(b"\r\n\r\n")
            if not end:
                break
            self._answer(request)
        self._pending = request if data == b"" and not end else b""

    def _answer(self, request: bytes) -> None:
        counts = self._counts
        self._answered += 1
        counts.answers += 1
        counts.last_at = time.monotonic()
        counts.first_at = counts.first_at or counts.last_at
        answer = self._found(request)
        lowered = request.lower()
        last = self._answered == self._manner.per_connection or b"\r\nconnection: close" in lowered
        if last:
            answer = answer.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
        if request.startswith(b"HEAD "):
            answer = answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        counts.bytes += len(answer)
        if self._manner.latency_s:
            asyncio.get_running_loop().call_later(self._manner.latency_s, self._send, answer, last)
        else:
            self._send(answer, last)

    def _send(self, answer: bytes, last: bool) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer)
            if last:
                self._transport.close()

    def _found(self, request: bytes) -> bytes:
        path = request.split(b" ", 2)[1].decode("latin-1")
        if path == "/robots.txt":
            self._counts.robots += 1
            return self._store.answer("200 OK", "text/plain", ROBOTS)
        number = self._store.site.find(path)
        if number is None:
            self._counts.missing += 1
            return self._store.answer("404 Not Found", "text/plain", b"There is no such page.\n")
        if self._manner.rough and (surprise := self._surprise(number)) is not None:
            return surprise
        self._counts.pages.add((self._host, number))
        self._counts.page_answers += 1
        return self._store.page(self._host, number, packed=b"gzip" in request)

    def _surprise(self, number: int) -> bytes | None:
        """What one link in thirty leads to instead of a page: a document, a picture, nothing any more."""
        match number % 90:
            case 29:
                self._counts.other += 1
                return self._store.answer("200 OK", "application/pdf", b"%PDF-1.7\n" + bytes(20_000))
            case 59:
                self._counts.other += 1
                return self._store.answer("200 OK", "image/png", b"\x89PNG\r\n\x1a\n" + bytes(20_000))
            case 89:
                self._counts.missing += 1
                return self._store.answer("404 Not Found", "text/plain", b"There is no such page any more.\n")
        return None


def listening(addresses: Sequence[str]) -> list[socket.socket]:
    """Sockets on one free port of all these addresses, which must be loopback ones."""
    strangers = [address for address in addresses if not ipaddress.ip_address(address).is_loopback]
    if strangers:
        raise SystemExit(f"The site is served on loopback only, and {strangers[0]} is not a loopback address.")
    for _ in range(50):
        sockets: list[socket.socket] = []
        port = 0
        try:
            for address in addresses:
                one = socket.socket()
                sockets.append(one)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind((address, port))
                port = one.getsockname()[1]
        except OSError as problem:
            for one in sockets:
                one.close()
            if problem.errno != errno.EADDRINUSE:
                raise SystemExit(f"The site cannot listen on {address}: {problem.strerror}.") from problem
        else:
            return sockets
    raise SystemExit("No port is free on all addresses of the site.")


async def serve(plan: Plan, manner: Manner, certificate: Path | None) -> None:
    """Say where, then answer until standard input ends."""
    loop = asyncio.get_running_loop()
    sockets = listening(plan.addresses)
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    port = sockets[0].getsockname()[1]
    store = Store(Site(plan, "http" if context is None else "https", port))
    counts = Counts()
    hosts = {address: number for number, address in enumerate(plan.addresses)}
    for one in sockets:
        await loop.create_server(
            lambda: Connection(store, counts, manner, hosts), sock=one, ssl=context, backlog=BACKLOG
        )
    store.page(0, 0, packed=True)  # so that the moulds are there before the first request
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    _tell({"port": port, "pages": store.site.per_host * plan.hosts})
    while line := await reader.readline():
        if line == b"reset\n":
            for name, value in vars_of(Counts()).items():
                setattr(counts, name, value)
        _tell(counts.document())


def vars_of(counts: Counts) -> dict[str, object]:
    """The fields of a slotted record."""
    return {name: getattr(counts, name) for name in Counts.__slots__}


def _tell(document: dict[str, float]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="server.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--kilobytes", type=int, default=30)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--base", default="127.0.0.0", help="hosts are the addresses that follow")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--per-connection", type=int, default=0)
    parser.add_argument("--rough", action="store_true", help="some links lead to what is no page")
    parser.add_argument("--tls", type=Path, metavar="PEM", help="key and certificate")
    parser.add_argument("--core", type=int, default=-1)
    given = parser.parse_args()
    if given.core >= 0:
        os.sched_setaffinity(0, {given.core})
    plan = Plan(given.pages, given.kilobytes, given.hosts, given.seed, given.base)
    uvloop.run(serve(plan, Manner(given.latency_ms / 1000, given.per_connection, given.rough), given.tls))


if __name__ == "__main__":
    main()
