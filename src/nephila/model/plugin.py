"""What passes between the crawl and its plugins (E1): small frozen records, which may cross to another process."""

from __future__ import annotations

from .noun import noun
from .page import Link

PDF_LINKS, OFFICE_LINKS = "pdf-links", "office-links"
"""The names of the extractors that ship (X4); what they find is told as events of their own."""


@noun
class Glimpse:
    """The page on which links were found."""

    url: str
    depth: int
    """Hops from a seed."""
    status: int
    title: str = ""
    language: str = ""


@noun
class Document:
    """A body that somebody may read something out of."""

    url: str
    media_type: str
    """As it was decided from header and first bytes, e.g. ``application/pdf``."""
    headers: tuple[tuple[str, str], ...]
    """Names in lower case, in the order in which they came."""
    body: bytes
    """Decoded of its content coding; cut where it is over `plugins.max_document_bytes`."""


@noun
class Extract:
    """What was read out of a body, beside what the crawl itself reads."""

    links: tuple[Link, ...] = ()
    """Absolute http(s) URLs; `tag` is who found them. They go the way of all links: scope, robots, limits."""
    title: str = ""
    """Where the page has none of its own."""
    language: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    """Names and texts that are kept with the page: in its metadata record, for record sinks, for the library."""
    counts: tuple[tuple[str, int], ...] = ()
    """Figures for the event that tells of it."""
    detail: str = ""
    """What hindered it, where that is worth a word."""


@noun
class OutgoingRequest:
    """A page that is about to be asked for. Robots rules have been asked; its host's turn has not come yet."""

    url: str
    host: str
    depth: int
    via: str = ""
    """The page that it was found on; empty for a seed."""
    conditional: bool = False
    """Whether it is asked for only if it has changed."""


@noun
class RequestAdvice:
    """What a hook wants of a request."""

    headers: tuple[tuple[str, str], ...] = ()
    """To be added. Names that belong to the crawl, and credentials, are refused."""
    veto: str = ""
    """Why it is not to be sent; empty lets it go."""


@noun
class IncomingAnswer:
    """What came of a request."""

    url: str
    host: str
    depth: int
    status: int
    """0 where there was no answer."""
    headers: tuple[tuple[str, str], ...] = ()
    wire_bytes: int = 0
    elapsed_ms: int = 0
    error: str = ""
    """The kind of failure, where there was no answer."""


@noun
class PageRecord:
    """A page that was stored and settled, for sinks."""

    url: str
    status: int
    at: int
    """When it was asked for: UTC milliseconds."""
    depth: int
    via: str
    headers: tuple[tuple[str, str], ...]
    title: str
    language: str
    links: tuple[Link, ...]
    digest: str
    """SHA-256 of the decoded body in hexadecimal digits; empty where it is not whole."""
    duplicate_of: str
    near_duplicate_of: str
    fields: tuple[tuple[str, str], ...] = ()
    """What content extractors found."""
    body: bytes = b""
    """For sinks that want it."""
