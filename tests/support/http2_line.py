"""The layer of HTTP/2 between a transport and a reader that are here, and frames as servers make them."""

from __future__ import annotations

import asyncio
from typing import Any

from hpack import Encoder

from nephila.fetch.answer import AnswerReader, Limits, Wanted
from nephila.fetch.http2 import Http2Transport
from nephila.fetch.http2_frames import END_HEADERS, END_STREAM, Kind, spell, spell_settings
from nephila.model.exchange import FailureKind

REQUEST = b"GET /web?q=1 HTTP/1.1\r\nHost: a.test\r\nUser-Agent: Nephila/0.1\r\nConnection: keep-alive\r\n\r\n"
SETTINGS = spell_settings({})
LIMITS = Limits(header_bytes=2048, body_bytes=50_000)


class Below(asyncio.Transport):
    """Where frames go to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closing = self.aborted = self.paused = False

    def write(self, data: Any) -> None:
        assert not self.closing
        self.written += data

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def is_reading(self) -> bool:
        return not self.paused

    def get_write_buffer_size(self) -> int:
        return 7

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return "below" if name == "peername" else default


class Above:
    """What `Connection` does with what it is told."""

    protocol = ""
    wants_http1 = False

    def __init__(self, header_bytes: int) -> None:
        self.header_bytes = header_bytes
        self.transport: Any = None
        self.reader: AnswerReader | None = None
        self.spoiled = False
        self.told: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert data
        if self.reader is None or self.reader.finished:
            self.spoiled = True
            self.transport.abort()
        else:
            self.reader.feed(data)

    def eof_received(self) -> None:
        self.told.append("eof")
        if self.reader is not None:
            self.reader.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append("lost")
        if self.reader is not None:
            self.reader.end(exc)

    def message_ended(self, error: Exception | None = None) -> None:
        assert self.reader is not None
        if error is None:
            self.reader.conclude()
        else:
            self.reader.end(error)

    def message_broken(self, kind: FailureKind, detail: str) -> None:
        assert self.reader is not None
        self.reader.refuse(kind, detail)


class Line:
    """One connection, with a server whose part is played by whoever holds it."""

    def __init__(self, limits: Limits = LIMITS, wanted: Wanted | None = None) -> None:
        self.limits, self.wanted = limits, wanted
        self.above, self.below = Above(limits.header_bytes), Below()
        self.layer = Http2Transport(self.above)
        self.layer.connection_made(self.below)
        self.encoder = Encoder()

    def ask(self, request: bytes = REQUEST) -> AnswerReader:
        """Send a request; who reads the answer."""
        self.above.reader = reader = AnswerReader(self.limits, self.wanted, delimited=True)
        self.layer.write(request)
        return reader

    def play(self, data: bytes, step: int = 0) -> None:
        """Let the server send this, cut into pieces."""
        for at in range(0, len(data), step or len(data) or 1):
            if self.below.closing:
                return
            self.layer.data_received(data[at : at + (step or len(data))])

    def sent(self) -> bytes:
        """What was written since the last look."""
        data = bytes(self.below.written)
        self.below.written.clear()
        return data


def packed(*fields: tuple[bytes, bytes], status: bytes = b"200", encoder: Encoder | None = None) -> bytes:
    """A field block; without a status, trailers."""
    whole = [(b":status", status), *fields] if status else list(fields)
    return (encoder or Encoder()).encode(whole, huffman=False)


def headers(*fields: tuple[bytes, bytes], status: bytes = b"200", stream: int = 1, ends: bool = False) -> bytes:
    """A HEADERS frame."""
    return spell(Kind.HEADERS, END_HEADERS | (END_STREAM if ends else 0), stream, packed(*fields, status=status))


def data(content: bytes, *, stream: int = 1, ends: bool = False) -> bytes:
    """A DATA frame."""
    return spell(Kind.DATA, END_STREAM if ends else 0, stream, content)


def reset(code: int, stream: int = 1) -> bytes:
    """A RST_STREAM frame."""
    return spell(Kind.RST_STREAM, 0, stream, code.to_bytes(4))


def goodbye(last: int, code: int = 0) -> bytes:
    """A GOAWAY frame."""
    return spell(Kind.GOAWAY, 0, 0, last.to_bytes(4) + code.to_bytes(4) + b"bye")


def ping(said: bytes = b"12345678") -> bytes:
    """A PING frame."""
    return spell(Kind.PING, 0, 0, said)
