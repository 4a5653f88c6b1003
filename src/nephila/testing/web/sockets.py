"""The simulated web over real sockets: every host at its own loopback address, all at one port.

Linux answers on the whole of 127.0.0.0/8 without any set-up, so each distinct address of the web gets a listening
socket; hosts that share an address are told apart by the Host header. Nothing but loopback is ever bound. The port is
part of the web's links, and so the web that is served (`WebServer.web`) is the given one *at that port*.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import time
from functools import partial
from typing import Self

from .auditor import Auditor
from .dns import DnsServer
from .hosts import Door
from .service import Sent, WebService
from .simulated import SimulatedWeb
from .trap_hosts import TrapFigures

_BACKLOG = 1024
_PORTS_TRIED = 20


class WebServer:
    """Serves a web and its names until it is stopped; an async context manager."""

    def __init__(
        self, web: SimulatedWeb, auditor: Auditor | None = None, port: int = 0, *, log: list[Sent] | None = None
    ) -> None:
        self.web = web
        self._auditor = auditor
        self._port = port
        self._log = log
        self._servers: list[asyncio.Server] = []
        self._service: WebService | None = None
        self._dns = DnsServer(web.address_of)  # addresses do not depend on the port

    @property
    def port(self) -> int:
        """Where all hosts listen; known once started."""
        return self.web.spec.port

    @property
    def resolver(self) -> str:
        """The name server that knows the web's hosts, as HOST:PORT."""
        return f"127.0.0.1:{self._dns.port}"

    def trap_figures(self) -> dict[str, TrapFigures]:
        """What the trap sites saw, by host name."""
        return self._service.witness.figures() if self._service else {}

    async def start(self) -> None:
        """Bind every address and the name server."""
        loop = asyncio.get_running_loop()
        doors = self.web.doors().items()
        addresses = sorted(address for address, door in doors if door in (Door.OPEN, Door.STALLING))
        sockets = _listen(addresses, self._port)
        self.web = self.web.at_port(sockets[0].getsockname()[1])
        self._service = WebService(
            self.web, self._auditor, now_ms=_steady_ms, wall_ms=lambda: time.time_ns() // 1_000_000, log=self._log
        )
        for address, listener in zip(addresses, sockets, strict=True):
            make = partial(self._service.protocol, address)
            self._servers.append(await loop.create_server(make, sock=listener, backlog=_BACKLOG))
        await self._dns.start()

    async def stop(self) -> None:
        """Close every connection and every listening socket."""
        for server in self._servers:
            server.close()
        if self._service:
            for connection in list(self._service.connections):
                connection.close()
        await asyncio.gather(*(server.wait_closed() for server in self._servers))
        await self._dns.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()


def _steady_ms() -> float:
    return time.monotonic() * 1000


def _listen(addresses: list[str], port: int) -> list[socket.socket]:
    """Bind all addresses to one port; where it is 0, to one that is free on all of them."""
    for _ in range(_PORTS_TRIED):
        bound: list[socket.socket] = []
        try:
            for address in addresses:
                bound.append(_bind(address, bound[0].getsockname()[1] if bound else port))
        except OSError as error:
            for listener in bound:
                listener.close()
            if port or error.errno != errno.EADDRINUSE:
                raise
        else:
            return bound
    message = f"no port is free on all of {len(addresses)} loopback addresses"
    raise OSError(errno.EADDRINUSE, message)


def _bind(address: str, port: int) -> socket.socket:
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.setblocking(False)
        stack.pop_all()
        return listener
