"""Feeds: RSS 0.9x and 2.0, RSS 1.0 (RDF) and Atom from tokens, JSON Feed from its text (X3); OPML outlines (S1).

What is wanted of a feed is where its items are and when they came out. An item's location is, in this order, the
original one behind a feed service, its link (of Atom's links the alternate one), its permanent identifier, its subject.
Text that may hold markup of its own (contents, summaries) is passed over, as is what an item quotes from another feed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

from nephila.model.listing import Listed
from nephila.urls import resolve

from .markup_stream import END, START, TEXT, Token, attributes
from .moments import moment_s

_ITEMS = frozenset({"item", "entry"})
_PASSED = frozenset(
    {"content", "encoded", "summary", "description", "title", "source", "author", "contributor", "body", "media:group"}
)
_LINK, _GUID, _ORIGINAL = "link", "guid", "origlink"
_PUBLISHED = frozenset({"pubdate", "published", "issued", "created", "date"})
_UPDATED = frozenset({"updated", "modified"})
_TEXTS = frozenset({_LINK, _GUID, "id", _ORIGINAL}) | _PUBLISHED | _UPDATED
_ALTERNATE = "alternate"
MAX_FIELD = 65_536
MAX_JSON = 10_000_000
"""Characters of a JSON Feed: it is read as a whole, unlike the others."""

Clean = Callable[[str], str]


class FeedReader:
    """Reads the items of one feed in XML."""

    def __init__(self, inside_root: str, clean: Clean, counts: Counter[str]) -> None:
        self._clean = clean
        self._base = attributes(inside_root).get("xml:base", "")
        self._item: dict[str, str] | None = None
        self._item_base = ""
        self._field = ""
        self._permanent = True
        self._text: list[str] = []
        self._length = 0
        self._passed = ""
        self._nested = 0
        self.found: list[Listed] = []
        self.counts = counts

    def take(self, token: Token) -> None:
        """One token; items that are whole appear in `found`."""
        kind, name, data = token
        if kind == TEXT:
            if self._field and self._length < MAX_FIELD:
                self._text.append(data)
                self._length += len(data)
            return
        local = name.rpartition(":")[2].lower()
        if self._passed:
            if local == self._passed and not (kind == START and local in _ITEMS):
                self._nested += 1 if kind == START else -1
                if self._nested <= 0:
                    self._passed = ""
                return
            if not (kind == START and local in _ITEMS and name.lower() == local):
                return
            self._passed = ""  # what was passed over is not closed, and the next item begins
        if kind == START:
            self._start(name, local, data)
        elif kind == END:
            self._end(local)

    def close(self) -> None:
        """There is no more."""
        self._finish()

    def _start(self, name: str, local: str, inside: str) -> None:
        if local in _ITEMS:
            self._finish()
            self._item = {}
            found = attributes(inside) if inside else {}
            self._item_base = found.get("xml:base", "")
            self._keep("about", found.get("rdf:about", "") or found.get("about", ""))
        elif self._item is None:
            if local == "feed" and (base := attributes(inside).get("xml:base")):
                self._base = base
        elif local in _PASSED or name.lower() in _PASSED:
            self._passed, self._nested = local, 1
        elif local in _TEXTS:
            self._begin(local, inside)

    def _begin(self, local: str, inside: str) -> None:
        found = attributes(inside) if "=" in inside else {}
        self._field, self._text, self._length = local, [], 0
        if local == _LINK and "href" in found:
            self._field = ""
            rel = found.get("rel", _ALTERNATE).strip().lower() or _ALTERNATE
            if rel in {_ALTERNATE, "http://www.iana.org/assignments/relation/alternate"}:
                self._keep("href", self._based(found["href"].strip(), found.get("xml:base", "")))
            else:
                self.counts[rel if rel in {"enclosure", "self", "related", "via"} else "other"] += 1
        elif local == _GUID:
            self._permanent = found.get("ispermalink", "true").strip().lower() != "false"

    def _end(self, local: str) -> None:
        if local == self._field:
            text = "".join(self._text)[:MAX_FIELD].strip()
            self._keep(local if local != _GUID or self._permanent else "id", text)
            self._field, self._text = "", []
        elif local in _ITEMS:
            self._finish()

    def _keep(self, field: str, value: str) -> None:
        if self._item is not None and value:
            self._item.setdefault(field, value)

    def _finish(self) -> None:
        item, self._item = self._item, None
        self._field, self._text, self._passed = "", [], ""
        if item is None:
            return
        named = [item.get(_ORIGINAL, ""), item.get("href", ""), self._based(item.get(_LINK, ""))]
        identifiers = [name for name in (item.get(_GUID), item.get("about"), item.get("id")) if name and _is_web(name)]
        url = next((url for place in [*named, *identifiers] if place and (url := self._clean(place))), "")
        if not url:
            self.counts["malformed"] += 1
            return
        published = _first(item, _PUBLISHED)
        self.found.append(Listed(url, _first(item, _UPDATED) or published, published_s=published))

    def _based(self, href: str, base: str = "") -> str:
        """A reference against the bases that the feed sets, each against the one around it; if it sets none, as is."""
        if not href or _is_web(href):
            return href
        around = ""
        for one in (self._base, self._item_base, base):
            if one:
                around = (resolve(around, one) if around else self._clean(one)) or around
        return (resolve(around, href) if around else None) or href


def _is_web(text: str) -> bool:
    return text[:8].lower().startswith(("http://", "https://"))


def _first(item: dict[str, str], names: frozenset[str]) -> int:
    return next((moment for name, text in item.items() if name in names and (moment := moment_s(text))), 0)


class OutlineReader:
    """Reads the feeds and pages of an OPML outline."""

    def __init__(self, clean: Clean, counts: Counter[str]) -> None:
        self._clean = clean
        self.found: list[Listed] = []
        self.counts = counts

    def take(self, token: Token) -> None:
        """One token; all is in the attributes of its tag."""
        kind, name, data = token
        if kind != START or name.lower() != "outline":
            return
        given = attributes(data)
        page = given.get("htmlurl") or (given.get("url", "") if "xmlurl" not in given else "")
        wanted = ((given.get("xmlurl", ""), True), (page, False))
        for text, is_list in wanted:
            if text.strip():
                url = self._clean(text)
                if url:
                    self.found.append(Listed(url, is_list=is_list))
                else:
                    self.counts["malformed"] += 1

    def close(self) -> None:
        """Nothing is open."""


def json_feed(text: str, clean: Clean) -> list[Listed] | None:
    """The items of a JSON Feed; None for what is none."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or "jsonfeed.org" not in str(document.get("version", "")):
        return None
    found: list[Listed] = []
    items = document.get("items")
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        places = [str(item.get(name) or "") for name in ("url", "id")]
        url = next((url for place in places if _is_web(place) and (url := clean(place))), "")
        if url:
            published = moment_s(str(item.get("date_published") or ""))
            updated = moment_s(str(item.get("date_modified") or ""))
            found.append(Listed(url, updated or published, published_s=published))
    return found
