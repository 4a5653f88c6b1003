"""One walk over a document for everything a crawler reads in it: references, metas, title, base, language.

What is found is kept as the page wrote it. Resolving comes after the walk, because a base element may stand behind the
first links, and because all links are joined to the base in one go.

This is the hot path of parsing: a page brings two hundred elements, so the anchors, which are most of them, are read in
the loop itself, and a link that was already met is passed over before anything else is asked of it.

What must stay true: work and memory are linear in the document, whatever it holds: the number of references and the
amount of anchor text are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from turbohtml import Element, Namespace

from .attributes import refresh_url, srcset_urls

ANCHORS = frozenset({"a", "area"})
"""The tags that people follow."""

DOCUMENT_TAGS = ("a", "area", "link", "iframe", "frame", "form", "meta", "base", "title", "html")
IMAGE_TAGS = ("img", "source")

MAX_REFERENCES = 20_000
"""References of one page, of whatever kind; our own choice, forty times what the frontier takes of a page."""
MAX_METAS = 1_000
"""Metas of one page, and languages that it names others in; our own choice: real pages have dozens."""
MAX_TEXT = 200
"""Characters of an anchor's text that are kept."""
MAX_TITLE = 1_000
"""Characters of a title that are kept; our own choice."""
_TEXT_BUDGET = 4_000_000
"""Characters of anchor text read for one page: anchors nested in anchors would otherwise be read over and over."""


Reference = tuple[str, str, str]
"""Tag, rel and text of what will be a link once it is resolved. A bare tuple: a noun would cost as much as all the rest
that is done for an anchor."""


@dataclass(slots=True)
class Findings:
    """What a walk found."""

    references: dict[str, Reference] = field(default_factory=dict)
    """By the href as written, in document order."""
    metas: list[tuple[str, str]] = field(default_factory=list)
    """Name and content."""
    base: str | None = None
    title: str | None = None
    language: str = ""
    default_language: str = ""
    """What a meta http-equiv says; counts when the html element says nothing."""
    canonical: str | None = None
    hreflang: list[tuple[str, str]] = field(default_factory=list)
    """Language and href as written."""

    def refer(self, href: str | None, reference: Reference) -> None:
        """Keep a reference that is no anchor, unless its href was met before.

        An empty one leads nowhere: a frame stays blank, nothing is loaded for a link or a picture, and a form without
        an action is sent to the page itself, whatever its base (HTML standard 4.8.5, 4.2.4, 4.10.21.3). An anchor's
        empty href, which is not read here, does lead to the base.
        """
        if href:
            self.references.setdefault(href, reference)


def outranked(known: Reference, tag: str, rel: str) -> bool:
    """Whether another reference to the same URL takes the place of a known one.

    An anchor does of what is no anchor, and one that may be followed of one that may not: people can follow it, so the
    page does link there.
    """
    if tag not in ANCHORS or known[0] not in ANCHORS:
        return tag in ANCHORS and known[0] not in ANCHORS
    return "nofollow" in known[1] and "nofollow" not in rel.lower()


def folded(text: str, limit: int) -> str:
    """The text with each run of white space as one space, none at the ends, cut to `limit` characters."""
    return " ".join(text.split())[:limit]


def _rel(element: Element) -> str:
    rel = element.attr("rel")
    return " ".join(rel.lower().split()) if rel else ""


def _anchor_href(anchor: Element) -> str | None:
    href = anchor.attr("href")
    if href is None and anchor.namespace is not Namespace.HTML:
        href = anchor.attr("xlink:href")  # as SVG spelled it before its second version
    return href


def _read_link(found: Findings, link: Element) -> None:
    href, rel = link.attr("href"), _rel(link)
    if not href:
        return
    relations = rel.split()
    if found.canonical is None and "canonical" in relations:
        found.canonical = href
    if "alternate" in relations and (language := link.attr("hreflang")) and len(found.hreflang) < MAX_METAS:
        found.hreflang.append((language, href))
    found.refer(href, ("link", rel, ""))


def _read_meta(found: Findings, meta: Element) -> None:
    content = meta.attr("content")
    if content is None:
        return
    if (name := meta.attr("name")) and len(found.metas) < MAX_METAS:
        found.metas.append((name, content))
    match (meta.attr("http-equiv") or "").lower():
        case "refresh":
            found.refer(refresh_url(content), ("meta", "", ""))
        case "content-language" if "," not in content:
            found.default_language = found.default_language or content.strip()


def _read_frame(found: Findings, frame: Element) -> None:
    found.refer(frame.attr("src"), (frame.tag, "", ""))


def _read_form(found: Findings, form: Element) -> None:
    # Everything but post and dialog is GET, misspellings included (HTML standard 4.10.19.6).
    if (form.attr("method") or "").lower() not in {"post", "dialog"}:
        found.refer(form.attr("action"), ("form", _rel(form), ""))


def _read_base(found: Findings, base: Element) -> None:
    if found.base is None:
        found.base = base.attr("href")


def _read_title(found: Findings, title: Element) -> None:
    if found.title is None:
        found.title = folded(title.text, MAX_TITLE)


def _read_html(found: Findings, html: Element) -> None:
    found.language = found.language or folded(html.attr("lang") or html.attr("xml:lang") or "", MAX_TEXT)


def _read_image(found: Findings, image: Element) -> None:
    if image.tag == "img":
        found.refer(image.attr("src"), ("img", "", folded(image.attr("alt") or "", MAX_TEXT)))
    for url in srcset_urls(image.attr("srcset") or ""):
        found.refer(url, ("srcset", "", ""))


_READERS: dict[str, Callable[[Findings, Element], None]] = {
    "link": _read_link,
    "meta": _read_meta,
    "iframe": _read_frame,
    "frame": _read_frame,
    "form": _read_form,
    "base": _read_base,
    "title": _read_title,
    "html": _read_html,
    "img": _read_image,
    "source": _read_image,
}


def walk(elements: Iterable[Element]) -> Findings:
    """Read the elements in document order; a document with too many references is read no further."""
    found = Findings()
    references = found.references
    budget = _TEXT_BUDGET
    for element in elements:
        tag = element.tag
        if tag != "a" and element.namespace is not Namespace.HTML:
            continue  # of all of these, SVG has links alone; a base in it says nothing
        if tag not in ANCHORS:
            _READERS[tag](found, element)
            if len(references) >= MAX_REFERENCES:
                break
            continue
        href = _anchor_href(element)
        if href is None:
            continue
        known = references.get(href)
        if known is not None and known[0] in ANCHORS and not known[1]:
            continue  # the common case of the next question, asked without a call
        rel = element.attr("rel") or ""
        if known is not None and not outranked(known, tag, rel):
            continue
        text = ""
        if budget > 0:
            whole = element.text if tag == "a" else element.attr("alt") or ""
            budget -= len(whole)
            text = " ".join(whole.split())[:MAX_TEXT]
        references[href] = (tag, " ".join(rel.lower().split()) if rel else "", text)
        if len(references) >= MAX_REFERENCES:
            break
    return found
