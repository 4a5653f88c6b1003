"""What one page in a browser gets of hosts other than its own: what lies on the shelf, and a place in the queue.

Nothing is sent from here. What is not on the shelf is noted as wanted; the page is told that there is none now, and is
shown again when it has come (`holding`). Which resources may be wanted at all: scripts and data, of hosts that the
settings allow, so many of a page and of so many hosts. Whether their own host lets us is found out there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from nephila.model.rendering import PartKind, Supplied, Withheld
from nephila.model.settings import RenderSettings
from nephila.model.task import Candidate
from nephila.urls import Address, host_of, origin_of, registrable_domain

from .resources import KINDS, ResourceNotes, candidate_for

LATER = "later"
"""Withheld now: the page waits for it."""
ABSENT = "absent"
"""Withheld for good: it did not come in time, or the page has waited often enough."""
NONE, SITE = "none", "site"


class Elsewhere:
    """What one page wants of other hosts, over one showing."""

    def __init__(
        self,
        notes: ResourceNotes,
        settings: RenderSettings,
        page: tuple[str, str, int],
        since: Mapping[str, int],
        *,
        last: bool,
        is_worth: Callable[[str], bool] = lambda _host: True,
    ) -> None:
        """`page`: its URL, host and depth. `since`: what it has waited for already. `last`: it waits for no more.

        `is_worth`: whether it is worth waiting for a host.
        """
        self._is_worth = is_worth
        self._notes = notes
        self._settings = settings
        self._url, self._host, self._depth = page
        self._since = since
        self._last = last
        self.wanted: dict[str, int] = {}
        """What it waits for, and since when."""
        self.missing: dict[str, Candidate] = {}
        """Of that, what nobody has asked for yet."""
        self.passed: set[str] = set()
        """Hosts that it does not wait for, because that has brought nothing."""
        self.supplied = 0

    async def give(self, url: str, kind: PartKind, address: Address) -> Supplied | Withheld:
        """What the page gets for a URL of another host."""
        notes = self._notes
        if kind not in KINDS or not self._is_open(address.host):
            return Withheld("host")
        note = await notes.find(url)
        if note is not None and notes.answers(note, self._since.get(url, 0)):
            self.supplied += 1
            return readable(note.supplied, url, self._url)
        if note is not None and notes.refuses(note):
            return Withheld(note.refused)
        reason = self._objection(url, address.host)
        if reason:
            return Withheld(reason)
        if note is not None and notes.is_awaited(note):
            self.wanted[url] = note.asked_at
        elif url not in self.wanted:
            self.wanted[url] = notes.now()
            self.missing[url] = candidate_for(address, self._depth)
        return Withheld(LATER)

    def _objection(self, url: str, host: str) -> str:
        """Why the page does not wait for something that is not at hand; empty where it does."""
        if self._last:
            return ABSENT
        if not self._has_room(url, host):
            return "budget"
        if url in self._since or self._is_worth(host):
            return ""
        self.passed.add(host)
        return "needless"

    async def ask(self) -> list[Candidate]:
        """Ask for what nobody has asked for yet: these are to be queued together with the page.

        Others may have asked, and got it, while the page was shown.
        """
        notes, asked = self._notes, []
        for url, candidate in self.missing.items():
            note = await notes.find(url)
            if notes.answers(note, self.wanted[url]) or notes.refuses(note):
                continue
            if note is not None and notes.is_awaited(note):
                self.wanted[url] = note.asked_at
            else:
                self.wanted[url] = await notes.ask(url)
                asked.append(candidate)
        return asked

    def _is_open(self, host: str) -> bool:
        which = self._settings.resources
        if which == NONE:
            return False
        return which != SITE or registrable_domain(host) == registrable_domain(self._host)

    def _has_room(self, url: str, host: str) -> bool:
        urls = {**self._since, **self.wanted}
        if url in urls:
            return True
        hosts, settings = hosts_of(urls), self._settings
        return len(urls) < settings.max_resources and (host in hosts or len(hosts) < settings.max_resource_hosts)


def hosts_of(urls: Iterable[str]) -> set[str]:
    """The hosts of serialised URLs without userinfo."""
    return set(map(host_of, urls))


def readable(supplied: Supplied, url: str, page: str) -> Supplied:
    """An answer as a page of another origin may read it.

    It was asked for without credentials and without naming the page, so it says nothing that is for somebody else's
    eyes; servers that answer every page by name (Access-Control-Allow-Origin) were not told which.
    """
    origin = origin_of(page)
    if origin_of(url) == origin:
        return supplied
    headers = tuple(header for header in supplied.headers if not header[0].startswith("access-control-allow-"))
    granted = (("access-control-allow-origin", origin), ("access-control-allow-credentials", "true"))
    return Supplied(supplied.status, headers + granted, supplied.body)
