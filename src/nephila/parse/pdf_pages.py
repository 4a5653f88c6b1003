"""PDFs through PDFium, page by page: the only place that knows it.

PDFium is called through its own functions (`pypdfium2.raw`), because the comfortable ones have no links of annotations.
Everything that is opened is closed again, whatever comes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pypdfium2.raw as pdfium  # type: ignore[import-untyped]

from .pdf import Found, PdfBounds

_PASSWORD_ERROR = 4
"""FPDF_ERR_PASSWORD"""
LONGEST_URI = 8_192
MOST_URIS = 50_000
MOST_BOOKMARKS = 10_000
_CUT = "not all of it was looked at"


class UnreadableError(Exception):
    """It cannot be opened."""


class NeedsPasswordError(Exception):
    """It is encrypted under a password that we do not have."""


_begun = False


def _begin() -> None:
    global _begun  # noqa: PLW0603 - a library of C, of which there is one in a process
    if not _begun:
        pdfium.FPDF_InitLibrary()
        _begun = True


def read_pages(body: bytes, bounds: PdfBounds, is_late: Callable[[], bool]) -> Found:
    """What is found on the pages. Raises `UnreadableError` or `NeedsPasswordError`."""
    _begin()
    with ExitStack() as stack:
        document = pdfium.FPDF_LoadMemDocument64(body, len(body), None)
        if not document:
            if pdfium.FPDF_GetLastError() == _PASSWORD_ERROR:
                raise NeedsPasswordError
            raise UnreadableError
        stack.callback(pdfium.FPDF_CloseDocument, document)
        count = pdfium.FPDF_GetPageCount(document)
        found = Found(list(_bookmarks(document)), [], _title(document))
        for number in range(min(count, bounds.max_pages)):
            if is_late() or len(found.annotations) + len(found.text) > MOST_URIS:
                found.detail = _CUT
                break
            _read_page(document, number, found, text=bounds.text)
            found.pages += 1
        if count > bounds.max_pages:
            found.detail = _CUT
    return found


def _read_page(document: Any, number: int, found: Found, *, text: bool) -> None:  # noqa: ANN401 - a handle of PDFium
    page = pdfium.FPDF_LoadPage(document, number)
    if not page:
        return
    try:
        found.annotations.extend(_annotations(document, page))
        if text:
            found.text.extend(_in_text(page))
    finally:
        pdfium.FPDF_ClosePage(page)


def _annotations(document: Any, page: Any) -> Iterator[str]:  # noqa: ANN401 - as above
    at, link, seen = ctypes.c_int(0), pdfium.FPDF_LINK(), 0
    while seen < MOST_URIS and pdfium.FPDFLink_Enumerate(page, ctypes.byref(at), ctypes.byref(link)):
        seen += 1
        yield from _uri(document, pdfium.FPDFLink_GetAction(link))


def _uri(document: Any, action: Any) -> Iterator[str]:  # noqa: ANN401 - as above
    """The URI of an action, if it is one of that kind."""
    if not action or pdfium.FPDFAction_GetType(action) != pdfium.PDFACTION_URI:
        return
    size = pdfium.FPDFAction_GetURIPath(document, action, None, 0)
    if 1 < size <= LONGEST_URI:
        buffer = ctypes.create_string_buffer(size)
        pdfium.FPDFAction_GetURIPath(document, action, buffer, size)
        yield buffer.raw[: size - 1].decode("utf-8", "replace")


def _in_text(page: Any) -> Iterator[str]:  # noqa: ANN401 - as above
    with ExitStack() as stack:
        text = pdfium.FPDFText_LoadPage(page)
        if not text:
            return
        stack.callback(pdfium.FPDFText_ClosePage, text)
        links = pdfium.FPDFLink_LoadWebLinks(text)
        if not links:
            return
        stack.callback(pdfium.FPDFLink_CloseWebLinks, links)
        for number in range(min(pdfium.FPDFLink_CountWebLinks(links), MOST_URIS)):
            size = pdfium.FPDFLink_GetURL(links, number, None, 0)
            if 1 < size <= LONGEST_URI:
                buffer = (ctypes.c_ushort * size)()
                pdfium.FPDFLink_GetURL(links, number, buffer, size)
                yield bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")


def _bookmarks(document: Any) -> Iterator[str]:  # noqa: ANN401 - as above
    """URIs of the outline: each bookmark once, however its items are tied together."""
    waiting, met = [pdfium.FPDFBookmark_GetFirstChild(document, None)], set[int]()
    while waiting and len(met) < MOST_BOOKMARKS:
        bookmark = waiting.pop()
        address = ctypes.cast(bookmark, ctypes.c_void_p).value if bookmark else None
        if address is None or address in met:
            continue
        met.add(address)
        yield from _uri(document, pdfium.FPDFBookmark_GetAction(bookmark))
        waiting.append(pdfium.FPDFBookmark_GetNextSibling(document, bookmark))
        waiting.append(pdfium.FPDFBookmark_GetFirstChild(document, bookmark))


def _title(document: Any) -> str:  # noqa: ANN401 - as above
    size = pdfium.FPDF_GetMetaText(document, b"Title", None, 0)
    if not 2 < size <= LONGEST_URI:
        return ""
    buffer = ctypes.create_string_buffer(size)
    pdfium.FPDF_GetMetaText(document, b"Title", buffer, size)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace")
