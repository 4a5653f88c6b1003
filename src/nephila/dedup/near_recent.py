"""Pages that were remembered and not written yet: a second's worth, searched one by one (D3)."""

from __future__ import annotations

from typing import NamedTuple

from nephila.model.likeness import Likeness
from nephila.model.noun import quick

from .near_run import pack_entry, scan_entries


@quick
class RecentPage(NamedTuple):
    """One page."""

    simhash: int
    sketch: bytes
    url: str


class RecentPages:
    """In the order in which they came. Not safe for threads: whoever owns it holds a lock."""

    def __init__(self) -> None:
        self._pages: list[RecentPage | None] = []
        """None where one was dropped: the others keep their places."""
        self._packed = bytearray()
        self._places: dict[tuple[int, str], int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, likeness: Likeness, url: str) -> None:
        """Keep one more."""
        place = len(self._pages)
        self._places[likeness.simhash, url] = place
        self._packed += pack_entry(likeness.simhash, place)
        self._pages.append(RecentPage(likeness.simhash, likeness.sketch, url))

    def knows(self, likeness: Likeness, url: str) -> bool:
        """Whether the very same was added."""
        return (likeness.simhash, url) in self._places

    def drop(self, likeness: Likeness, url: str) -> None:
        """Take it out, if it is there."""
        place = self._places.pop((likeness.simhash, url), None)
        if place is not None:
            self._pages[place] = None

    def near(self, simhash: int, distance: int) -> list[tuple[RecentPage, int]]:
        """Those within that distance, the earliest first."""
        found = scan_entries(self._packed, simhash, distance) if self._packed else []
        return [(page, apart) for place, apart in found if (page := self._pages[place]) is not None] if found else []

    def pages(self) -> list[RecentPage]:
        """All of them."""
        return [page for page in self._pages if page is not None]

    def followed_by(self, others: RecentPages) -> RecentPages:
        """These and then the others."""
        if not self:
            return others
        joined = RecentPages()
        for page in (*self.pages(), *others.pages()):
            joined.add(Likeness(page.simhash, page.sketch), page.url)
        return joined
