"""Digests of an answer. Those that the archive writes are made along with that of the content, where that is cheap.

The processor's own instructions for SHA wait for each other; in C (`native/digests.c`) three digests take hardly longer
than one. What comes of them is noted on the answer, for whoever writes it down.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha1, sha256
from typing import NamedTuple, cast

from nephila.native import AVAILABLE, native

from .exchange import Fetched
from .noun import quick

_NOTED = ":digests"
"""Where they are noted (`Fetched.memo`): one behind the other, a character a byte."""


@quick
class Digests(NamedTuple):
    """Of one answer."""

    body: bytes
    """SHA-256."""
    payload: bytes
    """SHA-1, as archives compare it."""
    block: bytes
    """SHA-1 of head and payload."""


def plain_digests(body: bytes, head: bytes, payload: bytes) -> Digests:
    """All of them, one after the other."""
    return Digests(sha256(body).digest(), plain_sha1(payload), plain_sha1(head + payload))


def content_digest(fetched: Fetched) -> bytes:
    """SHA-256 of the content."""
    if (noted := noted_digests(fetched)) is not None:
        return noted.body
    found = native.answer_digests(fetched.body, fetched.head, fetched.payload) if AVAILABLE else None
    if found is None:
        return sha256(fetched.body).digest()
    fetched.header("")  # so that headers have their place in the memo
    fetched.memo[_NOTED] = b"".join(found).decode("latin-1")
    return found[0]


def noted_digests(fetched: Fetched) -> Digests | None:
    """All of them, where they were made with that of the content."""
    noted = fetched.memo.get(_NOTED)
    if noted is None:
        return None
    whole = noted.encode("latin-1")
    return Digests(whole[:32], whole[32:52], whole[52:])


def plain_sha1(data: bytes) -> bytes:
    """SHA-1, which archives go by: for comparing, not against forgery."""
    return sha1(data, usedforsecurity=False).digest()


HAS_INSTRUCTIONS = AVAILABLE and native.sha1(b"") is not None
"""Whether the processor has instructions for it that the extension uses; this does not change while it runs."""

sha1_of = cast("Callable[[bytes], bytes]", native.sha1) if HAS_INSTRUCTIONS else plain_sha1
