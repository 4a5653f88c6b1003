"""A page's bytes to a `Page`: charset, one scan of the text or one walk of the tree, links resolved (X1, X2, X5).

Bytes and base in; links, directives and text features out: one pure function. Almost every page is read by the scanner,
which builds no tree (`scan.py`); one whose nesting leaves a doubt, by the tree, with the same results.

What must stay true: any bytes, any URL and any headers give a page, never an exception; only http(s) URLs come out,
each once, without fragment.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from functools import partial
from itertools import chain

from nephila.model.page import Link, Page
from nephila.native import AVAILABLE, native
from nephila.urls.parse import Base

from .attributes import header_links, refresh_url
from .charset import decide_charset, decode, query_charset
from .directives import directives_of
from .queries import AS_UTF8, Queries
from .scan import native_read, scan
from .tree import elements
from .walk import DOCUMENT_TAGS, IMAGE_TAGS, Findings, Reference, outranked, walk

MAX_BYTES = 10_000_000
"""Bytes of a body that are parsed: no more than is fetched by default (H2)."""

_WEB = frozenset({"http://", "https:/"})
"""The first seven characters of every serialised http(s) URL, and of no other: a look at them is all it takes."""
_NOWHERE = "about:blank"
"""The base of a page whose own URL cannot be parsed: nothing relative resolves against it."""


def web_url(base: Base, href: str) -> str:
    """The URL that a link leads to, without its fragment, if it is an http(s) one, else nothing."""
    return (native.web_url(base.url, href, base.join) or "") if AVAILABLE else plain_web_url(base, href)


def plain_web_url(base: Base, href: str) -> str:
    """The same in Python."""
    url = base.join(href)
    if url is None or url[:7] not in _WEB:
        return ""
    return url.partition("#")[0]


def _base_of(found: Findings, document: Base) -> Base:
    """What links are relative to: the first base element's href if it can be used, else the document's own URL."""
    if found.base is None:
        return document
    joined = document.join(found.base)
    if joined is None or joined.startswith(("data:", "javascript:")):  # HTML standard, 4.2.3
        return document
    base = Base.parse(joined)
    if base is None:
        return document
    base.spell = document.spell
    return base


def resolved_links(found: Findings, base: Base) -> tuple[Link, ...]:
    """The references resolved, each URL once."""
    if AVAILABLE:
        return native.resolve_references(found.references, base.url, base.join, outranked, Link)
    return plainly_resolved(found, base)


def plainly_resolved(found: Findings, base: Base) -> tuple[Link, ...]:
    """The same in Python."""
    links: dict[str, Reference] = {}
    urls = base.join_all(found.references)
    for url, reference in zip(urls, found.references.values(), strict=True):
        if url is None or url[:7] not in _WEB:
            continue
        if "#" in url:
            url = url.partition("#")[0]  # noqa: PLW2901 - the same URL, cut
        known = links.get(url)
        if known is None or outranked(known, reference[0], reference[1]):
            links[url] = reference
    return tuple([Link(url, *reference) for url, reference in links.items()])


def _utf8(body: bytes, charset: str) -> bytes:
    """The text of a page in UTF-8, byte order mark taken off; wrong bytes in UTF-8 are left to the scanner."""
    if charset == "UTF-8":
        return body.removeprefix(codecs.BOM_UTF8)
    if charset == "windows-1252" and body.isascii():
        return body
    return decode(body, charset).encode("utf-8", "replace")


def _with_refresh(links: Sequence[Link], values: Sequence[str], document: Base) -> Sequence[Link]:
    """The links with the one of a Refresh header, which is read before there can be a base element."""
    target = refresh_url(", ".join(values))
    url = "" if target is None else web_url(document, target)
    if not url or any(link.url == url for link in links):
        return links
    return (*links, Link(url, "meta", "", ""))


def _one_language(header: str) -> str:
    """What a Content-Language header says, unless it lists several."""
    return "" if "," in header else header.strip()


def parse_html(  # noqa: PLR0913 - the headers are named one by one
    body: bytes,
    url: str,
    content_type: str,
    *,
    agent: str,
    robots_tags: Sequence[str] = (),
    link_headers: Sequence[str] = (),
    content_language: str = "",
    refresh: Sequence[str] = (),
    images: bool = False,
    max_bytes: int = MAX_BYTES,
) -> Page:
    """The page at `url`.

    `agent` is our User-Agent or its product token, whose own directives count too; `robots_tags`, `link_headers` and
    `refresh` are the values of the X-Robots-Tag, Link and Refresh headers. A canonical or hreflang in the page wins
    over one in a header, its language over the Content-Language header, and that over a guess.
    """
    if len(body) > max_bytes:
        body = body[:max_bytes]
    charset = decide_charset(body, content_type)
    document = Base.parse(url) or Base.parse(_NOWHERE)
    assert document is not None  # noqa: S101 - about:blank can be parsed
    if charset not in AS_UTF8:
        document.spell = Queries(partial(query_charset, body, content_type, charset))
    links: Sequence[Link] | None = None
    if AVAILABLE:
        scanned, links = native_read(_utf8(body, charset), document.url, document.join, images=images)
    else:
        scanned = scan(_utf8(body, charset), images=images)
    found = scanned.findings
    if scanned.doubtful:
        found = walk(elements(decode(body, charset), DOCUMENT_TAGS + IMAGE_TAGS if images else DOCUMENT_TAGS))
    base = _base_of(found, document)
    if links is None:
        links = resolved_links(found, base)
    canonical = "" if found.canonical is None else web_url(base, found.canonical)
    hreflang = [(language, web_url(base, href)) for language, href in found.hreflang]
    for link in chain.from_iterable(map(header_links, link_headers)):
        relations = link.rel.split()
        if "canonical" in relations:
            canonical = canonical or web_url(document, link.href)
        if "alternate" in relations and link.hreflang:
            hreflang.append((link.hreflang, web_url(document, link.href)))
    return Page(
        url=url,
        base=base.url,
        charset=charset,
        title=found.title or "",
        links=_with_refresh(links, refresh, document) if refresh else links,
        directives=directives_of(found.metas, robots_tags, agent),
        canonical=canonical,
        language=found.language or found.default_language or _one_language(content_language) or scanned.spoken,
        hreflang=tuple(dict.fromkeys(pair for pair in hreflang if pair[1])) if hreflang else (),
        text_hash=scanned.signature.text,
        shape_hash=scanned.signature.shape,
        said_hash=scanned.signature.said,
        simhash=scanned.likeness.simhash,
        sketch=scanned.likeness.sketch,
        words=scanned.likeness.words,
    )
