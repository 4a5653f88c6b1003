"""What is remembered of sitemaps and feeds, of what they list, and of how far sites are to be believed (X3)."""

from __future__ import annotations

from typing import Protocol

from nephila.model.listing import ListedNote, ListNote, ListTotals, SiteTrust
from nephila.urls import Fingerprint


class Listings(Protocol):
    """Remembers. What was kept is seen at once, and is there after `flush`, whatever dies."""

    def list_of(self, fingerprint: Fingerprint) -> ListNote | None:
        """What is known of a list, None when the URL is none that was read."""

    def listed(self, fingerprint: Fingerprint) -> ListedNote | None:
        """What is known of a page that a list names, None when it is not one of those that are compared."""

    def site(self, host: str) -> SiteTrust:
        """What a host's word has been worth so far."""

    def totals(self) -> ListTotals:
        """What lists have brought to the crawl."""

    def keep(self, key: Fingerprint | str, note: ListNote | ListedNote | SiteTrust | ListTotals) -> None:
        """From now on this is known of a list, a page, a host; of totals, that so much comes on top."""

    def flush(self) -> None:
        """Make durable what was kept."""

    def close(self) -> None:
        """Flush and close."""
