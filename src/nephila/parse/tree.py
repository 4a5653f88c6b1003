"""Text to the elements that matter, by a parser that hostile pages cannot slow down.

turbohtml builds the tree that browsers build (WHATWG) and, like them, nests at most some hundred elements deep: so the
shapes on which other parsers take quadratic time (unclosed tags by the thousand, tags closed in the wrong order, very
many attributes) cost it no more than an ordinary page of that size. lexbor, as fast on ordinary pages, takes a hundred
times as long on most of them, and no cheap look at the bytes tells those pages from good ones; it is the oracle of the
tests instead.

Three shapes are left that grow in any parser, because the standard wants it so, and they are taken out beforehand:
`<html>` and `<body>` tags by the thousand, whose attributes are all merged into one element; formatting tags (`<i>`,
`<font>` and the like) that are never closed and so are opened again in every paragraph after them; and sheer numbers of
tags. The tags in question are renamed: they become elements that mean nothing, and the links around them stay.

What must stay true: time and memory are linear in the length of the text; elements come in document order; what a
browser does not show as part of the document (the content of templates) is not among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from turbohtml import Document, Element, Namespace, parse

_SHORT_TEXT = 16_384
"""Characters of a page that can do no harm: at worst it takes 0.1 s. It is not looked at any closer."""
_FEW_TAGS = 2_000
"""Tags of which the same is true; half of all real pages have fewer."""
_MAX_TAGS = 300_000
"""Tags of a page that are parsed, for some 100 bytes of memory each; our own choice, far above real pages."""
_MAX_REOPENED = 3_000_000
"""Elements that formatting tags may add to a page at worst; our own choice, 0.3 s and 300 MB."""
_DEEPEST = 512
"""How deep the parser nests, as Chromium does: no more formatting is reopened at once."""

_MERGED_TAG = re.compile(r"<(?=html|body)", re.IGNORECASE)
_MERGED_TAGS_KEPT = 16
"""Of `<html` and `<body`; a good page has one each, and a few more in its scripts."""

_FORMATTING_TAG = re.compile(r"<(?=(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\s/>])", re.IGNORECASE)
_MEANINGLESS = "<x-"


def _without_merging(text: str) -> str:
    """The text with all but the first `<html>` and `<body>` tags renamed, so that nothing is left to merge."""
    for count, tag in enumerate(_MERGED_TAG.finditer(text)):
        if count == _MERGED_TAGS_KEPT:
            return text[: tag.start()] + _MERGED_TAG.sub(_MEANINGLESS, text[tag.start() :])
    return text


def _without_reopening(text: str, tags: int) -> str:
    """The text with its formatting tags renamed, if they could make its tree very much larger than it is."""
    if tags * _DEEPEST <= _MAX_REOPENED or tags * len(_FORMATTING_TAG.findall(text)) <= _MAX_REOPENED:
        return text
    return _FORMATTING_TAG.sub(_MEANINGLESS, text)


def tamed(text: str) -> str:
    """The text with what would make it cost more than its size taken out; almost always the text itself."""
    if len(text) <= _SHORT_TEXT:
        return text
    tags = text.count("<")
    if tags <= _FEW_TAGS:
        return text
    if tags > _MAX_TAGS:
        text = "<".join(text.split("<", _MAX_TAGS)[:_MAX_TAGS])
    return _without_reopening(_without_merging(text), min(tags, _MAX_TAGS))


def document_of(text: str) -> Document:
    """The document that a browser without scripts makes of the text."""
    document = parse(tamed(text), positions=False, allow_declarative_shadow_roots=False)
    for template in document.select("template"):
        # Declarative shadow roots are templates that browsers do show.
        if template.namespace is Namespace.HTML and template.attr("shadowrootmode") is None:
            template.decompose()
    return document


def elements(text: str, tags: Iterable[str]) -> Iterator[Element]:
    """The elements of these tags in that document."""
    return document_of(text).iter_elements(tags)
