"""Bytes to Page, pure: charset, content type, tree, links, directives.

`parse_html` is the whole way; `media_type` decides beforehand whether a body is worth it, `links_that_matter`
afterwards which of its links are worth fetching. Nothing here does I/O, keeps state or reads a clock.
"""

from .charset import decide_charset, decode
from .choice import MAX_LINKS, links_that_matter
from .html import MAX_BYTES, parse_html
from .sniff import media_type, media_type_of_header

__all__ = [
    "MAX_BYTES",
    "MAX_LINKS",
    "decide_charset",
    "decode",
    "links_that_matter",
    "media_type",
    "media_type_of_header",
    "parse_html",
]
