"""XML as it is found in the wild, in a stream: tags and text out of pieces of any size (X3, Q5).

Sitemaps and feeds are made by plug-ins and templates: an ampersand is not escaped, an HTML entity is not declared, a
tag is not closed, the file ends in the middle. A conforming parser stops at the first of these and loses the rest, and
is open to what a document type may declare. This one knows no well-formedness: it tells tags and text apart, and no
more. Whoever reads them decides what is inside of what.

What must stay true: time is linear in the input, whatever it is; no more than `MAX_TAG` characters are carried from one
piece to the next; nothing that a document declares is ever expanded or loaded. There are no entities but the
predefined ones, numbers and those of HTML, and none of them grows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html.entities import html5

MAX_TAG = 65_536
"""Characters of a tag, or of the text before one; longer ones are cut. A URL may have 32,000 by the settings."""

_MARK = re.compile(r"<(?:(/?)([^\s<>/!?][^\s<>/]*+)([^<>]*+)>|(!--)|(!\[CDATA\[)|(![A-Za-z])|(\?))")
_REFERENCE = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{0,31}));")
_ATTRIBUTE = re.compile(r"""(?<![^\s=/"'<>])([^\s=/"'<>]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'<>]++))""")
"""A name is looked at from its beginning only: one that no value follows may be as long as a tag."""
_COMMENT_END = re.compile("-->")
_TAG_END = re.compile(">")
_WORD_END = re.compile(r"[\[>]")
"""Of ``<!DOCTYPE urlset [``: declarations follow."""
_DECLARED_END = re.compile(r"\]\s*>")
_LONGEST_END = 16
_LATEST_POINT = 0x10FFFF

START, END, TEXT = "start", "end", "text"
Token = tuple[str, str, str]
"""What it is, the name of the tag in its own spelling, and its attributes (of a start) or the text, decoded."""
Take = Callable[[Token], None]
Skim = Callable[[str, int], int]


class MarkupStream:
    """Takes text piece by piece; hands out tokens."""

    def __init__(self, take: Take, skim: Skim | None = None) -> None:
        """`take` is given each token in turn.

        `skim` may read ahead where it knows what follows: it is given the text and a place between two tokens, and
        answers with the place up to which it has read.
        """
        self._take = take
        self._skim = skim
        self._rest = ""
        self._until: re.Pattern[str] | None = None
        """What ends the stretch that is passed over at present: a comment, a declaration."""
        self._in_cdata = False
        self._declares = False
        """The document declares entities: references to them mean nothing to us."""
        self.over = False
        """Whoever takes the tokens wants no more."""

    def feed(self, piece: str) -> None:
        """Hand out the tokens that are whole with this piece."""
        text, self._rest = self._rest + piece, ""
        at = 0
        while at >= 0 and not self.over:
            if self._until is not None:
                at = self._passed(text, at, self._until)
            elif self._in_cdata:
                at = self._verbatim(text, at)
            else:
                at = self._next(text, at)

    def close(self) -> None:
        """There is no more: hand out the text before the break."""
        rest, self._rest = self._rest, ""
        broken = rest.find("<")
        if broken > 0 and self._until is None and not self._in_cdata:  # else the text itself may be cut
            self._take((TEXT, "", self._decoded(rest[:broken])))

    def _next(self, text: str, at: int) -> int:
        """Hand out what comes next, a tag or text; the place behind it, -1 at the end of the piece."""
        if self._skim is not None:
            at = self._skim(text, at)
        mark = _MARK.search(text, at)
        if mark is None:
            self._keep(text, at)
            return -1
        if mark.start() > at:
            self._take((TEXT, "", self._decoded(text[at : mark.start()])))
        closing, name, inside, comment, cdata, declaration, _ = mark.groups()
        if name:
            return self._tag(text, mark.end(), name, inside, closing=bool(closing))
        if cdata:
            self._in_cdata = True
        else:
            self._until = _COMMENT_END if comment else _WORD_END if declaration else _TAG_END
        return mark.end()

    def _tag(self, text: str, at: int, name: str, inside: str, *, closing: bool) -> int:
        if closing:
            self._take((END, name, ""))
            return at
        if inside.count('"') % 2 or inside.count("'") % 2:
            inside, at = _longer(text, inside, at)
        self._take((START, name, inside))
        if inside.endswith("/"):
            self._take((END, name, ""))
        return at

    def _passed(self, text: str, at: int, until: re.Pattern[str]) -> int:
        """The end of the stretch that is passed over; -1 while it is not in sight."""
        end = until.search(text, at)
        if end is None:
            self._rest = text[max(at, len(text) - _LONGEST_END) :]
            return -1
        if end[0] == "[":
            self._declares, self._until = True, _DECLARED_END
        else:
            self._until = None
        return end.end()

    def _verbatim(self, text: str, at: int) -> int:
        """Text up to the end of its section; where that is not in sight, all but what may be half of it."""
        end = text.find("]]>", at)
        if end >= 0:
            self._take((TEXT, "", text[at:end]))
            self._in_cdata = False
            return end + 3
        keep = max(at, len(text) - 2)
        if keep > at:
            self._take((TEXT, "", text[at:keep]))
        self._rest = text[keep:]
        return -1

    def _keep(self, text: str, at: int) -> None:
        """Keep what may be half a tag, with the text before it: a reference may be cut as well."""
        if len(text) - at <= MAX_TAG:
            self._rest = text[at:]
            return
        start = text.rfind("<", at)
        if start < 0 or len(text) - start > MAX_TAG:
            start = max(at, len(text) - 64)
        self._take((TEXT, "", self._decoded(text[at:start])))
        self._rest = text[start:]

    def _decoded(self, text: str) -> str:
        if "&" not in text:
            return text
        return _REFERENCE.sub(_declared_character if self._declares else _character, text)


def attributes(inside: str) -> dict[str, str]:
    """The attributes of a start tag, names in lower case, the first of each."""
    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(inside):
        value = next((value for value in values if value), "")
        found.setdefault(name.lower(), _REFERENCE.sub(_character, value) if "&" in value else value)
    return found


def _character(match: re.Match[str]) -> str:
    """What a reference stands for; one that nobody knows is text."""
    decimal, hexadecimal, name = match.groups()
    if name:
        return html5.get(name + ";", match[0])
    point = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(point) if 0 < point <= _LATEST_POINT and not 0xD800 <= point < 0xE000 else ""


def _declared_character(match: re.Match[str]) -> str:
    """The same in a document that declares entities of its own: what nobody knows is one of them, and is nothing."""
    found = _character(match)
    return "" if found == match[0] else found


def _longer(text: str, inside: str, at: int) -> tuple[str, int]:
    """A tag of which a ``>`` stood in quotes: up to the one that ends it, if that is near."""
    limit = min(len(text), at + 2_048)
    double, single = inside.count('"') & 1, inside.count("'") & 1
    begin = at
    while (end := text.find(">", begin, limit)) >= 0:
        part = text[begin:end]
        double, single = double ^ (part.count('"') & 1), single ^ (part.count("'") & 1)
        if not double and not single:
            return f"{inside}>{text[at:end]}", end + 1
        begin = end + 1
    return inside, at
