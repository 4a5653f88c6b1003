"""Checking records against the digests they carry, as `warcio check` and `fastwarc check` do.

The block's digest covers the block; the payload's covers what follows the HTTP head as it is stored. Tools disagree on
chunked payloads: most hash the framing too, some take it off first. Either is accepted from others; we write the first.
"""

from __future__ import annotations

import base64
import hashlib
import re

from .reader import WarcRecord

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]+)[^\r\n]*\r\n")
_ALGORITHMS = frozenset({"sha1", "sha256", "sha512", "md5"})


def digest_problems(record: WarcRecord) -> list[str]:
    """What does not hold, in words; nothing where all holds or none is claimed. Revisits have no payload to check."""
    if record.kind == "revisit":
        return []
    problems = []
    claimed = record.get("warc-block-digest")
    if claimed and not _matches(claimed, record.block):
        problems.append(f"block digest failed: {claimed}")
    claimed = record.get("warc-payload-digest")
    if claimed and "warc-segment-number" not in dict(record.fields):
        payload = payload_of(record)
        if not _matches(claimed, payload) and not _matches(claimed, unchunked(payload)):
            problems.append(f"payload digest failed: {claimed}")
    return problems


def payload_of(record: WarcRecord) -> bytes:
    """The block without its HTTP head, where it has one."""
    if not record.get("content-type").lower().startswith("application/http"):
        return record.block
    head = _HEAD_END.search(record.block)
    return record.block[head.end() :] if head else b""


def unchunked(payload: bytes) -> bytes:
    """The payload without chunk framing, or as it is where it has none (whatever its headers say)."""
    parts: list[bytes] = []
    position = 0
    while found := _CHUNK_SIZE.match(payload, position):
        size = int(found[1], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(payload[found.end() : found.end() + size])
        position = found.end() + size + 2
    return payload


def _matches(claimed: str, data: bytes) -> bool:
    """The standard names no spelling: base 32 is usual, hexadecimal and base 64 (in both alphabets) are met."""
    algorithm, _, value = claimed.partition(":")
    name = algorithm.strip().lower().replace("-", "")
    if name not in _ALGORITHMS:
        return False
    digest = hashlib.new(name, data, usedforsecurity=False).digest()
    return value.strip() in _spellings(digest) or value.strip().upper() in _spellings(digest)


def _spellings(digest: bytes) -> set[str]:
    spelt = (base64.b32encode, base64.b16encode, base64.b64encode, base64.urlsafe_b64encode)
    return {encode(digest).decode("ascii") for encode in spelt}
