"""Sites with many URLs for few pages, and sites that never say 404: what a crawler ought to see through, and what not.

Each is a site as in `trap_sites`, and knows what is real.

- `Decorated`: a shop whose links to an item all carry where they were found, under a parameter that means nothing; its
  lists tell their pages apart by a parameter that means everything, and by nothing but links.
- `Meaningful`: the same parameter names, and each value another page.
- `Moved`: a host that redirects everything to the same path of another.
- `SoftMissing`: many links to pages that are gone, for which it sends one page and the status 200.
- `MovedMissing`: the same, but what is gone redirects to one place.
- `OneShell`: an application drawn by scripts, with the same text for everything; no page of it is missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .draw import Salt, draw
from .trap_sites import SitePage
from .words import WORDS, SentenceBank, title


def _page(bank: SentenceBank, number: int, real: str, links: list[str], canonical: str = "") -> SitePage:
    """A page with a text of its own."""
    bits = draw(43, Salt.TEXT, number)
    return SitePage(title(bits), " ".join(bank.passages(bits, 500)), links, real, canonical=canonical)


@dataclass(frozen=True, slots=True)
class Decorated:
    """Items under as many URLs as there are pages that lead to them."""

    items: int = 60
    per_list: int = 20
    related: int = 6
    name: str = "from"
    """The parameter that means nothing."""
    bare: bool = False
    """Whether some links are without it."""
    canonical: bool = False
    """Whether items name their URL without it as canonical."""
    label: str = "decorated"

    @property
    def real_pages(self) -> int:
        """The home page, the lists and the items."""
        return 1 + self._lists + self.items

    @property
    def _lists(self) -> int:
        return -(-self.items // self.per_list)

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """The home page, a list or an item, wherever one comes from."""
        if target == "/":
            return SitePage("Shop", "All that we have.", [f"/list?page={n}" for n in range(1, self._lists + 1)], "/")
        match = re.fullmatch(rf"/(list\?page=|item/)([1-9]\d*)(?:\?{self.name}=([a-z0-9]+))?", target)
        if match is None:
            return None
        number = int(match[2])
        if match[1] == "item/":
            return self._item(number, bank) if number <= self.items else None
        return self._list(number) if number <= self._lists and not match[3] else None

    def _list(self, number: int) -> SitePage:
        first = (number - 1) * self.per_list + 1
        numbers = range(first, min(first + self.per_list, self.items + 1))
        return SitePage("Items", "What there is.", [self._link(n, f"list{number}") for n in numbers], f"list {number}")

    def _item(self, number: int, bank: SentenceBank) -> SitePage:
        near = (1 + draw(47, Salt.LINK, number, n) % self.items for n in range(self.related))
        links = ["/", *(self._link(n, f"item{number}") for n in near)]
        canonical = f"/item/{number}" if self.canonical else ""
        return _page(bank, 10_000 + number, f"item {number}", links, canonical)

    def _link(self, number: int, source: str) -> str:
        if self.bare and draw(53, Salt.LINK, number, len(source)) % 4 == 0:
            return f"/item/{number}"
        return f"/item/{number}?{self.name}={source}"


@dataclass(frozen=True, slots=True)
class Meaningful:
    """Pages that are told apart by a parameter which means nothing elsewhere."""

    sections: int = 5
    values: int = 20
    name: str = "from"
    label: str = "meaningful"

    @property
    def real_pages(self) -> int:
        """The home page, and each section under each value."""
        return 1 + self.sections * self.values

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """The home page or a section under a value."""
        if target == "/":
            links = [f"/part/{n}?{self.name}=1" for n in range(1, self.sections + 1)]
            return SitePage("Parts", "A book in parts.", links, "/")
        match = re.fullmatch(rf"/part/([1-9]\d*)\?{self.name}=([1-9]\d*)", target)
        if match is None or int(match[1]) > self.sections or int(match[2]) > self.values:
            return None
        part, value = int(match[1]), int(match[2])
        links = ["/", *(f"/part/{part}?{self.name}={n}" for n in range(1, self.values + 1))]
        return _page(bank, 20_000 + part * 1000 + value, target, links)


@dataclass(frozen=True, slots=True)
class Moved:
    """A host that has moved to another one, path by path."""

    to: str
    """The origin that it redirects to."""
    label: str = "old"
    real_pages: int = 0

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """Nothing but redirects."""
        del bank
        return SitePage("Moved", "Moved.", [], location=self.to + target)


@dataclass(frozen=True, slots=True)
class Referring:
    """A site of one page that links to paths of another host."""

    origin: str
    paths: tuple[str, ...]
    pages: int = 1
    label: str = "referring"

    @property
    def real_pages(self) -> int:
        """Its own pages."""
        return self.pages

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """The home page, and further ones, each with its share of the links."""
        match = re.fullmatch(r"/(?:more/(\d+))?", target)
        number = int(match[1] or 0) if match else self.pages
        if number >= self.pages:
            return None
        further = [f"/more/{number + 1}"] if number + 1 < self.pages else []
        return _page(
            bank, 30_000 + number, target, further + [self.origin + path for path in self.paths[number :: self.pages]]
        )


@dataclass(frozen=True, slots=True)
class SoftMissing:
    """Articles with links to each other and to what is gone; for that there is one page, and no error."""

    articles: int = 60
    gone: int = 120
    counted: bool = False
    """Whether the page for what is gone bears another number each time."""
    label: str = "soft"

    @property
    def real_pages(self) -> int:
        """The home page and the articles."""
        return 1 + self.articles

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """The home page, an article, or always the same."""
        if target == "/":
            return SitePage("Articles", "All of them.", [f"/article/{n}" for n in range(1, self.articles + 1)], "/")
        match = re.fullmatch(r"/article/([1-9]\d*)", target)
        if match is None or int(match[1]) > self.articles:
            return self._missing(target)
        number = int(match[1])
        dead = (draw(59, Salt.LINK, number, n) % self.gone for n in range(4))
        links = ["/", *(f"/{WORDS[n % len(WORDS)]}/story-{n}.html" for n in dead)]
        return _page(bank, 40_000 + number, target, links)

    def _missing(self, target: str) -> SitePage | None:
        ticket = f" Ticket {draw(61, Salt.TEXT, len(target), sum(target.encode()))}." if self.counted else ""
        text = f"We looked everywhere. Try our front page, or search for it.{ticket}"
        return SitePage("Sorry, page not found", text, ["/", "/article/1", "/help/contact"])


@dataclass(frozen=True, slots=True)
class MovedMissing:
    """The same, but what is gone redirects to one place."""

    articles: int = 40
    gone: int = 60
    place: str = "/start"
    label: str = "movedmissing"

    @property
    def real_pages(self) -> int:
        """The home page, the articles, and the place where all else leads."""
        return 2 + self.articles

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """The home page, an article, or a redirect."""
        if target == self.place:
            return _page(bank, 49_999, target, ["/"])
        page = SoftMissing(self.articles, self.gone).page(target, bank)
        return page if page is not None and page.real else SitePage("Moved", "Moved.", [], location=self.place)


@dataclass(frozen=True, slots=True)
class OneShell:
    """An application: the same words under every path, and links that scripts might have made."""

    views: int = 40
    label: str = "shell"

    @property
    def real_pages(self) -> int:
        """All views, the first included."""
        return 1 + self.views

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """The same text everywhere; views lead to others."""
        del bank
        match = re.fullmatch(r"/view/([1-9]\d*)", target)
        number = int(match[1]) if match else 0
        real = target if target == "/" or 0 < number <= self.views else ""
        links = [f"/view/{n}" for n in range(number + 1, min(number + 4, self.views + 1))]
        return SitePage("Application", "Please switch scripts on. Loading.", links, real)
