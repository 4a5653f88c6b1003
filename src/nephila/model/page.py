"""What was read out of a body: pure data, made by `parse`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .likeness import Likeness
from .noun import noun, quick


@quick
class Link(NamedTuple):
    """One reference found in a page, already resolved against the document's base. A tuple: there are eighty a page."""

    url: str
    """Absolute, by the WHATWG rules, fragment kept off."""
    tag: str
    """``a``, ``area``, ``link``, ``iframe``, ``frame``, ``form``, ``meta`` (refresh, in a header too),
    ``img``, ``srcset``; ``pdf`` and ``pdf-text`` in a PDF; else what an extractor of content calls it."""
    rel: str
    text: str
    """The anchor text, white space folded, at most 200 characters."""


FRAMES = frozenset({"iframe", "frame"})
"""Tags of documents in the document."""


@noun
class Directives:
    """What the page asks of crawlers (X2): meta robots and X-Robots-Tag together, for our agent."""

    nofollow: bool = False
    noindex: bool = False
    noarchive: bool = False


@noun
class Page:
    """A parsed document."""

    url: str
    base: str
    charset: str
    title: str
    links: Sequence[Link]
    """In document order, each URL once (the first rel and text win). A tuple, or something like one that makes its
    nouns when they are asked for."""
    directives: Directives
    canonical: str = ""
    language: str = ""
    hreflang: tuple[tuple[str, str], ...] = ()
    """Pairs of language and URL."""
    text_hash: bytes = b""
    """Eight bytes that stand for the text without that of links; empty when there is none."""
    shape_hash: bytes = b""
    """The same without words that hold a digit and without names of months and days: equal for a calendar's pages."""
    said_hash: bytes = b""
    """The same for its main text without numbers and what they count: equal where a page has not changed (R2)."""
    simhash: int = 0
    sketch: bytes = b""
    """Empty where the main text is too short to be compared."""
    words: int = 0
    """Of the main text."""
    extracted: tuple[tuple[str, str], ...] = ()
    """What content extractors found beside links, as ``PLUGIN.FIELD`` and text (E1)."""
    keep_body: bool = True
    """Whether its body is to be stored: not that of a PDF which was fetched for its links (X4)."""
    requisites: tuple[Link, ...] = ()
    """What it is shown with, where that is asked for: style sheets, scripts, pictures, frames."""

    @property
    def likeness(self) -> Likeness:
        """What its main text is compared by."""
        return Likeness(self.simhash, self.sketch, self.words)
