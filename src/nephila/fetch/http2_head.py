"""Heads between two spellings: a request of ours as fields of HTTP/2, an answer's fields as a head of HTTP/1.1.

What is stored is the head in the spelling of HTTP/1.1, as in other archives of the web, and everybody behind the
connection reads that. What must stay true: a field can forge nothing there. In HTTP/2 a value may hold any bytes; one
with a line end or a NUL, or a name that is no token in lower case, makes the answer malformed (RFC 9113, 8.2.1), and so
do the fields that speak of connections (8.2.2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .http2_frames import Code, Violation

Fields = list[tuple[bytes, bytes]]

_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
_UNFIT = re.compile(rb"[\x00\r\n]")
_STATUS = re.compile(rb"[1-9][0-9][0-9]")
_OF_CONNECTIONS = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})


def fields_of(request: bytes) -> Fields:
    """The fields of a request that `RequestSpelling` has spelled."""
    first, *lines = request[:-4].split(b"\r\n")
    method, _, rest = first.partition(b" ")
    fields = [(name.lower(), value) for name, _, value in (line.partition(b": ") for line in lines)]
    authority = next((value for name, value in fields if name == b"host"), b"")
    pseudo = [
        (b":method", method),
        (b":scheme", b"https"),
        (b":authority", authority),
        (b":path", rest.rpartition(b" ")[0]),
    ]
    return pseudo + [(name, value) for name, value in fields if name != b"host" and name not in _OF_CONNECTIONS]


def without_connection(request: bytes) -> bytes:
    """A request as it is recorded: what was said over HTTP/2, in the spelling of HTTP/1.1."""
    first, *lines = request[:-4].split(b"\r\n")
    said = [line for line in lines if line.partition(b":")[0].lower() not in _OF_CONNECTIONS]
    return b"\r\n".join([first, *said]) + b"\r\n\r\n"


def head_of(fields: Iterable[tuple[bytes, bytes]]) -> tuple[int, bytes]:
    """The status of an answer, and its head, up to and with the empty line. Raises `Violation`."""
    found = list(fields)
    if not found or found[0][0] != b":status":
        raise Violation(Code.PROTOCOL_ERROR, "an answer without a status")
    status = found[0][1]
    if not _STATUS.fullmatch(status):
        raise Violation(Code.PROTOCOL_ERROR, f"no status: {status[:20]!r}")
    check_fields(found[1:])
    lines = [b"HTTP/1.1 " + status + b" ", *(name + b": " + value for name, value in found[1:])]
    return int(status), b"\r\n".join(lines) + b"\r\n\r\n"


def check_fields(fields: Iterable[tuple[bytes, bytes]]) -> None:
    """Raises `Violation` for one that may not stand among the fields of an answer, or in its trailers."""
    for name, value in fields:
        if not _NAME.fullmatch(name):
            raise Violation(Code.PROTOCOL_ERROR, f"no name of a header: {name[:40]!r}")
        if _UNFIT.search(value):
            raise Violation(Code.PROTOCOL_ERROR, f"a line end or NUL in the header {name.decode()[:40]}")
        if name in _OF_CONNECTIONS:
            raise Violation(Code.PROTOCOL_ERROR, f"the header {name.decode()} has no place in HTTP/2")
