"""Decoding an answer that was stored: the same steps that it went through when it came off the wire."""

from __future__ import annotations

from .answer import AnswerReader, Limits
from .coding import Decoded, codings_of, decode


def decode_payload(head: bytes, payload: bytes, limit: int) -> bytes:
    """The body of a stored answer, at most `limit` bytes; of a payload that was cut, what can be decoded."""
    reader = AnswerReader(Limits(header_bytes=len(head) + 1, body_bytes=len(payload) + 1))
    reader.feed(head + payload)
    reader.end()
    if reader.head is None:
        return b""
    decoded = decode(codings_of(reader.head.values("content-encoding")), reader.content(), limit)
    return decoded.body if isinstance(decoded, Decoded) else b""
