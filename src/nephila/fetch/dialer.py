"""Connections over real sockets. Addresses are literals that were judged before: no name is ever looked up here."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from .secured import SecuredTransport
from .sessions import TlsSessions


class SocketDialer:
    """A `Dialer` over the running loop. asyncio and uvloop both set TCP_NODELAY on what they open."""

    def __init__(self) -> None:
        self._sessions = TlsSessions()

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
        """Connect, from `source` when given; TLS done when `tls` is given."""
        local = (source, 0) if source else None
        loop = asyncio.get_running_loop()
        if tls is None:
            transport, _ = await loop.create_connection(factory, address, port, local_addr=local)
            return transport
        call = self._sessions.call(tls, server_name, port)
        while True:
            layer = SecuredTransport(factory(), tls, server_name, call=call)
            await loop.create_connection(lambda one=layer: one, address, port, local_addr=local)
            try:
                await layer.secured()
            except (ssl.SSLError, ConnectionError) as error:
                if call.session is None or isinstance(error, ssl.SSLCertVerificationError):
                    raise
                call.failed()  # it may have been the session that the server stumbled over: once more, without
            else:
                return layer.top

    async def start_tls(
        self, transport: asyncio.Transport, protocol: asyncio.Protocol, tls: ssl.SSLContext, server_name: str
    ) -> asyncio.Transport:
        """TLS over an open connection. Nothing is lost in between: no event is handled before it is begun."""
        if transport.is_closing():
            raise ConnectionResetError("connection closed before TLS began")
        layer = SecuredTransport(protocol, tls, server_name, made=True)
        transport.set_protocol(layer)
        layer.connection_made(transport)
        await layer.secured()
        return layer.top
