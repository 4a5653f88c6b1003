"""What lists have to do with a URL, for `why`: which of them named it, and how far its site is believed (X3, T8)."""

from __future__ import annotations

from nephila.frontier.embedded import LmdbFrontierView
from nephila.interfaces.listings import Listings
from nephila.interfaces.politeness import Politeness
from nephila.model.listing import ListKind, ListNote
from nephila.model.settings import SitemapSettings
from nephila.pipeline.frequency import is_frequency_believed
from nephila.pipeline.lists import GUESS
from nephila.pipeline.trust import is_believed
from nephila.urls import Address, Fingerprint, Identifier, origin_of

from .circumstances import moment

KINDS = {
    ListKind.SITEMAP: "the sitemap",
    ListKind.INDEX: "the sitemap index",
    ListKind.TEXT: "the text sitemap",
    ListKind.FEED: "the feed",
    ListKind.OUTLINE: "the outline",
}
Lines = list[tuple[str, str]]


class ListTeller:
    """Adds to the story of a URL."""

    def __init__(
        self,
        listings: Listings,
        identifier: Identifier,
        view: LmdbFrontierView,
        politeness: Politeness,
        settings: SitemapSettings,
    ) -> None:
        self._listings = listings
        self._identifier = identifier
        self._view = view
        self._politeness = politeness
        self._settings = settings

    def add(self, address: Address, lines: Lines, data: dict[str, object]) -> None:
        """Say where a list comes in."""
        self._source(address, lines, data)
        own = self._listings.list_of(address.fingerprint)
        if own is not None and own.kind:
            brought = f"{own.entries:,} entries when it was last read, {moment(own.read_s * 1000)}; "
            lines.append(("is a list", f"{KINDS[ListKind(own.kind)]}: {brought}{own.added:,} URLs not met before"))
            data["list"] = {"kind": own.kind, "entries": own.entries, "added": own.added, "read_at": own.read_s * 1000}
        self._trust(address, lines, data)

    def _source(self, address: Address, lines: Lines, data: dict[str, object]) -> None:
        """Name the list that it was found in, or who named the list that it is."""
        via = data.get("via")
        if via and (note := self._note(str(via))) is not None and note.kind:
            told = f"in {KINDS[ListKind(note.kind)]} {via}"
            data["found_in"] = note.kind
        elif not via and data.get("depth") and data.get("state") not in {"unknown", "robots", "refused"}:
            rules = self._view.rules(origin_of(address.url))
            named = rules is not None and address.url in self._politeness.sitemaps(rules)
            guessed = address.url == origin_of(address.url) + GUESS
            told = "as a Sitemap line of its robots.txt" if named or not guessed else "tried, as many sites have it"
            data["found_in"] = "robots.txt" if named or not guessed else "guess"
        else:
            return
        at = next((place for place, (label, _) in enumerate(lines) if label == "found"), None)
        if at is not None:
            lines[at] = ("found", told)

    def _trust(self, address: Address, lines: Lines, data: dict[str, object]) -> None:
        """What the words of its host have been worth, where anything is known of it."""
        site = self._listings.site(address.host)
        if site.often_right or site.often_wrong:
            believed = is_frequency_believed(site, self._settings)
            figures = f"{site.often_right} right, {site.often_wrong} wrong"
            lines.append(("changefreq", f"of {address.host}: {'believed' if believed else 'not believed'} ({figures})"))
            data["changefreq"] = {"believed": believed, "right": site.often_right, "wrong": site.often_wrong}
        if not (site.right or site.false or site.missed):
            return
        believed = is_believed(site, self._settings)
        told = "believed" if believed else "not believed"
        figures = f"{site.right} right, {site.false} false, {site.missed} missed"
        lines.append(("lastmod", f"of {address.host}: {told} ({figures})"))
        lines += [("evidence", one) for one in site.evidence]
        data["lastmod"] = {
            "believed": believed,
            "right": site.right,
            "false": site.false,
            "missed": site.missed,
            "evidence": list(site.evidence),
        }

    def _note(self, url: str) -> ListNote | None:
        address = self._identifier.identify(url)
        return self._listings.list_of(Fingerprint(address.fingerprint)) if isinstance(address, Address) else None
