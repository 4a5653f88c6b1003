"""What every `interfaces.archive.Archive` keeps.

A check takes `open_archive`, which opens an archive on storage of its own; calling it again opens the same storage
anew, as a restarted process would (the former archive is then dead, whether it was closed or not). The archive must be
given `decode_sample` for the bodies of these captures. Which of them share a segment is its own affair, and not for
want of room in one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

from nephila.interfaces.archive import Archive
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.exchange import Fetched, Truncation
from nephila.model.record import Capture, Original, SegmentId, StoredCapture
from nephila.model.task import Level, PageTask, RobotsTask, Token, Validators
from nephila.urls import Fingerprint

OpenArchive = Callable[[], Archive]

SAMPLE_AT = 1_767_225_600_123
"""2026-01-01T00:00:00.123Z."""

NO_PAYLOAD = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
"""The digest of nothing."""

_BODY = b"<html><title>Orb weavers</title><p>" + b"golden silk " * 50 + b"</html>"


def fetched_sample(url: str, payload: bytes = _BODY, body: bytes | None = None, **headers: str) -> Fetched:
    """An answer with these headers (underscores stand for hyphens) and this payload on the wire."""
    fields = {"Content-Type": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if "Transfer-Encoding" not in fields:
        fields.setdefault("Content-Length", str(len(payload)))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    host = url.split("/")[2]
    path = url.split(host, 1)[1] or "/"
    return Fetched(
        url=url,
        request=f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Nephila/0.1\r\n\r\n".encode(),
        head=f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode("latin-1"),
        payload=payload,
        status=200,
        headers=tuple((name.lower(), value) for name, value in fields.items()),
        body=payload if body is None else body,
        address="192.0.2.7",
        sent_at=SAMPLE_AT,
        ended_at=SAMPLE_AT + 48,
        elapsed_ms=47,
    )


def page_capture(number: int, fetched: Fetched | None = None) -> Capture:
    """The capture of a page under lease `number`."""
    fetched = fetched or fetched_sample(f"https://spiders.example/web/{number}?q=%20b")
    via = "https://spiders.example/"
    task = PageTask(Fingerprint(number.to_bytes(16, "big")), fetched.url, number % 7, Level.HIGH, via=via)
    return Capture(
        task=task,
        token=Token((1 << 63) + number),
        attempt=1,
        fetched=replace(fetched, sent_at=fetched.sent_at + number, ended_at=fetched.ended_at + number),
        via=via,
        outlinks=("https://spiders.example/a a", "https://other.example/?x=1&y=2 area"),
        notes=(("canonical", "https://spiders.example/web"), ("title", "Orb weavers: golden")),
    )


def gzipped(body: bytes) -> bytes:
    """As a server sends it."""
    return zlib.compress(body, 6, 31)


def chunked(payload: bytes, size: int = 100) -> bytes:
    """With chunk framing, extensions and a trailer left out."""
    chunks = (payload[start : start + size] for start in range(0, len(payload), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def decode_sample(head: bytes, payload: bytes) -> bytes:
    """The inverse of `chunked` and `gzipped`, tolerant of a payload that was cut."""
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        body = bytearray()
        while payload:
            size_line, _, payload = payload.partition(b"\r\n")
            size = int(size_line or b"0", 16)
            body += payload[:size]
            payload = payload[size + 2 :]
        payload = bytes(body)
    if b"content-encoding: gzip" in lower:
        payload = zlib.decompressobj(31).decompress(payload)
    return payload


def assorted_captures() -> list[Capture]:
    """One of each kind that a crawl brings: plain, coded, cut, unwanted, robots.txt, odd."""
    url = "https://spiders.example/"
    cut = gzipped(_BODY)[:60]
    cut_body = zlib.decompressobj(31).decompress(cut)
    fetches = [
        fetched_sample(url + "plain"),
        fetched_sample(url + "gzip", gzipped(_BODY), _BODY, Content_Encoding="gzip"),
        fetched_sample(url + "chunked", chunked(_BODY), _BODY, Transfer_Encoding="chunked"),
        fetched_sample(
            url + "both", chunked(gzipped(_BODY)), _BODY, Transfer_Encoding="chunked", Content_Encoding="gzip"
        ),
        replace(fetched_sample(url + "cut", cut, cut_body, Content_Encoding="gzip"), truncated=Truncation.LENGTH),
        replace(
            fetched_sample(url + "image", b"", b"", Content_Type="image/png"),
            unwanted=True,
            truncated=Truncation.UNSPECIFIED,
        ),
        replace(fetched_sample(url + "certificate"), bad_certificate="expired: 3 days ago"),
        replace(fetched_sample(url + "http2"), protocol="h2"),
        fetched_sample(url + "empty", b"", b""),
        fetched_sample(url + "large", b"web of silk\n" * 20_000),
    ]
    captures = [page_capture(number, fetched) for number, fetched in enumerate(fetches)]
    odd_task = PageTask(
        Fingerprint(bytes(16)),
        url + "spelling",
        depth=3,
        level=Level.LOW,
        hops=2,
        retries=1,
        cycle=4,
        validators=Validators('W/"a: b"', "Thu, 01 Jan 2026 00:00:00 GMT"),
        digest=bytes(range(32)),
        via="https://elsewhere.example/",
        trail=(url + "one", url + "two"),
    )
    captures.append(replace(page_capture(90), task=odd_task, via="", outlinks=(), notes=()))
    captures.append(replace(page_capture(92), task=replace(odd_task, via="")))
    rules = fetched_sample("https://www.spiders.example/robots.txt", b"User-agent: *\nDisallow: /no\n")
    robots_task = RobotsTask("https://spiders.example:8443", rules.url, hops=1)
    captures.append(replace(page_capture(91, rules), task=robots_task, via="", outlinks=(), rules=rules.payload))
    return captures


def original_of(capture: Capture, stored: StoredCapture) -> Original:
    """What the digest index would remember of a capture."""
    return Original(capture.fetched.url, stored.record_id, stored.at, stored.payload_digest, stored.coding)


def row_of(capture: Capture, stored: StoredCapture) -> CaptureRow:
    """The catalogue's row of a sample, every host a domain of its own."""
    fetched, task = capture.fetched, capture.task
    host = fetched.url.split("/")[2].partition(":")[0]
    page = task if isinstance(task, PageTask) else None
    return CaptureRow(
        url=fetched.url,
        fingerprint=page.fingerprint if page else b"",
        host=host,
        domain=host,
        depth=page.depth if page else 0,
        via=capture.via,
        level=int(page.level) if page else 0,
        retries=page.retries if page else 0,
        at=stored.at,
        status=fetched.status,
        content_type=fetched.content_type,
        content_hash=sha256(fetched.body).digest(),
        length=len(fetched.body),
        wire_bytes=len(fetched.head) + len(fetched.payload),
        elapsed_ms=fetched.elapsed_ms,
        kind=stored.kind,
        segment=stored.ref.segment,
        offset=stored.ref.offset,
        record_length=stored.ref.length,
        end=stored.ref.end,
        payload_digest=stored.payload_digest,
        robots=page is None,
    )


def check_every_kind_of_capture_reads_back_equal(open_archive: OpenArchive) -> None:
    """W1: nothing of a capture is lost, and `tail` says of it what `append` said."""
    archive = open_archive()
    written = [(capture, archive.append(capture)) for capture in assorted_captures()]
    archive.sync()
    segments = dict.fromkeys(stored.ref.segment for _, stored in written)
    read = [found for segment in segments for found in archive.tail(segment, 0)]
    assert [capture for capture, _ in read] == [capture for capture, _ in written]
    assert [stored for _, stored in read] == [stored for _, stored in written]


def check_captures_lie_one_after_the_other(open_archive: OpenArchive) -> None:
    """W1: a capture ends where the next one of its segment begins; its main record is inside it."""
    archive = open_archive()
    refs = [archive.append(page_capture(number)).ref for number in range(4)]
    for before, after in pairwise(refs):
        assert after.offset == before.end or after.segment != before.segment
    assert all(ref.offset < ref.offset + ref.length < ref.end for ref in refs)


def check_tail_begins_at_the_mark(open_archive: OpenArchive) -> None:
    """F10: recovery reads only what is past the confirmed mark."""
    archive = open_archive()
    refs = [archive.append(page_capture(number)).ref for number in range(3)]
    archive.sync()
    following = [number for number in (1, 2) if refs[number].segment == refs[0].segment]
    behind = archive.tail(refs[0].segment, refs[0].end)
    assert [capture for capture, _ in behind] == [page_capture(number) for number in following]
    assert list(archive.tail(refs[2].segment, refs[2].end)) == []


def check_ids_follow_from_token_and_attempt(open_archive: OpenArchive) -> None:
    """W1: the same lease and attempt give the same record id, any other another."""
    archive = open_archive()
    first = archive.append(page_capture(1))
    again = archive.append(page_capture(1))
    retried = archive.append(replace(page_capture(1), attempt=2))
    other = archive.append(page_capture(2))
    assert first.record_id == again.record_id
    assert first.record_id.startswith("urn:uuid:")
    assert len({first.record_id, retried.record_id, other.record_id}) == 3


def check_sync_tells_the_end_of_what_is_durable(open_archive: OpenArchive) -> None:
    """W2: what `sync` returns covers every capture that was appended, once."""
    archive = open_archive()
    assert archive.sync() == []
    refs = [archive.append(page_capture(number)).ref for number in range(3)]
    told = archive.sync()
    assert dict(told) == {ref.segment: ref.end for ref in refs}
    assert len(told) == len(dict(told))
    assert archive.sync() == []


def check_appended_survives_the_death_of_the_process(open_archive: OpenArchive) -> None:
    """F10: what `append` returned is there for the next process, without a sync or a close."""
    stored = open_archive().append(page_capture(5))
    assert list(open_archive().tail(stored.ref.segment, 0)) == [(page_capture(5), stored)]


def check_a_restart_leaves_old_captures_alone(open_archive: OpenArchive) -> None:
    """F10: appending after a restart changes nothing that was there."""
    before = open_archive().append(page_capture(1))
    archive = open_archive()
    after = archive.append(page_capture(2))
    archive.close()
    archive = open_archive()
    assert (page_capture(1), before) in list(archive.tail(before.ref.segment, 0))
    assert (page_capture(2), after) in list(archive.tail(after.ref.segment, 0))


def check_closing_tells_listeners(open_archive: OpenArchive) -> None:
    """W1: whoever writes the index hears of every segment that will not grow any more, once."""
    archive = open_archive()
    closed: list[SegmentId] = []
    archive.on_roll(closed.append)
    stored = archive.append(page_capture(1))
    assert closed in ([], [stored.ref.segment])
    archive.close()
    assert closed == [stored.ref.segment]


def check_an_unused_archive_closes_quietly(open_archive: OpenArchive) -> None:
    """W1: a crawl that fetched nothing leaves nothing."""
    archive = open_archive()
    closed: list[SegmentId] = []
    archive.on_roll(closed.append)
    archive.close()
    assert closed == []


def check_same_payload_becomes_a_revisit(open_archive: OpenArchive) -> None:
    """D2: the second copy is recorded, not stored; read back it says what it refers to."""
    archive = open_archive()
    body = bytes(range(256)) * 400
    first = page_capture(1, fetched_sample("https://a.example/", body))
    original = original_of(first, archive.append(first))
    second = replace(page_capture(2, fetched_sample("https://b.example/", body)), revisit_of=original)
    stored = archive.append(second)
    assert (stored.kind, stored.payload_digest) == ("revisit", original.payload_digest)
    assert stored.ref.length < 2_000 < len(body)
    [(capture, again)] = archive.tail(stored.ref.segment, stored.ref.offset)
    assert again == stored
    assert capture == replace(second, fetched=replace(second.fetched, payload=b"", body=b""))


def check_other_bytes_are_never_a_revisit(open_archive: OpenArchive) -> None:
    """D2: equal content in other bytes or another coding is stored whole, whatever was asked for."""
    archive = open_archive()
    first = page_capture(1)
    original = original_of(first, archive.append(first))
    squeezed = fetched_sample("https://b.example/", gzipped(_BODY), _BODY, Content_Encoding="gzip")
    same_bytes_other_coding = fetched_sample("https://c.example/", _BODY, b"", Content_Encoding="br")
    for number, fetched in enumerate((squeezed, same_bytes_other_coding), 2):
        stored = archive.append(replace(page_capture(number, fetched), revisit_of=original))
        [(capture, _)] = archive.tail(stored.ref.segment, stored.ref.offset)
        assert (stored.kind, capture.revisit_of) == ("response", None)
        assert capture.fetched.payload == fetched.payload


def check_not_modified_is_a_revisit(open_archive: OpenArchive) -> None:
    """H3: a 304 is stored as a revisit of the earlier capture of its URL."""
    archive = open_archive()
    first = page_capture(1)
    original = original_of(first, archive.append(first))
    head = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
    answer = replace(
        first.fetched, head=head, payload=b"", body=b"", status=304, headers=(("etag", "x"),), sent_at=SAMPLE_AT + 9
    )
    capture = replace(page_capture(2, answer), revisit_of=original, not_modified=True, outlinks=(), notes=())
    stored = archive.append(capture)
    assert stored.kind == "revisit"
    assert list(archive.tail(stored.ref.segment, stored.ref.offset)) == [(capture, stored)]


def check_a_body_left_out_takes_no_room_and_the_rest_comes_back(open_archive: OpenArchive) -> None:
    """D3: headers, links and notes are kept; the digest is that of what is stored."""
    archive = open_archive()
    body = bytes(range(256)) * 400
    for number, headers in enumerate(({}, {"Content_Encoding": "gzip"})):
        payload = gzipped(body) if headers else body
        whole = page_capture(number, fetched_sample("https://a.example/", payload, body, **headers))
        stored = archive.append(replace(whole, body_left_out=True))
        assert (stored.kind, stored.payload_digest) == ("response", NO_PAYLOAD)
        assert stored.ref.length < 1_000
        [(capture, again)] = archive.tail(stored.ref.segment, stored.ref.offset)
        assert again == stored
        assert capture == replace(whole, fetched=replace(whole.fetched, payload=b"", body=b""), body_left_out=True)


CHECKS: tuple[Callable[[OpenArchive], None], ...] = (
    check_every_kind_of_capture_reads_back_equal,
    check_captures_lie_one_after_the_other,
    check_tail_begins_at_the_mark,
    check_ids_follow_from_token_and_attempt,
    check_sync_tells_the_end_of_what_is_durable,
    check_appended_survives_the_death_of_the_process,
    check_a_restart_leaves_old_captures_alone,
    check_closing_tells_listeners,
    check_an_unused_archive_closes_quietly,
    check_same_payload_becomes_a_revisit,
    check_other_bytes_are_never_a_revisit,
    check_not_modified_is_a_revisit,
    check_a_body_left_out_takes_no_room_and_the_rest_comes_back,
)
