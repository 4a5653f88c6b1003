"""Character references to characters, exactly as the HTML standard says (13.2.5.72 and on).

Python's own `html.unescape` reads text; attribute values have one more rule, that a name without its semicolon is left
alone before a letter, a digit or an equals sign: so `?a=1&copy=2` stays what it is.

What must stay true: what is no reference stays as it is; never longer than what was written by more than half.
"""

from __future__ import annotations

import re
from html.entities import html5

NAMED = {name[:-1]: value for name, value in html5.items() if name.endswith(";")}
LEGACY = {name: value for name, value in html5.items() if not name.endswith(";")}
"""Names that count without a semicolon, too."""
LONGEST_LEGACY = max(map(len, LEGACY))

C1 = {
    0x80: 0x20AC, 0x82: 0x201A, 0x83: 0x0192, 0x84: 0x201E, 0x85: 0x2026, 0x86: 0x2020, 0x87: 0x2021, 0x88: 0x02C6,
    0x89: 0x2030, 0x8A: 0x0160, 0x8B: 0x2039, 0x8C: 0x0152, 0x8E: 0x017D, 0x91: 0x2018, 0x92: 0x2019, 0x93: 0x201C,
    0x94: 0x201D, 0x95: 0x2022, 0x96: 0x2013, 0x97: 0x2014, 0x98: 0x02DC, 0x99: 0x2122, 0x9A: 0x0161, 0x9B: 0x203A,
    0x9C: 0x0153, 0x9E: 0x017E, 0x9F: 0x0178,
}  # fmt: skip
"""Numbers that stand for what windows-1252 has there (HTML standard 13.2.5.80)."""

_REFERENCE = re.compile(r"&(?:#(?:[xX]([0-9a-fA-F]++)|([0-9]++));?+|([0-9a-zA-Z]++)(;?+))")
_REPLACEMENT = 0xFFFD


def _numbered(digits: str, radix: int) -> str:
    significant = digits.lstrip("0")
    number = int(significant or "0", radix) if len(significant) <= 8 else _REPLACEMENT
    if number == 0 or number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        number = _REPLACEMENT
    return chr(C1.get(number, number))


def _named(name: str, semicolon: str, following: str, *, attribute: bool) -> str:
    if semicolon and (value := NAMED.get(name)) is not None:
        return value
    for length in range(min(LONGEST_LEGACY, len(name)), 1, -1):
        if (value := LEGACY.get(name[:length])) is not None:
            if attribute and (length < len(name) or (not semicolon and following == "=")):
                break
            return value + name[length:] + semicolon
    return f"&{name}{semicolon}"


def _decoded(text: str, *, attribute: bool) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1] is not None:
            return _numbered(match[1], 16)
        if match[2] is not None:
            return _numbered(match[2], 10)
        return _named(match[3], match[4], text[match.end() : match.end() + 1], attribute=attribute)

    return _REFERENCE.sub(character, text)


def decoded_text(text: str) -> str:
    """Text between tags with its references as characters."""
    return _decoded(text, attribute=False) if "&" in text else text


def decoded_value(value: str) -> str:
    """An attribute's value with its references as characters."""
    return _decoded(value, attribute=True) if "&" in value else value
