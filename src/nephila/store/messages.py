"""What is told of a page that was stored (W7): the row of its capture as JSON, under an id that names the capture.

Names are those of the catalogue's columns, and stable: new ones are added, none is taken away or given another meaning.
docs/streams.md and docs/streams.schema.json tell them to others.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nephila.interfaces.catalogue import CaptureRow
from nephila.interfaces.stream import Message

LONGEST = 4_096
"""Characters of a text: a message stays under what streams take, whatever a page says of itself."""

_NOT_MODIFIED = 304
_encode = msgspec.json.Encoder().encode


class PageTold(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of a message."""

    id: str
    crawl: str
    url: str
    url_hash: str
    host: str
    domain: str
    depth: int
    crawled_at: int
    status: int
    storage_key: str
    record_length: int
    kind: str
    changed: bool
    via: str = ""
    content_type: str = ""
    content_hash: str = ""
    payload_digest: str = ""
    length: int = 0
    wire_bytes: int = 0
    elapsed_ms: int = 0
    retries: int = 0
    title: str = ""
    language: str = ""
    canonical: str = ""
    duplicate_of: str = ""
    near_duplicate_of: str = ""
    simhash: str = ""
    truncated: str = ""
    noindex: bool = False
    noarchive: bool = False
    signals: str = ""
    worker: str = ""


def is_page(row: CaptureRow) -> bool:
    """Whether a capture is a whole page of a wanted type, or one that has not changed."""
    whole = 200 <= row.status < 300 and bool(row.content_hash)
    return not row.robots and (whole or row.status == _NOT_MODIFIED)


def messages_of(rows: Sequence[CaptureRow], crawl: str, identity: str, *, answers: bool) -> list[Message]:
    """The messages that tell of these captures: of pages, or of all answers but robots.txt and parts of visits."""
    return [
        _message(row, crawl, identity)
        for row in rows
        if (answers and row.fingerprint and not row.robots) or (not answers and is_page(row))
    ]


def _message(row: CaptureRow, crawl: str, identity: str) -> Message:
    place = f"{row.segment}#{row.offset}"
    told = PageTold(
        id=f"{identity}/{place}",
        crawl=crawl,
        url=_short(row.url),
        url_hash=row.fingerprint.hex(),
        host=row.host,
        domain=row.domain,
        depth=row.depth,
        crawled_at=row.at,
        status=row.status,
        storage_key=place,
        record_length=row.record_length,
        kind=row.kind,
        changed=row.changed,
        via=_short(row.via),
        content_type=_short(row.content_type),
        content_hash=row.content_hash.hex(),
        payload_digest=row.payload_digest,
        length=row.length,
        wire_bytes=row.wire_bytes,
        elapsed_ms=row.elapsed_ms,
        retries=row.retries,
        title=_short(row.title),
        language=_short(row.language),
        canonical=_short(row.canonical),
        duplicate_of=_short(row.duplicate_of),
        near_duplicate_of=_short(row.near_duplicate_of),
        simhash="" if row.simhash is None else f"{row.simhash & 0xFFFF_FFFF_FFFF_FFFF:016x}",
        truncated=row.truncated,
        noindex=row.noindex,
        noarchive=row.noarchive,
        signals=_short(row.signals),
        worker=row.worker,
    )
    return Message(told.id, row.fingerprint, _encode(told))


def _short(text: str) -> str:
    """Bounded, and in what JSON can say: a half of a surrogate pair is no character."""
    if len(text) > LONGEST:
        text = text[:LONGEST]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
