"""TLS over any transport: the ssl module's objects between the bytes of the wire and a protocol that wants plain ones.

The loops bring a TLS layer of their own. This one does less: it reads no certificate into dictionaries that nobody asks
for, keeps no buffer for each connection (uvloop: 256 KB), lets the end of the handshake leave with the first request in
one packet, and does not wait for the other side when it closes. It is the same on every loop, and it goes over itself:
TLS through the tunnel of a proxy that is spoken to by TLS. By measurement: decision 28.

What must stay true: bytes are handed on in order, none while the protocol has paused reading, none after its end. The
end of the stream is told once, whether or not it was announced by close_notify, which many servers leave out; whether
an answer was complete is for HTTP to say. Whatever the ssl module wants to send after it has read something (answers to
key updates and renegotiations, alerts) is sent.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from .sessions import Call
from .tls import HTTP2

if TYPE_CHECKING:
    from .connection import Connection
    from .http2 import Http2Transport

RECORD_BYTES = 16_384
"""What a record holds at most (RFC 8446 5.1): more is never read in one call."""

SEALED_BYTES = RECORD_BYTES + 256 + 5
"""A record as it is sent, at most. Input is taken in such portions: the ssl module's buffer never shrinks again, and
there is one for each connection."""

WORTH_BYTES = 4096
"""Before the last portion, less than this is most likely the beginning of a record: trying costs an exception."""

HANDSHAKE_BYTES = 262_144
"""What a server may send until the handshake is done; OpenSSL takes certificates of up to 100 KB."""
OVERHEAD_BYTES = 1_000_000
"""What may come beyond that, and beyond twice what it held: tickets, empty records and the like without end are
malice."""


class SecuredTransport(asyncio.Transport, asyncio.Protocol):
    """A transport for the protocol above it, and the protocol of the transport below it."""

    __slots__ = (
        "_above",
        "_backlog",
        "_below",
        "_call",
        "_ended",
        "_error",
        "_handed",
        "_incoming",
        "_loop",
        "_made",
        "_outgoing",
        "_paused",
        "_received",
        "_shaking",
        "_tls",
        "_waiter",
        "top",
    )

    def __init__(
        self,
        above: asyncio.Protocol,
        context: ssl.SSLContext,
        server_name: str,
        *,
        made: bool = False,
        call: Call | None = None,
    ) -> None:
        """`made`: the protocol knows its connection already, as it has spoken over it without TLS."""
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._above = above
        self._below: asyncio.Transport | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_hostname=server_name or None,
            session=None if call is None else call.session,
        )
        self._call = call
        self._shaking = True
        """The handshake is not over yet."""
        self._waiter: asyncio.Future[None] | None = None
        """Of whoever waits for its end; it may come before anybody does."""
        self._made = made
        self._paused = False
        self._ended = False
        """The protocol was told that nothing more comes, or there is nobody left to tell."""
        self._backlog: list[bytes] = []
        """What the protocol has written while the ssl module could take nothing: it wants to read first."""
        self.top: asyncio.Transport = self
        """What the protocol speaks to: this, or the layer of HTTP/2 over it."""
        self._error: Exception | None = None
        self._received = self._handed = 0

    async def secured(self) -> None:
        """Return when the handshake is done. Raises what went wrong; cancelled or failed, the connection is closed."""
        if self._shaking:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except BaseException:
                self.abort()
                raise
        elif self._error is not None:
            raise self._error

    # -- what the transport below calls ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        self._below = cast("asyncio.Transport", transport)
        self._shake_hands()

    def data_received(self, data: bytes) -> None:
        """Decrypt what is whole."""
        if self._tls is None:
            return
        self._received += len(data)
        if self._is_idle_talk():
            return
        start, last = 0, len(data) - SEALED_BYTES
        if last > 0:
            view = memoryview(data)
            while start < last:
                self._incoming.write(view[start : start + SEALED_BYTES])
                self._take(WORTH_BYTES)
                start += SEALED_BYTES
            data = data[start:]
        self._incoming.write(data)
        self._take()

    def _is_idle_talk(self) -> bool:
        """Whether a handshake has no end, or records hold next to nothing; the connection is broken off then."""
        if self._shaking and self._received > HANDSHAKE_BYTES:
            self._fail(ssl.SSLError(ssl.SSL_ERROR_SSL, f"no end of it after {HANDSHAKE_BYTES} bytes"))
            return True
        if self._received > 2 * self._handed + HANDSHAKE_BYTES + OVERHEAD_BYTES:
            self._break(ssl.SSLError(ssl.SSL_ERROR_SSL, "records that hold next to nothing"))
            return True
        return False

    def eof_received(self) -> None:
        """The other side sends nothing more; what was announced by close_notify was told before."""
        self._incoming.write_eof()
        if self._shaking:
            self._fail(ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "connection closed in the TLS handshake"))
        elif not self._paused:
            self._drain()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits, and let go of everything."""
        error = self._error or exc
        if self._shaking:
            self._fail(exc or ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "connection closed in the TLS handshake"))
        elif self._call is not None and self._tls is not None and error is None:
            self._call.ended(self._tls)
        self._below = self._tls = None
        self._ended = True
        self._backlog.clear()
        if self._made:
            self._made = False
            self._above.connection_lost(error)

    def pause_writing(self) -> None:
        """Passed on."""
        if self._made:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        """Passed on."""
        if self._made:
            self._above.resume_writing()

    # -- what the protocol above calls -----------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send."""
        if self._below is None or self._below.is_closing() or not data:
            return
        self._backlog.append(bytes(data))
        try:
            self._encrypt()
        except ssl.SSLError as error:
            self._break(error)

    def pause_reading(self) -> None:
        """Hand on nothing more, and hold the other side back."""
        self._paused = True
        if self._below is not None and not self._below.is_closing():
            self._below.pause_reading()

    def resume_reading(self) -> None:
        """Go on, with what was here already first."""
        if not self._paused:
            return
        self._paused = False
        if self._below is not None and not self._below.is_closing():
            self._below.resume_reading()
        self._loop.call_soon(self._drain)

    def is_reading(self) -> bool:
        """Whether bytes are handed on."""
        return not self._paused and not self.is_closing()

    def is_closing(self) -> bool:
        """Whether the connection is over or about to be."""
        return self._below is None or self._below.is_closing()

    def close(self) -> None:
        """Say goodbye, and do not wait for an answer (RFC 8446 6.1 asks for none)."""
        self._ended = True
        if self._below is None or self._below.is_closing():
            return
        if self._tls is not None and not self._shaking and not self._backlog:
            with suppress(ssl.SSLError):  # it wants the other side's goodbye; ours is written, if anything can be
                self._tls.unwrap()
            self._flush()
        self._below.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._ended = True
        if self._below is not None:
            self._below.abort()

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The protocol above."""
        return self._above

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand bytes on to another one: a second layer of TLS."""
        self._above = cast("asyncio.Protocol", protocol)

    def get_extra_info(self, name: str, default: object = None) -> object:
        """`ssl_object`, and what the transport below knows."""
        if name == "ssl_object":
            return self._tls
        return default if self._below is None else self._below.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        """Bytes that wait to be sent."""
        waiting = sum(map(len, self._backlog))
        return waiting if self._below is None else waiting + self._below.get_write_buffer_size()

    # -- in between ------------------------------------------------------------------------------------------------

    def _take(self, worth: int = 1) -> None:
        if self._shaking:
            self._shake_hands()
        else:
            self._drain(worth)

    def _shake_hands(self) -> None:
        if self._tls is None:
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return
        except (ssl.SSLError, ssl.CertificateError) as error:
            self._flush()  # the alert that tells the server why
            self._fail(error)
            return
        self._shaking = False
        if self._ended or (self._waiter is not None and self._waiter.done()):  # given up meanwhile
            return
        if self._tls.selected_alpn_protocol() == HTTP2:
            self._made = False  # a tunnel's connection is told of its transport once more
            self._above = self.top = self._speak_http2()
        if not self._made:
            self._made = True
            self._above.connection_made(self)
        if self._waiter is not None:
            self._waiter.set_result(None)
        # In this order: whoever waits for the handshake writes a request, and our last word goes with it.
        self._loop.call_soon(self._flush)
        if self._incoming.pending:
            self._loop.call_soon(self._drain)

    def _speak_http2(self) -> Http2Transport:
        """The layer that the server wants to be spoken to through."""
        from .http2 import Http2Transport  # noqa: PLC0415 - most crawls meet no server that insists on it

        return Http2Transport(cast("Connection", self._above))

    def _fail(self, error: Exception) -> None:
        """The handshake has failed; there is no connection to speak of."""
        self._shaking = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self._error, self._ended = self._error or error, True
        if self._below is not None:
            self._below.close()

    def _drain(self, worth: int = 1) -> None:
        """Hand on what can be decrypted; with less than `worth` bytes left it is not tried, as more is at hand."""
        if self._tls is None or self._ended or self._shaking:
            return
        try:
            over = self._hand_on(self._tls, worth)
            if self._backlog:
                self._encrypt()
        except ssl.SSLError as error:
            over = self._incoming.eof  # in the middle of a record
            if not over:
                self._break(error)
                return
        if self._outgoing.pending:
            self._flush()
        if (over or self._incoming.eof) and not self._paused and not self._ended:
            self._end()

    def _hand_on(self, tls: ssl.SSLObject, worth: int) -> bool:
        """Whether the other side has said that this is all."""
        try:
            while not self._paused and not self._ended and self._incoming.pending >= worth:
                data = tls.read(RECORD_BYTES)
                if not data:
                    return True
                self._handed += len(data)
                self._above.data_received(data)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            return True
        return False

    def _end(self) -> None:
        self._ended = True
        self._above.eof_received()
        self.close()

    def _encrypt(self) -> None:
        """Raises what the ssl module raises, but for its wish to read first."""
        if self._tls is None:
            return
        try:
            while self._backlog:
                data = self._backlog[0]
                taken = self._tls.write(data)
                if taken < len(data):
                    self._backlog[0] = data[taken:]
                else:
                    self._backlog.pop(0)
        except ssl.SSLWantReadError:
            pass
        self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending and self._below is not None and not self._below.is_closing():
            with suppress(RuntimeError):  # uvloop may have closed it, and tells so in the next turn of the loop
                self._below.write(self._outgoing.read())

    def _break(self, error: Exception) -> None:
        """The other side sends what cannot be decrypted."""
        self._error, self._ended = error, True
        self._flush()
        if self._below is not None:
            self._below.abort()
