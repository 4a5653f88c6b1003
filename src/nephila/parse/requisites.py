"""What a page is shown with: style sheets, scripts, pictures, fonts, films, frames. For archives to be replayed.

Read from the tree, in a second look at the page, and only where a crawl is asked for it (`scope.requisites`): pages are
scanned without a tree otherwise. What scripts load when they run is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from turbohtml import Element

from nephila.model.page import Link, Page
from nephila.urls.parse import Base

from .attributes import srcset_urls
from .charset import decide_charset, decode
from .html import MAX_BYTES, web_url
from .sheets import sheet_references
from .tree import document_of

MAX_REQUISITES = 5_000
"""Of one page or sheet; our own choice, far above real ones."""

_SOURCES = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "image": ("href", "xlink:href", "src"),
    "use": ("href", "xlink:href"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "input": ("src",),
    "iframe": ("src",),
    "frame": ("src",),
    "body": ("background",),
    "table": ("background",),
    "td": ("background",),
    "th": ("background",),
}
_RELS = frozenset(
    {"stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "manifest"}
    | {"preload", "modulepreload", "prefetch"}
)
"""What a browser loads of what a <link> names, at once or soon."""


def page_requisites(body: bytes, page: Page) -> tuple[Link, ...]:
    """What an HTML page is shown with, each URL once, in the order in which it is named."""
    base = Base.parse(page.base)
    if base is None:
        return ()
    document = document_of(decode(body[:MAX_BYTES], page.charset))
    named = _by_elements(document.iter_elements(("link", "style", *_SOURCES)))
    styles = (("style", one) for styled in document.select("[style]") for one in _styled(styled))
    return _links(base, chain(named, styles))


def sheet_requisites(body: bytes, url: str, content_type: str) -> tuple[Link, ...]:
    """What a style sheet loads, each URL once."""
    base = Base.parse(url)
    if base is None:
        return ()
    text = decode(body[:MAX_BYTES], decide_charset(body, content_type))
    return _links(base, (("style", one) for one in sheet_references(text)))


def _links(base: Base, named: Iterable[tuple[str, str]]) -> tuple[Link, ...]:
    found: dict[str, Link] = {}
    for tag, reference in named:
        if len(found) >= MAX_REQUISITES:
            break
        url = web_url(base, reference)
        if url and url != base.url:
            found.setdefault(url, Link(url, tag, "", ""))
    return tuple(found.values())


def _by_elements(elements: Iterable[Element]) -> Iterator[tuple[str, str]]:
    for element in elements:
        tag = element.tag
        if tag == "style":
            yield from ((tag, one) for one in sheet_references(element.text))
        elif tag == "link":
            if not _RELS.isdisjoint(_text(element, "rel").lower().split()):
                yield tag, _text(element, "href")
        elif tag != "input" or _text(element, "type").strip().lower() == "image":
            for name in _SOURCES[tag]:
                value = _text(element, name)
                yield from ((tag, one) for one in (srcset_urls(value) if name == "srcset" else (value,)) if one)


def _styled(element: Element) -> Iterator[str]:
    style = _text(element, "style")
    return sheet_references(style) if "(" in style else iter(())


def _text(element: Element, name: str) -> str:
    value = element.attr(name)
    return value if isinstance(value, str) else ""
