"""Serves a crawl: beside it on its directory (`nephila serve`), or inside while it runs (`crawl --serve`)."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import uvicorn

from nephila.model.errors import UsageError
from nephila.node.desk import Desk, desk_beside, desk_inside
from nephila.node.run import Running
from nephila.node.watching import Watch

from .access import Gate, Token, check_binding
from .app import Control
from .bounds import Bounds
from .connections import connections_within

DEFAULT_PORT = 8470
_NOT_OURS = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EINVAL})
"""What binding an address of somebody else says; EINVAL is for one that needs an interface beside it."""
END_S = 2
"""How long answers may still take when the server is to end."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Where to listen, and who may ask."""

    host: str
    port: int
    tokens: tuple[Token, ...] = ()
    told: Callable[[str], None] = lambda _url: None
    """Told the URL: who connects there is answered."""
    complain: Callable[[str], None] = lambda _sentence: None
    """Told of bugs of ours."""


class _Server(uvicorn.Server):
    """Ends when it is told to; signals are the business of whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def listening(binding: Binding) -> socket.socket:
    """A socket that listens; UsageError where that cannot be, or may not be."""
    check_binding(binding.host, binding.tokens)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            binding.host.removeprefix("[").removesuffix("]"),
            binding.port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )[0]
    except (OSError, UnicodeError) as error:  # UnicodeError: what can be no name at all
        raise _no_address(binding.host) from error
    listener = None
    try:
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        if listener is not None:
            listener.close()
        if error.errno in _NOT_OURS:
            raise _no_address(binding.host) from error
        if error.errno in {errno.EMFILE, errno.ENFILE}:
            raise
        raise UsageError(
            f"port {binding.port} of {binding.host} cannot be used: {error.strerror}", "choose another port"
        ) from error
    return listener


def _no_address(host: str) -> UsageError:
    return UsageError(
        f"{host!r} is no address of this machine",
        "serve on 127.0.0.1, on 0.0.0.0 (all addresses), or on one that it has, without a port or a scheme",
    )


def url_of(listener: socket.socket, host: str) -> str:
    """Where it answers."""
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"http://{name}:{listener.getsockname()[1]}"


async def serve_desk(desk: Desk, listener: socket.socket, binding: Binding, bounds: Bounds = Bounds()) -> None:  # noqa: B008 - frozen
    """Serve until cancelled."""
    control = Control(desk, Gate(binding.tokens), bounds, binding.complain)
    config = uvicorn.Config(
        control.application(),
        loop="none",
        http=connections_within(bounds),
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="critical",  # what breaks is told by `Control`
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=bounds.connections,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=END_S,
        h11_max_incomplete_event_size=64 * 1024,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="api")
    try:
        binding.told(url_of(listener, binding.host))
        await asyncio.shield(serving)
    finally:
        control.stopping.set()
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)
        await desk.roster.close()


async def serve_directory(out: Path, binding: Binding, ended: Awaitable[object]) -> None:
    """Serve a crawl directory until `ended` is done."""
    await serve_until(desk_beside(out), binding, ended)


async def serve_until(opened: AbstractAsyncContextManager[Desk], binding: Binding, ended: Awaitable[object]) -> None:
    """Serve the desk that is opened until `ended` is done."""
    listener = listening(binding)
    try:
        async with opened as desk:
            serving = asyncio.create_task(serve_desk(desk, listener, binding), name="serve")
            ending = asyncio.ensure_future(ended)
            await asyncio.wait({serving, ending}, return_when=asyncio.FIRST_COMPLETED)
            ending.cancel()
            if serving.done():
                serving.result()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
    finally:
        listener.close()


class InsideServer:
    """Serves a crawl that runs in this process. Made before the crawl begins: a port that is taken is told at once."""

    def __init__(self, binding: Binding) -> None:
        self._binding = binding
        self._listener = listening(binding)

    async def __call__(self, crawl: Running, watch: Watch) -> None:
        """Serve until cancelled."""
        desk = desk_inside(crawl.machinery, watch.figures, crawl.nudge)
        binding = replace(self._binding, complain=partial(crawl.warn, "bug"))
        await serve_desk(desk, self._listener, binding)

    def close(self) -> None:
        """Give the port back."""
        self._listener.close()
