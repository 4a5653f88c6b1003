"""Frames of HTTP/2 (RFC 9113, 4 and 6): taken apart and put together, and what is wrong with one.

Nothing here knows of streams. What must stay true: however the bytes are cut, the same frames come out; no more than
one frame that is not whole is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from nephila.model.exchange import FailureKind

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

HEADER_BYTES = 9
MOST_BYTES = 16_384
"""Of a frame's payload, in both directions: the least that everybody must take, and all that we do (RFC 9113, 4.2)."""

LARGEST_WINDOW = 2**31 - 1
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY = 0x20


class Kind(IntEnum):
    """Types of frames."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Setting(IntEnum):
    """What the two sides tell each other at the beginning."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class Code(IntEnum):
    """Why a stream or a connection is ended."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


def name_of(code: int) -> str:
    """Of an error code, for people."""
    return Code(code).name if code in set(Code) else f"code {code}"


class Frame(NamedTuple):
    """One, whole."""

    kind: int
    flags: int
    stream: int
    payload: bytes


class Violation(Exception):  # noqa: N818 - the server's, and told to nobody but the layer that reads its frames
    """What the server sends is no HTTP/2, or too much of it. Never leaves `Http2Transport`."""

    def __init__(self, code: Code, detail: str, kind: FailureKind = FailureKind.PROTOCOL) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.kind = kind


class FrameReader:
    """Bytes in, frames out."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun = b""

    def frames(self, data: bytes) -> Iterator[Frame]:
        """Those that are whole now. Raises `Violation` for one that is too long."""
        data = self._begun + data if self._begun else data
        at, end = 0, len(data)
        self._begun = b""
        while end - at >= HEADER_BYTES:
            size = int.from_bytes(data[at : at + 3])
            if size > MOST_BYTES:
                raise Violation(Code.FRAME_SIZE_ERROR, f"a frame of {size} bytes")
            start = at + HEADER_BYTES
            if end - start < size:
                break
            at = start + size
            stream = int.from_bytes(data[start - 4 : start]) & LARGEST_WINDOW
            yield Frame(data[start - 6], data[start - 5], stream, data[start:at])
        self._begun = data[at:]


def spell(kind: Kind, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame as it is sent."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def spell_settings(settings: dict[Setting, int]) -> bytes:
    """A SETTINGS frame."""
    return spell(Kind.SETTINGS, 0, 0, b"".join(key.to_bytes(2) + value.to_bytes(4) for key, value in settings.items()))


def read_settings(payload: bytes) -> Iterator[tuple[int, int]]:
    """What a SETTINGS frame says, in its order. Raises `Violation` for what cannot be."""
    if len(payload) % 6:
        raise Violation(Code.FRAME_SIZE_ERROR, f"settings of {len(payload)} bytes")
    for at in range(0, len(payload), 6):
        key, value = int.from_bytes(payload[at : at + 2]), int.from_bytes(payload[at + 2 : at + 6])
        if key == Setting.ENABLE_PUSH and value:
            raise Violation(Code.PROTOCOL_ERROR, "a server that wants to be pushed to")
        if key == Setting.INITIAL_WINDOW_SIZE and value > LARGEST_WINDOW:
            raise Violation(Code.FLOW_CONTROL_ERROR, f"a window of {value} bytes")
        if key == Setting.MAX_FRAME_SIZE and not MOST_BYTES <= value < 2**24:
            raise Violation(Code.PROTOCOL_ERROR, f"frames of {value} bytes at most")
        yield key, value


def content_of(frame: Frame) -> bytes:
    """The payload of DATA or HEADERS without padding and priority. Raises `Violation` where there is more of it."""
    payload, start, end = frame.payload, 0, len(frame.payload)
    if frame.flags & PADDED:
        if not payload:
            raise Violation(Code.FRAME_SIZE_ERROR, "a frame without the length of its padding")
        start, end = 1, end - payload[0]
    if frame.kind == Kind.HEADERS and frame.flags & PRIORITY:
        start += 5
    if start > end:
        raise Violation(Code.PROTOCOL_ERROR, "more padding than payload")
    return payload[start:end] if start or end < len(payload) else payload
