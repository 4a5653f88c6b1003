"""From a target to an open connection: names resolved, addresses judged, tried in order, TLS and proxies on top.

The guard is asked of every address right before it is dialled, and the dialler gets that very literal: between
judgement and connection there is no name left that could change (H6). At most four addresses are tried within the
connect limit, each with its share of what is left, in the order that the resolver gave. Each is asked for a turn before
it is dialled (P2); one that has none to give ends the matter, for the next one is no way round it.

HTTP/1.1 is offered first, and HTTP/2 to servers that refuse it in the handshake, unless the settings say otherwise
(`tongues`, decision 50). A proxy is never offered it.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from nephila.interfaces.addresses import AddressBusy
from nephila.interfaces.network import Dialer, Resolver, Unresolved
from nephila.model.errors import UsageError
from nephila.model.exchange import FailureKind
from nephila.model.settings import FetchSettings

from .connection import Connection
from .guard import AddressGuard, is_address
from .proxy import Proxy, ProxyKind, open_tunnel, read_proxy
from .request import Target
from .tls import TlsContexts, may_be_forgiven, tell, wants_another_protocol
from .tongues import Tongues
from .turns import AddressTurns

MAX_ADDRESSES = 4
"""Addresses of one name that are tried before its host counts as unreachable."""

_OUR_SHORTAGE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""No descriptor, no memory for a socket: nobody was asked, and it is no fault of the host's."""
SHORTAGE_WAIT_MS = 1000
"""Until then some connection will have ended."""

_FINAL = frozenset({FailureKind.TLS, FailureKind.ADDRESS_BUSY})
"""Failures after which no other address is tried."""


@dataclass(frozen=True, slots=True)
class NoConnection:
    """Why there is none."""

    kind: FailureKind
    detail: str
    address: str = ""
    reached: bool = False
    """The host was reached, and only then things went wrong."""
    wait_ms: int = 0
    """When to come back to an address that is busy."""


def no_turn(address: str, busy: AddressBusy) -> NoConnection:
    """The address has had enough for now."""
    detail = f"{address} has no turn for {busy.wait_ms} ms"
    return NoConnection(FailureKind.ADDRESS_BUSY, detail, address, wait_ms=busy.wait_ms)


@dataclass(frozen=True, slots=True)
class _Route:
    """Where one attempt goes: the host's judged address, and the proxy's when there is one."""

    target: Target
    address: str
    proxy_address: str = ""
    by: float = 0.0


class Connector:
    """Opens connections for one fetcher."""

    def __init__(
        self,
        settings: FetchSettings,
        resolver: Resolver,
        dialer: Dialer,
        guard: AddressGuard,
        tls: TlsContexts,
        turns: AddressTurns,
        new: Callable[[], Connection],
    ) -> None:
        """`new` makes a connection that is not open yet."""
        self._connect_timeout_s = settings.connect_timeout_s
        self._bad_certificates = settings.bad_certificates
        self._sources = settings.source_addresses
        self._tunnel_plain = settings.proxy_tunnel
        self._resolver = resolver
        self._dialer = dialer
        self._guard = guard
        self._tls = tls
        self._turns = turns
        self._new = new
        self._tongues = Tongues(settings.http2)
        self.proxy: Proxy | None = read_proxy(settings.proxy)
        for source in self._sources:
            if not is_address(source):
                raise UsageError(f"the source address {source!r} is no IP address")

    async def connect(self, target: Target, deadline: float) -> Connection | NoConnection:
        """An open connection, or why there is none; never later than the connect limit or the deadline."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(deadline) as limit:
                judged = await self._judged_addresses(target)
                if isinstance(judged, NoConnection):
                    return judged
                addresses, stale = judged
                by = min(deadline, loop.time() + self._connect_timeout_s)
                limit.reschedule(by)
                proxy_addresses = [] if self.proxy is None else await self._proxy_addresses(self.proxy)
                if isinstance(proxy_addresses, NoConnection):
                    return proxy_addresses
                outcome = await self._try_each(target, addresses, proxy_addresses, by)
                if stale and isinstance(outcome, Connection):
                    outcome.stale_address = True
                elif stale and isinstance(outcome, NoConnection):
                    outcome = replace(outcome, detail=f"{outcome.detail} (at its last known address)")
                return outcome
        except TimeoutError:
            return NoConnection(FailureKind.TIMEOUT, "no connection in time")

    # -- which addresses -------------------------------------------------------------------------------------------

    async def _judged_addresses(self, target: Target) -> tuple[list[str], bool] | NoConnection:
        """Those that may be connected to, and whether they are only the last known ones."""
        stale = False
        if target.literal:
            found: tuple[str, ...] = (target.host,)
        else:
            resolved = await self._resolver.resolve(target.host)
            if isinstance(resolved, Unresolved):
                return NoConnection(resolved.kind, resolved.detail)
            found, stale = resolved.addresses, resolved.stale
        refused = ""
        judged = []
        for address in found:
            reason = self._guard.refuses(address)
            if reason is None:
                judged.append(address)
            else:
                refused = refused or f"{address} is refused: {reason}"
        if not judged:
            return NoConnection(FailureKind.ADDRESS, refused or "no address")
        return judged[:MAX_ADDRESSES], stale

    async def _proxy_addresses(self, proxy: Proxy) -> list[str] | NoConnection:
        """Not judged: the proxy is the user's own choice."""
        if is_address(proxy.host):
            return [proxy.host]
        resolved = await self._resolver.resolve(proxy.host)
        if isinstance(resolved, Unresolved):
            return NoConnection(FailureKind.PROXY, f"proxy {proxy.host}: {resolved.detail}")
        return list(resolved.addresses[:MAX_ADDRESSES])

    def _source_for(self, host: str, address: str) -> str | None:
        """The source address of this host, always the same one; None when none fits the address's family."""
        if not self._sources:
            return ""
        fitting = [source for source in self._sources if (":" in source) == (":" in address)]
        return fitting[zlib.crc32(host.encode()) % len(fitting)] if fitting else None

    # -- trying them -----------------------------------------------------------------------------------------------

    async def _try_each(
        self, target: Target, addresses: list[str], proxy_addresses: list[str], by: float
    ) -> Connection | NoConnection:
        loop = asyncio.get_running_loop()
        if self.forwards(target):
            addresses = addresses[:1]  # the proxy gets the name: only its own addresses differ
        pairs = [(address, proxy) for address in addresses for proxy in proxy_addresses or [""]][:MAX_ADDRESSES]
        failure = NoConnection(FailureKind.CONNECT, "no address")
        for tried, (address, proxy_address) in enumerate(pairs):
            left = len(pairs) - tried
            share = loop.time() + (by - loop.time()) / left
            route = _Route(target, address, proxy_address, share)
            if left == 1:
                return await self._attempt_in_turn(route)
            try:
                async with asyncio.timeout_at(share):
                    outcome = await self._attempt_in_turn(route)
            except TimeoutError:
                failure = NoConnection(FailureKind.TIMEOUT, f"{address} did not answer in time", address)
                continue
            if isinstance(outcome, Connection) or outcome.kind in _FINAL:
                return outcome
            failure = outcome
        return failure

    async def _attempt_in_turn(self, route: _Route) -> Connection | NoConnection:
        """One address, if it has a turn for us; the connection keeps the permit for its first exchange."""
        asked = "" if self.forwards(route.target) else route.address
        permit = self._turns.ask(asked, route.target.host)
        if isinstance(permit, AddressBusy):
            return no_turn(asked, permit)
        outcome = None
        try:
            outcome = await self._attempt(route)
        finally:
            if not isinstance(outcome, Connection):
                self._turns.end(permit)
        if isinstance(outcome, Connection):
            outcome.far_address, outcome.permit = asked, permit
        return outcome

    async def _attempt(self, route: _Route) -> Connection | NoConnection:
        """One address; where it speaks HTTP/2 only, a second time offering that. Nothing was asked by then."""
        origin, secure = route.target.origin, route.target.scheme == "https"
        if secure:
            outcome = await self._secured(route, http2=self._tongues.offers_http2(origin))
        else:
            outcome = await self._dial(route)
        if isinstance(outcome, ssl.SSLError) and wants_another_protocol(outcome) and self._tongues.falls_back(origin):
            outcome = await self._secured(route, http2=True)
            if isinstance(outcome, Connection) and outcome.protocol:
                self._tongues.learn(origin, http2=True)
        match outcome:
            case Connection() | NoConnection():
                return outcome
            case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
                return NoConnection(
                    FailureKind.RESET, "connection closed in the TLS handshake", route.address, reached=True
                )
            case ssl.SSLError():
                return NoConnection(FailureKind.TLS, tell(outcome), route.address, reached=True)
            case _:
                return self._unreached(route, outcome, secure=secure)

    async def _secured(self, route: _Route, *, http2: bool) -> Connection | NoConnection | OSError:
        """One handshake; where bad certificates are allowed, a second one without verification."""
        outcome = await self._dial(route, self._tls.verified(http2=http2))
        if self._bad_certificates and isinstance(outcome, ssl.SSLError) and may_be_forgiven(outcome):
            reason = tell(outcome)
            outcome = await self._dial(route, self._tls.unverified(http2=http2))
            if isinstance(outcome, Connection):
                outcome.bad_certificate = reason
        return outcome

    def avoid_http2(self, target: Target) -> None:
        """The server has refused a request for being spoken in HTTP/2: from now on it is not offered."""
        self._tongues.learn(target.origin, http2=False)

    def _unreached(self, route: _Route, error: OSError, *, secure: bool) -> NoConnection:
        detail = error.strerror or str(error) or type(error).__name__
        if error.errno in _OUR_SHORTAGE:
            return NoConnection(FailureKind.ADDRESS_BUSY, detail, route.address, wait_ms=SHORTAGE_WAIT_MS)
        if route.proxy_address:
            return NoConnection(FailureKind.PROXY, f"proxy: {detail}", route.proxy_address)
        if secure and isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError):
            detail = f"connection lost in the TLS handshake: {detail}"
            return NoConnection(FailureKind.RESET, detail, route.address, reached=True)
        return NoConnection(FailureKind.CONNECT, detail, route.address)

    async def _dial(self, route: _Route, tls: ssl.SSLContext | None = None) -> Connection | NoConnection | OSError:
        connection = self._new()
        try:
            failure = await self._open(connection, route, tls)
        except OSError as error:
            connection.abort()
            return error
        except BaseException:
            connection.abort()
            raise
        if failure is not None:
            connection.abort()
            return failure
        return connection

    async def _open(self, connection: Connection, route: _Route, tls: ssl.SSLContext | None) -> NoConnection | None:
        target, proxy = route.target, self.proxy
        connection.address = route.proxy_address or route.address
        source = self._source_for(target.host, connection.address)
        if source is None:
            return NoConnection(FailureKind.CONNECT, "no source address of the same family", route.address)
        if proxy is None:
            await self._dialer.open(
                lambda: connection, route.address, target.port, tls=tls, server_name=target.host, source=source
            )
            return None
        proxy_tls = self._tls.verified() if proxy.kind is ProxyKind.HTTPS else None
        try:
            await self._dialer.open(
                lambda: connection,
                route.proxy_address,
                proxy.port,
                tls=proxy_tls,
                server_name=proxy.host,
                source=source,
            )
        except ssl.SSLError as error:
            return NoConnection(FailureKind.PROXY, f"proxy: {tell(error)}", route.proxy_address)
        if self.forwards(target):
            return None
        detail = await open_tunnel(connection, proxy, route.address, target.port, route.by)
        if detail or connection.transport is None:
            return NoConnection(FailureKind.PROXY, detail or "proxy closed the connection", route.proxy_address)
        if tls is not None:
            connection.transport = await self._dialer.start_tls(connection.transport, connection, tls, target.host)
        return None

    def forwards(self, target: Target) -> bool:
        """Whether a proxy is sent the request itself; otherwise it only passes bytes on, or there is none."""
        plain = target.scheme == "http" and not self._tunnel_plain
        return plain and self.proxy is not None and self.proxy.kind is not ProxyKind.SOCKS5
