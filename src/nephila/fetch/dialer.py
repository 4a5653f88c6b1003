"""Connections over real sockets. Addresses are literals that were judged before: no name is ever looked up here."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable


class SocketDialer:
    """A `Dialer` over the running loop. asyncio and uvloop both set TCP_NODELAY on what they open."""

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
        transport, _ = await asyncio.get_running_loop().create_connection(
            factory,
            address,
            port,
            ssl=tls,
            server_hostname=server_name if tls is not None else None,
            local_addr=(source, 0) if source else None,
        )
        return transport

    async def start_tls(
        self, transport: asyncio.Transport, protocol: asyncio.Protocol, tls: ssl.SSLContext, server_name: str
    ) -> asyncio.Transport:
        """TLS over an open connection."""
        upgraded = await asyncio.get_running_loop().start_tls(transport, protocol, tls, server_hostname=server_name)
        if upgraded is None:  # asyncio's answer for a transport that closed meanwhile
            raise ConnectionResetError("connection closed before TLS began")
        return upgraded
