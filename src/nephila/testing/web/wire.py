"""From a document to the exact bytes on the wire, and what happens to them on the way.

`ServedAnswer` is what every transport of this web delivers: the wire bytes, how fast they go, and where they break off.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from http import HTTPStatus

import brotlicffi as brotli  # type: ignore[import-untyped]  # has no stubs
import zstandard

_CHUNK_BYTES = 1000
"""Small, so that a chunked page of ordinary size has several chunks."""


class Fault(StrEnum):
    """How an exchange goes wrong after `ServedAnswer.sent_bytes`."""

    RESET = "reset"
    CUT = "cut"
    HANG = "hang"


class Framing(StrEnum):
    """How the end of a body is told."""

    LENGTH = "length"
    CHUNKED = "chunked"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """One answer, as it leaves the server."""

    status: int
    head: bytes
    """Status line and headers, the empty line included."""
    payload: bytes
    """What follows on the wire."""
    delay_s: float = 0.0
    """Time to the first byte."""
    bytes_per_s: float = 0.0
    """0: as fast as it goes."""
    fault: Fault | None = None
    fault_after: int = 0
    """Wire bytes that are sent before the fault."""
    close: bool = False
    """The server closes the connection after it."""
    counts_tries: bool = False
    """The answer depends on how often this target was asked: the server has to count."""
    retry_after_ms: int = 0
    respells: bool = False
    """A redirect to another spelling of the same page."""

    @property
    def wire(self) -> bytes:
        """Everything that was meant to be sent."""
        return self.head + self.payload

    @property
    def sent(self) -> bytes:
        """Everything that is really sent."""
        return self.wire if self.fault is None else self.wire[: self.fault_after]


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(body) + packer.flush()


def _deflate(body: bytes) -> bytes:
    return zlib.compress(body, 1)


def _brotli(body: bytes) -> bytes:
    return bytes(brotli.compress(body, quality=1))


def _zstd(body: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(body)


CODINGS: dict[str, Callable[[bytes], bytes]] = {"gzip": _gzip, "br": _brotli, "zstd": _zstd, "deflate": _deflate}


def accepted_codings(accept_encoding: str) -> tuple[str, ...]:
    """The codings of this server that a client takes, in the server's order."""
    offered = {
        part.partition(";")[0].strip().lower()
        for part in accept_encoding.split(",")
        if part.replace(" ", "").partition(";q=")[2] not in ("0", "0.0", "0.00", "0.000")
    }
    return tuple(coding for coding in CODINGS if coding in offered)


@cache
def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nServer: simulated\r\n"


def write_answer(
    status: int,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    *,
    framing: Framing = Framing.LENGTH,
    coding: str = "",
    close: bool = False,
) -> ServedAnswer:
    """Code and frame a body and write the head that fits it."""
    if coding:
        body = CODINGS[coding](body)
        headers = [*headers, ("Content-Encoding", coding), ("Vary", "Accept-Encoding")]
    close = close or framing is Framing.CLOSE
    lines = [f"{name}: {value}\r\n" for name, value in headers]
    if status == HTTPStatus.NOT_MODIFIED:
        body = b""
    elif framing is Framing.LENGTH:
        lines.append(f"Content-Length: {len(body)}\r\n")
    elif framing is Framing.CHUNKED:
        lines.append("Transfer-Encoding: chunked\r\n")
        body = _chunked(body)
    if close:
        lines.append("Connection: close\r\n")
    head = f"{_status_line(status)}{''.join(lines)}\r\n".encode("latin-1")
    return ServedAnswer(status, head, body, close=close)


def _chunked(body: bytes) -> bytes:
    parts = [body[at : at + _CHUNK_BYTES] for at in range(0, len(body), _CHUNK_BYTES)]
    return b"".join([b"%x\r\n%b\r\n" % (len(part), part) for part in parts]) + b"0\r\n\r\n"
