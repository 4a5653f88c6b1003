"""What servers, name servers and proxies send: heads, bodies, codings, DNS messages, tunnels."""

from __future__ import annotations

import gzip
import zlib

import brotlicffi
import zstandard
from dnslib import DNSRecord
from http2_line import SETTINGS, Line, goodbye, headers, ping, reset
from http2_line import data as data_frame

from nephila.fetch.answer import AnswerReader, Limits, Wanted
from nephila.fetch.coding import Decoded, codings_of, decode
from nephila.fetch.dns_message import RecordType, UnsendableNameError, ask, read_reply
from nephila.fetch.framing import Chunked
from nephila.fetch.guard import is_address
from nephila.fetch.head import (
    Head,
    find_end,
    framing_of,
    keeps_alive,
    open_answer,
    plain_open_answer,
    promised_idle_s,
    read_broken_head,
    read_head,
)
from nephila.fetch.proxy import _HeadReader, _ReplyReader
from nephila.parse import media_type

from .target import Choices, Target, pieces_of

LIMITS = Limits(header_bytes=1024, body_bytes=1500)
LIMIT = 20_000
OVERSHOOT = 1 << 20
"""What a library may give beyond the limit that it was told, in one of its own blocks."""

Told = tuple[object, ...]


def _read(data: bytes, step: int, wanted: Wanted | None, ending: int) -> Told:
    reader = AnswerReader(LIMITS, wanted)
    for piece in pieces_of(data, step):
        if reader.feed(piece):
            break
    match ending:
        case 0:
            reader.end()
        case 1:
            reader.end(ConnectionResetError("reset"))
        case _:
            reader.expire()
    assert reader.finished
    assert (reader.kind is None) == (reader.head is not None and not reader.detail)
    assert reader.wire_bytes <= LIMITS.body_bytes
    assert len(reader.head_bytes) <= LIMITS.header_bytes
    payload, content = reader.payload(), reader.content()
    assert reader.head_bytes + payload in data
    assert len(content) <= len(payload)
    reader.idle_s()
    if reader.kind is not None:  # what had come by then is quoted, and is no answer
        return (reader.kind,)
    return reader.head, reader.truncated, reader.unwanted, payload, content


def check_answer(data: bytes) -> None:
    """One answer is the same however it is cut, bounded, and made of the bytes that came."""
    choices = Choices(data)
    step, ending = choices.number(64), choices.number(3)
    wanted = Wanted(("text/html",), media_type) if choices.number(2) else None
    wire = choices.rest()
    assert _read(wire, 0, wanted, ending) == _read(wire, step or 1, wanted, ending)


def check_head(data: bytes) -> None:
    """A header block is read or refused, alike in C and in Python; what is read is consistent with itself."""
    assert open_answer(data, Head) in (None, plain_open_answer(data, Head))
    end = find_end(data)
    assert end == find_end(bytearray(data))
    for found in (read_head(data[:end]),) if end >= 0 else (read_broken_head(data),):
        if isinstance(found, Head):
            assert 100 <= found.status <= 999
            assert all(name == name.lower() and "\n" not in name + value for name, value in found.headers)
            assert all(value == value.strip(" \t") for _, value in found.headers)
            framing = framing_of(found)
            if hasattr(framing, "chunked"):
                keeps_alive(found, framing)
            promised_idle_s(found)
            codings_of(found.values("content-encoding"))


def _dechunk(data: bytes, step: int) -> tuple[int, bytes, bool, str]:
    body, used = Chunked(), 0
    for piece in pieces_of(data, step):
        taken = body.take(piece)
        assert 0 <= taken <= len(piece)
        used += taken
        if body.complete or body.fault:
            break
        assert taken == len(piece)
    assert body.content is not None
    return used, bytes(body.content), body.complete, body.fault


def check_chunks(data: bytes) -> None:
    """Chunks are the same however they are cut; what was framed by us comes back."""
    choices = Choices(data)
    step = choices.number(64) or 1
    wire = choices.rest()
    whole, cut = _dechunk(wire, 0), _dechunk(wire, step)
    assert whole[1:3] == cut[1:3]
    assert bool(whole[3]) == bool(cut[3])
    if not whole[3]:
        assert whole == cut
    assert len(whole[1]) <= len(wire)
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces_of(wire, step)) + b"0\r\n\r\n"
    assert _dechunk(framed + b"more", 0) == (len(framed), wire, True, "")


def _read_http2(wire: bytes, step: int) -> Told:
    line = Line(LIMITS)
    reader = line.ask()
    for piece in pieces_of(wire, step):
        if not line.below.closing:
            line.layer.data_received(piece)
    if not line.below.closing:
        line.layer.eof_received()
    line.layer.connection_lost(None)
    assert reader.finished
    assert (reader.kind is None) == (reader.head is not None and not reader.detail)
    assert reader.wire_bytes <= LIMITS.body_bytes
    assert len(line.below.written) <= 1000 + 2 * len(wire)
    if reader.kind is not None:
        return (reader.kind,)
    assert reader.head is not None
    assert reader.head_bytes.count(b"\r\n") == len(reader.head.headers) + 2
    assert len(reader.head_bytes) <= LIMITS.header_bytes
    payload = reader.payload()
    assert len(payload) <= len(wire)
    return reader.head, reader.truncated, payload, reader.reusable


def check_http2(data: bytes) -> None:
    """An answer over HTTP/2 is the same however its frames are cut, bounded, and no field of it forges another."""
    choices = Choices(data)
    step, greeted = choices.number(64) or 1, choices.number(2)
    wire = (b"" if greeted else SETTINGS) + choices.rest()
    assert _read_http2(wire, 0) == _read_http2(wire, step)


_CODINGS = ("gzip", "deflate", "br", "zstd", "x-gzip", "identity", "compress", "")


def _packed(name: str, body: bytes) -> bytes:
    match name:
        case "gzip" | "x-gzip":
            return gzip.compress(body, 1, mtime=0)
        case "deflate":
            return zlib.compress(body, 1)
        case "br":
            return bytes(brotlicffi.compress(body, quality=1))
        case "zstd":
            return zstandard.ZstdCompressor(level=1).compress(body)
        case _:
            return body


def check_coding(data: bytes) -> None:
    """What comes out is bounded and a beginning of what a larger limit gives; what was packed comes back."""
    choices = Choices(data)
    codings = codings_of([_CODINGS[choices.number(len(_CODINGS))] for _ in range(choices.number(4))])
    body = choices.rest()
    found = decode(codings, body, LIMIT)
    if isinstance(found, Decoded):
        assert len(found.body) <= LIMIT
        smaller = decode(codings, body, 500)
        if len(codings) < 2:
            assert isinstance(smaller, Decoded)
            assert smaller.body == found.body[:500]
            assert smaller.cut == (found.cut or len(found.body) > 500)
    if "compress" not in codings:
        packed = body
        for name in codings:
            packed = _packed(name, packed)
        assert decode(codings, packed, len(packed) + len(body) + 100) == Decoded(body)


_QUESTION = ask(0x1234, "www.example.test", RecordType.A)
_QUESTION_6 = ask(0x1234, "www.example.test", RecordType.AAAA)


def check_dns(data: bytes) -> None:
    """A reply is read or ignored; nothing is believed that does not answer the question."""
    choices = Choices(data)
    question = _QUESTION_6 if choices.number(2) else _QUESTION
    message = choices.rest()
    if choices.number(2):  # so that records are reached: id and question are right, all else is anybody's
        message = b"\x12\x34" + message[:10] + question[12:] + message[10:]
    reply = read_reply(message, question)
    if reply is not None:
        assert message[:2] == question[:2]
        assert message[2] & 0x80
        assert len(reply.addresses) <= len(message) // 4
        assert all(map(is_address, reply.addresses))
        assert 0 <= reply.ttl_s <= 0x7FFF_FFFF
        assert 0 <= reply.negative_ttl_s <= 0x7FFF_FFFF
        if reply.addresses:
            assert question[12:-4] in message.lower()
        assert read_reply(message, b"\x43\x21" + question[2:]) is None
    name = message.decode("latin-1")
    try:
        asked = ask(7, name, RecordType.A)
    except UnsendableNameError:
        return
    if name.isascii():
        wire = name.rstrip(".").encode("ascii")
        assert b".".join(DNSRecord.parse(asked).q.qname.label) == wire


def check_tunnel(data: bytes) -> None:
    """What a proxy answers is gathered in bounded memory, the same however it is cut."""
    choices = Choices(data)
    step, kind = choices.number(64) or 1, choices.number(3)
    wire = choices.rest()
    told = []
    for pieces in (pieces_of(wire, 0), pieces_of(wire, step)):
        reader = _HeadReader() if kind == 0 else _ReplyReader(with_address=kind == 1)
        for piece in pieces:
            if reader.feed(piece):
                break
        reader.end()
        assert reader.finished
        told.append((reader.detail, bool(reader.data)))
    assert told[0] == told[1]


_HEADS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nX: a\r\n b\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: 1\r\n\r\n",
    b'HTTP/1.0 304 Not Modified\nETag: "x"\nConnection: keep-alive\nKeep-Alive: timeout=5\n\n',
    b"HTTP/1.1 204 No\r\nContent-Length: 3\r\nContent-Length: 3, 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\nxx",
    b"HTTP/2.0 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
)  # fmt: skip
_HTTP_WORDS = (
    *(
        b"HTTP/1.1 ",
        b"HTTP/1.0 200",
        b"\r\n",
        b"\n\r\n",
        b"\r\n\r\n",
        b"Content-Length: ",
        b"Transfer-Encoding: chunked",
    ),
    *(b"Content-Type: text/html", b"Connection: close", b"keep-alive", b"0\r\n\r\n", b"ffffffffffffffff", b"\r", b"\0"),
    *(b"100 Continue\r\n\r\n", b"Content-Encoding: br", b" \t", b"7fffffffffffffff", b"timeout=99999999", b": "),
)
_BODY = b"<p>" + b"abc def " * 30
_HTML = (b"content-type", b"text/html")
_ANSWERS = (
    headers(_HTML, (b"content-length", b"5")) + data_frame(b"hello", ends=True),
    headers((b"link", b"</a>"), status=b"103") + headers(_HTML) + data_frame(b"he") + data_frame(b"llo", ends=True),
    ping() + headers(_HTML) + data_frame(b"hello") + headers((b"x-sum", b"1"), status=b"", ends=True) + goodbye(1),
    goodbye(0, 13) + reset(8),
    headers((b"a", b"b\r\nc: d"), (b"A", b""), ends=True),
    b"\x00\x00\x02\x01\x00\x00\x00\x00\x01\x88\x7a\x00\x00\x04\x09\x04\x00\x00\x00\x01\x03abc",
)

TARGETS = (
    Target(
        "answer",
        check_answer,
        tuple(bytes([step, 0, kind]) + head for step, kind in ((1, 0), (9, 1)) for head in _HEADS),
        _HTTP_WORDS,
    ),
    Target("head", check_head, _HEADS, _HTTP_WORDS),
    Target(
        "http2",
        check_http2,
        tuple(bytes([step, 0]) + wire for step in (1, 9) for wire in _ANSWERS),
        (SETTINGS, ping(), reset(8), goodbye(1), b"\x88", b"\x00\x00\x00\x01", b"\xff\xff\xff\x7f"),
    ),
    Target(
        "chunks",
        check_chunks,
        (b"\x035\r\nhello\r\n0\r\n\r\n", b"\x01a;b=c\n0123456789\n00\nT: x\n\n", b"\x02FFFFFFFFFFFFFFFFF\r\n", b"\x000\r\nx\r\n"),
        _HTTP_WORDS,
        2048,
    ),
    Target(
        "coding",
        check_coding,
        (
            *(bytes([1, at]) + _packed(name, _BODY) for at, name in enumerate(_CODINGS[:4])),
            b"\x02\x00\x02" + _packed("br", _packed("gzip", _BODY)),
            b"\x01\x00" + _packed("gzip", bytes(100_000)) * 2,
            b"\x01\x01" + _packed("deflate", _BODY)[2:-4],
        ),
        (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x78\x9c", b"\x00\x00\xff\xff"),
    ),
    Target(
        "dns",
        check_dns,
        (
            b"\x00\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" + _QUESTION[12:] + b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00<\x00\x04\x01\x02\x03\x04",
            b"\x01\x12\x34\x81\x80\x00\x01\x00\x02\x00\x00\x00\x00" + _QUESTION_6[12:]
            + b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00<\x00\x04\x01x\xc0\x0c\x01x\xc0\x0c\x00\x1c\x00\x01\x00\x00\x00\x09\x00\x10" + bytes(range(16)),
            b"\x00\x12\x34\x81\x83\x00\x01\x00\x00\x00\x01\x00\x00" + _QUESTION[12:]
            + b"\xc0\x10\x00\x06\x00\x01\x00\x00\x0e\x10\x00\x1a\x01a\xc0\x0c\x01b\xc0\x0c" + bytes(16) + b"\x00\x00\x00\x3c",
            b"\x00a.label.test",
        ),
        (_QUESTION[12:], b"\xc0\x0c", b"\x00\x01\x00\x01", b"\x00\x06\x00\x01", b"\x81\x80", b"\x00\x1c\x00\x01"),
        1024,
    ),
    Target(
        "tunnel",
        check_tunnel,
        (b"\x01\x00HTTP/1.1 200 OK\r\n\r\n", b"\x02\x01\x05\x00\x00\x01\x01\x02\x03\x04\x00\x50", b"\x01\x02\x05\x02", b"\x01\x01\x05\x00\x00\x03\x03abc\x00\x50"),
        _HTTP_WORDS,
    ),
)  # fmt: skip
