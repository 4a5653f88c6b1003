"""What a page says, for people and for models: as plain text or as Markdown, without the furniture around it (X5).

The part of the tree that scores best as content is taken (turbohtml's scoring, which goes by length of text, commas and
the share of links). A page that is a list, a table or a handful of short texts has no such part, or only a small one:
then it is taken whole, but for navigation, headers, footers, asides and what is not shown. Headings, lists, tables and
code are kept, which `main_text`, made to compare pages by, leaves out.

What must stay true: any text gives an answer; time is linear in its length (`tree.tamed`); the text of an `script` or
`style` is never part of it; links in Markdown are absolute.
"""

from __future__ import annotations

import re

from turbohtml import Document, Element, Markdown, PlainText, parse

from nephila.urls import Base

from .tree import tamed

_UNSHOWN = "script, style, noscript, template, svg, iframe, object, select, [hidden], [aria-hidden=true]"
_FURNITURE = "nav, header, footer, aside, form, [role=navigation], [role=banner], [role=contentinfo], [role=search]"
LEAST_SHARE = 4
"""A part that holds less than one in so many characters of what is not furniture is not what the page says."""
LITTLE = 200
"""Characters: with fewer outside of the furniture, a page that is mostly furniture is taken with it."""
_WEB = ("http://", "https://", "mailto:")
_PLAIN = PlainText(layout="extended")
_MARKDOWN = Markdown()
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")


def readable_text(text: str) -> str:
    """The main content of a page as plain text: blocks apart by an empty line, lists with their bullets."""
    return _tidy(_main(text, "").to_text(_PLAIN))


def readable_markdown(text: str, base: str) -> str:
    """The main content of a page as Markdown; `base` is what its links are relative to."""
    return _tidy(_main(text, base).to_markdown(_MARKDOWN))


def _document(text: str, base: str) -> Document:
    document = parse(tamed(text), positions=False, allow_declarative_shadow_roots=False)
    for element in document.select(_UNSHOWN):
        element.decompose()
    if base:
        _resolve(document, base)
    return document


def _main(text: str, base: str) -> Element | Document:
    """The part of the document that is its content."""
    document = _document(text, base)
    found, body = document.main_content(), document.select_one("body")
    if body is None:
        return found or document
    said, whole = len(found.text) if found is not None else 0, len(body.text)
    if found is not None and said * LEAST_SHARE >= whole:
        return found
    for element in body.select(_FURNITURE):
        element.decompose()
    outside = len(body.text)
    if found is not None and said * LEAST_SHARE >= outside and len(found.text) == said:
        return found
    if outside < LITTLE and outside * LEAST_SHARE < whole:  # all of it stands in what others use for furniture
        return _document(text, base)
    return body


def _resolve(document: Document, base: str) -> None:
    root = Base.parse(base)
    for element in document.iter_elements(("base", "a", "img")):
        name = "src" if element.tag == "img" else "href"
        href = element.attr(name)
        if href is None or root is None:
            continue
        joined = root.join(href)
        if element.tag == "base":
            root = Base.parse(joined) if joined and joined.startswith(_WEB) else root
        elif joined is not None and joined.startswith(_WEB):
            element.attrs[name] = joined
        else:  # a script, or nothing that leads anywhere: the text stays
            del element.attrs[name]


def _tidy(text: str) -> str:
    return _BLANK_LINES.sub("\n\n", text).strip()
