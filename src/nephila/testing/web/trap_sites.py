"""Sites that make pages without end, and one that only looks like it: what a crawler must leave, and what it must not.

Each site is a frozen noun that makes any page of its own from the request target alone, the same every time; nothing is
laid out beforehand, so a shop of 100,000 products costs nothing until it is asked for one. Every page knows whether
there is something real on it and what (`SitePage.real`): that is the truth by which a crawler is judged.

- `Calendar`: months, weeks and days, for ever in both directions; nothing ever happens.
- `SessionMaze`: a small site in which every link carries a new session id.
- `RandomLinks`: boilerplate with random links.
- `EndlessPath`: relative links that nest deeper, with the same segments over and over and with ever other ones.
- `Shop`: products with texts of their own, lists of them, and links between them. No trap.

All but the maze and the shop have some real articles beside the trap, which ought to be found all the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple, Protocol

from xxhash import xxh3_64_intdigest

from .draw import Salt, draw
from .words import WORDS, SentenceBank, slug, title

_FIRST_YEAR, _LAST_YEAR = 1800, 2999
_START = date(2031, 7, 2)


class SitePage(NamedTuple):
    """What a site has to say at one URL."""

    title: str
    text: str
    links: list[str]
    """As they are written in the page."""
    real: str = ""
    """Names the real content that is served here; empty when there is none."""
    location: str = ""
    """Where it redirects to instead of answering."""
    canonical: str = ""
    """The URL that it names as its canonical one."""


class TrapSite(Protocol):
    """A site."""

    @property
    def label(self) -> str:
        """A word for its host's name."""

    @property
    def real_pages(self) -> int:
        """How many different real contents it has, the home page included."""

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """What is found at a request target; None for a 404."""


def _mark(target: str) -> int:
    """A number for a target, the same every time."""
    return xxh3_64_intdigest(target.encode("utf-8", "replace"))


def _article(target: str, bank: SentenceBank, count: int) -> SitePage | None:
    found = re.fullmatch(r"/articles/[a-z-]+-(\d+)", target)
    if found is None or int(found[1]) >= count or target != _article_path(int(found[1])):
        return None
    return _real_page(bank, 1000 + int(found[1]), target, ["/"])


def _article_path(number: int) -> str:
    return f"/articles/{slug(draw(7, Salt.PATH, number))}-{number}"


def _real_page(bank: SentenceBank, number: int, real: str, links: list[str]) -> SitePage:
    """A page with a text of its own."""
    bits = draw(11, Salt.TEXT, number)
    return SitePage(title(bits), " ".join(bank.passages(bits, 600)), links, real)


def _home(name: str, entries: list[str], articles: int) -> SitePage:
    return SitePage(
        f"{name} home", f"Welcome to the {name}.", entries + [_article_path(n) for n in range(articles)], "/"
    )


@dataclass(frozen=True, slots=True)
class Calendar:
    """Views of months, weeks and days that lead to each other for ever."""

    articles: int = 10
    label: str = "calendar"

    @property
    def real_pages(self) -> int:
        """The home page and the articles."""
        return 1 + self.articles

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """Any day from 1800 to 2999."""
        if target == "/":
            return _home("calendar", [f"/calendar/{_START:%Y/%m}"], self.articles)
        match = re.fullmatch(r"/calendar/(\d{4})/(\d\d)|/calendar/(\d{4}-\d\d-\d\d)(\?view=week)?", target)
        if match is None:
            return _article(target, bank, self.articles)
        try:
            day = date.fromisoformat(match[3]) if match[3] else date(int(match[1]), int(match[2]), 1)
        except ValueError:
            return None
        if not _FIRST_YEAR < day.year < _LAST_YEAR:
            return None
        return self._month(day) if match[1] else self._day(day, week=bool(match[4]))

    def _month(self, first: date) -> SitePage:
        before, after = first - timedelta(1), first + timedelta(31)
        days = [first + timedelta(n) for n in range(31) if (first + timedelta(n)).month == first.month]
        links = [f"/calendar/{before:%Y/%m}", f"/calendar/{after:%Y/%m}", *(f"/calendar/{day}" for day in days)]
        return SitePage(f"{first:%B %Y}", f"Overview of {first:%B %Y}. Nothing is planned in this month.", links)

    def _day(self, day: date, *, week: bool) -> SitePage:
        step = timedelta(7 if week else 1)
        view = "?view=week" if week else ""
        links = [f"/calendar/{day - step}{view}", f"/calendar/{day + step}{view}", f"/calendar/{day:%Y/%m}"]
        if not week:
            links.append(f"/calendar/{day}?view=week")
        what = "week from" if week else "day of"
        return SitePage(f"{day:%A %d %B %Y}", f"The {what} {day:%A, %B %d, %Y}. No events. Add one at 10:00 am.", links)


@dataclass(frozen=True, slots=True)
class SessionMaze:
    """A site of real pages in which every link carries a session id that nobody has seen before."""

    pages: int = 30
    sections: int = 9
    label: str = "maze"

    @property
    def real_pages(self) -> int:
        """All of them."""
        return self.pages

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """The home page, the sections and their items, under any session."""
        path = target.partition("?")[0]
        number = next((n for n in range(self.pages) if self._path(n) == path), None)
        if number is None:
            return None
        section = number if number <= self.sections else (number - 1) % self.sections + 1
        items = [n for n in range(self.sections + 1, self.pages) if (n - 1) % self.sections + 1 == section]
        linked = [0, *range(1, self.sections + 1), *(items if number else [])]
        links = [f"{self._path(n)}?visit={draw(13, Salt.LINK, _mark(target), n):016x}" for n in linked]
        return _real_page(bank, 5000 + number, path, links)

    def _path(self, number: int) -> str:
        if number == 0:
            return "/"
        return f"/{WORDS[number * 7 % len(WORDS)]}" if number <= self.sections else f"/item/{number}"


@dataclass(frozen=True, slots=True)
class RandomLinks:
    """The same words on every page, and links that lead to more of them."""

    links: int = 10
    articles: int = 10
    label: str = "random"

    @property
    def real_pages(self) -> int:
        """The home page and the articles."""
        return 1 + self.articles

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """A page for every number in hexadecimal."""
        if target == "/":
            return _home("random site", self._links(0), self.articles)
        match = re.fullmatch(r"/x/([0-9a-f]{16})", target)
        if match is None:
            return _article(target, bank, self.articles)
        return SitePage("More", f"You may also like these. Ref {match[1]}.", self._links(int(match[1], 16)))

    def _links(self, number: int) -> list[str]:
        return [f"/x/{draw(23, Salt.LINK, number, n):016x}" for n in range(self.links)]


@dataclass(frozen=True, slots=True)
class EndlessPath:
    """A server that takes any path for the same page, whose links are relative: each click goes one deeper."""

    branches: int = 4
    articles: int = 10
    label: str = "deep"

    @property
    def real_pages(self) -> int:
        """The home page and the articles."""
        return 1 + self.articles

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """The same page everywhere below the two entries, and below any other first segment that ends in a slash."""
        if target == "/":
            return _home("handbook", ["loop/part/", *self._words("/")], self.articles)
        if not target.endswith("/"):
            return _article(target, bank, self.articles)
        if target.startswith("/loop/"):
            return SitePage("Part", "This part has parts of its own.", ["loop/part/", "part/"])
        return SitePage("Section", "This section is being written.", self._words(target))

    def _words(self, target: str) -> list[str]:
        return [f"{WORDS[draw(31, Salt.LINK, _mark(target), n) % len(WORDS)]}/" for n in range(self.branches)]


@dataclass(frozen=True, slots=True)
class Shop:
    """A large, honest shop: everything under one skeleton, and all of it worth having."""

    products: int = 100_000
    per_list: int = 100
    related: int = 4
    reach: int = 1000
    """How many numbers further a related product may be: few are on the same list, most are on lists yet to come."""
    numbers_only: bool = False
    """Products that are told apart by their numbers alone."""
    label: str = "shop"

    @property
    def real_pages(self) -> int:
        """The home page, the lists and the products."""
        return 1 + self._lists + self.products

    @property
    def _lists(self) -> int:
        return -(-self.products // self.per_list)

    def page(self, target: str, bank: SentenceBank) -> SitePage | None:
        """The home page, a list or a product."""
        if target == "/":
            return SitePage("Shop", "Everything for house and garden.", ["/list?page=1"], "/")
        match = re.fullmatch(r"/(list\?page=|product/)([1-9]\d*)", target)
        if match is None:
            return None
        number = int(match[2])
        if match[1] == "product/":
            return self._product(number, bank) if number <= self.products else None
        return self._list(number) if number <= self._lists else None

    def _list(self, number: int) -> SitePage:
        first = (number - 1) * self.per_list + 1
        links = [f"/product/{n}" for n in range(first, min(first + self.per_list, self.products + 1))]
        links += [f"/list?page={n}" for n in (number - 1, number + 1) if 0 < n <= self._lists]
        return SitePage("All products", f"Page {number} of {self._lists}.", links, f"list {number}")

    def _product(self, number: int, bank: SentenceBank) -> SitePage:
        near = (1 + (number + draw(37, Salt.LINK, number, n) % self.reach) % self.products for n in range(self.related))
        links = ["/", *(f"/product/{n}" for n in near)]
        if self.numbers_only:
            text = f"Product {number}, price {draw(41, Salt.TEXT, number) % 500} euro."
            return SitePage(f"Product {number}", text, links, f"product {number}")
        return _real_page(bank, 1_000_000 + number, f"product {number}", links)
