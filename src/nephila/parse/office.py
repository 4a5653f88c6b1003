"""Links out of office documents (X4): a content extractor as a plugin may be one, run in a process of its own.

Documents of Office Open XML (docx, xlsx, pptx) and OpenDocument (odt, ods, odp) are packages of XML. Links stand

- in the relationships of a part (``*.rels``), as those that lead outside;
- in fields: ``HYPERLINK "https://..."`` as an instruction of a text, or as a formula of a cell;
- in OpenDocument as ``xlink:href``, of text, cells and shapes.

Images, templates and other documents that are linked are no pages, and are left out; packages within packages are not
opened. The XML is read by `markup_stream`, which expands and loads nothing.

What must stay true: any bytes give an extract; http(s) URLs only, each once, without fragment, in the order of the
parts. What is unpacked is bounded in all, time by `time_s` from piece to piece.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from nephila.model.page import Link
from nephila.model.plugin import OFFICE_LINKS, Document, Extract
from nephila.urls.parse import Base

from .markup_stream import END, START, TEXT, MarkupStream, Token, attributes
from .package import Package

_OPEN_XML = "application/vnd.openxmlformats-officedocument."
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
OFFICE_TYPES = {
    "docx": f"{_OPEN_XML}wordprocessingml.document",
    "dotx": f"{_OPEN_XML}wordprocessingml.template",
    "docm": "application/vnd.ms-word.document.macroenabled.12",
    "xlsx": f"{_OPEN_XML}spreadsheetml.sheet",
    "xltx": f"{_OPEN_XML}spreadsheetml.template",
    "xlsm": "application/vnd.ms-excel.sheet.macroenabled.12",
    "pptx": f"{_OPEN_XML}presentationml.presentation",
    "ppsx": f"{_OPEN_XML}presentationml.slideshow",
    "potx": f"{_OPEN_XML}presentationml.template",
    "pptm": "application/vnd.ms-powerpoint.presentation.macroenabled.12",
    "odt": f"{_OPEN_DOCUMENT}text",
    "ods": f"{_OPEN_DOCUMENT}spreadsheet",
    "odp": f"{_OPEN_DOCUMENT}presentation",
    "odg": f"{_OPEN_DOCUMENT}graphics",
}
"""By the endings of their names."""
TAG = "office"
"""How links say where they were found (`Link.tag`)."""
MOST_LINKS = 20_000
_LONGEST_FIELD = 8_192
_HYPERLINK = re.compile(r"""\bHYPERLINK\s*+\(?\s*+["\u201c]([^"\u201d]{1,4096})["\u201d]""", re.IGNORECASE)
_INSTRUCTION = "instrtext"
_FIELDS = frozenset({_INSTRUCTION, "f", "formula"})
"""Elements whose text may be a field: of Word, and formulas of cells in two spellings of the standard."""
_PARTS = re.compile(
    r"(?:.*/)?_rels/[^/]*\.rels|word/(?:document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml"
    r"|xl/worksheets/[^/]*\.xml|(?:content|styles)\.xml|docProps/core\.xml|meta\.xml",
    re.IGNORECASE,
)
_TITLES = frozenset({"dc:title"})


@dataclass(frozen=True, slots=True)
class OfficeBounds:
    """How much of a document is looked at."""

    time_s: float = 3.0
    max_unpacked_bytes: int = 64_000_000


DEFAULT_BOUNDS = OfficeBounds()


@dataclass(slots=True)
class _Found:
    """Targets as they stand in a document."""

    targets: dict[str, None] = field(default_factory=dict)
    title: str = ""

    def add(self, target: str) -> None:
        if len(self.targets) < MOST_LINKS:
            self.targets[target] = None


class OfficeLinks:
    """A `ContentExtractor` for office documents."""

    name = OFFICE_LINKS
    media_types = tuple(OFFICE_TYPES.values())

    def __init__(self, bounds: OfficeBounds = DEFAULT_BOUNDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._bounds = bounds
        self._clock = clock

    def extract(self, document: Document) -> Extract:
        """The links of a document; with a word on what was wrong with it."""
        until = self._clock() + self._bounds.time_s
        found, parts, detail = read_office(
            document.body, self._bounds.max_unpacked_bytes, lambda: self._clock() >= until
        )
        links = tuple(_links(document.url, found.targets))
        return Extract(
            links=links,
            title=" ".join(found.title.split())[:500],
            counts=(("links", len(links)), ("parts", parts)),
            detail=detail,
        )


def read_office(body: bytes, max_bytes: int, is_late: Callable[[], bool]) -> tuple[_Found, int, str]:
    """What is found in a document of any state of repair, in how many parts, and what was wrong."""
    found, parts = _Found(), 0
    if b"PK\x03\x04" not in body[:4096]:
        return found, 0, "no package"
    package = Package(body, max_bytes)
    for entry in package.entries(lambda name: _PARTS.fullmatch(name) is not None):
        parts += 1
        reader = _PartReader(found)
        stream = MarkupStream(reader.take)
        for piece in package.pieces(entry):
            if is_late():
                return found, parts, "takes too long"
            stream.feed(_decoded(piece))
        stream.close()
    if package.is_cut:
        return found, parts, "more than is unpacked, or broken"
    return found, parts, "" if package.is_whole else "broken"


def _decoded(piece: bytes) -> str:
    """Parts are in UTF-8; one that is not loses what is not ASCII, which no target needs."""
    return piece.decode("utf-8", "replace")


class _PartReader:
    """Takes the tokens of one part."""

    def __init__(self, found: _Found) -> None:
        self._found = found
        self._inside = ""
        """The element whose text is listened to."""
        self._said = ""
        """What it has said; an instruction may be cut into several runs, which are put together."""

    def take(self, token: Token) -> None:
        """One more token."""
        kind, name, text = token
        if kind == TEXT:
            if self._inside and len(self._said) < _LONGEST_FIELD:
                self._said += text[:_LONGEST_FIELD]
            return
        plain = name.rpartition(":")[2].lower()
        if kind == START:
            self._start(name.lower(), plain, text)
        elif kind == END and plain == self._inside:
            self._end(plain)

    def _start(self, name: str, plain: str, inside: str) -> None:
        if plain in _FIELDS or name in _TITLES:
            self._said = self._said if plain == _INSTRUCTION else ""
            self._inside = plain
        elif plain == "fldchar":
            self._said = ""  # another field begins or ends
        elif plain == "relationship":
            given = attributes(inside)
            if given.get("targetmode", "").lower() == "external" and given.get("type", "").endswith("/hyperlink"):
                self._found.add(given.get("target", ""))
        elif plain in {"a", "event-listener"} and "href" in inside:
            # A way up leads out of the package first.
            self._found.add(attributes(inside).get("xlink:href", "").removeprefix("../"))
        elif "HYPERLINK" in inside.upper():
            for value in attributes(inside).values():
                self._fields(value)

    def _end(self, plain: str) -> None:
        self._inside = ""
        if plain == "title":
            self._found.title = self._found.title or self._said
        elif not self._fields(self._said) and plain == _INSTRUCTION:
            return  # the rest of it may come
        self._said = ""

    def _fields(self, text: str) -> bool:
        targets = _HYPERLINK.findall(text)
        for target in targets:
            self._found.add(target)
        return bool(targets)


def _links(url: str, targets: dict[str, None]) -> Iterator[Link]:
    base = Base.parse(url)
    met: set[str] = set()
    for target in targets:
        if not target or target.startswith("#"):
            continue  # a place in the document itself
        joined = base.join(target.strip()) if base is not None else None
        link = "" if joined is None else joined.partition("#")[0]
        if link.startswith(("http://", "https://")) and link not in met:
            met.add(link)
            yield Link(link, TAG, "", "")
