"""What can be had of a PDF that cannot be opened: it was cut on its way, or its last pages were never written.

PDFium rebuilds a table of cross-references that is wrong or missing, as long as it finds a trailer that names the root.
So a trailer is added that names the catalogue found among the objects, or one that is made up of all pages found. What
lies in object streams is not found so: those are unpacked and searched for URIs as plain text.

What must stay true: linear in the size of the file, and bounded in what is unpacked.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator

_OBJECT = re.compile(rb"(\d{1,10})[ \t\r\n\f\0]{1,8}(\d{1,5})[ \t\r\n\f\0]{1,8}obj\b")
_KIND = re.compile(rb"/Type[ \t\r\n\f\0]{0,8}/(Catalog|Page)(?![A-Za-z])")
_URI = re.compile(rb"/URI[ \t\r\n\f\0]{0,8}([(<])")
_STREAM = re.compile(rb"stream\r?\n")
_SPECIAL = re.compile(rb"\\.|[()]", re.DOTALL)
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|\r\n|.)", re.DOTALL)
_OCTAL = frozenset(bytes((digit,)) for digit in b"01234567")
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f", b"\n": b"", b"\r": b"", b"\r\n": b""}

_OBJECT_WITHIN = 8_192
"""Bytes before a type in which its object must begin."""
MOST_PAGES = 5_000
LARGEST_NUMBER = 4_000_000
"""PDFium takes no object of a higher one."""
MOST_STREAMS = 5_000
LARGEST_STREAM = 4_000_000
UNPACKED_IN_ALL = 32_000_000
LONGEST_URI = 8_192


def repairs(body: bytes) -> Iterator[bytes]:
    """The file with a trailer that it may lack: for the catalogue that is in it, then for one that is made up."""
    if b"/Encrypt" in body:
        return  # without its own trailer nothing of it can be read
    catalogue, pages = _roots(body)
    if catalogue:
        yield body + _trailer(catalogue)
    if pages:
        numbers = (int(found[1]) for found in _OBJECT.finditer(body))
        first = max((number for number in numbers if number < LARGEST_NUMBER), default=0) + 1
        kids = b" ".join(page + b" R" for page in pages)
        made = b"\n%d 0 obj\n<< /Type /Pages /Count %d /Kids [%b] >>\nendobj\n" % (first, len(pages), kids)
        made += b"%d 0 obj\n<< /Type /Catalog /Pages %d 0 R >>\nendobj\n" % (first + 1, first)
        yield body + made + _trailer(b"%d 0" % (first + 1))


def _trailer(root: bytes) -> bytes:
    return b"\nendobj\ntrailer\n<< /Root %b R >>\nstartxref\n0\n%%%%EOF\n" % root


def _roots(body: bytes) -> tuple[bytes, list[bytes]]:
    """The last catalogue and the pages, each as ``number generation``."""
    catalogue, pages = b"", dict[bytes, None]()
    for kind in _KIND.finditer(body):
        near = body[max(0, kind.start() - _OBJECT_WITHIN) : kind.start()]
        at = near.rfind(b"obj")
        named = _OBJECT.search(near[max(0, at - 32) : at + 3]) if at >= 0 else None
        if named is None:
            continue
        name = b"%d %d" % (int(named[1]), int(named[2]))
        if kind[1] == b"Catalog":
            catalogue = name
        elif len(pages) < MOST_PAGES:
            pages[name] = None
    return catalogue, list(pages)


def uris_lying_about(body: bytes, is_late: Callable[[], bool]) -> Iterator[str]:
    """URIs of actions, wherever they lie: in the file itself or in a stream of it."""
    if b"/Encrypt" in body:
        return
    yield from _uris(body)
    left = UNPACKED_IN_ALL
    for number, start in enumerate(_STREAM.finditer(body)):
        if number >= MOST_STREAMS or left <= 0 or is_late():
            return
        unpacked = _unpacked(body, start.end(), min(left, LARGEST_STREAM))
        left -= len(unpacked) + 64
        yield from _uris(unpacked)


def _unpacked(body: bytes, start: int, most: int) -> bytes:
    if body[start : start + 1] not in (b"x", b"h", b"H", b"X", b"8", b"\x18", b"("):  # how deflated streams begin
        return b""
    inflating = zlib.decompressobj()
    try:
        return inflating.decompress(memoryview(body)[start : start + LARGEST_STREAM], most)
    except zlib.error:
        return b""


def _uris(data: bytes) -> Iterator[str]:
    at = 0
    while (found := _URI.search(data, at)) is not None:
        window = data[found.end() : found.end() + LONGEST_URI]
        raw, taken = _literal(window) if found[1] == b"(" else _hexadecimal(window)
        at = found.end() + taken  # what was looked at as a string is not looked at again: else it would be quadratic
        if raw:
            yield raw.decode("utf-8", "replace")


def _literal(window: bytes) -> tuple[bytes, int]:
    """A string in parentheses, nested ones and escapes included, and its length; nothing without an end in sight."""
    depth = 1
    for special in _SPECIAL.finditer(window):
        if special[0] == b"(":
            depth += 1
        elif special[0] == b")":
            depth -= 1
            if not depth:
                return _ESCAPE.sub(_unescaped, window[: special.start()]), special.end()
    return b"", len(window)


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if code[:1] in _OCTAL:
        return bytes((int(code, 8) & 255,))
    return _ESCAPED.get(code, code)


def _hexadecimal(window: bytes) -> tuple[bytes, int]:
    """The same of a string in hexadecimal digits."""
    digits, end, _ = window.partition(b">")
    taken, digits = len(digits), digits.translate(None, b" \t\r\n\f\0")
    if not end or re.fullmatch(rb"[0-9A-Fa-f]*", digits) is None:
        return b"", taken
    return bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode()), taken
