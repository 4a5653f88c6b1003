"""Bytes to Page, pure: charset, content type, links, directives, text features; and to the entries of lists.

`parse_html` is the whole way; `media_type` decides beforehand whether a body is worth it, `links_that_matter`
afterwards which of its links are worth fetching; `page_requisites` and `sheet_requisites` tell what pages are shown
with; `read_list` reads what sitemaps, feeds and outlines name; `readable_text` and `readable_markdown` are for exports.
Nothing here does I/O, keeps state or reads a clock.
"""

from .charset import decide_charset, decode
from .choice import MAX_LINKS, links_that_matter
from .directives import directives_of
from .html import MAX_BYTES, parse_html
from .language import language_of
from .lists import MAX_LIST_BYTES, ListReader, list_kind, read_list
from .office import OFFICE_TYPES, OfficeBounds, OfficeLinks
from .pdf import PDF_TYPE, PdfBounds, PdfLinks
from .readable import readable_markdown, readable_text
from .requisites import page_requisites, sheet_requisites
from .scan import main_text
from .signs import sign_of
from .sniff import SNIFF_BYTES, document_type, media_type, media_type_of_header, promised_type

__all__ = [
    "MAX_BYTES",
    "MAX_LINKS",
    "MAX_LIST_BYTES",
    "OFFICE_TYPES",
    "PDF_TYPE",
    "SNIFF_BYTES",
    "ListReader",
    "OfficeBounds",
    "OfficeLinks",
    "PdfBounds",
    "PdfLinks",
    "decide_charset",
    "decode",
    "directives_of",
    "document_type",
    "language_of",
    "links_that_matter",
    "list_kind",
    "main_text",
    "media_type",
    "media_type_of_header",
    "page_requisites",
    "parse_html",
    "promised_type",
    "read_list",
    "readable_markdown",
    "readable_text",
    "sheet_requisites",
    "sign_of",
]
