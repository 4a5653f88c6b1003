"""What is read back from a crawl directory: archives, metadata, index lines, events."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from nephila.interfaces.catalogue import CaptureRow
from nephila.model.errors import NephilaError
from nephila.model.events import Event, EventKind
from nephila.model.record import SegmentId
from nephila.observe.line import LineEncoder, decode_line
from nephila.store.cdxj import cdxj_line
from nephila.store.member import deflated, stored
from nephila.store.metadata import MetadataFields
from nephila.store.readback import capture_of, parse_head, units, whole_units
from nephila.store.reader import DamagedArchiveError, WarcReader
from nephila.store.warc import digest_of, one_line, parse_date, target_uri
from nephila.testing.disk import ForgetfulDisk
from nephila.urls import resolve

from .target import Choices, Target, text_of

PATH = Path("/archive/x.warc.gz")


def _file(data: bytes) -> ForgetfulDisk:
    disk = ForgetfulDisk()
    disk.overwrite(PATH, data)
    return disk


def check_warc(data: bytes) -> None:
    """Records are whole and in order, or the damage is named; each can be read alone; what was written comes back."""
    disk = _file(data)
    reader, at = iter(WarcReader(disk.open(PATH), PATH.name)), 0
    try:
        for record in reader:
            assert record.offset == at < record.end <= len(data)
            assert record.length <= record.end - record.offset
            assert next(iter(WarcReader(disk.open(PATH), PATH.name, record.offset))) == record
            at = record.end
    except DamagedArchiveError as error:
        assert error.offset == at
    for unit in whole_units(WarcReader(disk.open(PATH), PATH.name)):
        try:
            capture_of(unit, SegmentId(PATH.name), lambda _, payload: payload)
        except NephilaError:
            continue
    head = b"WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: %d\r\n\r\n" % len(data)
    for pack in (stored, deflated):
        whole = pack(head + data + b"\r\n\r\n")
        first, second = WarcReader(_file(whole * 2).open(PATH), PATH.name)
        assert first.block == second.block == data
        assert (first.length, second.offset) == (len(whole), len(whole))


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def check_capture(data: bytes) -> None:
    """A capture of ours with any metadata and head is read back, or refused with a sentence."""
    choices = Choices(data)
    size = choices.number(256)
    rest = choices.rest()
    head, metadata = rest[:size] or _HEAD, rest[size:]
    status, headers = parse_head(head)
    assert status >= 0
    assert all(name == name.strip().lower() for name, _ in headers)
    MetadataFields.parse(metadata)
    wire = b""
    for kind, block in (("response", head), ("request", b"GET / HTTP/1.1\r\n\r\n"), ("metadata", metadata)):
        fields = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.test/\r\nContent-Length: {len(block)}"
        wire += stored(fields.encode() + b"\r\n\r\n" + block + b"\r\n\r\n")
    (unit,) = units(WarcReader(_file(wire).open(PATH), PATH.name))
    try:
        capture, kept = capture_of(unit, SegmentId(PATH.name), lambda _, payload: payload)
    except DamagedArchiveError:
        return
    assert capture.fetched.head + capture.fetched.payload == head
    assert kept.ref.end == len(wire)


def check_index(data: bytes) -> None:
    """Whatever a URL and a type hold, an index line is one line of three parts whose last is JSON."""
    choices = Choices(data)
    size = choices.number(128)
    rest = choices.rest()
    content_type, text = rest[:size].decode("latin-1"), text_of(rest[size:])
    url = resolve(None, text) or resolve(None, f"http://a.test/{text}") or "http://a.test/"
    row = CaptureRow(
        url=url, fingerprint=bytes(16), host="a.test", domain="a.test", depth=0, via="", level=1, retries=0,
        at=1_700_000_000_000, status=200, content_type=content_type, content_hash=b"", length=5, wire_bytes=5, elapsed_ms=1,
        kind="response", segment=SegmentId("x.warc.gz"), offset=7, record_length=9, end=16, payload_digest="sha1:X",
    )  # fmt: skip
    line = cdxj_line(row)
    assert line.endswith("\n")
    assert "\n" not in line[:-1]
    key, timestamp, fields = line.split(" ", 2)
    assert key
    assert timestamp == "20231114221320"
    assert json.loads(fields)["url"] == target_uri(url)
    assert "\n" not in one_line(text)
    assert "\r" not in one_line(text)
    digest_of(data)


def check_date(data: bytes) -> None:
    """A date is read or refused with a ValueError, which readers of records expect."""
    try:
        at = parse_date(text_of(data))
    except ValueError:
        return
    datetime.fromtimestamp(at / 1000, UTC)


def check_event(data: bytes) -> None:
    """Any line is read or passed over; what was written comes back, one line whatever it holds."""
    decode_line(data)
    text = text_of(data)
    encoder, buffer = LineEncoder(1_700_000_000_000, "w"), bytearray()
    event = Event(kind=EventKind.ERROR, at=1_700_000_001_500, url=text, detail=text, reason=text, host=text)
    encoder.append(event, buffer)
    assert buffer.count(b"\n") == 1
    assert buffer.endswith(b"\n")
    found = decode_line(bytes(buffer))
    assert found is not None
    read, worker, since = found
    assert (read.kind, read.at, worker, since) == (EventKind.ERROR, 1_700_000_001_500, "w", 1_500)
    assert read.reason == text.encode(errors="replace").decode()


def _warc(kind: str, block: bytes, extra: str = "") -> bytes:
    head = f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: <http://a.test/>\r\n{extra}Content-Length: {len(block)}\r\n\r\n"
    return head.encode() + block + b"\r\n\r\n"


_METADATA = (
    b"via: http://a.test/\r\ntoken: 5\r\nattempt: 1\r\nfingerprint: 00112233445566778899aabbccddeeff\r\ndepth: 1\r\nlevel: 2\r\n"
    b"retries: 0\r\ncycle: 1\r\nhops: 1\r\nsent-at: 1\r\nended-at: 2\r\nfetchTimeMs: 1\r\nhead-bytes: 20\r\ntrail: http://b.test/\r\n"
    b"truncated: length\r\noutlink: http://c.test/\r\nnote-x: y\r\n"
)
TARGETS = (
    Target(
        "warc",
        check_warc,
        (
            _warc("resource", b"abc"), stored(_warc("metadata", b"x")) * 2, deflated(_warc("warcinfo", b"", "X: a\r\n b\r\n")),
            stored(_warc("response", _HEAD)) + stored(_warc("request", b"GET")) + stored(_warc("metadata", _METADATA)),
        ),
        (b"WARC/1.1\r\n", b"Content-Length: ", b"\r\n\r\n", b"WARC-Type: ", b"\x1f\x8b\x08\x00", b"WARC-Date: "),
    ),
    Target(
        "capture",
        check_capture,
        (b"\x00" + _METADATA, bytes([len(_HEAD)]) + _HEAD + _METADATA, b"\x14HTTP/1.1 200 OK\r\n\r\nrobots-origin: http://a.test\r\ntoken: 1\r\n"),
        (b"\r\n", b": ", b"token: ", b"attempt: ", b"head-bytes: ", b"robots-origin: ", b"last-digest: ", b"truncated: ", b"-1", b"level: "),
        2048,
    ),
    Target(
        "index",
        check_index,
        (b"\x09text/htmlhttp://a.test/x?y=1", b"\x05a\tb;chttps://b.test/%0a \xc3\xbc"),
        (b"http://", b"%0A", b'"', b"\\", b"\n", b";"),
        600,
    ),
    Target("date", check_date, (b"2026-01-02T03:04:05Z", b"2026-01-02T03:04:05.678901Z"), (b"T", b"Z", b"+00:00"), 64),
    Target(
        "event",
        check_event,
        (
            b'{"ts":"2023-11-14T22:13:20.000Z","t_ms_from_start":5,"event":"fetch_ok","url":"http://a.test/","status":200,"x":1}',
            b'{"ts":"2023-11-14","t_ms_from_start":1,"event":"error","fingerprint":"00ff","bytes":1.5}',
            b"http://a.test/?token=abc&mail=a@b.de",
        ),
        (b'"ts":"', b'"event":"heartbeat"', b'"t_ms_from_start":', b"null", b"1e999", b"\\ud800", b'"fingerprint":"'),
        1024,
    ),
)  # fmt: skip
