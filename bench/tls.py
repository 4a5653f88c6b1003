"""What TLS costs the client: a new connection with one page of 30 KB, and a page over a connection that is kept.

The server runs in a process of its own, on loopback and another core. It shows a leaf and an intermediate, as servers
of the web do; they and their root are made by openssl for the occasion, once with keys on P-256, once with RSA of 2048
bits. Only the client's CPU time is counted. Ways are measured in turns, and the least of the turns counts.

    nephila bench tls [--json] [--quick] [--connections N] [--turns N] [--ways NAME,...]

`rtls` (rustls) is measured where it is installed.
"""

# ruff: noqa: ANN401 - rtls has the ssl module's types, but not their names
from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import multiprocessing
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any, cast

import certifi
import uvloop

from local_site.arguments import one_sentence
from local_site.authority import Chain, hashed_directory, made
from local_site.running import cores
from nephila.fetch import SocketDialer, secured
from nephila.fetch.secured import SecuredTransport

BODY = (b"<p>All work and no play makes a dull page.</p>\n" * 640)[:30_000]
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
REQUEST = b"GET / HTTP/1.1\r\nHost: site.test\r\nAccept-Encoding: gzip\r\nUser-Agent: bench\r\n\r\n"
NAME = "site.test"
AT_ONCE = 8

Dial = Callable[[Callable[[], asyncio.Protocol], int], Awaitable[Any]]


class _Server(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"\r\n\r\n"):
            self._transport.write(ANSWER)


def _serve(pipe: Pipe, chains: dict[str, Chain], core: int) -> None:
    if core >= 0:
        os.sched_setaffinity(0, {core})

    async def run() -> None:
        loop = asyncio.get_running_loop()
        ports = {}
        kinds: list[tuple[str, ssl.SSLContext | None]] = [("plain", None)]
        for kind, chain in chains.items():
            for tickets in (True, False):
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(chain.shown, chain.key)
                if not tickets:
                    context.num_tickets = 0
                kinds.append((kind if tickets else f"{kind} without tickets", context))
        for name, kind_context in kinds:
            server = await loop.create_server(_Server, "127.0.0.1", 0, ssl=kind_context, backlog=512)
            ports[name] = server.sockets[0].getsockname()[1]
        pipe.send(ports)
        await loop.create_future()

    uvloop.run(run())


class _Client(asyncio.Protocol):
    def __init__(self) -> None:
        self._left = 0
        self._done: asyncio.Future[None] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left <= 0 and self._done is not None and not self._done.done():
            self._done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(exc or ConnectionResetError("closed"))

    async def get(self) -> None:
        assert self.transport is not None
        self._left, self._done = len(ANSWER), asyncio.get_running_loop().create_future()
        self.transport.write(REQUEST)
        await self._done


class _Rustls(SecuredTransport):
    """rtls takes all ciphertext at once and tells by an exception that there is no more plaintext."""

    __slots__ = ()

    def _drain(self, worth: int = 1) -> None:  # noqa: ARG002 - as in the layer
        if self._tls is None:
            return
        try:
            while data := self._tls.read(65_536):
                self._above.data_received(data)
        except ssl.SSLWantReadError:
            self._flush()


class _WithoutSessions:
    """A context whose `wrap_bio` knows of no sessions."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def wrap_bio(self, *words: Any, session: None = None, **options: Any) -> Any:
        assert session is None
        return self._context.wrap_bio(*words, **options)


# -- ways to dial ------------------------------------------------------------------------------------------------------


def by_loop(context: ssl.SSLContext | None) -> Dial:
    """As the loop does it."""

    async def dial(factory: Callable[[], asyncio.Protocol], port: int) -> None:
        name = None if context is None else NAME
        loop = asyncio.get_running_loop()
        await loop.create_connection(factory, "127.0.0.1", port, ssl=context, server_hostname=name)

    return dial


def by_layer(context: Any, layer: type[SecuredTransport] = SecuredTransport, read: int = 16_384) -> Dial:
    """With the layer of our own."""

    async def dial(factory: Callable[[], asyncio.Protocol], port: int) -> None:
        secured.RECORD_BYTES = read
        above = factory()
        loop = asyncio.get_running_loop()
        _, way = await loop.create_connection(lambda: layer(above, context, NAME), "127.0.0.1", port)
        await way.secured()

    return dial


def by_dialer(context: ssl.SSLContext) -> Dial:
    """As the fetcher does it: with the layer, and sessions resumed."""
    dialer = SocketDialer()

    async def dial(factory: Callable[[], asyncio.Protocol], port: int) -> None:
        await dialer.open(factory, "127.0.0.1", port, tls=context, server_name=NAME)

    return dial


@dataclass(frozen=True, slots=True)
class Way:
    """One row: how to dial, and which of the server's ports."""

    name: str
    dial: Dial
    port: str


def context_for(chain: Chain, library: Any = ssl, **changes: Any) -> Any:
    """As the fetcher makes it, with the authority of the bench beside the store."""
    context = library.SSLContext(library.PROTOCOL_TLS_CLIENT)
    context.minimum_version = library.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if "directory" in changes:
        context.load_verify_locations(capath=str(changes["directory"]))
    else:
        if not changes.get("alone"):
            context.load_verify_locations(certifi.where())
        context.load_verify_locations(str(chain.root))
    if changes.get("unverified"):
        context.check_hostname = False
        context.verify_mode = library.CERT_NONE
    if changes.get("known"):
        context.load_verify_locations(str(chain.intermediate))
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if "curve" in changes:
        context.set_ecdh_curve(changes["curve"])
    if "maximum" in changes:
        context.maximum_version = changes["maximum"]
    context.options |= changes.get("options", 0)
    return context


def ways(kind: str, chain: Chain, folder: Path) -> list[Way]:
    """All rows for one kind of keys."""
    found = [
        Way("plain", by_loop(None), "plain"),
        Way("loop", by_loop(context_for(chain)), kind),
        Way("layer", by_layer(context_for(chain)), kind),
        Way("dialer: sessions resumed", by_dialer(context_for(chain)), kind),
        Way("dialer: sessions resumed TLS 1.2", by_dialer(context_for(chain, maximum=ssl.TLSVersion.TLSv1_2)), kind),
        Way("layer: unverified", by_layer(context_for(chain, unverified=True)), kind),
        Way("layer: TLS 1.2", by_layer(context_for(chain, maximum=ssl.TLSVersion.TLSv1_2)), kind),
        Way("layer: P-256 first", by_layer(context_for(chain, curve="prime256v1")), kind),
        Way("layer: no tickets sent", by_layer(context_for(chain)), f"{kind} without tickets"),
        Way("layer: OP_NO_TICKET", by_layer(context_for(chain, options=ssl.OP_NO_TICKET)), kind),
        Way("layer: one authority", by_layer(context_for(chain, alone=True)), kind),
        Way("layer: store as directory", by_layer(context_for(chain, directory=hashed_directory(chain, folder))), kind),
        Way("layer: intermediate trusted", by_layer(context_for(chain, known=True)), kind),
        Way("layer: reads of 256 KB", by_layer(context_for(chain), read=262_144), kind),
    ]
    if hasattr(ssl, "OP_IGNORE_UNEXPECTED_EOF"):
        ignoring = context_for(chain, options=ssl.OP_IGNORE_UNEXPECTED_EOF)
        found.append(Way("layer: OP_IGNORE_UNEXPECTED_EOF", by_layer(ignoring), kind))
    try:
        rtls = importlib.import_module("rtls")
    except ImportError:
        return found
    found.append(Way("layer: rtls", by_layer(_WithoutSessions(context_for(chain, rtls)), _Rustls), kind))
    found.append(Way("loop: rtls", by_loop(context_for(chain, rtls)), kind))
    return found


# -- measuring ---------------------------------------------------------------------------------------------------------


async def _opened(way: Way, port: int) -> _Client:
    client = _Client()
    await way.dial(lambda: client, port)
    return client


async def _new(way: Way, port: int, connections: int) -> float:
    """CPU seconds of a new connection with one page."""

    async def work() -> None:
        for _ in range(connections // AT_ONCE):
            client = await _opened(way, port)
            await client.get()
            assert client.transport is not None
            client.transport.abort()

    began = time.process_time()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return (time.process_time() - began) / connections


async def _kept(way: Way, port: int, pages: int) -> float:
    """CPU seconds of a page over connections that have been open for a while."""

    async def work(client: _Client, count: int) -> None:
        for _ in range(count):
            await client.get()

    clients = [await _opened(way, port) for _ in range(AT_ONCE)]
    await asyncio.gather(*(work(client, 2) for client in clients))
    began = time.process_time()
    await asyncio.gather(*(work(client, pages // AT_ONCE) for client in clients))
    spent = time.process_time() - began
    for client in clients:
        assert client.transport is not None
        client.transport.abort()
    return spent / pages


def measure(given: argparse.Namespace, chains: dict[str, Chain], ports: dict[str, int], folder: Path) -> list[Any]:
    """Microseconds for each way: a new connection with one page, and one more page over it."""
    rows = [(kind, way) for kind, chain in chains.items() for way in ways(kind, chain, folder)]
    if given.ways:
        rows = [(kind, way) for kind, way in rows if way.name in given.ways.split(",")]
    least: dict[tuple[str, str], list[float]] = {(kind, way.name): [1e9, 1e9] for kind, way in rows}
    for _ in range(given.turns):
        for kind, way in rows:
            best = least[kind, way.name]
            port = ports[way.port]
            best[0] = min(best[0], uvloop.run(_new(way, port, given.connections)) * 1e6)
            best[1] = min(best[1], uvloop.run(_kept(way, port, given.connections * 5)) * 1e6)
    plain = {kind: least[kind, "plain"] for kind, _ in rows if (kind, "plain") in least}
    return [
        {
            "keys": kind,
            "way": way.name,
            "new_us": round(least[kind, way.name][0], 1),
            "page_us": round(least[kind, way.name][1], 1),
            "new_over_plain_us": round(least[kind, way.name][0] - plain[kind][0], 1) if kind in plain else None,
        }
        for kind, way in rows
    ]


def store_ms() -> dict[str, float]:
    """What loading the store of authorities takes, once."""
    found = {}
    for name, load in {
        "file": lambda context: context.load_verify_locations(certifi.where()),
        "none": lambda _: None,
    }.items():
        spent = []
        for _ in range(5):
            began = time.process_time()
            load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
            spent.append(time.process_time() - began)
        found[name] = round(min(spent) * 1000, 2)
    return found


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="nephila bench tls", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="few turns; ends within 45 s")
    parser.add_argument("--connections", type=int, default=0, metavar="N", help="in each turn [40]")
    parser.add_argument("--turns", type=int, default=0, metavar="N", help="turns of which the least counts [20]")
    parser.add_argument("--ways", default="", metavar="NAME,...", help="only the ways of these names")
    one_sentence(parser)
    given = parser.parse_args()
    given.connections = given.connections or 40
    given.turns = given.turns or (3 if given.quick else 20)
    if given.connections < AT_ONCE:
        parser.error(f"--connections is at least {AT_ONCE}")
    with tempfile.TemporaryDirectory(prefix="nephila-bench-") as directory:
        folder = Path(directory)
        chains = {kind: made(kind, NAME, folder) for kind in ("P-256", "RSA 2048")}
        ours, theirs = multiprocessing.Pipe()
        mine, other = cores()
        server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, chains, other), daemon=True)
        server.start()
        theirs.close()
        if mine >= 0:
            os.sched_setaffinity(0, {mine})
        try:
            ports = ours.recv()
            report = {
                "bench": "tls",
                "openssl": ssl.OPENSSL_VERSION,
                "python": sys.version.split()[0],
                "load_store_ms": store_ms(),
                "rows": measure(given, chains, ports, folder),
            }
        finally:
            server.terminate()
            server.join()
    if given.json:
        print(json.dumps(report))
        return
    print(f"{report['openssl']}; loading the store: {report['load_store_ms']['file']} ms")
    print("keys      new us  over plain  page us  way")
    for row in cast("list[dict[str, Any]]", report["rows"]):
        over = "-" if row["new_over_plain_us"] is None else f"{row['new_over_plain_us']:.0f}"
        print(f"{row['keys']:<9} {row['new_us']:>6.0f} {over:>11} {row['page_us']:>8.1f}  {row['way']}")


if __name__ == "__main__":
    main()
