"""Sitemaps and their indexes, from the tokens of a `MarkupStream` (X3; sitemaps.org, 0.9).

Read leniently, as sites are: whatever the namespace is called, with several locations in one entry or none but bare
text, with fields in any order, with tags that are not closed. What belongs to an extension (images, videos, news,
alternates) is told by its prefix or by standing in an element that the protocol does not know; it is counted, and of
news the date is kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from nephila.model.listing import Listed

from .markup_stream import END, START, TEXT, Token
from .moments import moment_s

_FIELDS = frozenset({"loc", "lastmod", "changefreq", "priority"})
_FREQUENCIES = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})
_COUNTED = frozenset({"image", "video", "news", "link"})
_ENTRIES = {"url": False, "sitemap": True}
MAX_FIELD = 65_536
"""Characters of a field: more than the longest URL that the settings allow."""
_PLAIN = re.compile(
    r"""\s*+<url>\s*+<loc>([^<>&]*+)</loc>\s*+(?:<lastmod>([^<>&]*+)</lastmod>\s*+)?
    (?:<changefreq>([^<>&]*+)</changefreq>\s*+)?(?:<priority>([^<>&]*+)</priority>\s*+)?</url>""",
    re.VERBOSE,
)
"""An entry as nearly all are written."""


class SitemapReader:
    """Reads the entries of one sitemap or index."""

    def __init__(self, root: str, clean: Callable[[str], str], counts: Counter[str]) -> None:
        """`root` is the name of the root element as written; `clean` makes absolute URLs, or nothing."""
        prefix, colon, _ = root.rpartition(":")
        self._prefix = prefix + colon
        self._clean = clean
        self._in_entry = False
        self._is_list = False
        self._field = ""
        self._text: list[str] = []
        self._length = 0
        self._within = 0
        """Elements open in a location that are called like an entry."""
        self._foreign = ""
        self._values: dict[str, str] = {}
        self.found: list[Listed] = []
        self.counts = counts

    def take(self, token: Token) -> None:
        """One token; entries that are whole appear in `found`."""
        kind, name, data = token
        if kind == TEXT:
            if self._in_entry and self._length < MAX_FIELD and (self._field or not self._foreign):
                self._text.append(data)
                self._length += len(data)
        elif kind == START:
            self._start(name)
        elif kind == END:
            self._end(name)

    def skim(self, text: str, at: int) -> int:
        """Take entries that are written plainly, many at once: the same as by their tokens, five times as fast."""
        if self._in_entry or self._prefix:
            return at
        while (entry := _PLAIN.match(text, at)) is not None:
            at = entry.end()
            loc, lastmod, frequency, priority = entry.groups()
            if len(loc) <= MAX_FIELD and (url := self._clean(loc)):
                frequency = frequency.strip().lower() if frequency else ""
                self.found.append(
                    Listed(
                        url,
                        moment_s(lastmod.strip()) if lastmod else 0,
                        frequency if frequency in _FREQUENCIES else "",
                        _share(priority.strip()) if priority else -1.0,
                    )
                )
            else:
                self.counts["malformed"] += 1
        return at

    def close(self) -> None:
        """There is no more: what was begun is taken as it is."""
        if self._field:
            self._close_field()
        self._finish()

    def _start(self, name: str) -> None:
        prefix, colon, local = name.rpartition(":")
        local = local.lower()
        if not self._in_entry and local in _ENTRIES:
            self._prefix = prefix + colon  # the root may be in another namespace, or in none
        own = prefix + colon == self._prefix
        if self._field == "loc":
            if not (own and (local in _ENTRIES or local in _FIELDS)) or self._is_blank():
                self._within += local in _ENTRIES
                return  # an element in a location: its text is the location's
            self._close_field()  # which nobody has closed
        if own and local in _ENTRIES:
            self._finish()
            self._in_entry, self._is_list = True, _ENTRIES[local]
        elif not self._in_entry:
            return
        elif own and local in _FIELDS and not self._foreign:
            if local == "loc" and "loc" in self._values:
                self._finish(again=True)
            self._begin(local)
        elif local == "publication_date":
            self._begin(local)
        elif not self._foreign:
            self._foreign = name
            self.counts[local if local in _COUNTED else "other"] += 1

    def _end(self, name: str) -> None:
        local = name.rpartition(":")[2].lower()
        if self._field and local == self._field:
            self._close_field()
        elif self._field == "loc" and local in _ENTRIES:
            self._within -= 1
            if self._within < 0:  # the entry's own, and its location is not closed
                self._close_field()
                self._finish()
        elif self._field:
            return
        elif name == self._foreign:
            self._foreign = ""
        elif local in _ENTRIES and not self._foreign:
            self._finish()

    def _is_blank(self) -> bool:
        """Whether a field says nothing so far; its blanks are not looked at again."""
        if "".join(self._text).strip():
            return False
        self._text, self._length = [], 0
        return True

    def _close_field(self) -> None:
        value = "".join(self._text).strip()
        if value or self._field not in self._values:
            self._values[self._field] = value
        self._begin("")

    def _begin(self, field: str) -> None:
        if field:  # bare text of an entry is kept until its end: it may be all the location that there is
            self._values.setdefault("", "".join(self._text).strip())
        self._field, self._text, self._length, self._within = field, [], 0, 0

    def _finish(self, *, again: bool = False) -> None:
        """The entry is over; with `again` another one begins inside the same element."""
        values, self._values = self._values, {}
        if self._in_entry:
            bare = values.get("") or "".join(self._text).strip()
            url = self._clean(values.get("loc", bare))
            if url:
                self.found.append(_entry(url, values, is_list=self._is_list))
            else:
                self.counts["malformed"] += 1
        self._in_entry = self._in_entry and again
        self._field, self._foreign, self._text, self._length = "", "", [], 0


def _entry(url: str, values: dict[str, str], *, is_list: bool) -> Listed:
    frequency = values.get("changefreq", "").lower()
    return Listed(
        url,
        moment_s(values.get("lastmod", "")),
        frequency if frequency in _FREQUENCIES else "",
        _share(values.get("priority", "")),
        moment_s(values.get("publication_date", "")),
        is_list,
    )


def _share(text: str) -> float:
    """A priority from 0 to 1, or -1 for none; a comma is as good as a point."""
    if not text or len(text) > 20:
        return -1.0
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return -1.0
    return value if 0.0 <= value <= 1.0 else -1.0
