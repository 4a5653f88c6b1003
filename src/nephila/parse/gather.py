"""What is kept of a page while its tags go by: references with their anchor texts, metas, title, base, languages.

The same rules as in the walk over the tree (`walk.py`), but an anchor's text is not known when its tag is read: the
pieces of text that follow are put by until the nesting says that the anchor has ended.
"""

from __future__ import annotations

from collections.abc import Callable

from .attributes import refresh_url, srcset_urls
from .nesting import Doubt, Nesting
from .tags import lowered
from .walk import ANCHORS, MAX_METAS, MAX_REFERENCES, MAX_TEXT, MAX_TITLE, Findings, folded, outranked

MAX_ANCHOR_TEXT = 1_000_000
"""Characters of anchor text; a page with more is left to the tree."""

_Attributes = dict[str, str]


def _rel(attributes: _Attributes) -> str:
    return " ".join(attributes.get("rel", "").lower().split())


class Gathering:
    """The findings of a page, as far as it was read."""

    def __init__(self, *, images: bool) -> None:
        self.found = Findings()
        self.nesting = Nesting(self._anchors_ended)
        self._images = images
        self._pieces: list[str] = []
        """Texts since the first of the open anchors began."""
        self._size = 0
        self._anchors: list[tuple[str, int]] = []
        """Hrefs of the open anchors whose text is wanted, and where among the pieces they begin."""
        self._language: str | None = None
        self._xml_language: str | None = None

    def text(self, text: str) -> None:
        """Text of the document. Raises `Doubt`."""
        if self._anchors:
            self._pieces.append(text)
            self._size += len(text)
            if self._size > MAX_ANCHOR_TEXT:
                raise Doubt

    def title(self, text: str) -> None:
        """The text of a title."""
        if self.found.title is None:
            self.found.title = folded(text, MAX_TITLE)

    def element(self, name: str, attributes: _Attributes) -> None:
        """An element of the document that may hold something. Raises `Doubt`."""
        _READERS[name](self, name, attributes)
        found = self.found
        if len(found.references) >= MAX_REFERENCES or len(found.metas) >= MAX_METAS or len(found.hreflang) >= MAX_METAS:
            raise Doubt

    def close(self) -> None:
        """The page ends here."""
        self.nesting.close_all()
        self.found.language = folded(self._language or self._xml_language or "", MAX_TEXT)

    def _anchors_ended(self, left: int) -> None:
        while len(self._anchors) > left:
            href, first = self._anchors.pop()
            tag, rel, _ = self.found.references[href]
            self.found.references[href] = (tag, rel, folded("".join(self._pieces[first:]), MAX_TEXT))
        if not self._anchors:
            self._pieces.clear()

    def read_anchor(self, tag: str, attributes: _Attributes) -> None:
        """What people follow."""
        href = attributes.get("href")
        if href is None:
            return
        known = self.found.references.get(href)
        rel = attributes.get("rel", "")
        if known is not None and ((known[0] in ANCHORS and not known[1]) or not outranked(known, tag, rel)):
            return
        if known is not None and any(href == open_href for open_href, _ in self._anchors):
            raise Doubt
        text = folded(attributes.get("alt", ""), MAX_TEXT) if tag == "area" else ""
        self.found.references[href] = (tag, _rel(attributes), text)
        if tag == "a" and len(self.found.references) < MAX_REFERENCES:
            self.nesting.want_text()
            self._anchors.append((href, len(self._pieces)))

    def read_link(self, _tag: str, attributes: _Attributes) -> None:
        """Relations to other documents."""
        href, rel = attributes.get("href"), _rel(attributes)
        if not href:
            return
        relations = rel.split()
        if self.found.canonical is None and "canonical" in relations:
            self.found.canonical = href
        if "alternate" in relations and (language := attributes.get("hreflang")):
            self.found.hreflang.append((language, href))
        self.found.refer(href, ("link", rel, ""))

    def read_meta(self, _tag: str, attributes: _Attributes) -> None:
        """Directives, refreshes, the language."""
        content = attributes.get("content")
        if content is None:
            return
        if name := attributes.get("name"):
            self.found.metas.append((name, content))
        match lowered(attributes.get("http-equiv", "")):
            case "refresh":
                self.found.refer(refresh_url(content), ("meta", "", ""))
            case "content-language" if "," not in content:
                self.found.default_language = self.found.default_language or content.strip()

    def read_frame(self, tag: str, attributes: _Attributes) -> None:
        """A document in the document."""
        self.found.refer(attributes.get("src"), (tag, "", ""))

    def read_form(self, _tag: str, attributes: _Attributes) -> None:
        """A form that is sent by GET."""
        if lowered(attributes.get("method", "")) not in {"post", "dialog"}:
            self.found.refer(attributes.get("action"), ("form", _rel(attributes), ""))

    def read_base(self, _tag: str, attributes: _Attributes) -> None:
        """What links are relative to."""
        if self.found.base is None:
            self.found.base = attributes.get("href")

    def read_html(self, _tag: str, attributes: _Attributes) -> None:
        """The root; tags of it that come later add what is missing."""
        self._language = attributes.get("lang") if self._language is None else self._language
        self._xml_language = attributes.get("xml:lang") if self._xml_language is None else self._xml_language

    def read_image(self, tag: str, attributes: _Attributes) -> None:
        """Pictures, where they are asked for."""
        if not self._images:
            return
        if tag != "source":
            self.found.refer(attributes.get("src"), ("img", "", folded(attributes.get("alt", ""), MAX_TEXT)))
        for url in srcset_urls(attributes.get("srcset", "")):
            if len(self.found.references) < MAX_REFERENCES:
                self.found.refer(url, ("srcset", "", ""))

    def read_nothing(self, _tag: str, _attributes: _Attributes) -> None:
        """A title: its text is what counts."""


_READERS: dict[str, Callable[[Gathering, str, _Attributes], None]] = {
    "a": Gathering.read_anchor,
    "area": Gathering.read_anchor,
    "link": Gathering.read_link,
    "meta": Gathering.read_meta,
    "iframe": Gathering.read_frame,
    "form": Gathering.read_form,
    "base": Gathering.read_base,
    "html": Gathering.read_html,
    "img": Gathering.read_image,
    "image": Gathering.read_image,
    "source": Gathering.read_image,
    "title": Gathering.read_nothing,
}
