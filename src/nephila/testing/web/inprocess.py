"""The simulated web as the network under a fetcher, in one process and under virtual time.

`SimulatedNetwork` is both the `Resolver` and the `Dialer` of `interfaces.network`: names resolve to the web's own
addresses, and connections are pipes in memory with the web's service at their far end. There is no TLS in it.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from nephila.interfaces.clock import Clock
from nephila.interfaces.network import Resolved, Unresolved
from nephila.model.exchange import FailureKind

from .auditor import Auditor
from .hosts import Door
from .pipe import NOWHERE, PipeTransport
from .service import Sent, WebService
from .simulated import SimulatedWeb

_TTL_S = 300.0


@dataclass(frozen=True, slots=True)
class Cable:
    """What lies between the crawler and every host."""

    latency_s: float = 0.005
    """One way."""
    segment_bytes: int = 16_384
    """Data arrives in pieces of at most this size; 1 is the hardest test of a parser."""


class SimulatedNetwork:
    """Implements `Resolver` and `Dialer`."""

    def __init__(
        self,
        web: SimulatedWeb,
        clock: Clock,
        auditor: Auditor | None = None,
        *,
        cable: Cable = Cable(),  # noqa: B008 - frozen
        log: list[Sent] | None = None,
    ) -> None:
        self.web = web
        self.service = WebService(web, auditor, now_ms=_loop_ms, wall_ms=clock.wall_ms, log=log)
        self._cable = cable
        self._doors = web.doors()
        self._opened = 0

    async def resolve(self, host: str) -> Resolved | Unresolved:
        """The web's address for a name, after one round trip."""
        await asyncio.sleep(2 * self._cable.latency_s)
        address = self.web.address_of(host)
        if address is None:
            return Unresolved(FailureKind.NO_SUCH_NAME, f"{host} does not exist")
        return Resolved((address,), _TTL_S)

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
        """A connection to the web's service; a refusing host raises, a stalling one waits until it is cancelled."""
        del server_name
        door = self._doors.get(address)
        if door is Door.STALLING:
            await asyncio.Event().wait()
        await asyncio.sleep(2 * self._cable.latency_s)
        if door is not Door.OPEN or port != self.web.spec.port:
            message = f"Connect call failed ('{address}', {port})"
            raise ConnectionRefusedError(errno.ECONNREFUSED, message)
        if tls is not None:
            raise ssl.SSLError(ssl.SSLErrorNumber.SSL_ERROR_SSL, "the simulated network speaks no TLS")
        return self._connect(factory(), (address, port), source or "127.0.0.1")

    async def start_tls(
        self, transport: asyncio.Transport, protocol: asyncio.Protocol, tls: ssl.SSLContext, server_name: str
    ) -> asyncio.Transport:
        """There is no TLS here."""
        del protocol, tls, server_name
        transport.abort()
        raise ssl.SSLError(ssl.SSLErrorNumber.SSL_ERROR_SSL, "the simulated network speaks no TLS")

    def _cable_to(self, address: str) -> Cable:
        """The cable of a new connection: by default the same for all."""
        del address
        return self._cable

    def _context(self) -> contextvars.Context | None:
        """Where data for the one who connects is handed over; None where there is but one process."""
        return None

    def _connect(self, client: asyncio.Protocol, peer: tuple[str, int], source: str) -> PipeTransport:
        loop, cable = asyncio.get_running_loop(), self._cable_to(peer[0])
        self._opened += 1
        own = (source, 32_768 + self._opened % 28_000)
        near, far = (
            PipeTransport(
                loop,
                latency_s=cable.latency_s,
                segment_bytes=cable.segment_bytes,
                extra={"peername": towards, "sockname": here},
                context=context,
            )
            for towards, here, context in ((peer, own, self._context()), (own, peer, None))
        )
        server = self.service.protocol(peer[0])
        near.attach(far, client)
        far.attach(near, server)
        NOWHERE.copy().run(server.connection_made, far)
        client.connection_made(near)
        return near


def _loop_ms() -> float:
    return asyncio.get_running_loop().time() * 1000
