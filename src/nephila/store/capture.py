"""A capture as bytes: its records in order, each compressed on its own, ready to be written with one call.

The order is the grammar that recovery relies on: the answer (response or revisit), then the resource where there is
one, then the request, then the metadata record, which closes the capture. What stands between two metadata records is
one capture; a tail without its metadata record is torn.

A revisit is written only where it is true: the payload of the original has the same digest under the same codings, or
the server said 304. Otherwise the whole answer is written, whatever the capture asked for; `StoredCapture.kind` tells
which.

An answer whose body is left out (a near-duplicate, where the settings say so) is a response that ends with its
headers, cut for a reason of ours (``WARC-Truncated: unspecified``); its payload digest is that of what is stored,
which is nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from nephila.model.digests import noted_digests
from nephila.model.exchange import Fetched, Truncation
from nephila.model.noun import noun
from nephila.model.record import Capture, Original, RecordRef, SegmentId, StoredCapture
from nephila.model.task import PageTask, PartTask, RobotsTask
from nephila.urls import origin_of

from . import warc
from .metadata import metadata_block
from .packing import GZIP, Packing
from .warc import CrawlIdentity, Exchanged, Wire

RULES_TYPE = "text/plain;charset=utf-8"
"""The media type of robots.txt (RFC 9309, 2.3)."""

RENDERED_TYPE = "text/html;charset=utf-8"
RENDERED_URN = "urn:nephila:rendered:"
"""Before the URL of a page whose document, as its scripts left it, is a resource record: under the URL itself lies what
the server sent, and a replay must find that."""

INCOMPRESSIBLE = frozenset({"gzip", "x-gzip", "br", "zstd", "deflate", "compress", "x-compress"})
"""Content codings after which compressing again buys nothing."""


@noun
class EncodedCapture:
    """All members of a capture, and what `Archive.append` has to say of it once it knows where it lies."""

    data: bytes
    main_length: int
    """Of the first member, the answer."""
    record_id: str
    payload_digest: str
    coding: str
    at: int
    kind: str

    def stored_at(self, segment: SegmentId, offset: int) -> StoredCapture:
        """The answer of `append` for a capture that was written at `offset`."""
        ref = RecordRef(segment, offset, self.main_length, offset + len(self.data))
        return StoredCapture(ref, self.record_id, self.payload_digest, self.coding, self.at, self.kind)


def coding_of(fetched: Fetched) -> str:
    """Transfer and content coding of the payload: ``chunked;gzip``, ``gzip``, or nothing."""
    return _codings(fetched.header("transfer-encoding"), fetched.header("content-encoding"))[0]


@lru_cache(maxsize=64)
def _codings(transfer: str, content: str) -> tuple[str, bool]:
    """The two as one, and whether compressing again is for nothing. There is a handful of pairs."""
    whole = ";".join(name.lower().replace(" ", "") for name in (transfer, content) if name)
    return whole, content.rpartition(",")[2].strip().lower() in INCOMPRESSIBLE


def written_as(capture: Capture, payload_digest: str, coding: str) -> str:
    """``response`` or ``revisit``: the type of the answer's record."""
    original = capture.revisit_of
    if original is None:
        return "response"
    if capture.not_modified:
        return "revisit"
    same = original.payload_digest == payload_digest and original.coding == coding
    return "revisit" if same and capture.fetched.truncated is None else "response"


def encode_capture(capture: Capture, identity: CrawlIdentity, packing: Packing = GZIP) -> EncodedCapture:
    """The records of a capture, compressed where that pays."""
    fetched = capture.fetched
    ids = identity.lease_ids(capture.token, capture.attempt)
    target = warc.target_uri(fetched.url)
    protocol = fetched.protocol or ("http/1.1" if fetched.head.startswith(b"HTTP/1.1") else _protocol(fetched.head))
    exchange = Exchanged(ids, warc.warc_date(fetched.sent_at), target, fetched.address, protocol)
    coding, is_packed = _codings(fetched.header("transfer-encoding"), fetched.header("content-encoding"))
    payload = b"" if capture.body_left_out else fetched.payload
    noted = noted_digests(fetched)
    payload_digest = warc.digest_of(fetched.payload) if noted is None else f"sha1:{warc.base32(noted.payload)}"
    original = capture.revisit_of
    kind = "response" if original is None else written_as(capture, payload_digest, coding)
    if original is not None and kind == "revisit":
        payload_digest = original.payload_digest
        main = packing.packed(_revisit(exchange, capture, original))
    else:
        if original is not None:
            capture = replace(capture, revisit_of=None)
        truncated = fetched.truncated.value if fetched.truncated else ""
        if payload != fetched.payload:
            truncated, payload_digest, noted = Truncation.UNSPECIFIED.value, warc.digest_of(payload), None
        wire = Wire(fetched.head, payload, payload_digest, b"" if noted is None else noted.block)
        record = warc.response(exchange, wire, truncated)
        main = packing.kept(record) if payload and is_packed else packing.packed(record)
    members = [main]
    if capture.rules is not None:
        members.append(packing.packed(warc.resource(exchange, _rules_url(capture.task), capture.rules, RULES_TYPE)))
    if capture.rendered is not None:
        members.append(packing.packed(warc.resource(exchange, RENDERED_URN + target, capture.rendered, RENDERED_TYPE)))
    members.append(packing.quick(warc.request(exchange, fetched.request)))
    members.append(packing.quick(warc.metadata(exchange, metadata_block(capture, coding))))
    record_id = ids + warc.RESPONSE
    return EncodedCapture(b"".join(members), len(main), record_id, payload_digest, coding, fetched.sent_at, kind)


def _revisit(exchange: Exchanged, capture: Capture, original: Original) -> bytes:
    fetched = capture.fetched
    if capture.not_modified:
        block = fetched.head + fetched.payload
        return warc.revisit(exchange, original, block, profile=warc.PROFILE_NOT_MODIFIED, cut=False)
    cut = bool(fetched.payload)
    return warc.revisit(exchange, original, fetched.head, profile=warc.PROFILE_SAME_PAYLOAD, cut=cut)


def _rules_url(task: PageTask | RobotsTask | PartTask) -> str:
    """Rules belong to the origin that asked for them, however many redirects away they were found."""
    origin = task.origin if isinstance(task, RobotsTask) else origin_of(task.url)
    return f"{origin}/robots.txt"


def _protocol(head: bytes) -> str:
    """``http/1.1`` from the status line, nothing where it is no HTTP."""
    version = head[:8]
    return version.decode("ascii", "replace").lower() if version.startswith(b"HTTP/1.") else ""
