"""HTTP/2 between a transport and a reader: what is said, what is read, and whatever a server may do wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import h2.config
import h2.connection
import h2.events
import http2_line
import pytest
from hpack import Encoder
from http2_line import REQUEST, SETTINGS, Line, data, goodbye, headers, packed, ping, reset
from hypothesis import given
from hypothesis import strategies as st

from nephila.fetch import http2
from nephila.fetch.answer import AnswerReader, Limits, Wanted
from nephila.fetch.budget import ByteBudget
from nephila.fetch.connection import Connection
from nephila.fetch.http2 import MOST_IDLE_FRAMES, WINDOW_BYTES, Http2Transport
from nephila.fetch.http2_frames import (
    ACK,
    END_HEADERS,
    END_STREAM,
    MOST_BYTES,
    PADDED,
    PREFACE,
    PRIORITY,
    Code,
    Frame,
    FrameReader,
    Kind,
    Setting,
    name_of,
    spell,
    spell_settings,
)
from nephila.fetch.http2_head import fields_of, without_connection
from nephila.model.exchange import FailureKind, Truncation
from nephila.testing.clock import VirtualClock

HTML = (b"content-type", b"text/html")
LARGE = Limits(header_bytes=65_536, body_bytes=10_000_000)


def answered(wire: bytes, step: int = 0, limits: Limits = http2_line.LIMITS) -> tuple[AnswerReader, Line]:
    """Ask once, and let a server send this and hang up."""
    line = Line(limits)
    reader = line.ask()
    line.play(wire, step)
    if not line.below.closing:
        line.layer.eof_received()
    line.layer.connection_lost(None)
    return reader, line


def told(reader: AnswerReader) -> tuple[Any, ...]:
    """All that is known of an answer."""
    if reader.kind is not None:
        return reader.kind, reader.detail
    return reader.head_bytes, reader.payload(), reader.truncated, reader.reusable


def frames(wire: bytes) -> list[Frame]:
    return list(FrameReader().frames(wire.removeprefix(PREFACE)))


def a_server() -> h2.connection.H2Connection:
    """Somebody else's reading of the standard."""
    return h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=None))


def test_another_implementation_reads_our_requests_and_is_read() -> None:
    """H1: three exchanges in a row on one connection, against the state machine of `h2`."""
    line, server = Line(), a_server()
    server.initiate_connection()
    for number, stream in enumerate((1, 3, 5)):
        reader = line.ask(REQUEST.replace(b"/web?q=1", b"/%d" % number))
        heard = server.receive_data(line.sent())
        asked = next(event for event in heard if isinstance(event, h2.events.RequestReceived))
        assert asked.stream_id == stream
        assert asked.headers == [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", b"a.test"),
            (b":path", b"/%d" % number),
            (b"user-agent", b"Nephila/0.1"),
        ]
        assert any(isinstance(event, h2.events.StreamEnded) for event in heard)
        server.send_headers(stream, [(b":status", b"103"), (b"link", b"</a>")])
        server.send_headers(stream, [(b":status", b"200"), HTML, (b"x-n", b"%d" % number)])
        server.send_data(stream, b"hello ")
        server.ping(b"abcdefgh")
        server.send_data(stream, b"there")
        server.send_headers(stream, [(b"x-sum", b"1")], end_stream=True)
        line.play(server.data_to_send())
        head = b"HTTP/1.1 200 \r\ncontent-type: text/html\r\nx-n: %d\r\n\r\n" % number
        assert told(reader) == (head, b"hello there", None, True)
        assert not line.layer.is_closing()
        assert any(isinstance(event, h2.events.PingAckReceived) for event in server.receive_data(line.sent()))
    assert line.above.protocol == "h2"


def test_what_is_the_same_in_each_request_is_remembered_by_the_other_side() -> None:
    """H1: paths are not, or they would drive the rest out of the table."""
    line = Line()
    sizes = []
    for number in range(300):
        line.ask(REQUEST.replace(b"/web?q=1", b"/web/of/%d" % (number + 1000)))
        sizes.append(len(line.sent()))
        line.play((SETTINGS if not number else b"") + headers(stream=2 * number + 1, ends=True))
    assert sizes[0] > sizes[2] == sizes[-1] < 30


def test_a_request_beyond_one_frame_is_continued() -> None:
    """H1: a path as long as a URL may be."""
    path = b"/" + b"a" * (2 * MOST_BYTES)
    line, server = Line(), a_server()
    line.ask(REQUEST.replace(b"/web?q=1", path))
    wire = line.sent()
    assert [frame.kind for frame in frames(wire)][-3:] == [Kind.HEADERS, Kind.CONTINUATION, Kind.CONTINUATION]
    heard = server.receive_data(wire)
    asked = next(event for event in heard if isinstance(event, h2.events.RequestReceived))
    assert dict(asked.headers)[b":path"] == path


def test_requests_are_recorded_without_what_is_not_said() -> None:
    """K1: in the spelling of HTTP/1.1, as other archives have it."""
    assert without_connection(REQUEST) == REQUEST.replace(b"Connection: keep-alive\r\n", b"")
    assert (b"user-agent", b"Nephila/0.1") in fields_of(REQUEST)


GOOD = {
    "with a length": SETTINGS + headers(HTML, (b"content-length", b"5")) + data(b"hello", ends=True),
    "without": SETTINGS + headers(HTML) + data(b"hel") + data(b"lo") + data(b"", ends=True),
    "padded": SETTINGS
    + spell(Kind.HEADERS, END_HEADERS | PADDED | PRIORITY, 1, b"\x03" + bytes(5) + packed(HTML) + bytes(3))
    + spell(Kind.DATA, PADDED | END_STREAM, 1, b"\x09hello" + bytes(9)),
    "continued": SETTINGS
    + spell(Kind.HEADERS, 0, 1, packed(HTML)[:3])
    + spell(Kind.CONTINUATION, 0, 1)
    + spell(Kind.CONTINUATION, END_HEADERS, 1, packed(HTML)[3:])
    + data(b"hello", ends=True),
    "after provisional ones": SETTINGS
    + headers((b"link", b"</x>"), status=b"103")
    + headers(status=b"100")
    + headers(HTML)
    + data(b"hello", ends=True),
    "with trailers": SETTINGS + headers(HTML) + data(b"hello") + headers((b"x-sum", b"1"), status=b"", ends=True),
    "among others": SETTINGS
    + ping()
    + headers(HTML)
    + spell(Kind.WINDOW_UPDATE, 0, 0, (9).to_bytes(4))
    + spell(Kind.WINDOW_UPDATE, 0, 1, (9).to_bytes(4))
    + spell(Kind.SETTINGS, ACK, 0)
    + spell(Kind.PRIORITY, 0, 1, bytes(5))
    + data(b"hello")
    + spell_settings({Setting.HEADER_TABLE_SIZE: 0, Setting.MAX_FRAME_SIZE: 20_000})
    + b"\x00\x00\x01\xee\xff\x00\x00\x00\x09?"  # of a type that nobody knows
    + data(b"", ends=True)
    + reset(0),
    "with a goodbye": SETTINGS + goodbye(1) + headers(HTML) + data(b"hello", ends=True),
}


@pytest.mark.parametrize("name", GOOD)
def test_an_answer_is_the_same_however_its_frames_come_and_are_cut(name: str) -> None:
    """H1: the end of the stream ends it, and the connection goes on, unless the server has said goodbye."""
    wire = GOOD[name]
    first = told(answered(wire)[0])
    assert first[1:] == (b"hello", None, True)
    assert first[0].startswith(b"HTTP/1.1 200 \r\ncontent-type: text/html\r\n")
    for step in range(1, len(wire)):
        line = Line()
        reader = line.ask()
        line.play(wire, step)
        assert told(reader) == first
        assert line.layer.is_closing() == (name == "with a goodbye")


def test_an_answer_may_have_no_body() -> None:
    """R1, H1: a 304 with the length of what it speaks of; a redirect; nothing at all."""
    for status in (b"304", b"301", b"204", b"200"):
        fields = [(b"content-length", b"77")] if status == b"304" else []
        reader, _ = answered(SETTINGS + headers(*fields, status=status, ends=True))
        assert (reader.head and reader.head.status, reader.kind, reader.reusable) == (int(status), None, True)


PROTOCOL, TOO_LARGE = FailureKind.PROTOCOL, FailureKind.TOO_LARGE
OPENED = SETTINGS + headers(HTML)
BAD: dict[str, tuple[bytes, FailureKind, str]] = {
    "HTTP/1.1": (b"HTTP/1.1 200 OK\r\n\r\nhello", PROTOCOL, "a frame of"),
    "no settings first": (headers(HTML), PROTOCOL, "no settings"),
    "an acknowledgement first": (spell(Kind.SETTINGS, ACK, 0), PROTOCOL, "no settings"),
    "a frame too long": (SETTINGS + (MOST_BYTES + 1).to_bytes(3) + b"\0\0\0\0\0\1", PROTOCOL, "16385 bytes"),
    "half a setting": (spell(Kind.SETTINGS, 0, 0, b"123"), PROTOCOL, "settings of 3"),
    "settings on a stream": (spell(Kind.SETTINGS, 0, 1), PROTOCOL, "on stream 1"),
    "settings acknowledged with more": (SETTINGS + spell(Kind.SETTINGS, ACK, 0, bytes(6)), PROTOCOL, "with 6 bytes"),
    "a push wanted": (spell_settings({Setting.ENABLE_PUSH: 1}), PROTOCOL, "pushed to"),
    "a window too wide": (spell_settings({Setting.INITIAL_WINDOW_SIZE: 2**31}), PROTOCOL, "a window of"),
    "frames too short": (spell_settings({Setting.MAX_FRAME_SIZE: 100}), PROTOCOL, "frames of 100"),
    "data before the head": (SETTINGS + data(b"x"), PROTOCOL, "data before"),
    "data nowhere": (SETTINGS + data(b"x", stream=0), PROTOCOL, "outside"),
    "data elsewhere": (SETTINGS + data(b"x", stream=3), PROTOCOL, "nobody has opened"),
    "data of the server's": (SETTINGS + data(b"x", stream=2), PROTOCOL, "nobody has opened"),
    "a second head": (OPENED + headers(HTML), PROTOCOL, "no name of a header"),
    "trailers that end nothing": (OPENED + headers((b"a", b"b"), status=b""), PROTOCOL, "a second head"),
    "no status": (SETTINGS + headers(HTML, status=b""), PROTOCOL, "without a status"),
    "no fields": (SETTINGS + spell(Kind.HEADERS, END_HEADERS, 1), PROTOCOL, "without a status"),
    "two statuses": (SETTINGS + headers((b":status", b"200")), PROTOCOL, "no name of a header"),
    "a request's field": (SETTINGS + headers((b":path", b"/")), PROTOCOL, "no name of a header"),
    "a status of letters": (SETTINGS + headers(status=b"20x"), PROTOCOL, "no status"),
    "a status of a line": (SETTINGS + headers(status=b"200 OK\r\nx: y"), PROTOCOL, "no status"),
    "switching protocols": (SETTINGS + headers(status=b"101"), PROTOCOL, "ends with status 101"),
    "a provisional end": (SETTINGS + headers(status=b"103", ends=True), PROTOCOL, "ends with status 103"),
    "a name in capitals": (SETTINGS + headers((b"Content-Type", b"x")), PROTOCOL, "no name of a header"),
    "a name with a blank": (SETTINGS + headers((b"a b", b"x")), PROTOCOL, "no name of a header"),
    "a name with a line": (SETTINGS + headers((b"a\r\nb", b"x")), PROTOCOL, "no name of a header"),
    "a name with a colon": (SETTINGS + headers((b"a: b", b"x")), PROTOCOL, "no name of a header"),
    "an empty name": (SETTINGS + headers((b"", b"x")), PROTOCOL, "no name of a header"),
    "a value with a line": (SETTINGS + headers((b"a", b"x\r\n\r\n<html>")), PROTOCOL, "a line end or NUL"),
    "a value with a line feed": (SETTINGS + headers((b"a", b"x\nb: c")), PROTOCOL, "a line end or NUL"),
    "a value with a return": (SETTINGS + headers((b"a", b"x\ry")), PROTOCOL, "a line end or NUL"),
    "a value with NUL": (SETTINGS + headers((b"a", b"x\0")), PROTOCOL, "a line end or NUL"),
    "chunked": (SETTINGS + headers((b"transfer-encoding", b"chunked")), PROTOCOL, "no place in HTTP/2"),
    "to be closed": (SETTINGS + headers((b"connection", b"close")), PROTOCOL, "no place in HTTP/2"),
    "fields that cannot be unpacked": (SETTINGS + spell(Kind.HEADERS, 4, 1, b"\xff\xff\xff"), PROTOCOL, "unpacked"),
    "fields nobody remembers": (SETTINGS + spell(Kind.HEADERS, 4, 1, b"\xfe"), PROTOCOL, "unpacked"),
    "a table too large": (SETTINGS + spell(Kind.HEADERS, 4, 1, b"\x3f\xe1\xff\x03"), PROTOCOL, "unpacked"),
    "a number without end": (SETTINGS + spell(Kind.HEADERS, 4, 1, b"\x7f" + b"\xff" * 999), PROTOCOL, "unpacked"),
    "more padding than payload": (OPENED + spell(Kind.DATA, PADDED, 1, b"\x05abc"), PROTOCOL, "padding"),
    "padding of no length": (OPENED + spell(Kind.DATA, PADDED, 1), PROTOCOL, "padding"),
    "priority cut": (SETTINGS + spell(Kind.HEADERS, PRIORITY | END_HEADERS, 1, b"abc"), PROTOCOL, "padding"),
    "a push": (OPENED + spell(Kind.PUSH_PROMISE, END_HEADERS, 1, bytes(4)), PROTOCOL, "a push"),
    "a short ping": (OPENED + spell(Kind.PING, 0, 0, b"123"), PROTOCOL, "with 3 bytes"),
    "a ping on a stream": (OPENED + spell(Kind.PING, 0, 1, bytes(8)), PROTOCOL, "on stream 1"),
    "a short goodbye": (OPENED + spell(Kind.GOAWAY, 0, 0, b"123"), PROTOCOL, "a goodbye of 3"),
    "a goodbye on a stream": (OPENED + spell(Kind.GOAWAY, 0, 1, bytes(8)), PROTOCOL, "on stream 1"),
    "a short reset": (OPENED + spell(Kind.RST_STREAM, 0, 1, b"123"), PROTOCOL, "with 3 bytes"),
    "a reset of nothing": (OPENED + reset(8, stream=7), PROTOCOL, "nobody has opened"),
    "a reset nowhere": (OPENED + reset(8, stream=0), PROTOCOL, "on stream 0"),
    "a window by nothing": (OPENED + spell(Kind.WINDOW_UPDATE, 0, 1, bytes(4)), PROTOCOL, "by nothing"),
    "a short window": (OPENED + spell(Kind.WINDOW_UPDATE, 0, 1, b"1"), PROTOCOL, "with 1 bytes"),
    "a window of nothing": (OPENED + spell(Kind.WINDOW_UPDATE, 0, 9, b"1234"), PROTOCOL, "nobody has opened"),
    "a short priority": (OPENED + spell(Kind.PRIORITY, 0, 1, b"1"), PROTOCOL, "with 1 bytes"),
    "a continuation of nothing": (OPENED + spell(Kind.CONTINUATION, END_HEADERS, 1), PROTOCOL, "nobody began"),
    "a block interrupted": (SETTINGS + spell(Kind.HEADERS, 0, 1, packed()) + ping(), PROTOCOL, "within a field block"),
    "a block continued elsewhere": (
        SETTINGS + spell(Kind.HEADERS, 0, 1, packed()) + spell(Kind.CONTINUATION, END_HEADERS, 3),
        PROTOCOL,
        "within a field block",
    ),
    "less than its length": (
        SETTINGS + headers((b"content-length", b"9")) + data(b"x", ends=True),
        PROTOCOL,
        "8 bytes",
    ),
    "more than its length": (SETTINGS + headers((b"content-length", b"2")) + data(b"abc"), PROTOCOL, "more data"),
    "nothing of its length": (SETTINGS + headers((b"content-length", b"2"), ends=True), PROTOCOL, "2 bytes less"),
    "lengths that differ": (
        SETTINGS + headers((b"content-length", b"1"), (b"content-length", b"2")) + data(b"x", ends=True),
        PROTOCOL,
        "Content-Length given twice",
    ),
    "a 204 with data": (SETTINGS + headers(status=b"204") + data(b"x", ends=True), PROTOCOL, "more data"),
    "a head too large": (SETTINGS + headers((b"a", b"x" * 2100)), TOO_LARGE, "over 2048 bytes"),
    "many fields": (SETTINGS + headers(*[(b"a%d" % at, b"") for at in range(99)]), TOO_LARGE, "over 2048 bytes"),
    "a bomb of fields": (
        SETTINGS + spell(Kind.HEADERS, END_HEADERS, 1, packed((b"bomb", b"x" * 900)) + b"\xbe" * 1000),
        TOO_LARGE,
        "over 2048 bytes",
    ),
    "heads without end": (SETTINGS + headers((b"a", b"x" * 400), status=b"103") * 9, TOO_LARGE, "over 2048 bytes"),
    "continuations without end": (
        SETTINGS + spell(Kind.HEADERS, 0, 1, packed()) + spell(Kind.CONTINUATION, 0, 1, b"x" * 100) * 99,
        TOO_LARGE,
        "over 2048 bytes",
    ),
    "trailers without end": (
        OPENED + spell(Kind.HEADERS, END_STREAM, 1) + spell(Kind.CONTINUATION, 0, 1, b"x" * 100) * 99,
        TOO_LARGE,
        "over 2048 bytes",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_http2_is_a_failure_of_its_kind_however_it_is_cut(name: str) -> None:
    """H1, H5: never an exception, never an answer; the server is told, and the connection ends."""
    wire, kind, words = BAD[name]
    reader, line = answered(wire)
    assert (reader.kind, reader.reusable) == (kind, False)
    assert words in reader.detail
    assert line.below.closing or not reader.reusable
    for step in range(1, min(len(wire), 60)):
        assert told(answered(wire, step)[0]) == told(reader)


NOTHING: dict[str, tuple[bytes, bytes]] = {
    "pings": (OPENED, ping()),
    "settings": (OPENED, SETTINGS),
    "windows": (OPENED, spell(Kind.WINDOW_UPDATE, 0, 0, b"\0\0\0\1")),
    "priorities": (OPENED, spell(Kind.PRIORITY, 0, 1, bytes(5))),
    "extensions": (OPENED, b"\0\0\0\xee" + bytes(5)),
    "data": (OPENED, data(b"")),
    "padding": (OPENED, spell(Kind.DATA, PADDED, 1, b"\x04" + bytes(4))),
    "continuations": (SETTINGS + spell(Kind.HEADERS, 0, 1), spell(Kind.CONTINUATION, 0, 1)),
    "resets of a stream that is over": (SETTINGS + headers(ends=True), reset(8)),
}


@pytest.mark.parametrize("name", NOTHING)
def test_frames_that_say_nothing_have_an_end(name: str) -> None:
    """Q5, H1: whatever a server repeats without bringing anything of an answer."""
    wire, frame = NOTHING[name]
    line = Line()
    reader = line.ask()
    line.play(wire + frame * 9000)
    assert not line.below.closing
    line.play(frame * 2000)
    assert line.below.closing
    assert reader.reusable if name.startswith("resets") else reader.kind is PROTOCOL
    assert len(line.below.written) < 20 * MOST_IDLE_FRAMES
    said = [frame.payload for frame in frames(line.sent()) if frame.kind == Kind.GOAWAY]
    assert said == [bytes(4) + Code.ENHANCE_YOUR_CALM.to_bytes(4)]


def test_crumbs_of_data_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Q5: as chunks of HTTP/1.1 do."""
    monkeypatch.setattr(http2, "MOST_PIECES", 50)
    reader, _ = answered(OPENED + data(b"x") * 60)
    assert (reader.kind, reader.detail) == (PROTOCOL, "more than 50 frames of data")


@pytest.mark.parametrize("code", [0, 2, 7, 8, 13, 99])
def test_a_stream_that_is_reset_is_no_answer_before_its_head_and_a_cut_one_after(code: int) -> None:
    """H1, H5: with the reason; HTTP/1.1 is remembered where the server asks for it."""
    reader, line = answered(SETTINGS + reset(code))
    assert reader.kind is FailureKind.RESET
    assert name_of(code) in reader.detail
    assert line.above.wants_http1 == (code == Code.HTTP_1_1_REQUIRED)
    reader, _ = answered(OPENED + data(b"hel") + reset(code))
    assert told(reader)[1:] == (b"hel", Truncation.DISCONNECT, False)


def test_a_goodbye_leaves_what_is_under_way_and_takes_nothing_more() -> None:
    """H1: nginx sends one with the last answer it gives on a connection."""
    reader, line = answered(SETTINGS + goodbye(1) + headers(HTML) + data(b"hello", ends=True))
    assert told(reader)[1:] == (b"hello", None, True)
    assert line.layer.is_closing()
    reader, line = answered(SETTINGS + goodbye(0, Code.HTTP_1_1_REQUIRED) + headers(HTML))
    assert (reader.kind, line.above.wants_http1) == (FailureKind.RESET, True)
    assert "without a look" in reader.detail
    idle = Line()
    idle.ask()
    idle.play(SETTINGS + headers(ends=True))
    assert not idle.layer.is_closing()
    idle.play(goodbye(1))
    assert idle.layer.is_closing()


def test_a_server_that_takes_no_streams_is_asked_nothing_more() -> None:
    """H1: what is under way ends first."""
    line = Line()
    reader = line.ask()
    line.play(spell_settings({Setting.MAX_CONCURRENT_STREAMS: 0}))
    assert not line.layer.is_closing()
    line.play(headers(ends=True))
    assert reader.reusable
    assert line.layer.is_closing()


def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    """H1: while it is idle, and for a stream that is over while another one is open."""
    for late in (headers(HTML), data(b"x"), headers(stream=3), data(b"x", stream=3)):
        line = Line()
        line.ask()
        line.play(SETTINGS + headers(ends=True) + late)
        assert line.layer.is_closing()
        assert not line.above.spoiled
    line = Line()
    line.ask()
    line.play(SETTINGS + headers(ends=True))
    reader = line.ask()
    line.play(data(b"x"))
    assert (reader.kind, reader.detail) == (PROTOCOL, "a part of an answer that has ended")


def test_windows_open_with_what_is_taken_and_not_before() -> None:
    """Q5, H1: of the stream and of the connection; a server that does not wait for them is none."""
    piece = data(b"x" * 16_000)
    line = Line(LARGE)
    reader = line.ask()
    line.sent()
    line.play(OPENED)
    line.sent()
    for _ in range(500):
        line.play(piece)
    opened = [(frame.stream, int.from_bytes(frame.payload)) for frame in frames(line.sent())]
    assert {stream for stream, _ in opened} == {0, 1}
    for stream in (0, 1):
        taken = sum(by for which, by in opened if which == stream)
        assert 500 * 16_000 - WINDOW_BYTES // 2 <= taken <= 500 * 16_000
    assert reader.wire_bytes == 500 * 16_000


class Elsewhere:
    """Another exchange, which holds more than all of them may."""

    def pause(self) -> None:
        raise AssertionError("the oldest is never held back")

    resume = pause


def test_an_answer_that_ends_while_it_is_held_back_leaves_a_connection_that_is_read() -> None:
    """Q5, H1: two frames come in one piece, and the first is one too many for the budget."""

    async def play() -> tuple[bytes, bool]:
        budget, below = ByteBudget(10), http2_line.Below()
        budget.grow(Elsewhere(), 100)
        connection, reader = Connection(budget, VirtualClock()), AnswerReader(LARGE, delimited=True)
        layer = Http2Transport(connection)
        layer.connection_made(below)
        asyncio.get_running_loop().call_soon(layer.data_received, OPENED + data(b"hel") + data(b"lo", ends=True))
        await connection.converse(REQUEST, reader, asyncio.get_running_loop().time() + 10)
        assert reader.reusable
        return reader.payload(), below.paused

    assert asyncio.run(play()) == (b"hello", False)


def test_a_body_over_its_limit_is_cut_as_ever() -> None:
    """H2: and nothing more is read."""
    line = Line(Limits(2048, 1000))
    reader = line.ask()
    line.play(OPENED + data(b"x" * 1500) + data(b"y"))
    assert told(reader)[1:] == (b"x" * 1000, Truncation.LENGTH, False)
    assert line.below.aborted


@pytest.mark.parametrize(("length", "reusable"), [(b"3", True), (b"99999", False)])
def test_an_unwanted_type_is_read_out_only_where_it_is_short(length: bytes, reusable: bool) -> None:
    """H7: as over HTTP/1.1."""
    line = Line(wanted=Wanted(("text/html",), lambda declared, _: declared))
    reader = line.ask()
    line.play(SETTINGS + headers((b"content-type", b"image/png"), (b"content-length", length)))
    assert reader.finished != reusable
    if reusable:
        line.play(data(b"png", ends=True))
    assert (reader.unwanted, reader.payload(), reader.reusable) == (True, b"", reusable)


def test_the_end_of_the_connection_cuts_an_answer() -> None:
    """H5: without a length, too: over HTTP/2 only the stream's end is one."""
    reader, _ = answered(OPENED + data(b"hel"))
    assert told(reader)[1:] == (b"hel", Truncation.DISCONNECT, False)
    reader, _ = answered(SETTINGS)
    assert reader.kind is FailureKind.RESET


def test_the_layer_is_a_transport_like_any_other() -> None:
    """H1: pausing, closing and what is known of the wire are handed on."""
    line = Line()
    layer: Http2Transport = line.layer
    assert layer.get_extra_info("peername") == "below"
    assert layer.get_write_buffer_size() == 7
    assert layer.get_protocol() is line.above  # type: ignore[comparison-overlap]  # it stands for one
    assert layer.is_reading()
    layer.pause_reading()
    assert not layer.is_reading()
    assert line.below.paused
    layer.resume_reading()
    assert not line.below.paused
    layer.close()
    layer.abort()
    layer.write(REQUEST)
    layer.data_received(SETTINGS)
    assert line.sent() == b""
    layer.connection_lost(None)
    assert layer.is_closing()
    assert line.above.told == ["lost"]
    layer.pause_reading()
    layer.resume_reading()
    assert layer.get_extra_info("peername", 3) == 3


names = st.binary(max_size=12) | st.sampled_from([b"a", b"x-y", b"content-type", b"set-cookie", b"content-length"])
values = st.binary(max_size=20) | st.sampled_from([b"", b" x ", b"x\r\ny: z", b"7", b"\xe4"])


@given(st.lists(st.tuples(names, values), max_size=6), st.integers(1, 40))
def test_no_field_forges_anything(fields: list[tuple[bytes, bytes]], step: int) -> None:
    """H1, H5: an answer has just the fields that were sent, or it is none."""
    reader, _ = answered(SETTINGS + headers(*fields) + data(b"<p>"), step)
    if reader.kind is not None:
        return
    assert reader.head is not None
    assert reader.head_bytes.count(b"\r\n") == len(fields) + 2
    found = [(name.encode(), value.encode("latin-1")) for name, value in reader.head.headers]
    assert found == [(name, value.strip(b" \t")) for name, value in fields]
    assert reader.payload() == b"<p>"


def test_our_table_follows_the_settings_of_the_server() -> None:
    """H1: one that remembers nothing is told everything each time."""
    line, server = Line(), a_server()
    server.initiate_connection()
    line.play(server.data_to_send())
    for size in (4096, 100, 50, 200, 300) * 100 + (0,):  # told as two changes at most (RFC 7541, 4.2)
        line.play(spell_settings({Setting.HEADER_TABLE_SIZE: size}))
    line.sent()
    server.update_settings({h2.settings.SettingCodes.HEADER_TABLE_SIZE: 0})
    for number, stream in enumerate((1, 3, 5)):
        line.ask()
        assert any(isinstance(event, h2.events.RequestReceived) for event in server.receive_data(line.sent()))
        server.send_headers(stream, [(b":status", b"200"), (b"n", b"%d" % number)], end_stream=True)
        line.play(server.data_to_send())
    assert isinstance(line.layer._encoder, Encoder)
    assert line.layer._encoder.header_table_size == 0
