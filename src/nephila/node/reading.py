"""How bodies become what the pipeline works on: pages, and the entries of lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from nephila.model.exchange import Fetched
from nephila.model.listing import Listed, ListKind
from nephila.model.page import Page
from nephila.model.settings import Settings
from nephila.parse import (
    MAX_BYTES,
    SNIFF_BYTES,
    document_type,
    list_kind,
    media_type,
    page_requisites,
    parse_html,
    promised_type,
    read_list,
    sheet_requisites,
)

from .extending import bare_page

CSS_TYPE = "text/css"
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
NOT_MODIFIED = 304
_MEDIA, _DOCUMENT = ":media", ":document"
"""Where an answer's types are noted (`Fetched.memo`): three parts ask for them, of every page."""


def _media_of(fetched: Fetched) -> str:
    """The type of a body by its header and first bytes."""
    found = fetched.memo.get(_MEDIA)
    if found is None:
        told = media_type(fetched.content_type, fetched.body[:SNIFF_BYTES])
        found = fetched.memo[_MEDIA] = told
    return found


def type_of(fetched: Fetched) -> str:
    """The type of a body by its URL, too: documents are often served under a wrong name."""
    found = fetched.memo.get(_DOCUMENT)
    if found is None:
        content_type = fetched.content_type
        promised = promised_type(fetched.url)
        told = document_type(fetched.url, content_type, fetched.body[:SNIFF_BYTES]) if promised else _media_of(fetched)
        found = fetched.memo[_DOCUMENT] = told
    return found


def _all_of(fetched: Fetched, name: str) -> Sequence[str]:
    """Every value of a header that most answers do not have."""
    return [value for one, value in fetched.headers if one == name] if fetched.header(name) else ()


def list_kind_of(fetched: Fetched) -> ListKind | None:
    """What an answer lists, if it does."""
    if not fetched.body:
        return None
    return list_kind(fetched.body, fetched.content_type, _media_of(fetched))


def list_reader(settings: Settings) -> Callable[[Fetched, Counter[str]], Iterator[list[Listed]]]:
    """How a body becomes entries."""
    max_bytes = settings.sitemaps.max_bytes

    def read(fetched: Fetched, other: Counter[str]) -> Iterator[list[Listed]]:
        cut = fetched.truncated is not None
        counts: Counter[str] = Counter()
        content_type = fetched.content_type
        for reader, entries in read_list(fetched.body, fetched.url, content_type, max_bytes, cut=cut):
            counts = reader.counts
            if entries:
                yield entries
        other.update(counts)

    return read


def wanted_types(types: Sequence[str] | None) -> Callable[[Fetched], bool]:
    """Whether an answer is of a type that was asked for."""
    if types is None:
        return lambda _: True
    exact = frozenset(types)

    def wanted(fetched: Fetched) -> bool:
        essence = type_of(fetched)
        return essence in exact or essence.partition("/")[0] + "/*" in exact

    return wanted


def page_reader(settings: Settings, others: Sequence[str] = ()) -> Callable[[Fetched], Page | None]:
    """How a body becomes a page; None when it is neither HTML nor of one of the `others`, which plugins read.

    Of a page that has not changed (304) it has what the headers ask of crawlers; None where they ask for nothing.
    """
    agent, images, requisites = settings.fetch.user_agent, settings.scope.images, settings.scope.requisites
    max_bytes = min(MAX_BYTES, settings.fetch.max_decoded_bytes)

    def read(fetched: Fetched) -> Page | None:
        if fetched.status == NOT_MODIFIED:
            return bare_page(fetched, "", settings) if fetched.header("x-robots-tag") else None
        kind = type_of(fetched)
        if kind not in HTML_TYPES:
            if requisites and kind == CSS_TYPE:
                named = sheet_requisites(fetched.body, fetched.url, fetched.content_type)
                return replace(bare_page(fetched, kind, settings), requisites=named)
            return bare_page(fetched, kind, settings) if kind in others else None
        page = parse_html(
            fetched.body,
            fetched.url,
            fetched.content_type,
            agent=agent,
            robots_tags=_all_of(fetched, "x-robots-tag"),
            link_headers=_all_of(fetched, "link"),
            content_language=fetched.header("content-language"),
            refresh=_all_of(fetched, "refresh"),
            images=images,
            max_bytes=max_bytes,
        )
        return replace(page, requisites=page_requisites(fetched.body[:max_bytes], page)) if requisites else page

    return read
