"""Which pages say nearly what another one said before, and what is made of them (D3).

Marked with their original they are all the same; whether their links are followed and their bodies are stored, the
settings say. A near-duplicate is not remembered itself: what is near to it is near to its original, or new. So a
family of similar pages has one original, the earliest, and no chain of small changes leads from one text to another.

The rules about traps hear of a page that is near to another one of its host (T2), but only where the family has had its
title before, numbers apart. The products of a shop share a template and its notices, and what tells them apart may be
no more than a name and a table: near-duplicates, and each of them worth having. Each has a title of its own, and the
rooms of a maze have not. Titles are remembered in memory alone; where one is forgotten, or was met by another process,
a page is given the benefit of the doubt once.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import replace
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from nephila.interfaces.near_duplicates import NearIndex
from nephila.interfaces.sieve import Sifted
from nephila.model.likeness import Likeness
from nephila.model.near import NearOriginal
from nephila.model.noun import quick
from nephila.model.page import Page
from nephila.model.settings import DedupSettings
from nephila.model.task import Refusal
from nephila.urls import origin_of

NOTE_ORIGINAL, NOTE_HOW, NOTE_SIMHASH = "nearDuplicateOf", "nearDuplicateBy", "simhash"
"""Fields of the metadata record: the original's URL; distance and resemblance; the hash, where no body tells it."""

NEAR_DUPLICATE = "near_duplicate"
"""The reason of links that are refused because they were found on one."""

_has_digit = re.compile(r"\d").search
_NUMBERED = re.compile(r"(?<![^ ])[^ \d]*+\d[^ ]*+")
"""A word that holds a digit; words are apart by one space."""

TITLES = 16_384
"""Places for titles of families, of which each holds the latest that fell there: 256 KB."""


@quick
class Compared(NamedTuple):
    """What came of comparing a page with those before it."""

    original: NearOriginal | None = None
    likeness: Likeness | None = None
    """To be remembered, if the page is stored: no other page was near."""


class NearPages:
    """Compares pages. `index` is None where nobody wants that."""

    def __init__(self, index: NearIndex | None, settings: DedupSettings) -> None:
        self._index = index
        self._settings = settings
        places = bytes(8 * TITLES if index is not None else 0)
        self._titles = array("Q", places)
        """Marks of originals with titles of their families, at the places that these say."""
        self._owners = array("Q", places)
        """At the same places: the page that was first to have it."""

    def likeness_of(self, page: Page | None) -> Likeness | None:
        """What a page is compared by; None for one that has too little text, or where nothing is compared."""
        if self._index is None or page is None or not page.sketch or page.words < self._settings.near_min_words:
            return None
        return page.likeness

    def compare(self, page: Page | None, url: str) -> Compared:
        """Compare a page with all before it. Its own earlier version is no original."""
        likeness = self.likeness_of(page)
        if likeness is None or self._index is None:
            return Compared()
        original = self._index.find(likeness)
        if original is None:
            self._has_title(url, page, url)
            return Compared(likeness=likeness)
        return Compared(None if original.url == url else original)

    def is_familiar(self, original: NearOriginal | None, page: Page | None, url: str) -> bool:
        """Whether a page is near to one of its own host, under a title that others near to that one had before."""
        return original is not None and is_of_host(original, url) and self._has_title(original.url, page, url)

    def _has_title(self, family: str, page: Page | None, url: str) -> bool:
        """Whether another page of a family had this one's title before; it is remembered."""
        title = " ".join(page.title.lower().split()) if page is not None else ""
        if _has_digit(title):
            title = " ".join(_NUMBERED.sub("", title).split())
        mark = xxh3_64_intdigest(f"{family}\n{title}".encode("utf-8", "replace"))
        owner = xxh3_64_intdigest(url.encode("utf-8", "replace"))
        place = mark % TITLES
        if self._titles[place] == mark:
            return self._owners[place] != owner  # one page may be judged twice
        self._titles[place], self._owners[place] = mark, owner
        return False

    def remember(self, likeness: Likeness | None, url: str) -> Likeness | None:
        """Keep a page as an original; what to `forget` if it is refused, None when nothing was added."""
        if self._index is None or likeness is None or not self._index.remember(likeness, url):
            return None
        return likeness

    def forget(self, likeness: Likeness | None, url: str) -> None:
        """Take back what `remember` added."""
        if self._index is not None and likeness is not None:
            self._index.forget(likeness, url)

    def sift(self, sifted: Sifted, original: NearOriginal | None) -> Sifted:
        """The links of a page that go on: none of a near-duplicate where the settings say so, each refusal kept."""
        if original is None or self._settings.near_follow or not sifted.candidates:
            return sifted
        refused = [Refusal(one.address, NEAR_DUPLICATE, f"like {original.url}") for one in sifted.candidates]
        return replace(sifted, candidates=[], refused=[*sifted.refused, *refused])

    def stores_body(self, original: NearOriginal | None) -> bool:
        """Whether the body of a page goes into the archive."""
        return original is None or self._settings.near_store


NOT_COMPARED = NearPages(None, DedupSettings())
"""Where near-duplicates are not looked for."""


def notes_of(original: NearOriginal) -> list[tuple[str, str]]:
    """A near-duplicate's original as fields of the metadata record."""
    how = f"distance {original.distance} resemblance {original.resemblance:.3f}"
    return [(NOTE_ORIGINAL, original.url), (NOTE_HOW, how)]


def original_of(notes: dict[str, str]) -> NearOriginal | None:
    """The original that was written down by `notes_of`."""
    if NOTE_ORIGINAL not in notes:
        return None
    words = notes.get(NOTE_HOW, "").split()
    return NearOriginal(notes[NOTE_ORIGINAL], int(words[1]), float(words[3])) if len(words) == 4 else None


def is_of_host(original: NearOriginal | None, url: str) -> bool:
    """Whether a page and its original are of one host."""
    return original is not None and _host(original.url) == _host(url)


def _host(url: str) -> str:
    return origin_of(url).partition("://")[2]
