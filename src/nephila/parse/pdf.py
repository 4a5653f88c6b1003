"""Links out of PDFs (X4): a content extractor as a plugin may be one, and run as one: in a process of its own.

What is looked for: URI actions of link annotations and bookmarks, and URLs that stand in the text. Actions that lead to
another file (GoToR, Launch) are no links of the web. A file that cannot be opened is given what it most likely lacks
(`pdf_salvage`) and tried again; what still cannot be is searched for URIs as it lies there.

What must stay true: any bytes give an extract; http(s) URLs only, each once, without fragment, those of annotations
before those of the text. Time is bounded by `time_s` from one page to the next; within a page, by whoever runs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from nephila.model.page import Link
from nephila.model.plugin import PDF_LINKS, Document, Extract
from nephila.urls.parse import Base

from .pdf_salvage import repairs, uris_lying_about

PDF_TYPE = "application/pdf"
ANNOTATION, TEXT = "pdf", "pdf-text"
"""How links say where they were found (`Link.tag`)."""

MOST_LINKS = 20_000
"""Of one PDF."""
_HEADER_WITHIN = 1024
"""Bytes in which the header may stand behind garbage (ISO 32000-1, annex H, note 13 on 3.4.1)."""


@dataclass(frozen=True, slots=True)
class PdfBounds:
    """How much of a PDF is looked at."""

    time_s: float = 3.0
    max_pages: int = 2_000
    text: bool = True


DEFAULT_BOUNDS = PdfBounds()


@dataclass(slots=True)
class Found:
    """URIs as they stand in a PDF."""

    annotations: list[str]
    text: list[str]
    title: str = ""
    pages: int = 0
    detail: str = ""


class PdfLinks:
    """A `ContentExtractor` for PDFs."""

    name = PDF_LINKS
    media_types = (PDF_TYPE,)

    def __init__(
        self,
        bounds: PdfBounds = DEFAULT_BOUNDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bounds = bounds
        self._clock = clock

    def extract(self, document: Document) -> Extract:
        """The links of a PDF; with a word on what was wrong with it."""
        until = self._clock() + self._bounds.time_s
        found = read_pdf(document.body, self._bounds, lambda: self._clock() >= until)
        links = list(_links(document.url, found))
        counted = [sum(link.tag == kind for link in links) for kind in (ANNOTATION, TEXT)]
        return Extract(
            links=tuple(links),
            title=" ".join(found.title.split())[:500],
            counts=(
                ("links", len(links)),
                ("annotations", counted[0]),
                ("in_text", counted[1]),
                ("pages", found.pages),
            ),
            detail=found.detail,
        )


def read_pdf(body: bytes, bounds: PdfBounds, is_late: Callable[[], bool]) -> Found:
    """All that is found in a PDF of any state of repair."""
    from .pdf_pages import NeedsPasswordError, UnreadableError, read_pages  # noqa: PLC0415 - only where PDFs are read

    if b"%PDF-" not in body[:_HEADER_WITHIN]:
        return Found([], [], detail="no PDF")
    try:
        found = read_pages(body, bounds, is_late)
        if found.pages or found.detail:
            return found
    except NeedsPasswordError:
        return Found([], [], detail="needs a password")
    except UnreadableError:
        """Tried again below."""
    for repaired in repairs(body):
        if is_late():
            break
        try:
            found = read_pages(repaired, bounds, is_late)
        except (UnreadableError, NeedsPasswordError):
            continue
        if found.pages:
            found.detail = found.detail or "repaired"
            return found
    return Found(list(uris_lying_about(body, is_late)), [], detail="broken")


def _links(url: str, found: Found) -> Iterator[Link]:
    base = Base.parse(url)
    met: set[str] = set()
    tagged: Iterable[tuple[str, str]] = chain(
        ((uri, ANNOTATION) for uri in found.annotations), ((uri, TEXT) for uri in found.text)
    )
    for uri, tag in tagged:
        joined = base.join(uri.strip()) if base is not None else None
        link = "" if joined is None else joined.partition("#")[0]
        if link.startswith(("http://", "https://")) and link not in met and len(met) < MOST_LINKS:
            met.add(link)
            yield Link(link, tag, "", "")
