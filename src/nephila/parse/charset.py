"""Which character encoding a page is in, decided as browsers do, and its text (X1).

In this order: byte order mark, Content-Type header, declaration in the first 1,024 bytes; then, for a page that says
nothing there: what is valid UTF-8 and more than ASCII is UTF-8, a declaration further down counts, pure ASCII is
windows-1252 (a browser's fall-back, and the same text), and what is left is guessed by turbohtml's detector (character
pair frequencies, made after Firefox's), which itself ends at windows-1252.

What must stay true: the answer is a name of the WHATWG Encoding Standard; `decode` takes every such name and any
bytes, and never raises.
"""

from __future__ import annotations

import codecs
import re

from turbohtml.detect import detect

from .labels import encoding_of
from .media import media_type_in
from .prescan import PRESCAN_BYTES, byte_order_mark, declared_encoding

_FALLBACK = "windows-1252"
_LOOK_BYTES = 32_768
"""How far a late declaration is looked for, and what the detector reads; our own choice: the whole head of almost every
page, and the detector, which costs 0.1 us a byte, is no more often right with all of it."""
_LATE_META = re.compile(rb"<meta[^>]{0,200}charset", re.IGNORECASE)
"""Without which there is none: it saves the careful look."""


def _is_utf8(body: bytes) -> bool:
    """Whether the bytes are UTF-8, a character cut off at their end allowed."""
    try:
        codecs.utf_8_decode(body, "strict", False)  # not final: more bytes might follow
    except UnicodeDecodeError:
        return False
    return True


def _declared_late(head: bytes) -> str | None:
    return declared_encoding(head) if _LATE_META.search(head) else None


def _undeclared(body: bytes) -> str:
    """The encoding of a page that does not say it where browsers look first."""
    ascii_only = body.isascii()
    if not ascii_only and _is_utf8(body):
        return "UTF-8"
    head = body[:_LOOK_BYTES]
    if late := _declared_late(head):
        return late
    if ascii_only and b"\x1b" not in body:  # an escape may switch to ISO-2022-JP
        return _FALLBACK
    return detect(head).encoding or _FALLBACK


def _stated(body: bytes, content_type: str) -> str | None:
    """What a page says of its encoding where browsers look first."""
    if marked := byte_order_mark(body):
        return marked
    media = media_type_in(content_type)
    if media is not None and (name := encoding_of(media.parameters.get("charset", ""))):
        return name
    return declared_encoding(body[:PRESCAN_BYTES])


def decide_charset(body: bytes, content_type: str) -> str:
    """The encoding of a page, by its WHATWG name; `content_type` is its header, empty when there is none."""
    return _stated(body, content_type) or _undeclared(body)


def query_charset(body: bytes, content_type: str, charset: str) -> str:
    """The encoding that the queries of a page's links are written in: its own, if that was more than the fall-back.

    Of a page in ASCII that names no encoding, a browser takes its user's; what stands there for want of one would make
    numbers of all characters that its links write as references.
    """
    if charset != _FALLBACK or not body.isascii():
        return charset
    return _stated(body, content_type) or _declared_late(body[:_LOOK_BYTES]) or "UTF-8"


def decode(body: bytes, charset: str) -> str:
    """The text of a page in the encoding of that WHATWG name, byte order mark taken off, bad bytes as U+FFFD."""
    # Not Python's codecs for the old encodings: they refuse bytes that browsers read, e.g. five of windows-1252.
    codec = "utf-8" if charset == "UTF-8" else f"whatwg-{charset}"
    return body.decode(codec, "replace").removeprefix("\ufeff")
