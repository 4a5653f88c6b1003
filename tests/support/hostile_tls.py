"""Nonsense on a TLS port: what is no TLS at all, and TLS that goes wrong at every phase.

Records are written by hand; handshakes that must be real up to some point run through `ssl` on memory buffers, with
certificates of an authority that the crawl is told to trust, so that malice behind the handshake is reached as well.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from functools import cache
from pathlib import Path

import trustme

HOLD_S = 60.0
TLS = (
    *("plain-text", "silence", "reset", "rubbish", "garbage-records", "endless-records", "endless-handshake"),
    *("alert", "alerts", "old-version", "half-record", "huge-certificate", "wrong-name", "reset-after-hello"),
    *("reset-after-handshake", "rubbish-after-handshake", "endless-after-handshake", "renegotiation", "close-at-once"),
)
MANY_NAMES = 6_000
"""In the certificate that is too large for anybody."""
_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"


def _record(kind: int, body: bytes, version: bytes = b"\x03\x03") -> bytes:
    return bytes([kind]) + version + len(body).to_bytes(2) + body


class HostileTls:
    """Serves connections of all kinds."""

    def __init__(self) -> None:
        self._authority = trustme.CA()
        self._chance = random.Random(5)

    def write_authority(self, path: Path) -> None:
        """The certificate that the crawl is to trust."""
        self._authority.cert_pem.write_to_path(str(path))

    @cache  # noqa: B019 - one of these lives as long as its program
    def _context(self, kind: str) -> ssl.SSLContext:
        name = "somebody-else.test" if kind == "wrong-name" else f"{kind}.{kind}-tls.test"
        more = [f"n{number}.{name}" for number in range(MANY_NAMES if kind == "huge-certificate" else 0)]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(name, *more).configure_cert(context)
        if kind == "renegotiation":
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context

    async def serve(self, kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        if kind == "reset":
            writer.transport.abort()
            return
        hello = await reader.read(65_536)
        if kind in {"silence", "half-record"}:
            writer.write(b"\x16\x03\x03\x40\x00" + bytes(100) if kind == "half-record" else b"")
            await asyncio.sleep(HOLD_S)
        elif kind == "reset-after-hello":
            writer.transport.abort()
        elif kind in {"endless-records", "endless-handshake"}:
            body = bytes(400) if kind == "endless-records" else b"\x02\x00\x40\x00" + bytes(200)
            while True:
                writer.write(_record(22, body) * 20)
                await writer.drain()
        elif (raw := self._raw(kind)) is not None:
            writer.write(raw)
            await writer.drain()
            await asyncio.sleep(0.1)
        else:
            await self._after_handshake(kind, hello, reader, writer)

    def _raw(self, kind: str) -> bytes | None:  # noqa: PLR0911 - one for each kind
        """What is sent instead of a handshake; None where there is one."""
        match kind:
            case "plain-text":
                return (
                    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\n\r\nplain HTTP was sent to an HTTPS port"
                )
            case "rubbish":
                return self._chance.randbytes(50_000)
            case "garbage-records":
                return b"".join(_record(22, self._chance.randbytes(500)) for _ in range(50))
            case "alert":
                return _record(21, b"\x02\x28")
            case "alerts":
                return _record(21, b"\x01\x5a") * 5_000
            case "old-version":
                return _record(22, b"\x02\x00\x00\x26\x03\x00" + bytes(32) + b"\x00\x00\x05\x00", b"\x03\x00")
            case _:
                return None

    async def _after_handshake(
        self, kind: str, hello: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self._context(kind).wrap_bio(incoming, outgoing, server_side=True)
        data = hello
        while True:
            incoming.write(data)
            try:
                session.do_handshake()
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                await writer.drain()
                data = await reader.read(65_536)
                if not data:
                    return
            else:
                break
        writer.write(outgoing.read())
        if kind == "reset-after-handshake":
            writer.transport.abort()
        elif kind == "close-at-once":
            writer.write(_record(21, b"\x01\x00"))
        elif kind == "endless-after-handshake":
            session.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
            while True:
                session.write(b"<p>more " * 1_000)
                writer.write(outgoing.read())
                await writer.drain()
        elif kind == "renegotiation":
            writer.write(_record(22, b"\x00\x00\x00\x00") * 3)  # hello requests, not even encrypted
            await asyncio.sleep(0.2)
        else:
            session.write(_PAGE[:30])
            writer.write(outgoing.read() + self._chance.randbytes(5_000))
            await writer.drain()
            await asyncio.sleep(0.1)
