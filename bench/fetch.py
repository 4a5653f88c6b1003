"""CPU per request of the fetcher beside other clients, in one run on one machine: read the ratios, not the figures.

The server runs in a process of its own on loopback and answers every GET with the same 30 KB; only the client's CPU
time is counted, the best of some rounds. Clients that are not installed are left out. ``bare`` is the least that can be
done with asyncio: it counts bytes. ``--tls`` asks the fetcher alone, over TLS, by HTTP/1.1 and by HTTP/2 in turn; the
server is granian, which speaks both. Run: ``python bench/fetch.py [--json] [--requests N] [--tls]``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import uvloop

from nephila.fetch import AddressGuard, DnsResolver, HttpFetcher, SocketDialer, TlsContexts
from nephila.model.exchange import Fetched, FetchRequest
from nephila.model.settings import DnsSettings, FetchSettings

BODY = (b"<p>All work and no play makes a dull page.</p>\n" * 640)[:30_000]
ANSWER = (
    b"HTTP/1.1 200 OK\r\nDate: Mon, 01 Jun 2026 00:00:00 GMT\r\nServer: bench\r\n"
    b"Content-Type: text/html; charset=utf-8\r\n"
    b'Last-Modified: Mon, 01 Jun 2026 00:00:00 GMT\r\nETag: "5f3-abc"\r\nVary: Accept-Encoding\r\nX-A: 1\r\nX-B: 2\r\n'
    b"Content-Length: %d\r\n\r\n" % len(BODY)
) + BODY
CONCURRENCY = 32
ROUNDS = 10

OneRequest = Callable[[str], Awaitable[int]]


class _Server(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"\r\n\r\n"):
            self.transport.write(ANSWER)  # type: ignore[attr-defined]  # a socket's transport


def serve(pipe: Pipe) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())


class _RealClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def boot_id(self) -> str:
        return "bench"


class _Bare(asyncio.Protocol):
    """The least that can be done with asyncio: the floor to compare with."""

    def __init__(self) -> None:
        self.size = 0
        self.done: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        self.size += len(data)
        if self.size >= len(ANSWER) and self.done is not None:
            self.done.set_result(None)


async def _run(count: int, url: str, one: OneRequest) -> float:
    """CPU microseconds per request over `CONCURRENCY` lanes."""
    left = iter(range(0))

    async def lane() -> None:
        for _ in left:
            if await one(url) != len(BODY):
                raise RuntimeError("wrong answer")

    best = float("inf")
    for _ in range(ROUNDS):
        left = iter(range(count // ROUNDS))
        started = time.process_time()
        await asyncio.gather(*(lane() for _ in range(CONCURRENCY)))
        best = min(best, time.process_time() - started)
    return best / (count // ROUNDS) * 1e6


async def bench_nephila(count: int, url: str, *, keep: bool, http2: str = "off", authority: bytes = b"") -> float:
    settings = FetchSettings(allow_addresses=("127.0.0.0/8",), keep_alive_s=15.0 if keep else 0.0, http2=http2)
    clock = _RealClock()
    fetcher = HttpFetcher(
        settings,
        DnsResolver(DnsSettings(), clock),
        SocketDialer(),
        AddressGuard(settings.allow_addresses),
        clock,
        lambda declared, _: declared.partition(";")[0],
        TlsContexts(authority),
    )

    async def one(url: str) -> int:
        answer = await fetcher.fetch(FetchRequest(url, accept_types=("text/html",)))
        return len(answer.body) if isinstance(answer, Fetched) else -1

    try:
        return await _run(count, url, one)
    finally:
        await fetcher.close()


async def bench_bare(count: int, url: str, *, keep: bool) -> float:
    loop = asyncio.get_running_loop()
    port = int(url.split(":")[2].strip("/"))
    idle: list[tuple[asyncio.Transport, _Bare]] = []
    request = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\nUser-Agent: bare\r\n\r\n"

    async def one(_: str) -> int:
        transport, bare = idle.pop() if idle else await loop.create_connection(_Bare, "127.0.0.1", port)
        bare.size, bare.done = 0, loop.create_future()
        transport.write(request)
        await bare.done
        if keep:
            idle.append((transport, bare))
        else:
            transport.abort()
        return bare.size - len(ANSWER) + len(BODY)

    try:
        return await _run(count, url, one)
    finally:
        for transport, _ in idle:
            transport.abort()


async def bench_aiohttp(count: int, url: str, *, keep: bool) -> float:
    import aiohttp  # noqa: PLC0415 - perhaps not installed

    connector = aiohttp.TCPConnector(limit=0, force_close=not keep)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(url: str) -> int:
            async with session.get(url) as answer:
                return len(await answer.read())

        return await _run(count, url, one)


async def bench_pycurl(count: int, url: str, *, keep: bool) -> float:
    import pycurl  # noqa: PLC0415 - perhaps not installed

    def run(count: int) -> float:
        multi = pycurl.CurlMulti()
        idle = []
        for _ in range(CONCURRENCY):
            handle = pycurl.Curl()
            handle.setopt(pycurl.URL, url)
            handle.setopt(pycurl.NOPROXY, "*")
            handle.setopt(pycurl.FORBID_REUSE, 0 if keep else 1)
            handle.setopt(pycurl.WRITEFUNCTION, len)
            idle.append(handle)
        started, begun, done = time.process_time(), 0, 0
        while done < count:
            while idle and begun < count:
                multi.add_handle(idle.pop())
                begun += 1
            multi.perform()
            _, good, _ = multi.info_read()
            for handle in good:
                multi.remove_handle(handle)
                idle.append(handle)
                done += 1
            if not good:
                multi.select(0.5)
        return (time.process_time() - started) / count * 1e6

    return min(run(count // ROUNDS) for _ in range(ROUNDS))


async def app(scope: dict[str, Any], receive: object, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    """The same answer, for granian to serve."""
    del receive
    if scope["type"] == "http":
        lines = (line.partition(b": ") for line in ANSWER.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:])
        headers = [(name.lower(), value) for name, _, value in lines]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": BODY})


def bench_secured(count: int) -> dict[str, dict[str, float]]:
    """The fetcher over TLS by either protocol, in turn."""
    import trustme  # noqa: PLC0415 - with granian, of the tests

    port, authority = 28_443, trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    with tempfile.TemporaryDirectory() as folder:
        key, chain = Path(folder, "key.pem"), Path(folder, "chain.pem")
        certificate.private_key_pem.write_to_path(str(key))
        chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
        command = [sys.executable, "-m", "granian", "--interface", "asginl", "--no-ws", "--no-log", "--port", str(port)]
        command += ["--ssl-certificate", str(chain), "--ssl-keyfile", str(key)]
        command += ["--working-dir", str(Path(__file__).parent), "fetch:app"]
        with subprocess.Popen(command) as server:
            try:
                time.sleep(3)
                return {
                    name: {
                        key: round(
                            uvloop.run(
                                bench_nephila(
                                    count,
                                    f"https://127.0.0.1:{port}/",
                                    keep=keep,
                                    http2=http2,
                                    authority=authority.cert_pem.bytes(),
                                )
                            ),
                            1,
                        )
                        for key, keep in (("keep_alive_us", True), ("new_connection_us", False))
                    }
                    for name, http2 in (("http/1.1", "off"), ("h2", "prefer"))
                }
            finally:
                server.terminate()


CLIENTS = {"nephila": bench_nephila, "bare": bench_bare, "pycurl": bench_pycurl, "aiohttp": bench_aiohttp}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--tls", action="store_true")
    arguments = parser.parse_args()
    # A crawler has long since freed a large body, after which the C library keeps the heap that it has: otherwise every
    # client that keeps a body for a moment pays for new pages from the kernel.
    bytearray(32_000_000).clear()
    if arguments.tls:
        for name, row in bench_secured(arguments.requests).items():
            print(json.dumps({name: row}))
        return
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{here.recv()}/"
    figures: dict[str, dict[str, float]] = {}
    try:
        for name, bench in CLIENTS.items():
            try:
                kept = uvloop.run(bench(arguments.requests, url, keep=True))
                new = uvloop.run(bench(arguments.requests, url, keep=False))
            except ImportError:
                continue
            figures[name] = {"keep_alive_us": round(kept, 1), "new_connection_us": round(new, 1)}
    finally:
        server.terminate()
        server.join()
    if arguments.json:
        print(json.dumps(figures))
        return
    bare = figures["bare"]
    for name, row in figures.items():
        ratios = ", ".join(f"{key} {value:7.1f} ({value / bare[key]:.2f} x bare)" for key, value in row.items())
        print(f"{name:10} {ratios}")


if __name__ == "__main__":
    main()
