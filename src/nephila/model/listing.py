"""What sitemaps, feeds and outlines list: URLs that a site offers by itself (X3)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import NamedTuple


class ListKind(StrEnum):
    """What a document is that lists URLs."""

    SITEMAP = "sitemap"
    INDEX = "sitemap_index"
    """A sitemap of sitemaps."""
    TEXT = "text_sitemap"
    FEED = "feed"
    """RSS of any version, Atom, JSON Feed."""
    OUTLINE = "outline"
    """OPML: a reader's list of feeds."""


class Listed(NamedTuple):
    """One entry. A tuple: a sitemap has up to fifty thousand of them."""

    url: str
    """Absolute, resolved against the document, fragment taken off."""
    lastmod_s: int = 0
    """UTC seconds at which the page is said to have changed; 0 when nothing is said."""
    changefreq: str = ""
    priority: float = -1.0
    """0 to 1 as the site says; below 0 when it says nothing."""
    published_s: int = 0
    """UTC seconds, of news and of items of feeds."""
    is_list: bool = False
    """It leads to another document of this kind, not to a page."""
    bare: bool = False
    """A seed without a scheme: http is tried when https cannot be reached."""


@dataclass(frozen=True, slots=True)
class ListNote:
    """What is remembered of a list itself."""

    kind: str
    """A `ListKind`; empty while it was never read."""
    read_s: int = 0
    """UTC seconds of the last time it was read, or found unchanged."""
    entries: int = 0
    """Entries when it was last read."""
    added: int = 0
    """URLs that it brought and that nobody had met before, over all readings."""
    seeds: bool = False
    """Somebody gave it as a list of seeds: its entries are seeds too."""


@dataclass(frozen=True, slots=True)
class ListedNote:
    """What is remembered of a listed page, to see whether its lastmod tells the truth."""

    lastmod_s: int
    """As the list says now."""
    seen_s: int = 0
    """What the list had said when the page was last visited; 0 before that."""
    text: bytes = b""
    """Stands for the content of that visit."""
    source: bytes = b""
    """Fingerprint of the list."""
    flagged_s: int = 0
    """UTC seconds of a visit that found a change of which nothing was said; 0 when there is none to explain."""
    every_s: int = 0
    """How often the list says that it changes, in seconds; 0 when it says nothing."""
    visited_s: int = 0
    """UTC seconds of its last visit since it is compared."""


@dataclass(frozen=True, slots=True)
class SiteTrust:
    """What a host's lastmod has been worth."""

    right: int = 0
    """Changes that were announced, and found."""
    false: int = 0
    """Announced, and not found."""
    missed: int = 0
    """Found, and not announced."""
    sampled: int = 0
    """Pages that are compared."""
    evidence: tuple[str, ...] = ()
    """The latest few, in words."""
    often_right: int = 0
    """Visits that found a page to change as often as its changefreq says."""
    often_wrong: int = 0
    """Visits that found it to change less often, or more."""
    priorities: int = 0
    """Entries that had a priority, the older ones counting less, and their mean."""
    priority_mean: float = 0.0


@dataclass(frozen=True, slots=True)
class ListTotals:
    """What lists have brought to a crawl."""

    sitemaps: int = 0
    """Sitemaps and indexes that were read, each as often as that was."""
    feeds: int = 0
    entries: int = 0
    added: int = 0
    """URLs that nobody had met before."""
    renewed: int = 0
    """Pages that became due because of what a list said."""

    def plus(self, other: ListTotals) -> ListTotals:
        """Both together."""
        return ListTotals(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))
