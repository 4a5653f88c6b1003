"""The queries of a page's links in the page's own encoding, as browsers send them (X1).

A link to `?q=café` on a page in windows-1252 asks for `?q=caf%E9`: the URL standard takes everything for UTF-8 but the
query, which it percent-encodes in the encoding of the document (5.4, *percent-encode after encoding*), because that is
what the site behind it has always read. Characters that the encoding does not have go as numbers, `&#8364;` encoded.

The encoders are the decoders turned round, by the rules of the Encoding Standard on which of two spellings counts; each
table is made when a page first needs it, in some milliseconds.

What must stay true: the answer of the standard for any text, in time linear in its length; ASCII stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import chain
from unicodedata import normalize

from .charset import decode

AS_UTF8 = frozenset({"UTF-8", "UTF-16LE", "UTF-16BE", "replacement"})
"""Encodings of pages whose queries are UTF-8 (Encoding Standard 4.3, *get an output encoding*)."""

_LEADS: dict[str, tuple[int, ...]] = {
    "GBK": tuple(range(0x81, 0xFF)),
    "gb18030": tuple(range(0x81, 0xFF)),
    "Big5": tuple(range(0xA1, 0xFF)),
    "EUC-KR": tuple(range(0x81, 0xFF)),
    "EUC-JP": (0x8E, *range(0xA1, 0xFF)),
    # Not 0xED and 0xEE, which hold again what other rows do, nor what is left to users.
    "Shift_JIS": (*range(0x81, 0xA0), *range(0xE0, 0xED), 0xEF, *range(0xFA, 0xFD)),
}
"""First bytes of the pairs that are written."""
_LAST_SPELLING = frozenset("\u2550\u255e\u2561\u256a\u5341\u5345")
"""Characters of Big5 of whose two spellings the last counts, not the first."""
_ENCODED = frozenset(b"\"#'<>")
"""Printable ASCII that is percent-encoded in queries: it may be a byte of another character (URL standard 1.3)."""


def _pairs(charset: str) -> Iterator[tuple[str, bytes]]:
    """What each pair of bytes stands for, in order."""
    for lead in _LEADS.get(charset, ()):
        pairs = [bytes((lead, trail)) for trail in range(0x40, 0xFF)]
        # Decoded a row at a time, a line a pair.
        yield from zip(decode(b"\n".join(pairs), charset).split("\n"), pairs, strict=True)


def _encoder(charset: str) -> dict[str, bytes]:
    """The bytes of every character beyond ASCII that the encoding has a table entry for."""
    first = 0x81 if charset == "gb18030" else 0x80  # the euro sign is one byte in GBK alone
    alone = ((decode(bytes((byte,)), charset), bytes((byte,))) for byte in range(first, 0x100))
    table: dict[str, bytes] = {}
    for character, raw in chain(alone, _pairs(charset)):
        if len(character) == 1 and character != "\ufffd":
            if character in _LAST_SPELLING and charset == "Big5":
                table[character] = raw
            table.setdefault(character, raw)
    if charset in {"EUC-JP", "Shift_JIS"}:
        table |= {"\xa5": b"\\", "\u203e": b"~", "\u2212": table["\uff0d"]}
    return table


def _encoder_of_mail() -> dict[str, bytes]:
    """ISO-2022-JP: the characters of EUC-JP with seven bits, behind a switch to them and before one back to ASCII."""
    two_bytes = {character: raw for character, raw in _encoder("EUC-JP").items() if raw[0] > 0x8E}
    narrow = {chr(code): normalize("NFKC", chr(code)) for code in range(0xFF61, 0xFF9E)}
    narrow |= {"\uff9e": "\u309b", "\uff9f": "\u309c"}
    two_bytes |= {character: two_bytes[wide] for character, wide in narrow.items()}
    return {character: b"\x1b$B%c%c\x1b(B" % (raw[0] & 0x7F, raw[1] & 0x7F) for character, raw in two_bytes.items()} | {
        "\xa5": b"\x1b(J\\\x1b(B",
        "\u203e": b"\x1b(J~\x1b(B",
    }


def _percent_encoded(raw: bytes) -> str:
    """The bytes in a query; an escape is left to the URL parser."""
    return "".join([f"%{byte:02X}" if byte > 0x7E or byte in _ENCODED else chr(byte) for byte in raw])


class _Spellings(dict[int, str | int]):
    """What each character of a query becomes, by its number."""

    def __init__(self, charset: str) -> None:
        encoder = _encoder_of_mail() if charset == "ISO-2022-JP" else _encoder(charset)
        super().__init__((code, code) for code in range(0x80))
        self.update((ord(character), _percent_encoded(raw)) for character, raw in encoder.items())
        self._whole = charset == "gb18030"

    def __missing__(self, code: int) -> str:
        if self._whole:  # it has four bytes for every character that has no two
            with suppress(UnicodeError):
                return _percent_encoded(chr(code).encode("gb18030"))
        return f"%26%23{code}%3B"


@cache
def _spellings(charset: str) -> _Spellings:
    return _Spellings(charset)


class Queries:
    """How the links of one page spell their queries."""

    __slots__ = ("_charset", "_charset_of")

    def __init__(self, charset_of: Callable[[], str]) -> None:
        """`charset_of` is asked when the first link is met for which it matters: nearly all pages have none."""
        self._charset = ""
        self._charset_of = charset_of

    def __call__(self, href: str) -> str:
        """The link with its query as the page's encoding has it."""
        before, mark, fragment = href.partition("#")
        path, question, query = before.partition("?")
        if query.isascii():
            return href
        self._charset = self._charset or self._charset_of()
        if self._charset in AS_UTF8:
            return href
        spelled = query.translate(_spellings(self._charset)).replace("\x1b(B\x1b$B", "")
        return f"{path}{question}{spelled}{mark}{fragment}"
