"""The ways a body can end, each fed with wire bytes as they come: three of HTTP/1.1, one of HTTP/2.

Every framing has the same verb: `take(data)` says how many of the bytes belong to the message; the rest does not. What
must stay true: splitting the same bytes differently changes nothing; the work is linear in the bytes.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Protocol

_SIZE = re.compile(rb"[0-9a-fA-F]+")
_HEX = frozenset(b"0123456789abcdefABCDEF")
_LARGEST_CHUNK = 2**63 - 1
MAX_CHUNKS = 100_000
"""Chunks of one body, trailers included: 10 MB in pieces of a hundred bytes. Taking one apart costs four microseconds,
however small it is, and a server that sends single bytes could keep a core busy with a few of its answers."""


class BodyFraming(Protocol):
    """A body on its way in."""

    complete: bool
    fault: str
    """Why the framing is broken; empty while it is sound."""
    content: bytearray | None
    """The body without its framing, where framing and body are interleaved; None when all bytes taken are the body."""

    def take(self, data: bytes) -> int:
        """Take the bytes that belong to the message; how many they were."""


class UntilClose:
    """Everything until the connection ends."""

    __slots__ = ("complete", "content", "fault")

    def __init__(self) -> None:
        self.complete = False
        self.fault = ""
        self.content: bytearray | None = None

    def take(self, data: bytes) -> int:
        """All of it."""
        return len(data)


class Counted:
    """As many bytes as Content-Length says."""

    __slots__ = ("complete", "content", "fault", "left")

    def __init__(self, length: int) -> None:
        self.left = length
        self.complete = length == 0
        self.fault = ""
        self.content: bytearray | None = None

    def take(self, data: bytes) -> int:
        """As many as are still due."""
        used = min(len(data), self.left)
        self.left -= used
        self.complete = self.left == 0
        return used


class Delimited:
    """As much as the layer below says: its end is told, and Content-Length must agree with it (RFC 9113, 8.1.1)."""

    __slots__ = ("complete", "content", "fault", "left")

    def __init__(self, length: int | None) -> None:
        self.left = length
        """Bytes that are still due; None where nobody has said how many."""
        self.complete = False
        self.fault = ""
        self.content: bytearray | None = None

    def take(self, data: bytes) -> int:
        """All of it."""
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                self.fault = "more data than Content-Length says"
        return len(data)

    def conclude(self) -> None:
        """There is no more."""
        if self.left:
            self.fault = f"{self.left} bytes less than Content-Length says"
        else:
            self.complete = True


class _Line(Enum):
    SIZE = auto()
    AFTER_DATA = auto()
    TRAILER = auto()


class Chunked:
    """Chunks, as leniently as libcurl reads them: bare LF, anything after the size, trailers with a colon."""

    __slots__ = ("_chunks", "_expected", "_left", "_line", "complete", "content", "fault")

    def __init__(self) -> None:
        self._chunks = 0
        self._expected = _Line.SIZE
        self._left = 0
        self._line = bytearray()
        self.complete = False
        self.fault = ""
        self.content: bytearray | None = bytearray()

    def take(self, data: bytes) -> int:
        """Follow sizes, data and trailers; stops at the end of the message or at a fault."""
        at, end = 0, len(data)
        while at < end and not self.complete and not self.fault:
            if self._left:
                at += self._take_content(data, at)
                continue
            newline = data.find(b"\n", at)
            upto = end if newline < 0 else newline + 1
            self._line += data[at:upto]
            at = upto
            self._read_line(whole=newline >= 0)
        return at

    def _take_content(self, data: bytes, at: int) -> int:
        piece = data[at : at + self._left]
        assert self.content is not None  # noqa: S101 - set by the constructor
        self.content += piece
        self._left -= len(piece)
        if not self._left:
            self._expected = _Line.AFTER_DATA
        return len(piece)

    def _read_line(self, *, whole: bool) -> None:
        """Judge the line as soon as it can be judged: a fault must not wait for a line feed that never comes."""
        line = self._line
        match self._expected:
            case _Line.SIZE:
                if line[0] not in _HEX:
                    self.fault = "chunk size is no number"
                elif whole:
                    self._start_chunk(line)
            case _Line.AFTER_DATA:
                if bytes(line) not in {b"\r\n", b"\n", b"\r"}:
                    self.fault = "chunk longer than its size"
                elif whole:
                    self._expected = _Line.SIZE
            case _Line.TRAILER:
                self._read_trailer(line, whole=whole)
        if whole:
            line.clear()

    def _start_chunk(self, line: bytearray) -> None:
        digits = _SIZE.match(line)
        size = int(digits[0].lstrip(b"0")[:17] or b"0", 16) if digits else 0
        if size > _LARGEST_CHUNK:
            self.fault = "chunk size beyond all reason"
        elif size:
            self._left = size
            self._count()
        else:
            self._expected = _Line.TRAILER

    def _count(self) -> None:
        self._chunks += 1
        if self._chunks > MAX_CHUNKS:
            self.fault = f"more than {MAX_CHUNKS} chunks and trailers"

    def _read_trailer(self, line: bytearray, *, whole: bool) -> None:
        if whole and bytes(line) in {b"\r\n", b"\n"}:
            self.complete = True
        elif line.startswith(b"\r") and line != b"\r":
            self.fault = "bare carriage return after the last chunk"
        elif whole and (b":" not in line or line.startswith((b" ", b"\t"))):
            self.fault = "trailer line without a colon"
        elif whole:
            self._count()
