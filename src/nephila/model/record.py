"""What is kept of an exchange, and where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import NewType

from .exchange import Fetched
from .noun import noun
from .task import PageTask, PartTask, RobotsTask, Token

SegmentId = NewType("SegmentId", str)
"""A file or object of the archive that becomes durable as one; locally the WARC file's name."""


@noun
class RecordRef:
    """Where a capture lies. `end` is the offset after the last record of the whole exchange."""

    segment: SegmentId
    offset: int
    """Of the response, revisit or resource record."""
    length: int
    end: int


@noun
class Original:
    """An earlier capture with the same content: what a revisit record refers to (D2)."""

    url: str
    record_id: str
    """``urn:uuid:...`` of the response record."""
    at: int
    """Its WARC-Date, UTC milliseconds."""
    payload_digest: str
    """``sha1:BASE32`` over the stored bytes after the headers."""
    coding: str
    """Transfer and content coding of the stored payload, e.g. ``chunked;gzip``: a revisit needs the same."""


@noun
class Capture:
    """An exchange on its way into the archive: response or revisit, request and metadata records, written together."""

    task: PageTask | RobotsTask | PartTask
    token: Token
    attempt: int
    """How often this lease has asked; token and attempt make the records' ids."""
    fetched: Fetched
    via: str = ""
    """The URL of the page that linked here."""
    revisit_of: Original | None = None
    not_modified: bool = False
    """A 304: `revisit_of` is the earlier capture of this very URL."""
    outlinks: Sequence[str] = ()
    """Every link, as ``URL tag`` (the link graph's source), not only those that were queued."""
    notes: tuple[tuple[str, str], ...] = field(default=())
    """Further fields of the metadata record: directives, canonical, robots verdict, duplicate-of."""
    body_left_out: bool = False
    """What the server sent after the headers is not to be stored: a near-duplicate, where the settings say so (D3)."""
    rules: bytes | None = None
    """For a robots.txt that came into force: its text, kept as a resource record of the origin."""
    rendered: bytes | None = None
    """For a page that a browser has shown: the document as its scripts left it, kept as a resource record (J4)."""


@noun
class StoredCapture:
    """What `Archive.append` returns: where it lies and under which name."""

    ref: RecordRef
    record_id: str
    payload_digest: str
    coding: str
    at: int
    kind: str = "response"
    """``response`` or ``revisit``: what the archive made of it."""
