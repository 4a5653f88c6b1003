"""One answer being read, without any I/O: bytes in, and at the end what came and why it stopped.

The reader is told of bytes (`feed`), of the connection's end (`end`) and of time running out (`expire`), over HTTP/2 of
the message's end (`conclude`) and of what is none (`refuse`); each of these may finish it. It decides when enough has
been read: the message is complete, the body limit is reached, the type is not wanted (H7), or what comes is no HTTP.
Provisional answers (1xx) are read over: only the final header block is kept. What must stay true: `head + payload` are
exactly the bytes that the server sent for this answer, up to where reading stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nephila.model.exchange import FailureKind, Truncation
from nephila.model.noun import quick

from .coding import Decoded, codings_of, decode
from .framing import BodyFraming, Chunked, Counted, Delimited, UntilClose
from .head import (
    Framing,
    Head,
    Malformed,
    begins_like_http,
    find_end,
    framing_of,
    keeps_alive,
    open_answer,
    promised_idle_s,
    read_broken_head,
    read_head,
)

SNIFF_BYTES = 1445
"""Bytes of a body that decide its type when no header does (WHATWG MIME Sniffing, 5.2)."""

DRAIN_BYTES = 16_384
"""An unwanted body with no more than this to come is read out and thrown away: cheaper than a new connection."""

MAX_PROVISIONAL = 100
"""Provisional answers before the final one; a real server sends one or two."""

_BEGINNING = len("HTTP/")
"""By so many bytes it is known whether this is HTTP at all."""

_SMALL_PIECE = 512
"""Pieces of a body below this are gathered in one buffer: an object for every byte that drips in takes fifty times its
room."""

Sniff = Callable[[str, bytes], str]


class Limits(NamedTuple):
    """How much of an answer is read."""

    header_bytes: int
    body_bytes: int


@quick
class Wanted(NamedTuple):
    """Which media types are read, and how a type is told."""

    types: tuple[str, ...]
    sniff: Sniff

    def accepts(self, media_type: str) -> bool:
        """Whether the type is listed, itself or as ``text/*`` or ``*/*``."""
        types = self.types
        return media_type in types or "*/*" in types or media_type.partition("/")[0] + "/*" in types


class AnswerReader:
    """Reads one answer. `finished` tells when to stop feeding it."""

    __slots__ = (
        "_block",
        "_body",
        "_delimited",
        "_limits",
        "_parts",
        "_passed_over",
        "_provisional",
        "_seen_upto",
        "_undecided",
        "_wanted",
        "detail",
        "finished",
        "head",
        "head_bytes",
        "kind",
        "received",
        "reusable",
        "truncated",
        "unwanted",
        "wire_bytes",
    )

    def __init__(self, limits: Limits, wanted: Wanted | None = None, *, delimited: bool = False) -> None:
        """`delimited`: the layer below tells when the message is whole (`conclude`), as HTTP/2 does."""
        self._limits = limits
        self._delimited = delimited
        self._wanted = wanted
        self._block: bytes | bytearray = b""
        """The header block so far; a bytearray as soon as it comes in more than one piece."""
        self._seen_upto = 0
        self._passed_over = 0
        self._provisional = 0
        self._body: BodyFraming | None = None
        self._parts: list[bytes | bytearray] = []
        self._undecided = False
        self.head: Head | None = None
        self.head_bytes = b""
        self.received = False
        """Any byte of an answer came."""
        self.wire_bytes = 0
        """Of the payload."""
        self.finished = False
        self.reusable = False
        """The connection can carry another exchange."""
        self.truncated: Truncation | None = None
        self.unwanted = False
        self.kind: FailureKind | None = None
        """Set when there is no answer worth keeping."""
        self.detail = ""

    def feed(self, data: bytes) -> bool:
        """Take bytes off the wire; whether the reader is finished."""
        self.received = True
        if self._body is not None:
            self._feed_body(self._body, data)
        elif self._block or not self._open(data):
            self._feed_head(data)
        return self.finished

    def end(self, error: Exception | None = None) -> None:
        """The connection ended: with an error, or the way a close-delimited body ends."""
        if self.finished:
            return
        if self._body is None:
            self._end_in_head(error)
        elif error is None and isinstance(self._body, UntilClose):
            self._complete()
        else:
            self._cut(Truncation.DISCONNECT)

    def expire(self) -> None:
        """Time is up: what there is of a body is kept."""
        if self.finished:
            return
        if self._body is None:
            self._fail(FailureKind.TIMEOUT, "no answer in time" if not self.received else "header block not in time")
        else:
            self._cut(Truncation.TIME)

    def conclude(self) -> None:
        """The message is whole, and the connection goes on."""
        if self.finished:
            return
        if not isinstance(self._body, Delimited):
            self._fail(FailureKind.PROTOCOL, "an answer without a head")
            return
        self._body.conclude()
        if self._body.fault:
            self._break_off(self._body.fault)
        else:
            self.reusable = True
            self._complete()

    def refuse(self, kind: FailureKind, detail: str) -> None:
        """What came is no message."""
        if not self.finished:
            self._fail(kind, detail)

    def payload(self) -> bytes:
        """The bytes after the head, as they were on the wire; none for an unwanted type."""
        if self.unwanted:
            return b""
        parts = self._parts
        if len(parts) == 1 and isinstance(parts[0], bytes):
            return parts[0]
        whole = b"".join(parts)
        self._parts = [whole]
        return whole

    def content(self, payload: bytes | None = None) -> bytes:
        """The payload, which may be at hand, without its transfer coding."""
        if self._body is not None and self._body.content is not None and not self.unwanted:
            return bytes(self._body.content)
        return self.payload() if payload is None else payload

    def idle_s(self) -> float | None:
        """How long the server says that it keeps the connection."""
        if self.head is None or "keep-alive" not in self.head.noted:
            return None
        return promised_idle_s(self.head)

    # -- the header block ------------------------------------------------------------------------------------------

    def _open(self, data: bytes) -> bool:
        """Begin with what came first; False where it is not a whole block, or not one that is plainly right."""
        found = open_answer(data, Head)
        if found is None or found[0] > self._limits.header_bytes - self._passed_over:
            return False
        end, self.head, chunked, length, self.reusable = found
        self.head_bytes, rest = data[:end], data[end:]
        if self._delimited:
            self._body = Delimited(length)
        elif length is not None and length == len(rest) <= self._limits.body_bytes:  # most pages, in one read
            self.wire_bytes = length
            self._parts = [rest] if rest else []
            self._body, rest = _WHOLE, b""
        elif chunked:
            self._body = Chunked()
        else:
            self._body = UntilClose() if length is None else Counted(length)
        self._begin_body(self.head, self._body, rest)
        return True

    def _feed_head(self, data: bytes) -> None:
        self._gather(data)
        before, room = len(self._block) - len(data), self._limits.header_bytes - self._passed_over
        if before >= _BEGINNING and b"\n" not in data and len(self._block) <= room:
            return  # nothing can have ended: a line that drips in is looked at once, not once a byte
        while end := self._find_head_end():
            block, rest = bytes(self._block[:end]), bytes(self._block[end:])
            self._block, self._seen_upto = rest, 0
            head = self._read_head(block)
            if head is not None and self._body is not None:
                self._block = b""
                self._begin_body(head, self._body, rest)
                return

    def _find_head_end(self) -> int:
        """The offset after the header block; 0 when there is more to come, or nothing to hope for."""
        block, limit = self._block, self._limits.header_bytes
        if self.finished or not block:
            return 0
        if not begins_like_http(block):
            self._fail(FailureKind.PROTOCOL, f"not HTTP: {bytes(block[:20])!r}")
            return 0
        end = find_end(block, self._seen_upto)
        if (len(block) if end < 0 else end) + self._passed_over > limit:
            self._fail(FailureKind.TOO_LARGE, f"header block over {limit} bytes")
        elif end >= 0:
            return end
        else:
            self._seen_upto = max(block.rfind(b"\n"), 0)
        return 0

    def _gather(self, data: bytes) -> None:
        if not self._block:
            self._block = data
        elif isinstance(self._block, bytearray):
            self._block += data
        else:
            self._block = bytearray(self._block) + data

    def _read_head(self, block: bytes) -> Head | None:
        """The final header block; None for a provisional one, and for one that is no HTTP."""
        head = read_head(block)
        if isinstance(head, Malformed):
            self._fail(FailureKind.PROTOCOL, head.detail)
            return None
        if 100 <= head.status < 200 and head.status != 101:
            self._passed_over += len(block)
            self._provisional += 1
            if self._provisional > MAX_PROVISIONAL:
                self._fail(FailureKind.TOO_LARGE, "provisional answers without end")
            return None
        framing = framing_of(head)
        if isinstance(framing, Malformed):
            self._fail(FailureKind.PROTOCOL, framing.detail)
            return None
        self.head, self.head_bytes = head, block
        self.reusable = keeps_alive(head, framing)
        self._body = Delimited(framing.length) if self._delimited else _body_of(framing)
        return head

    def _end_in_head(self, error: Exception | None) -> None:
        block = bytes(self._block)
        head = read_broken_head(block) if error is None else None
        match head:
            case Head(status=status) if status >= 200:
                self.head, self.head_bytes = head, block
                self._cut(Truncation.DISCONNECT)
            case Malformed():
                self._fail(FailureKind.PROTOCOL, head.detail)
            case _ if not self.received:
                self._fail(FailureKind.RESET, f"connection closed without an answer{_told(error)}")
            case _:
                self._fail(FailureKind.RESET, f"connection closed within the header block{_told(error)}")

    # -- the body --------------------------------------------------------------------------------------------------

    def _begin_body(self, head: Head, body: BodyFraming, data: bytes) -> None:
        wanted = self._wanted
        if wanted is not None and 200 <= head.status < 300:
            declared = _declared_type(head)
            media_type = wanted.sniff(declared, b"") if declared else ""
            self._undecided = not media_type
            if media_type and not wanted.accepts(media_type):
                self.unwanted = True
                if not _is_short(body, data):
                    self._drop()
                    return
        if body.complete:
            self.reusable = self.reusable and not data
            self._complete()
        elif data:
            self._feed_body(body, data)

    def _feed_body(self, body: BodyFraming, data: bytes) -> None:
        room = self._limits.body_bytes - self.wire_bytes
        within = data if len(data) <= room else data[:room]
        used = body.take(within)
        self._keep(within if used == len(within) else within[:used])
        self.wire_bytes += used
        if body.fault:
            self._break_off(body.fault)
        elif body.complete:
            self.reusable = self.reusable and used == len(data)
            self._complete()
        elif len(data) > room:
            self._cut(Truncation.LENGTH)
        elif self._undecided and self.wire_bytes > SNIFF_BYTES:
            self._decide()
            if self.unwanted:
                self._drop()

    def _keep(self, piece: bytes) -> None:
        parts = self._parts
        if len(piece) >= _SMALL_PIECE or not parts:
            parts.append(piece)
            return
        last = parts[-1]
        if isinstance(last, bytearray):
            last += piece
        else:
            parts.append(bytearray(piece))

    def _decide(self) -> None:
        """Tell an undeclared type by the first bytes of the body, its codings undone."""
        self._undecided = False
        if self.head is None or self._wanted is None:
            return
        decoded = decode(codings_of(self.head.values("content-encoding")), self.content(), SNIFF_BYTES)
        first = decoded.body if isinstance(decoded, Decoded) else b""
        self.unwanted = not self._wanted.accepts(self._wanted.sniff(_declared_type(self.head), first))

    # -- the end ---------------------------------------------------------------------------------------------------

    def _complete(self) -> None:
        if self._undecided:
            self._decide()
        self.finished = True
        if self.unwanted:
            self._forget_body()

    def _break_off(self, fault: str) -> None:
        """The body is no body: an answer that says all in its head is one all the same, with what came."""
        if self.head is not None and self.head.says_all:
            self._cut(Truncation.DISCONNECT)
        else:
            self._fail(FailureKind.PROTOCOL, fault)

    def _cut(self, why: Truncation) -> None:
        if self._undecided:
            self._decide()
        self.finished = True
        self.reusable = False
        self.truncated = why
        if self.unwanted:
            self._forget_body()

    def _drop(self) -> None:
        self.finished = True
        self.reusable = False
        self._forget_body()

    def _forget_body(self) -> None:
        """The type is not wanted: whatever came of the body is thrown away, and the capture says so (H7)."""
        empty = self._body is not None and self._body.complete and not self.wire_bytes
        self.truncated = None if empty else Truncation.UNSPECIFIED
        self._parts = []

    def _fail(self, kind: FailureKind, detail: str) -> None:
        self.finished = True
        self.reusable = False
        self.kind, self.detail = kind, detail


_WHOLE = Counted(0)
"""The framing of a body of which nothing more is to come."""


def _body_of(framing: Framing) -> BodyFraming:
    if framing.chunked:
        return Chunked()
    if framing.length is not None:
        return Counted(framing.length)
    return UntilClose()


def _declared_type(head: Head) -> str:
    """What the Content-Type headers say, several joined: which of them counts is for others to tell."""
    types = head.values("content-type")
    return ", ".join(types) if len(types) > 1 else types[0] if types else ""


def _is_short(body: BodyFraming, data: bytes) -> bool:
    """Whether so little is still to come that reading it is cheaper than closing."""
    left = body.left if isinstance(body, Counted | Delimited) else None
    return body.complete or (left is not None and left - len(data) <= DRAIN_BYTES)


def _told(error: Exception | None) -> str:
    return f": {error}" if error is not None and str(error) else ""
