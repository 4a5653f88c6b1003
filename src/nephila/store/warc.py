"""WARC 1.1 records (ISO 28500:2017), one function for each type that we write.

Each function returns the whole record as bytes: version line, named fields, block, the two line ends that close it.
What must stay true:

- An id is a function of the crawl's secret, the lease's token, the attempt and the type, so the same capture has the
  same names wherever it is written again or read.
- WARC-Payload-Digest is over the stored bytes after the HTTP head, chunk framing included: that is what warcio and
  FastWARC check. WARC-Block-Digest is over the whole block.
- A target URI holds no white space and no control character, whatever we were given.
- Dates carry milliseconds, which WARC 1.1 allows and warcio, FastWARC, cdxj-indexer and pywb accept.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import quote

from nephila.model.digests import sha1_of
from nephila.model.noun import quick
from nephila.model.record import Original
from nephila.native import AVAILABLE, native

VERSION = "WARC/1.1"
HTTP2 = "h2"
"""Of WARC-Protocol, by its name in TLS; HTTP/1.1 is known by the status line."""
FIELDS_TYPE = "application/warc-fields"
REQUEST_TYPE = "application/http;msgtype=request"
RESPONSE_TYPE = "application/http;msgtype=response"
PROFILE_SAME_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
PROFILE_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"

_UNSAFE_IN_URI = re.compile("[\x00-\x20\x7f<>]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LEASE = struct.Struct("<QQ")
_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_BASE32_PAIRS = tuple(high + low for high in _BASE32 for low in _BASE32)
_PAIR_SHIFTS = tuple(range(150, -1, -10))
"""SHA-1's 160 bits, ten at a time."""


class RecordKind(StrEnum):
    """The types that we write, each with the last two digits of its records' ids: never change one."""

    WARCINFO = "00"
    RESPONSE = "01"
    REQUEST = "02"
    METADATA = "03"
    RESOURCE = "04"


RESPONSE, REQUEST, METADATA = RecordKind.RESPONSE.value, RecordKind.REQUEST.value, RecordKind.METADATA.value
"""Those of every page, as plain text, which is spelled faster."""


@dataclass(frozen=True, slots=True)
class CrawlIdentity:
    """Who writes: the crawl's secret names the records, the rest is told by the warcinfo record of each file."""

    secret: int
    software: str = "Nephila"
    user_agent: str = ""
    robots: str = "obey"
    """The policy towards robots.txt: ``obey`` or ``ignore``."""
    crawl: str = ""
    """The name of the crawl, the `isPartOf` of warcinfo."""
    writer: int = 0
    """Which of several processes that share a directory: part of every file name."""
    terms: str = ""
    """What the run has undertaken towards the sites (`model.terms`), on one line."""

    def lease_ids(self, token: int, attempt: int) -> str:
        """The ids of one capture's records: each is this and its `RecordKind`."""
        mask = (1 << 64) - 1
        named = _namer(self.secret, b"nephila-capture").copy()
        named.update(_LEASE.pack(token & mask, attempt & mask))
        return _ids(named.hexdigest())

    def file_ids(self, name: str) -> str:
        """The ids of the records that belong to a file, likewise."""
        named = _namer(self.secret, b"nephila-file").copy()
        named.update(name.encode())
        return _ids(named.hexdigest())


@lru_cache(maxsize=8)
def _namer(secret: int, person: bytes) -> blake2b:
    """The hash that names things under a crawl's secret, before it has seen anything."""
    key = secret.to_bytes(max(1, (secret.bit_length() + 7) // 8), "little")[:64]
    return blake2b(digest_size=15, key=key, person=person)


def _ids(digits: str) -> str:
    """A family of ids that differ in their last byte, the record's kind. Version 8 of RFC 9562: our own rule.

    From 30 hexadecimal digits, of which two give way to version and variant: ``urn:uuid:...`` but for the last two.
    """
    variant = _VARIANTS[digits[16]]
    return f"urn:uuid:{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


@lru_cache(maxsize=256)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")


def warc_date(at: int) -> str:
    """UTC milliseconds as WARC-Date writes them."""
    seconds, millis = divmod(at, 1000)
    return f"{_second(seconds)}.{millis:03d}Z"


def parse_date(text: str) -> int:
    """A WARC-Date as UTC milliseconds. Raises ValueError for anything else."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a date without a time zone: {text!r}")
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def plain_base32(digest: bytes) -> str:
    """SHA-1's digest in base 32. Four a page: half the cost of the standard library's."""
    bits = int.from_bytes(digest, "big")
    return "".join([_BASE32_PAIRS[bits >> shift & 1023] for shift in _PAIR_SHIFTS])


base32 = native.base32 if AVAILABLE else plain_base32


def digest_of(data: bytes) -> str:
    """``sha1:BASE32``, the form that archives compare."""
    return "sha1:" + base32(sha1_of(data))


def target_uri(url: str) -> str:
    """The URL as it may stand in a field: what could break the line or confuse a reader is percent-encoded."""
    if _UNSAFE_IN_URI.search(url) is None:
        return url
    return _UNSAFE_IN_URI.sub(lambda found: quote(found.group(), safe=""), url)


def one_line(value: str) -> str:
    """A value that cannot end its line."""
    return value.replace("\r", " ").replace("\n", " ") if "\n" in value or "\r" in value else value


def fields_block(fields: Iterable[tuple[str, str]]) -> bytes:
    """The block of a warc-fields record."""
    lines = [f"{name}: {value}\r\n" for name, value in fields]
    text = "".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines):  # a value has a line end of its own
        text = "".join([f"{one_line(line[:-2])}\r\n" for line in lines])
    return text.encode("utf-8", "replace")


def _record(kind: str, record_id: str, date: str, fields: str, content_type: str, block: bytes) -> bytes:
    """`fields` are whole lines."""
    head = _head(kind, record_id, date, fields, content_type, base32(sha1_of(block)), len(block))
    return b"".join((head, block, b"\r\n\r\n"))


def _head(kind: str, record_id: str, date: str, fields: str, content_type: str, digest: str, size: int) -> bytes:
    """What stands before the block. Every record that we write goes through here."""
    return (
        f"{VERSION}\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <{record_id}>\r\nWARC-Date: {date}\r\n{fields}"
        f"WARC-Block-Digest: sha1:{digest}\r\nContent-Type: {content_type}\r\nContent-Length: {size}\r\n\r\n"
    ).encode("utf-8", "replace")


def warcinfo(record_id: str, at: int, filename: str, fields: Iterable[tuple[str, str]]) -> bytes:
    """The first record of a file: who wrote it, and how."""
    named = f"WARC-Filename: {filename}\r\n"
    return _record("warcinfo", record_id, warc_date(at), named, FIELDS_TYPE, fields_block(fields))


class Exchanged:
    """What the records of one exchange share: the lines that most of them carry, spelled once."""

    __slots__ = ("concurrent", "date", "ids", "target", "where")

    def __init__(self, ids: str, date: str, target: str, address: str = "", protocol: str = "") -> None:
        """`target` is already through `target_uri`; `protocol` is WARC-Protocol: ``http/1.1``, ``h2``."""
        self.ids = ids
        self.date = date
        self.target = f"WARC-Target-URI: {target}\r\n"
        """The line of every record."""
        where = f"{self.target}WARC-IP-Address: {address}\r\n" if address else self.target
        self.where = f"{where}WARC-Protocol: {protocol}\r\n" if protocol else where
        """The lines of every record that was on the wire."""
        self.concurrent = f"WARC-Concurrent-To: <{ids}{RESPONSE}>\r\n"
        """The line that ties a record to the answer."""


@quick
class Wire(NamedTuple):
    """An answer as it was on the wire, with its digests."""

    head: bytes
    payload: bytes
    payload_digest: str
    """``sha1:BASE32``."""
    block_digest: bytes = b""
    """SHA-1 of both, where it is known."""


def response(exchange: Exchanged, wire: Wire, truncated: str = "") -> bytes:
    """The answer as it was on the wire."""
    head, payload, payload_digest, digest = wire
    fields = f"{exchange.where}WARC-Payload-Digest: {payload_digest}\r\n"
    if truncated:
        fields += f"WARC-Truncated: {truncated}\r\n"
    spelled, size = base32(digest or sha1_of(head + payload)), len(head) + len(payload)
    begun = _head("response", exchange.ids + RESPONSE, exchange.date, fields, RESPONSE_TYPE, spelled, size)
    return b"".join((begun, head, payload, b"\r\n\r\n"))


def revisit(exchange: Exchanged, original: Original, block: bytes, *, profile: str, cut: bool) -> bytes:
    """An answer whose payload is in the archive already. `cut`: the block lacks the payload."""
    fields = (
        f"{exchange.where}WARC-Profile: {profile}\r\n"
        f"WARC-Refers-To: <{original.record_id}>\r\nWARC-Refers-To-Target-URI: {target_uri(original.url)}\r\n"
        f"WARC-Refers-To-Date: {warc_date(original.at)}\r\nWARC-Payload-Digest: {original.payload_digest}\r\n"
    )
    if cut:
        fields += "WARC-Truncated: length\r\n"
    return _record("revisit", exchange.ids + RESPONSE, exchange.date, fields, RESPONSE_TYPE, block)


def request(exchange: Exchanged, sent: bytes) -> bytes:
    """What we sent."""
    fields = exchange.where + exchange.concurrent
    return _record("request", exchange.ids + REQUEST, exchange.date, fields, REQUEST_TYPE, sent)


def metadata(exchange: Exchanged, block: bytes) -> bytes:
    """What we know of the exchange that is not on the wire. It closes the capture: recovery looks for it."""
    fields = exchange.target + exchange.concurrent
    return _record("metadata", exchange.ids + METADATA, exchange.date, fields, FIELDS_TYPE, block)


def resource(exchange: Exchanged, target: str, block: bytes, content_type: str) -> bytes:
    """A document that this exchange brought into force under another name: the robots.txt of an origin.

    Block and payload are the same bytes, so the block's digest says it all; FastWARC fails on a second one.
    """
    fields = f"WARC-Target-URI: {target_uri(target)}\r\n{exchange.concurrent}"
    return _record("resource", exchange.ids + RecordKind.RESOURCE, exchange.date, fields, content_type, block)
