"""Real servers on loopback, each following a function; nothing here leaves the machine."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import trustme
import uvloop

from nephila.fetch import AddressGuard, HttpFetcher, SocketDialer, TlsContexts
from nephila.interfaces.network import Resolved, Resolver, Unresolved
from nephila.model.exchange import FailureKind
from nephila.model.settings import FetchSettings

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LOOPBACK = ("127.0.0.0/8", "::1/128")


class RealClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def boot_id(self) -> str:
        return "test"


class LoopbackNames:
    """A `Resolver` for which every name under ``.test`` is this machine."""

    async def resolve(self, host: str) -> Resolved | Unresolved:
        if host.endswith(".test"):
            return Resolved(("127.0.0.1",), 60.0)
        return Unresolved(FailureKind.NO_SUCH_NAME, f"{host} does not exist")


@dataclass
class Server:
    """A listening server and what it has seen."""

    port: int
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def listening(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Serve on loopback while the block runs."""
    seen = Server(0)
    running: set[asyncio.Task[Any]] = set()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connections += 1
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            running.discard(task)
            writer.close()

    server = await asyncio.start_server(accepted, "127.0.0.1", 0, ssl=tls)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


def answering(*parts: bytes, close: bool = False) -> Serve:
    """Answer every request with the same parts, each written on its own."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_request(reader)
            for part in parts:
                writer.write(part)
                await writer.drain()
            if close:
                return

    return serve


def make_fetcher(resolver: Resolver | None = None, authority: bytes = b"", **settings: Any) -> HttpFetcher:
    """A fetcher that may talk to loopback, unless ``allow_addresses`` says otherwise."""
    chosen = replace(FetchSettings(), **{"allow_addresses": LOOPBACK, **settings})
    return HttpFetcher(
        chosen,
        resolver or LoopbackNames(),
        SocketDialer(),
        AddressGuard(chosen.allow_addresses),
        RealClock(),
        lambda content_type, _: content_type.partition(";")[0],
        TlsContexts(authority),
    )


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine on either loop: both are real, and differ."""

    def runner(main: Coroutine[Any, Any, Any]) -> Any:
        factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as loop_runner:
            return loop_runner.run(main)

    return runner


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@dataclass(frozen=True)
class Stand:
    """What the tests of this folder work with."""

    listening: Any = listening
    fetcher: Any = make_fetcher
    answering: Any = answering
    read_request: Any = read_request
    clock: Any = RealClock


@pytest.fixture
def stand() -> Stand:
    return Stand()
