"""What kind of thing a body is, by its Content-Type and, where that says nothing, by its first bytes (H7).

The rules are those of the WHATWG MIME Sniffing Standard, section 7: browsers believe a header unless it is missing,
unusable, one of the three "I do not know" types, or one of the four spellings that an old Apache sent for everything. A
feed served as HTML is taken for a feed. Images, sound and films are told apart by their header alone: no crawler wants
one for the other.

What must stay true: any header and any bytes give an essence (`type/subtype` in lower case); only the first
`SNIFF_BYTES` are looked at.
"""

from __future__ import annotations

import re

from .media import media_type_in
from .office import OFFICE_TYPES
from .pdf import PDF_TYPE

SNIFF_BYTES = 1445
"""The resource header of the standard (section 5.2)."""

_UNKNOWN = frozenset({"unknown/unknown", "application/unknown", "*/*"})
_APACHE = frozenset(
    {
        "text/plain",
        "text/plain; charset=ISO-8859-1",
        "text/plain; charset=iso-8859-1",
        "text/plain; charset=UTF-8",
    }
)
"""Sent by Apache for files it did not know (section 5.1)."""

_HTML = re.compile(
    rb"""[\t\n\f\r\x20]*+ (?: <!-- | <(?: !doctype\x20html | html | head | script | iframe | h1 | div | font | table | a
         | style | title | b | body | br | p )[\x20>] )""",
    re.IGNORECASE | re.VERBOSE,
)
_XML = re.compile(rb"[\t\n\f\r ]*<\?xml")
_MARKED_TEXT = (b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf")
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_SIGNATURES = tuple(
    (re.compile(pattern, re.DOTALL), essence)
    for pattern, essence in (
        (rb"%PDF-", "application/pdf"),
        (rb"%!PS-Adobe-", "application/postscript"),
        (rb"\x00\x00[\x01\x02]\x00", "image/x-icon"),
        (rb"BM", "image/bmp"),
        (rb"GIF8[79]a", "image/gif"),
        (rb"RIFF....WEBPVP", "image/webp"),
        (rb"\x89PNG\r\n\x1a\n", "image/png"),
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"FORM....AIFF", "audio/aiff"),
        (rb"ID3", "audio/mpeg"),
        (rb"OggS\x00", "application/ogg"),
        (rb"MThd\x00\x00\x00\x06", "audio/midi"),
        (rb"RIFF....AVI ", "video/avi"),
        (rb"RIFF....WAVE", "audio/wave"),
        (rb"....ftyp", "video/mp4"),
        (rb"\x1aE\xdf\xa3", "video/webm"),
        (rb"\x1f\x8b\x08", "application/x-gzip"),
        (rb"PK\x03\x04", "application/zip"),
        (rb"Rar!\x1a\x07\x00", "application/x-rar-compressed"),
    )
)

_FEED = re.compile(
    rb"""(?:\xef\xbb\xbf)?+ (?: [\t\n\f\r ]++ | <!--.*?--> | <![^>]*+> | <\?.*?\?> )*+
         <(?: (rss)\b | (feed)\b | (rdf:RDF)\b )""",
    re.DOTALL | re.VERBOSE,
)
_RDF_FEED = (b"http://www.w3.org/1999/02/22-rdf-syntax-ns#", b"http://purl.org/rss/1.0/")


def media_type_of_header(value: str) -> str:
    """The essence that a Content-Type header gives, empty when it gives none."""
    media = media_type_in(value)
    return "" if media is None else media.essence


def _feed_or_html(head: bytes) -> str:
    match = _FEED.match(head)
    if match is None:
        return "text/html"
    if match[2]:
        return "application/atom+xml"
    if match[1] or all(namespace in head for namespace in _RDF_FEED):
        return "application/rss+xml"
    return "text/html"


def _text_or_binary(head: bytes) -> str:
    if head.startswith(_MARKED_TEXT) or not _BINARY.search(head):
        return "text/plain"
    return "application/octet-stream"


def _unknown(head: bytes) -> str:
    """The kind of a body of which only the bytes are known."""
    if _HTML.match(head):
        return "text/html"
    if _XML.match(head):
        return "text/xml"
    if head.startswith(_MARKED_TEXT):
        return "text/plain"
    for signature, essence in _SIGNATURES:
        if signature.match(head):
            return essence
    return _text_or_binary(head)


def media_type(content_type_header: str, body_start: bytes) -> str:
    """The essence of a body, from its header (empty when there is none) and its first bytes."""
    essence = media_type_of_header(content_type_header)
    head = body_start[:SNIFF_BYTES]
    if not essence or essence in _UNKNOWN:
        return _unknown(head)
    if content_type_header in _APACHE:
        return _text_or_binary(head)
    if essence == "text/html":
        return _feed_or_html(head)
    return essence


_OFFICE_SIGNATURE = b"PK\x03\x04"
_PDF_SIGNATURE = b"%PDF-"
_PDF_WITHIN = 1024
"""Bytes in which the header of a PDF may stand behind garbage."""
_ENDINGS = {"pdf": PDF_TYPE, **OFFICE_TYPES}


def document_type(url: str, content_type_header: str, body_start: bytes) -> str:
    """The essence of a body, as `media_type` has it, but for documents that are served under a wrong name (X4, H7).

    Many servers send PDFs and office documents as ``application/octet-stream``, as a download, or as plain text. Where
    the URL ends like one and the first bytes are those of one, it is one, whatever the header says. Without bytes, and
    where the header says nothing or otherwise than the URL, nothing is said: an empty text, and the bytes will tell.
    """
    promised = promised_type(url)
    said = media_type_of_header(content_type_header)
    if not body_start and (not said or said in _UNKNOWN):
        return ""
    if promised is None or said == promised:
        return media_type(content_type_header, body_start)
    if not body_start:
        return ""
    if promised == PDF_TYPE:
        is_one = _PDF_SIGNATURE in body_start[:_PDF_WITHIN]
    else:
        is_one = body_start.startswith(_OFFICE_SIGNATURE)
    return promised if is_one else media_type(content_type_header, body_start)


def promised_type(url: str) -> str | None:
    """The type of document that a URL ends like; None for most."""
    path = url.partition("?")[0].partition("#")[0] if "?" in url or "#" in url else url
    return _ENDINGS.get(path[-5:].rpartition(".")[2].lower())
