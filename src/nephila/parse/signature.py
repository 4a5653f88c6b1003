"""Two short names for what a page says: pages with the same text, and pages that differ in numbers and dates only.

The trap rules ask of every fetched page whether it brought anything new (T2). Bytes do not tell: a session id in every
link makes each copy of a page another one. So the text of links is left out, and what is left is hashed twice: whole,
and without the words that hold a digit or name a month or a day of the week, which is all that the pages of a calendar
differ in.

How: the links and what browsers do not show are taken out of the tree by the parser's own selector, the remaining
strings are read in one call, and one table turns ASCII punctuation into spaces. The title counts as text: it is all
that tells the pages of an application apart that is drawn by scripts.

What must stay true: equal texts give equal hashes, whatever their white space, case and punctuation; time and memory
are linear in the document, and bounded. The tree is taken apart: whoever reads it must be done.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from turbohtml import Element
from xxhash import xxh3_64_digest

LEFT_OUT = "a[href],script,style,noscript,option,textarea"
"""Links, what is no text, and what people choose from or write into. (Templates were taken out with the tree.)"""
_MAX_STRINGS = 20_000
_MAX_CHARACTERS = 200_000
"""Of the text of a page, our own choice: longer ones than any real page but whole books; the rest is not looked at."""

_PUNCTUATION = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_NO_LETTERS = b" \t\n\r\f\v" + _PUNCTUATION
_UPPER, _LOWER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz"
_LOWERED = bytes.maketrans(_UPPER, _LOWER)
_SHAPED = bytes.maketrans(_UPPER + _PUNCTUATION + b"123456789", _LOWER + b" " * len(_PUNCTUATION) + b"0" * 9)
"""One digit for all, so that words which hold one are found by looking for it alone."""

_OTHER_DIGITS = {zero + digit: str(digit) for zero in (0x660, 0x6F0) for digit in range(10)}
_OTHER_ONES = ("\u0661".encode(), "\u06f1".encode())
"""Arabic and Persian pages count in them; a page with numbers has a one among them, which is quickly looked for."""

_MONTHS = "january february march april may june july august september october november december"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_SHORT = "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun am pm"
_CALENDAR_WORDS = frozenset(f"{_MONTHS} {_DAYS} {_SHORT}".split())


class Signature(NamedTuple):
    """Eight bytes each; empty where there is no text at all."""

    text: bytes = b""
    shape: bytes = b""


def sign(root: Element) -> Signature:
    """The signature of the document under a root element; the document is taken apart by it."""
    root.remove(LEFT_OUT)
    return signature_of(" ".join(islice(root.stripped_strings, _MAX_STRINGS))[:_MAX_CHARACTERS])


def signature_of(text: str) -> Signature:
    """The signature of a text; its shape is that of no words where every word holds a digit."""
    written = text.encode("utf-8", "replace")
    if _OTHER_ONES[0] in written or _OTHER_ONES[1] in written:
        written = text.translate(_OTHER_DIGITS).encode("utf-8", "replace")
    bare = written.translate(_LOWERED, _NO_LETTERS)
    if not bare:
        return Signature()
    words = (
        written.translate(_SHAPED).decode().split()
    )  # as text again: looking for a digit in bytes takes ten times as long
    steady = [word for word in words if "0" not in word and word not in _CALENDAR_WORDS]
    return Signature(xxh3_64_digest(bare), xxh3_64_digest(" ".join(steady).encode()))
