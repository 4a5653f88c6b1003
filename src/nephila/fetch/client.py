"""The fetcher: one exchange from URL to answer, over connections of our own.

The order is always the same: spell the request, take a kept connection or open one (`connect`), each with a turn at its
address (`turns`), converse, undo the codings, say what came. One request leaves per fetch, whatever happens: a kept
connection that closes under a request may have delivered it. What is recorded as sent is what was sent, except that a
proxy's password is left out of it, and that what is said over HTTP/2 is spelled as in HTTP/1.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from nephila.interfaces.addresses import AddressBusy, AddressLedger
from nephila.interfaces.clock import Clock
from nephila.interfaces.network import Dialer, Resolver
from nephila.model.exchange import Answer, FailureKind, Fetched, FetchFailed, FetchRequest, Truncation
from nephila.model.noun import quick
from nephila.model.settings import FetchSettings

from .answer import AnswerReader, Limits, Sniff, Wanted
from .arrivals import Arrivals
from .budget import ByteBudget
from .coding import Decoded, codings_of, decode
from .connect import Connector, NoConnection, no_turn
from .connection import Connection
from .guard import AddressGuard
from .http2_head import without_connection
from .pool import ConnectionPool
from .request import RequestSpelling, Target, target_of
from .tls import TlsContexts
from .turns import AddressTurns

LARGE_BYTES = 1_000_000
"""A coded body of this size is decoded in a thread: the loop must not stand still for a tenth of a second."""


@quick
class _Exchange(NamedTuple):
    """What came of one conversation."""

    reader: AnswerReader
    connection: Connection
    sent_at: int
    sent_ms: int
    ended_at: int
    elapsed_ms: int


class HttpFetcher:
    """A `Fetcher` for HTTP/1.1 and HTTP/2. All it stands on is passed in, so it runs in simulation as on the wire."""

    def __init__(
        self,
        settings: FetchSettings,
        resolver: Resolver,
        dialer: Dialer,
        guard: AddressGuard,
        clock: Clock,
        sniff: Sniff,
        tls: TlsContexts | None = None,
        addresses: AddressLedger | None = None,
    ) -> None:
        """`sniff` tells a media type by a Content-Type value and first bytes. Bad settings raise `UsageError`."""
        self.sniff_at: Callable[[str, str, bytes], str] | None = None
        """Where given, tells a media type by the URL, too."""
        self._settings = settings
        self._clock = clock
        self._sniff = sniff
        self._limits = Limits(settings.max_header_bytes, settings.max_bytes)
        self._requests = RequestSpelling(settings.user_agent, keep_alive=settings.keep_alive_s > 0)
        self._budget = ByteBudget(settings.max_in_flight_bytes)
        self._pool = ConnectionPool(settings.keep_alive_s, settings.kept_connections)
        self._turns = AddressTurns(addresses, clock)
        self._arrivals = Arrivals(clock)
        self._before_answer: Callable[[], None] | None = None
        self._connector = Connector(
            settings, resolver, dialer, guard, tls or TlsContexts(), self._turns, self._connection
        )

    def call_before_answers(self, act: Callable[[], None]) -> None:
        """Let the loop call something between any two answers: what must not wait for all of them to be read."""
        look = self._arrivals.look

        def between() -> None:
            look()
            act()

        self._before_answer = between

    async def fetch(self, request: FetchRequest) -> Answer:
        """The answer or the failure, within the whole-fetch limit."""
        clock = self._clock
        started_at, started_ms = clock.wall_ms(), clock.steady_ms()
        deadline = asyncio.get_running_loop().time() + self._settings.timeout_s
        target = target_of(request.url)
        if self._connector.proxy is None:
            sent = recorded = self._requests.spell(target, request.headers, user_agent=request.user_agent)
        else:
            sent, recorded = self._spell(target, request)
        connection = self._kept(target) or await self._connector.connect(target, deadline)
        if isinstance(connection, NoConnection):
            return FetchFailed(
                request.url,
                connection.kind,
                connection.detail,
                connection.reached,
                connection.address,
                started_at,
                clock.wall_ms(),
                clock.steady_ms() - started_ms,
                connection.wait_ms,
                started_ms,
            )
        reader = self._reader(request, delimited=bool(connection.protocol))
        if connection.protocol:
            recorded = without_connection(recorded)
        sent_at, sent_ms = clock.wall_ms(), clock.steady_ms()
        try:
            await connection.converse(sent, reader, deadline)
        finally:
            whole = reader.finished and reader.kind is None and reader.truncated is None and not reader.unwanted
            self._turns.end(connection.permit, broken_off=not whole, ended_ms=connection.ended_ms if whole else None)
            connection.permit = None
        exchange = _Exchange(reader, connection, sent_at, sent_ms, connection.ended_at, connection.ended_ms - sent_ms)
        if reader.reusable:
            self._pool.put(target.origin, connection, reader.idle_s())
        else:
            connection.abort()
            if connection.wants_http1:
                self._connector.avoid_http2(target)
        return await self._answer(target, request, recorded, exchange)

    async def close(self) -> None:
        """Close every idle connection."""
        self._pool.close()
        self._arrivals.close()

    def _connection(self) -> Connection:
        limit = self._settings.max_header_bytes
        return Connection(self._budget, self._clock, self._arrivals, self._before_answer, limit)

    def _spell(self, target: Target, request: FetchRequest) -> tuple[bytes, bytes]:
        """The request as a proxy is sent it, and as it is recorded."""
        proxy = self._connector.proxy
        if proxy is None or not self._connector.forwards(target):
            plain = self._requests.spell(target, request.headers, user_agent=request.user_agent)
            return plain, plain
        recorded = self._requests.spell(target, request.headers, user_agent=request.user_agent, absolute=True)
        return recorded[:-2] + proxy.authorization().encode("ascii") + b"\r\n", recorded

    def _kept(self, target: Target) -> Connection | NoConnection | None:
        """A kept connection with a turn at its address, or why it must not be used; None where there is none.

        One that dies under our request is not tried again on another one: the server may well have seen the request,
        and a second one at once would be impolite. It is a failure like any other, and retried.
        """
        connection = self._pool.take(target.origin)
        if connection is None:
            return None
        permit = self._turns.ask(connection.far_address, target.host)
        if isinstance(permit, AddressBusy):
            self._pool.put_back(target.origin, connection)
            return no_turn(connection.far_address, permit)
        connection.permit = permit
        return connection

    def _reader(self, request: FetchRequest, *, delimited: bool) -> AnswerReader:
        limits, types = self._limits, request.accept_types
        if request.max_body_bytes is not None:
            limits = limits._replace(body_bytes=request.max_body_bytes)
        if types is None:
            return AnswerReader(limits, delimited=delimited)
        sniff = self._sniff if self.sniff_at is None else partial(self.sniff_at, request.url)
        return AnswerReader(limits, Wanted(types, sniff), delimited=delimited)

    async def _answer(self, target: Target, request: FetchRequest, recorded: bytes, exchange: _Exchange) -> Answer:
        reader, head = exchange.reader, exchange.reader.head
        kind, detail, body, payload, truncated = reader.kind, reader.detail, b"", reader.payload(), reader.truncated
        if kind is None and head is not None and not reader.unwanted:
            codings, content = codings_of(head.values("content-encoding")), reader.content(payload)
            # What may be so long on the wire may be so long unpacked: a sitemap, which is read in pieces.
            limit = max(self._settings.max_decoded_bytes, request.max_body_bytes or 0)
            if codings and len(content) >= LARGE_BYTES:
                loop = asyncio.get_running_loop()
                decoded = await loop.run_in_executor(None, decode, codings, content, limit)
            else:
                decoded = decode(codings, content, limit)
            if isinstance(decoded, Decoded):
                body = decoded.body
                truncated = truncated or (Truncation.LENGTH if decoded.cut else None)
            elif not head.says_all:
                kind, detail = FailureKind.BAD_CONTENT, decoded.detail
        if kind is None and head is not None and head.status == 407 and self._connector.forwards(target):
            kind, detail = FailureKind.PROXY, "proxy wants credentials"
        if kind is not None or head is None:
            return FetchFailed(
                request.url,
                kind or FailureKind.RESET,
                detail,
                True,
                exchange.connection.address,
                exchange.sent_at,
                exchange.ended_at,
                exchange.elapsed_ms,
                sent_ms=exchange.sent_ms,
            )
        return Fetched(
            request.url,
            recorded,
            reader.head_bytes,
            payload,
            head.status,
            head.headers,
            body,
            exchange.connection.address,
            exchange.sent_at,
            exchange.ended_at,
            exchange.elapsed_ms,
            truncated,
            reader.unwanted,
            exchange.connection.bad_certificate,
            exchange.sent_ms,
            exchange.connection.stale_address,
            exchange.connection.protocol,
        )
