"""Whether a site's changefreq tells the truth, and what its priorities are worth (X3, R1, R2).

`changefreq` says how often a page changes. It is believed for the first interval of a page, before that has a history
of its own, as long as the host's word has proved true. A page that is compared carries when it was visited last:

| since the last visit | the content has changed | it has not |
|---|---|---|
| longer than claimed  | right                   | false      |
| shorter by half      | missed                  | says nothing |

`priority` says how much a page matters *beside the site's other pages*: the mean of what a host says is what nothing
said would be. So a site that calls everything important says nothing, and one that tells its pages apart is heard.

Pure.
"""

from __future__ import annotations

from dataclasses import replace

from nephila.model.listing import ListedNote, SiteTrust
from nephila.model.settings import SitemapSettings

from .trust import FADES_AT, FALSE, MISSED, RIGHT

HOUR_S, DAY_S = 3_600, 86_400
EVERY_S = {
    "always": 900,
    "hourly": HOUR_S,
    "daily": DAY_S,
    "weekly": 7 * DAY_S,
    "monthly": 30 * DAY_S,
    "yearly": 365 * DAY_S,
    "never": 365 * DAY_S,
}
"""Seconds; `always` is R2's shortest interval, and of `never` a year is as good as anything."""
PRIORITIES_KEPT = 10_000
"""Entries after which all that a host has said counts half."""
UNSAID = 0.5
"""The protocol's default, and the mean of a host that has said nothing yet."""
_ENTRIES_UNSAID = 10
"""As many entries of the default stand at the beginning: one page of its own is not told apart from itself."""


def finding_of(note: ListedNote, now_s: int, *, changed: bool) -> str:
    """What a visit shows of the frequency that was claimed."""
    if not note.every_s or not note.visited_s or not note.text:
        return ""
    elapsed_s = now_s - note.visited_s
    if elapsed_s >= note.every_s:
        return RIGHT if changed else FALSE
    return MISSED if changed and 2 * elapsed_s < note.every_s else ""


def weigh_frequency(trust: SiteTrust, finding: str) -> SiteTrust:
    """The trust after one more piece of evidence; old evidence fades."""
    right, wrong = trust.often_right + (finding == RIGHT), trust.often_wrong + (finding in {FALSE, MISSED})
    if right + wrong > FADES_AT:
        right, wrong = right // 2, wrong // 2
    return replace(trust, often_right=right, often_wrong=wrong)


def is_frequency_believed(trust: SiteTrust, settings: SitemapSettings) -> bool:
    """Whether what a site says of how often its pages change is acted on."""
    total = trust.often_right + trust.often_wrong
    return total < settings.evidence or trust.often_wrong <= settings.wrong_share * total


class Priorities:
    """What one host has said of its pages so far."""

    def __init__(self, trust: SiteTrust) -> None:
        self.count = trust.priorities
        self._sum = trust.priority_mean * trust.priorities

    def heard(self, priority: float) -> None:
        """One more entry."""
        self.count += 1
        self._sum += priority
        if self.count > PRIORITIES_KEPT:
            self.count, self._sum = self.count // 2, self._sum / 2

    @property
    def mean(self) -> float:
        """Of all that was said."""
        return self._sum / self.count if self.count else UNSAID

    def above(self, priority: float) -> float:
        """How far a page stands above the others of its host, from -1 to 1."""
        mean = (self._sum + UNSAID * _ENTRIES_UNSAID) / (self.count + _ENTRIES_UNSAID)
        return priority - mean

    def kept(self, trust: SiteTrust) -> SiteTrust:
        """To be remembered."""
        return replace(trust, priorities=self.count, priority_mean=round(self.mean, 4))
