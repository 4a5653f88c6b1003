"""What sitemaps, feeds and outlines list: URLs that a site offers by itself (X3)."""

from __future__ import annotations

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
