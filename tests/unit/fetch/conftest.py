"""A network in memory: servers that follow a script, under virtual time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from nephila.fetch import AddressGuard, HttpFetcher
from nephila.interfaces.addresses import AddressBusy, AddressPermit
from nephila.interfaces.network import Resolved, Unresolved
from nephila.model.exchange import Answer, FailureKind, FetchRequest
from nephila.model.settings import FetchSettings
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual

CLOSE = "close"
RESET = "reset"
HANG = "hang"

Step = bytes | float | str
"""Bytes to send, seconds to wait, or the end of the connection."""


class ScriptedTransport(asyncio.Transport):
    """The client's end of a connection whose far end plays one list of steps per request."""

    def __init__(self, protocol: asyncio.Protocol, acts: Sequence[Sequence[Step]]) -> None:
        super().__init__()
        self._protocol = protocol
        self._acts = list(acts)
        self._steps: list[Step] = []
        self._closing = False
        self.paused = False
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written.append(bytes(data))
        self._steps += self._acts.pop(0) if self._acts else []
        self._later(0.0)

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False
        self._later(0.0)

    def close(self) -> None:
        self._end(None)

    def abort(self) -> None:
        self._end(None)

    def play(self, steps: Sequence[Step]) -> None:
        """Let the server do something that nobody asked for."""
        self._steps += steps
        self._later(0.0)

    def _later(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._step)

    def _step(self) -> None:
        if self._closing or self.paused or not self._steps:
            return
        step = self._steps.pop(0)
        if isinstance(step, bytes):
            self._protocol.data_received(step)
            self._later(0.0)
        elif isinstance(step, float):
            self._later(step)
        elif step == CLOSE:
            self._protocol.eof_received()
            self._end(None)
        elif step == RESET:
            self._end(ConnectionResetError(104, "Connection reset by peer"))

    def _end(self, error: Exception | None) -> None:
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, error)


@dataclass
class Dialled:
    """What a dialler was asked for."""

    address: str
    port: int
    source: str
    server_name: str
    tls: ssl.SSLContext | None


@dataclass
class ScriptedDialer:
    """A `Dialer`. Each connection takes the next script: acts, an error to raise, or HANG."""

    scripts: list[Any]
    dialled: list[Dialled] = field(default_factory=list)
    transports: list[ScriptedTransport] = field(default_factory=list)

    async def open(
        self,
        factory: Callable[[], asyncio.Protocol],
        address: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        server_name: str = "",
        source: str = "",
    ) -> asyncio.Transport:
        self.dialled.append(Dialled(address, port, source, server_name, tls))
        script = self.scripts.pop(0)
        if script == HANG:
            await asyncio.get_running_loop().create_future()
        if isinstance(script, Exception):
            raise script
        protocol = factory()
        transport = ScriptedTransport(protocol, script)
        self.transports.append(transport)
        protocol.connection_made(transport)
        return transport

    async def start_tls(
        self, transport: asyncio.Transport, protocol: asyncio.Protocol, tls: ssl.SSLContext, server_name: str
    ) -> asyncio.Transport:
        self.dialled.append(Dialled("", 0, "", server_name, tls))
        return transport


@dataclass
class ListedResolver:
    """A `Resolver` with a table; what is not in it does not exist."""

    names: dict[str, tuple[str, ...] | None]
    asked: list[str] = field(default_factory=list)

    async def resolve(self, host: str) -> Resolved | Unresolved:
        self.asked.append(host)
        if host == "hangs.example":
            await asyncio.get_running_loop().create_future()
        addresses = self.names.get(host)
        if not addresses:
            return Unresolved(FailureKind.NO_SUCH_NAME, f"{host} does not exist")
        return Resolved(addresses, 60.0)


@dataclass
class ScriptedLedger:
    """An `AddressLedger` that refuses by its script: the waits of the next questions, 0 grants; then it grants all."""

    waits: list[int]
    asked: list[tuple[str, str]] = field(default_factory=list)
    out: list[AddressPermit] = field(default_factory=list)
    notices: list[int] = field(default_factory=list)

    def ask(self, address: str, host: str, now_ms: int) -> AddressPermit | AddressBusy:
        self.asked.append((address, host))
        wait_ms = self.waits.pop(0) if self.waits else 0
        if wait_ms:
            return AddressBusy(wait_ms)
        permit = AddressPermit(address, now_ms)
        self.out.append(permit)
        return permit

    def give_back(self, permit: AddressPermit, now_ms: int, *, notice_ms: int = 0) -> None:
        self.out.remove(permit)
        self.notices.append(notice_ms)


PUBLIC = "93.184.216.34"
NAMES: dict[str, tuple[str, ...] | None] = {"a.example": (PUBLIC,), "b.example": (PUBLIC,)}


@dataclass
class Bench:
    """A fetcher on a scripted network."""

    dialer: ScriptedDialer
    resolver: ListedResolver
    fetcher: HttpFetcher
    clock: VirtualClock
    ledger: ScriptedLedger

    async def get(self, url: str = "http://a.example/", **options: Any) -> Answer:
        return await self.fetcher.fetch(FetchRequest(url, **options))


def declared_type(content_type: str, first: bytes) -> str:
    """Stands in for the real sniffing."""
    if content_type:
        return content_type.partition(";")[0].strip().lower()
    return "text/html" if b"<html" in first else "application/octet-stream"


def make_bench(
    scripts: list[Any], names: dict[str, Any] | None = None, waits: Sequence[int] = (), **settings: Any
) -> Bench:
    clock, ledger = VirtualClock(), ScriptedLedger(list(waits))
    chosen = replace(FetchSettings(), **settings)
    dialer, resolver = ScriptedDialer(scripts), ListedResolver(NAMES if names is None else names)
    guard = AddressGuard(chosen.allow_addresses)
    fetcher = HttpFetcher(chosen, resolver, dialer, guard, clock, declared_type, addresses=ledger)
    return Bench(dialer, resolver, fetcher, clock, ledger)


def fetch_once(scripts: list[Any], url: str = "http://a.example/", **options: Any) -> tuple[Answer, Bench]:
    """One exchange on a new fetcher; `options` are those of the request, settings under ``settings``."""
    bench = make_bench(scripts, options.pop("names", None), options.pop("waits", ()), **options.pop("settings", {}))

    async def run() -> Answer:
        try:
            return await bench.get(url, **options)
        finally:
            await bench.fetcher.close()

    return run_virtual(run, bench.clock), bench


@pytest.fixture
def once() -> Callable[..., tuple[Answer, Bench]]:
    return fetch_once


@pytest.fixture
def bench() -> Callable[..., Bench]:
    return make_bench
