"""Which captures are meant, and why the others are left out. Plain functions of rows of the catalogue.

Of each URL it is the newest capture that fits, as far as the crawl had come when the export began; where a later answer
said that the page is gone (404, 410), none of it. What a page or its site asks for is obeyed unless somebody says
otherwise (K3): pages with `noindex` or `noarchive` are left out, and so are pages whose site does not want the use that
they are exported for. What they ask for now holds for what they were before, too.

What must stay true: a capture is left out for one reason, the first that holds, so that what was exported and what was
left out add up to what was looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from nephila.interfaces.catalogue import EXTERNAL, CaptureRow
from nephila.model.exchange import told_type
from nephila.model.noun import noun

from .preferences import Use, refuses

OK = 200
NOT_MODIFIED = 304
GONE = frozenset({404, 410})
HTML_TYPES = ("text/html", "application/xhtml+xml")
_NOT_KEPT = "unspecified"
"""How the catalogue says that a body was left out by us."""


class LeftOut(StrEnum):
    """Why a capture is not in an export."""

    NOT_A_PAGE = "not_a_page"
    SITE = "site"
    TIME = "time"
    STATUS = "status"
    TYPE = "type"
    UNCHANGED = "unchanged"
    NOT_KEPT = "not_kept"
    TRUNCATED = "truncated"
    NOINDEX = "noindex"
    NOARCHIVE = "noarchive"
    USE = "use"
    DUPLICATE = "duplicate"
    OLDER = "older"
    GONE = "gone"
    TAKEN_DOWN = "taken_down"
    NOT_FOUND = "not_found"
    NO_ORIGINAL = "no_original"
    DAMAGED = "damaged"


MEANINGS = {
    LeftOut.NOT_A_PAGE: "robots.txt, sitemaps, and what browsers fetched for pages",
    LeftOut.SITE: "of other hosts or domains",
    LeftOut.TIME: "before or after the time that was asked for",
    LeftOut.STATUS: "with another status",
    LeftOut.TYPE: "of another content type",
    LeftOut.UNCHANGED: "visits that found the page unchanged",
    LeftOut.NOT_KEPT: "whose body was not stored, or not in this archive",
    LeftOut.TRUNCATED: "cut off: --include truncated has them",
    LeftOut.NOINDEX: "the page asks for it: --include noindex has them",
    LeftOut.NOARCHIVE: "the page asks for it: --include noarchive has them",
    LeftOut.USE: "their site does not want that use",
    LeftOut.DUPLICATE: "say the same as another page, or nearly",
    LeftOut.OLDER: "there is a newer capture: --all has them",
    LeftOut.GONE: "the page is gone since (404 or 410): --all has them",
    LeftOut.TAKEN_DOWN: "were taken down",
    LeftOut.NOT_FOUND: "are what the site shows for pages that it does not have",
    LeftOut.NO_ORIGINAL: "copies of a page that is not in the archive any more",
    LeftOut.DAMAGED: "cannot be read: the archive is damaged there",
}


class Include(StrEnum):
    """What is left out unless it is asked for."""

    NOINDEX = "noindex"
    NOARCHIVE = "noarchive"
    TRUNCATED = "truncated"


@noun
class Selection:
    """What was asked for."""

    hosts: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    statuses: frozenset[int] = frozenset({OK})
    """Empty: any."""
    types: tuple[str, ...] = ()
    """Media types, ``text/*`` for all of a kind; empty: any."""
    since: int = 0
    until: int = 0
    """UTC milliseconds; 0: without a bound. The second is not part of it."""
    newest: bool = True
    """Of each URL one capture, not all."""
    unique: bool = False
    """Without what says the same as another page, or nearly."""
    include: frozenset[Include] = frozenset()
    use: frozenset[Use] = frozenset()
    bodies: bool = True
    """Only what has its body in the archive."""
    everything: bool = False
    """Exchanges that are no pages, too: robots.txt, and what browsers fetched."""

    def reason(self, row: CaptureRow) -> LeftOut | None:
        """Why a capture does not fit by itself; None where it does."""
        return self._misplaced(row) or self._other_kind(row) or self._without_body(row) or self._refused(row)

    def _misplaced(self, row: CaptureRow) -> LeftOut | None:
        if (not row.fingerprint or row.robots) and not self.everything:
            return LeftOut.NOT_A_PAGE
        if (self.hosts or self.domains) and row.host not in self.hosts and row.domain not in self.domains:
            return LeftOut.SITE
        if row.at < self.since or (self.until and row.at >= self.until):
            return LeftOut.TIME
        return None

    def _other_kind(self, row: CaptureRow) -> LeftOut | None:
        """Of another status or type."""
        if row.status == NOT_MODIFIED:  # stands for what it found unchanged
            return LeftOut.UNCHANGED if self.newest else None
        if self.statuses and row.status not in self.statuses:
            return LeftOut.STATUS
        return LeftOut.TYPE if self.types and not self._is_of_type(row.content_type) else None

    def _without_body(self, row: CaptureRow) -> LeftOut | None:
        if row.kind == EXTERNAL or (self.bodies and row.truncated == _NOT_KEPT):
            return LeftOut.NOT_KEPT
        if not self.bodies or row.kind == "revisit":
            return None
        if row.truncated:
            return None if Include.TRUNCATED in self.include else LeftOut.TRUNCATED
        if row.status == NOT_MODIFIED:
            return LeftOut.NOT_KEPT  # of what it found unchanged nothing was known any more
        if not row.content_hash and row.status == OK:
            return LeftOut.NOT_A_PAGE  # a sitemap or a feed, or of a type that was not read
        return None

    def _is_of_type(self, header: str) -> bool:
        """Whether a Content-Type is one of those; one that is not told is looked at in the bytes later on."""
        essence = told_type(header)
        return not essence or essence in self.types or essence.partition("/")[0] + "/*" in self.types

    def is_of_type(self, media_type: str) -> bool:
        """Whether what the bytes turned out to be is one of those."""
        return not self.types or self._is_of_type(media_type)

    def withheld(self, *, noindex: bool, noarchive: bool) -> LeftOut | None:
        """Why a page is left out that asks for something, unless somebody wants it all the same."""
        if noindex and Include.NOINDEX not in self.include:
            return LeftOut.NOINDEX
        return LeftOut.NOARCHIVE if noarchive and Include.NOARCHIVE not in self.include else None

    def _refused(self, row: CaptureRow) -> LeftOut | None:
        if (withheld := self.withheld(noindex=row.noindex, noarchive=row.noarchive)) is not None:
            return withheld
        if self._is_unwanted(row):
            return LeftOut.USE
        if self.unique and (row.near_duplicate_of or row.duplicate_of not in {"", row.url}):
            return LeftOut.DUPLICATE
        return None

    def _is_unwanted(self, row: CaptureRow) -> bool:
        """Whether its site did not want the use that it is exported for."""
        return bool(self.use and row.signals) and any(refuses(row.signals, one) for one in self.use)

    def superseded(self, row: CaptureRow, history: Iterable[CaptureRow]) -> LeftOut | None:
        """Why a capture that fits is left out for the sake of later ones of its URL; None where it is the one."""
        later = [other for other in history if _age(other) > _age(row) and not 0 < self.until <= other.at]
        if any(self.reason(other) is None for other in later):
            return LeftOut.OLDER
        later.sort(key=_age, reverse=True)
        withdrawn = next((reason for other in later if (reason := self._withdrawn(other)) is not None), None)
        # Every visit is under the robots.txt of its day: the last one tells what the site wants now.
        visit = next((other for other in later if other.kind != EXTERNAL), None)
        return LeftOut.USE if withdrawn is None and visit is not None and self._is_unwanted(visit) else withdrawn

    def _withdrawn(self, row: CaptureRow) -> LeftOut | None:
        """Why what a page was before is left out for the sake of this capture."""
        return LeftOut.GONE if row.status in GONE else self.withheld(noindex=row.noindex, noarchive=row.noarchive)


def _age(row: CaptureRow) -> tuple[int, str, int]:
    return row.at, row.segment, row.offset


def last_seen(row: CaptureRow, history: Iterable[CaptureRow]) -> int:
    """When a page was last found as a capture has it: that capture's time, or that of a later 304."""
    later = [other for other in history if other.at > row.at]
    changed = min((other.at for other in later if other.status != NOT_MODIFIED), default=0)
    return max([row.at, *(one.at for one in later if one.status == NOT_MODIFIED and not 0 < changed < one.at)])
