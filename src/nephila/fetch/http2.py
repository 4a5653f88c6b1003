"""HTTP/2 under a connection that speaks HTTP/1.1: a layer between TLS and `Connection`, for servers that chose it.

It is a transport for the connection above and the protocol of the transport below, as TLS itself is. A request that is
written becomes one stream; what comes in that stream is handed on as an answer of HTTP/1.1: a head, then the data as it
is. How long the body is, the stream's end says and nothing else, so the layer tells of that (`message_ended`), and of
what is no HTTP/2 (`message_broken`). One exchange at a time, as politeness wants it: nothing is multiplexed. Frames are
read by our own code and field blocks by hpack; why: decision 50.

What must stay true: nothing of the server's is kept beyond a frame and a field block that are not whole. While the
connection has paused reading no frame is read, and windows open by what it has taken, which is why a server that does
not keep to them gains nothing. Whatever a server may repeat without saying anything is counted, and has an end.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

from hpack import Decoder, Encoder, HPACKError, NeverIndexedHeaderTuple, OversizedHeaderListError

from nephila.model.exchange import FailureKind

from .http2_frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    LARGEST_WINDOW,
    MOST_BYTES,
    PREFACE,
    Code,
    Frame,
    FrameReader,
    Kind,
    Setting,
    Violation,
    content_of,
    name_of,
    read_settings,
    spell,
    spell_settings,
)
from .http2_head import check_fields, fields_of, head_of

WINDOW_BYTES = 1_048_576
"""Of a stream and of the connection: what may be under way. What waits in memory is bounded elsewhere (`budget`)."""
DEFAULT_WINDOW_BYTES = 65_535

MOST_PIECES = 100_000
"""DATA frames of one answer, as chunks of HTTP/1.1."""
MOST_IDLE_FRAMES = 10_000
"""Frames from one request to the next that bring nothing of an answer: pings, settings, empty DATA and the like. A
server that measures its line pings once in some 64 KB; an answer to each costs us a few microseconds."""

TABLE_BYTES = 4096
"""Of fields that we let the server remember for us, however many more it would (RFC 7541, 4.2)."""


class Above(Protocol):
    """A connection, as this layer sees it."""

    header_bytes: int
    protocol: str
    wants_http1: bool

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As a protocol."""

    def data_received(self, data: bytes) -> None:
        """As a protocol."""

    def eof_received(self) -> None:
        """As a protocol."""

    def connection_lost(self, exc: Exception | None) -> None:
        """As a protocol."""

    def message_ended(self, error: Exception | None = None) -> None:
        """The answer is whole, or with an error: nothing more will come of it."""

    def message_broken(self, kind: FailureKind, detail: str) -> None:
        """What came is no answer."""


class Http2Transport(asyncio.Transport, asyncio.Protocol):
    """One connection of HTTP/2, asked one thing at a time."""

    __slots__ = (
        "_above",
        "_below",
        "_block",
        "_connection_due",
        "_decoder",
        "_encoder",
        "_frames",
        "_going",
        "_greeted",
        "_headed",
        "_header_room",
        "_idle",
        "_open",
        "_outgoing",
        "_over",
        "_pieces",
        "_stream",
        "_stream_due",
        "_table_sizes",
    )

    def __init__(self, above: Above) -> None:
        super().__init__()
        self._above = above
        above.protocol = "h2"
        self._below: asyncio.Transport | None = None
        self._frames = FrameReader()
        self._decoder = Decoder(max_header_list_size=above.header_bytes)
        self._encoder = Encoder()
        self._outgoing = bytearray()
        self._stream = -1
        """The stream of the last request: 1, 3, 5 and so on."""
        self._open = False
        """An answer is under way in it."""
        self._headed = False
        """Its final head has come."""
        self._block: tuple[bytearray, int] | None = None
        """A field block that is not whole, and the flags of the frame that began it."""
        self._greeted = False
        """The server has told its settings, as it must before all else."""
        self._going = False
        """The server wants no more requests here."""
        self._over = False
        """Nothing is read any more."""
        self._header_room = above.header_bytes
        self._stream_due = self._connection_due = 0
        """What was taken, and has not opened the windows yet."""
        self._table_sizes: tuple[int, int] = (TABLE_BYTES, TABLE_BYTES)
        """Of fields that the server remembers: the least that it has said since the last request, and the last."""
        self._pieces = self._idle = 0

    # -- what the transport below calls ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say nothing yet: our settings leave with the first request, in one packet."""
        self._below = cast("asyncio.Transport", transport)
        self._above.connection_made(self)

    def data_received(self, data: bytes) -> None:
        """Read the frames that are whole."""
        if self._over:
            return
        try:
            for frame in self._frames.frames(data):
                self._take(frame)
                if self.is_closing():
                    break
        except Violation as fault:
            self._break(fault)
        self._flush()

    def eof_received(self) -> None:
        """Passed on; within an answer it is cut."""
        if not self._over:
            self._above.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Passed on."""
        self._over = True
        self._below = None
        self._above.connection_lost(exc)

    # -- what the connection above calls ---------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send a request; `data` is the whole of it."""
        if self.is_closing():
            return
        if self._stream < 0:
            settings = {
                Setting.ENABLE_PUSH: 0,
                Setting.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
                Setting.MAX_HEADER_LIST_SIZE: self._above.header_bytes,
            }
            self._outgoing += PREFACE + spell_settings(settings)
            self._open_window(0, WINDOW_BYTES - DEFAULT_WINDOW_BYTES)
        self._stream += 2
        self._going = self._going or self._stream >= LARGEST_WINDOW  # numbers have an end, too
        self._open, self._headed = True, False
        self._header_room, self._stream_due = self._above.header_bytes, 0
        self._pieces = self._idle = 0
        # Paths come once each: remembered, they would drive out of the table what comes with every request.
        fields = [
            NeverIndexedHeaderTuple(name, value) if name == b":path" else (name, value)
            for name, value in fields_of(bytes(data))
        ]
        for size in self._table_sizes:
            if size != self._encoder.header_table_size:
                self._encoder.header_table_size = size
        self._table_sizes = (self._table_sizes[1],) * 2
        block = self._encoder.encode(fields, huffman=False)
        kind, flags = Kind.HEADERS, END_STREAM
        while len(block) > MOST_BYTES:
            self._outgoing += spell(kind, flags, self._stream, block[:MOST_BYTES])
            kind, flags, block = Kind.CONTINUATION, 0, block[MOST_BYTES:]
        self._outgoing += spell(kind, flags | END_HEADERS, self._stream, block)
        self._flush()

    def pause_reading(self) -> None:
        """Passed on: what is not read opens no window."""
        if self._below is not None:
            self._below.pause_reading()

    def resume_reading(self) -> None:
        """Passed on."""
        if self._below is not None:
            self._below.resume_reading()

    def is_reading(self) -> bool:
        """Whether bytes are handed on."""
        return not self.is_closing() and self._below is not None and self._below.is_reading()

    def is_closing(self) -> bool:
        """Whether no request can be sent any more, or soon."""
        return self._over or self._below is None or self._below.is_closing()

    def close(self) -> None:
        """Say goodbye."""
        self._over = True
        if self._below is not None and not self._below.is_closing():
            self._below.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._over = True
        if self._below is not None:
            self._below.abort()

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The connection above."""
        return cast("asyncio.BaseProtocol", self._above)

    def get_extra_info(self, name: str, default: object = None) -> object:
        """What the transport below knows."""
        return default if self._below is None else self._below.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        """Bytes that wait to be sent."""
        return len(self._outgoing) + (0 if self._below is None else self._below.get_write_buffer_size())

    # -- frames ----------------------------------------------------------------------------------------------------

    def _take(self, frame: Frame) -> None:
        kind = frame.kind
        if self._block is not None and (kind != Kind.CONTINUATION or frame.stream != self._stream):
            raise Violation(Code.PROTOCOL_ERROR, "another frame within a field block")
        if not self._greeted and (kind != Kind.SETTINGS or frame.flags & ACK):
            raise Violation(Code.PROTOCOL_ERROR, "no settings before all else")
        if kind == Kind.DATA:
            self._take_data(frame)
            return
        self._count_idle()
        self._take_other(frame)

    def _take_other(self, frame: Frame) -> None:
        """All but DATA; of other types, which belong to extensions, nothing is asked (RFC 9113, 4.1)."""
        match frame.kind:
            case Kind.HEADERS:
                self._take_headers(frame)
            case Kind.CONTINUATION:
                self._take_continuation(frame)
            case Kind.SETTINGS:
                self._take_settings(frame)
            case Kind.PING:
                self._take_ping(frame)
            case Kind.RST_STREAM:
                self._take_reset(frame)
            case Kind.GOAWAY:
                self._take_goodbye(frame)
            case Kind.WINDOW_UPDATE:
                self._take_window(frame)
            case Kind.PRIORITY:
                _check(frame, size=5, stream=True)
            case Kind.PUSH_PROMISE:
                raise Violation(Code.PROTOCOL_ERROR, "a push, which we have forbidden")

    def _count_idle(self) -> None:
        self._idle += 1
        if self._idle > MOST_IDLE_FRAMES:
            raise Violation(Code.ENHANCE_YOUR_CALM, f"more than {MOST_IDLE_FRAMES} frames that say nothing")

    def _check_begun(self, stream: int) -> None:
        """Frames may be late for a stream that is over, but not early."""
        if stream and (not stream & 1 or stream > self._stream):
            raise Violation(Code.PROTOCOL_ERROR, f"a frame for stream {stream}, which nobody has opened")

    def _check_answer(self, frame: Frame) -> None:
        """Whether the frame can be part of the answer that is under way."""
        if not frame.stream:
            raise Violation(Code.PROTOCOL_ERROR, "a part of an answer outside of any stream")
        self._check_begun(frame.stream)
        if not self._open or frame.stream != self._stream:
            raise Violation(Code.STREAM_CLOSED, "a part of an answer that has ended")

    def _take_data(self, frame: Frame) -> None:
        self._check_answer(frame)
        if not self._headed:
            raise Violation(Code.PROTOCOL_ERROR, "data before its head")
        content, size = content_of(frame), len(frame.payload)
        ends = frame.flags & END_STREAM
        if content:
            self._pieces += 1
            if self._pieces > MOST_PIECES:
                raise Violation(Code.ENHANCE_YOUR_CALM, f"more than {MOST_PIECES} frames of data")
            self._above.data_received(content)
        elif not ends:
            self._count_idle()
        if self._over:
            return
        self._connection_due += size
        self._stream_due += size
        if self._connection_due > WINDOW_BYTES // 2:
            self._open_window(0, self._connection_due)
            self._connection_due = 0
        if ends:
            self._finish()
        elif self._stream_due > WINDOW_BYTES // 2:
            self._open_window(self._stream, self._stream_due)
            self._stream_due = 0

    def _take_headers(self, frame: Frame) -> None:
        self._check_answer(frame)
        self._gather(bytearray(), frame.flags, content_of(frame), whole=bool(frame.flags & END_HEADERS))

    def _take_continuation(self, frame: Frame) -> None:
        if self._block is None:
            raise Violation(Code.PROTOCOL_ERROR, "the rest of a field block that nobody began")
        block, flags = self._block
        self._gather(block, flags, frame.payload, whole=bool(frame.flags & END_HEADERS))

    def _gather(self, block: bytearray, flags: int, fragment: bytes, *, whole: bool) -> None:
        """A field block, in one or more frames. All of one exchange together must keep to the limit."""
        self._header_room -= len(fragment)
        if self._header_room < 0:
            raise self._too_large()
        block += fragment
        self._block = None if whole else (block, flags)
        if whole:
            self._read_block(bytes(block), ends=bool(flags & END_STREAM))

    def _too_large(self) -> Violation:
        limit = self._above.header_bytes
        return Violation(Code.ENHANCE_YOUR_CALM, f"header block over {limit} bytes", FailureKind.TOO_LARGE)

    def _read_block(self, block: bytes, *, ends: bool) -> None:
        try:
            fields = self._decoder.decode(block, raw=True)
        except OversizedHeaderListError as error:
            raise self._too_large() from error
        except (HPACKError, ValueError, IndexError) as error:
            raise Violation(Code.COMPRESSION_ERROR, "a field block that cannot be unpacked") from error
        if self._headed:  # trailers: no part of what is kept
            check_fields(cast("list[tuple[bytes, bytes]]", fields))
            if not ends:
                raise Violation(Code.PROTOCOL_ERROR, "a second head")
            self._finish()
            return
        status, head = head_of(cast("list[tuple[bytes, bytes]]", fields))
        if status < 200 and (ends or status == 101):
            raise Violation(Code.PROTOCOL_ERROR, f"an answer that ends with status {status}")
        self._headed = status >= 200
        self._above.data_received(head)
        if ends and not self._over:
            self._finish()

    def _take_settings(self, frame: Frame) -> None:
        _check(frame, stream=False)
        if frame.flags & ACK:
            _check(frame, size=0)
            return
        for key, value in read_settings(frame.payload):
            if key == Setting.HEADER_TABLE_SIZE:
                size = min(value, TABLE_BYTES)
                self._table_sizes = (min(size, self._table_sizes[0]), size)
            elif key == Setting.MAX_CONCURRENT_STREAMS and not value:
                self._going = True
        self._greeted = True
        self._outgoing += spell(Kind.SETTINGS, ACK, 0)
        self._leave()

    def _take_ping(self, frame: Frame) -> None:
        _check(frame, size=8, stream=False)
        if not frame.flags & ACK:
            self._outgoing += spell(Kind.PING, ACK, 0, frame.payload)

    def _take_window(self, frame: Frame) -> None:
        """For data of ours; we have none."""
        _check(frame, size=4)
        self._check_begun(frame.stream)
        if not int.from_bytes(frame.payload) & LARGEST_WINDOW:
            raise Violation(Code.PROTOCOL_ERROR, "a window that is opened by nothing")

    def _take_reset(self, frame: Frame) -> None:
        _check(frame, size=4, stream=True)
        self._check_begun(frame.stream)
        if self._open and frame.stream == self._stream:
            self._lose(int.from_bytes(frame.payload), "the server reset the stream")

    def _take_goodbye(self, frame: Frame) -> None:
        _check(frame, stream=False)
        if len(frame.payload) < 8:
            raise Violation(Code.FRAME_SIZE_ERROR, f"a goodbye of {len(frame.payload)} bytes")
        last, code = int.from_bytes(frame.payload[:4]) & LARGEST_WINDOW, int.from_bytes(frame.payload[4:8])
        self._going = True
        if self._open and last < self._stream:
            self._lose(code, "the server left without a look at the request")
        self._leave()

    # -- ends ------------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """The answer is whole."""
        self._open = False
        self._above.message_ended()
        self._leave()

    def _lose(self, code: int, detail: str) -> None:
        """Nothing more will come of the answer."""
        self._open = False
        self._above.wants_http1 = code == Code.HTTP_1_1_REQUIRED
        self._above.message_ended(ConnectionResetError(f"{detail} ({name_of(code)})"))

    def _leave(self) -> None:
        """Close a connection that takes no more requests, as soon as there is nothing to wait for."""
        if self._going and not self._open:
            self._flush()
            self.close()

    def _break(self, fault: Violation) -> None:
        """The server does not keep to the rules."""
        self._outgoing += spell(Kind.GOAWAY, 0, 0, bytes(4) + fault.code.to_bytes(4))
        self._flush()
        was_open, self._open = self._open, False
        if was_open:
            self._above.message_broken(fault.kind, fault.detail)
        self.close()

    def _open_window(self, stream: int, by: int) -> None:
        self._outgoing += spell(Kind.WINDOW_UPDATE, 0, stream, by.to_bytes(4))

    def _flush(self) -> None:
        if not self._outgoing or self._below is None:
            return
        data = bytes(self._outgoing)
        self._outgoing.clear()
        if not self._below.is_closing():
            self._below.write(data)


def _check(frame: Frame, *, size: int | None = None, stream: bool | None = None) -> None:
    """Raises `Violation` for a frame of another size, or on a stream that it cannot be for."""
    if size is not None and len(frame.payload) != size:
        raise Violation(Code.FRAME_SIZE_ERROR, f"a frame of type {frame.kind} with {len(frame.payload)} bytes")
    if stream is not None and bool(frame.stream) != stream:
        raise Violation(Code.PROTOCOL_ERROR, f"a frame of type {frame.kind} on stream {frame.stream}")
