"""From a capture to its line in the catalogue, the same way whether it was just stored or is read back.

What the parser and the judges found travels in the capture's notes, so that it lies in the archive and the catalogue
can be rebuilt from there alone. The names of those notes are the constants below. A revisit that is read back has no
payload: length and wire bytes are then those of the record itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from urllib.parse import urlsplit

from nephila.interfaces.catalogue import CaptureRow
from nephila.model.record import Capture, StoredCapture
from nephila.model.task import PageTask

from .capture import written_as

NOTE_SHA256 = "sha256"
"""Hexadecimal digest of the decoded body; worked out again where the note is missing."""
NOTE_TITLE = "title"
NOTE_LANGUAGE = "language"
NOTE_CANONICAL = "canonical"
NOTE_DUPLICATE_OF = "duplicate-of"
NOTE_SIGNALS = "signals"
NOTE_CRAWL_DELAY_MS = "crawl-delay-ms"
NOTE_NOINDEX = "noindex"
NOTE_NOARCHIVE = "noarchive"
NOTE_UNCHANGED = "unchanged"
"""These three hold for the page when the note is there, whatever its value."""


def capture_row(capture: Capture, stored: StoredCapture, domain_of: Callable[[str], str]) -> CaptureRow:
    """The row of one capture; `domain_of` gives the registrable domain of a host."""
    fetched, task, notes = capture.fetched, capture.task, dict(capture.notes)
    page = task if isinstance(task, PageTask) else None
    host = (urlsplit(fetched.url).hostname or "").rstrip(".")
    return CaptureRow(
        url=fetched.url,
        fingerprint=page.fingerprint if page else b"",
        host=host,
        domain=domain_of(host),
        depth=page.depth if page else 0,
        via=capture.via,
        level=int(page.level) if page else 0,
        retries=page.retries if page else 0,
        at=stored.at,
        status=fetched.status,
        content_type=fetched.header("content-type"),
        content_hash=_content_hash(capture, notes.get(NOTE_SHA256, "")),
        length=len(fetched.body),
        wire_bytes=len(fetched.head) + len(fetched.payload),
        elapsed_ms=fetched.elapsed_ms,
        kind=written_as(capture, stored.payload_digest, stored.coding),
        segment=stored.ref.segment,
        offset=stored.ref.offset,
        record_length=stored.ref.length,
        end=stored.ref.end,
        payload_digest=stored.payload_digest,
        title=notes.get(NOTE_TITLE, ""),
        language=notes.get(NOTE_LANGUAGE, ""),
        canonical=notes.get(NOTE_CANONICAL, ""),
        duplicate_of=notes.get(NOTE_DUPLICATE_OF, ""),
        truncated=fetched.truncated.value if fetched.truncated else "",
        robots=page is None,
        noindex=NOTE_NOINDEX in notes,
        noarchive=NOTE_NOARCHIVE in notes,
        changed=NOTE_UNCHANGED not in notes,
        signals=notes.get(NOTE_SIGNALS, ""),
        crawl_delay_ms=int(notes.get(NOTE_CRAWL_DELAY_MS) or 0),
    )


def capture_rows(
    captures: Iterable[tuple[Capture, StoredCapture]], domain_of: Callable[[str], str]
) -> Iterator[CaptureRow]:
    """The rows of what `Archive.tail` reads back: rebuilding a catalogue."""
    return (capture_row(capture, stored, domain_of) for capture, stored in captures)


def _content_hash(capture: Capture, noted: str) -> bytes:
    if noted:
        return bytes.fromhex(noted)
    body = capture.fetched.body
    return sha256(body).digest() if body else b""
