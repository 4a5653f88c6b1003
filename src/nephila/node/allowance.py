"""The limits of a crawl (S3), as a plain account: what is used, what is on its way, which limit is reached."""

from __future__ import annotations

from nephila.model.settings import LimitSettings
from nephila.model.summary import StoppedBy
from nephila.observe.limit import Used


class PageAllowance:
    """Lets no more requests out than pages are left: `--max-pages 100` stores a hundred, not a hundred and three."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self._on_their_way = 0
        self.pages = 0
        """Pages of this cycle, earlier runs included."""

    def take(self) -> bool:
        """One more request is to be sent; False when it might be one page too many."""
        if self._limits.max_pages and self.pages + self._on_their_way >= self._limits.max_pages:
            return False
        self._on_their_way += 1
        return True

    def give(self) -> None:
        """That request has ended, and is counted if it was a page."""
        self._on_their_way -= 1

    @property
    def left(self) -> int | None:
        """How many requests may still be sent now; None when there is no limit."""
        if not self._limits.max_pages:
            return None
        return max(0, self._limits.max_pages - self.pages - self._on_their_way)

    def reached(self, used: Used) -> StoppedBy | None:
        """The limit that ends the crawl, None while there is room under all."""
        limits = self._limits
        if limits.max_pages and used.pages >= limits.max_pages:
            return StoppedBy.MAX_PAGES
        if limits.max_domains and used.domains >= limits.max_domains:
            return StoppedBy.MAX_DOMAINS
        if limits.max_total_bytes and used.bytes >= limits.max_total_bytes:
            return StoppedBy.MAX_BYTES
        if limits.max_time_s and used.seconds >= limits.max_time_s:
            return StoppedBy.MAX_TIME
        return None
