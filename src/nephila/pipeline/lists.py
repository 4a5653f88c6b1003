"""Sitemaps and feeds in the sentence: which answers are lists, which are expected, and what robots.txt names (X3).

A list is a URL like any other: leased, fetched under robots.txt, stored, due again. What it is, its content says; what
is known beforehand (that robots.txt names it, that it was one before, how it is called) only decides how much of an
answer is read, and of which types. Nothing here waits or sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from nephila.interfaces.listings import Listings
from nephila.interfaces.politeness import Politeness
from nephila.interfaces.sieve import LinkSieve
from nephila.model.exchange import Fetched, FetchRequest, Truncation
from nephila.model.listing import Listed, ListKind
from nephila.model.outcome import OriginRules, RulesKind
from nephila.model.settings import SitemapSettings
from nephila.model.task import Candidate, PageTask
from nephila.urls import Address, Fingerprint, origin_of

NO_SITEMAP = "no_sitemap"
"""The reason of an answer to a guess: there is none, which is nobody's error."""
GUESS = "/sitemap.xml"
DEPTH = 1
"""Of lists that robots.txt names, and of what a list names of its own site: as if linked from the home page."""
LIST_TYPES = (
    "application/xml",
    "text/xml",
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "application/feed+json",
    "text/x-opml",
)
"""Types that lists come in, and that hardly anything else comes in that a page would lead to."""
PACKED_TYPES = (
    "application/gzip",
    "application/x-gzip",
    "application/octet-stream",
    "binary/octet-stream",
    "text/plain",
)
"""Types that lists come in as well, where one is expected."""
_ENDINGS = frozenset({"xml", "rss", "atom", "rdf", "opml", "gz"})
_TEXT = "txt"
ORIGINS_REMEMBERED = 16_384
PAGES_REMEMBERED = 2048
"""Some 400 KB; links that were found on one page are asked for soon after one another."""


class Formats(NamedTuple):
    """How lists are told and read."""

    kind_of: Callable[[Fetched], ListKind | None]
    """What an answer lists, by its content; None for what is no list."""
    read: Callable[[Fetched, Counter[str]], Iterator[list[Listed]]]
    """The entries of an answer, some at a time; what else is in it is counted."""
    has_seeds: Callable[[Fetched], bool] = lambda _: False
    """Whether an answer is a text with a URL or domain a line, as a file of seeds is."""
    read_seeds: Callable[[Fetched, Counter[str], list[str]], Iterator[list[Listed]]] = lambda *_: iter(())
    """The entries of such a text; lines that are no seeds are counted, and the first few told."""


class Lists:
    """Knows lists when it sees them, and before."""

    def __init__(
        self,
        settings: SitemapSettings,
        listings: Listings,
        politeness: Politeness,
        sieve: LinkSieve,
        formats: Formats,
        identify: Callable[[str], Address | None],
        types: tuple[str, ...] | None,
    ) -> None:
        """`types` are the media types that the crawl wants as pages; None for all."""
        self.settings = settings
        self.listings = listings
        self.formats = formats
        self.identify = identify
        self._politeness = politeness
        self.sieve = sieve
        self._types = types
        self._page_types = types and types + LIST_TYPES
        """Of a page, which may turn out to be a list."""
        self._named: dict[str, tuple[int, frozenset[Fingerprint]]] = {}
        self._indexes: dict[str, bool] = {}
        """Of pages on which links were found, whether they are indexes: many links are found on one."""

    # Before the request

    def request(
        self, task: PageTask, rules: OriginRules | None, headers: tuple[tuple[str, str], ...] = (), user_agent: str = ""
    ) -> FetchRequest:
        """What is asked for, with these headers, and what of an answer to it is to be read.

        A guess is no larger than a page: every new host is asked one, most have nothing there, and what may be large
        has to wait for its place. One that is cut off is known for what it is then, and read to its end the next time.
        """
        if self.is_guess(task):
            return FetchRequest(task.url, headers, LIST_TYPES + PACKED_TYPES, None, user_agent)
        if self.is_expected(task, rules):
            return FetchRequest(task.url, headers, None, self.settings.max_bytes, user_agent)
        return FetchRequest(task.url, headers, self._page_types, None, user_agent)

    def is_expected(self, task: PageTask, rules: OriginRules | None) -> bool:
        """Whether a task is likely to bring a list: one may be larger than a page, and of any type."""
        if _is_named_like_one(task.url.partition("?")[0], is_seed=not task.depth):
            return True
        if rules is not None and task.fingerprint in self.named_by(rules):
            return True
        return self.listings.list_of(task.fingerprint) is not None or self._is_of_index(task)

    def _is_of_index(self, task: PageTask) -> bool:
        """Whether an index names it: then it is a sitemap, however it is called."""
        known = self._indexes.get(task.via)
        if known is not None:
            return known
        index = self.identify(task.via) if task.via else None
        note = self.listings.list_of(index.fingerprint) if index is not None else None
        if len(self._indexes) >= PAGES_REMEMBERED:
            self._indexes.clear()
        known = self._indexes[task.via] = note is not None and note.kind == ListKind.INDEX
        return known

    def has_become_list(self, url: str) -> None:
        """A page turns out to be a list; what was thought of it before is forgotten."""
        self._indexes.pop(url, None)

    def is_guess(self, task: PageTask) -> bool:
        """Whether nobody has named this sitemap: it was tried because many sites have one there."""
        if not task.url.endswith(GUESS) or task.via or not task.depth or origin_of(task.url) + GUESS != task.url:
            return False
        return self.known(task) is None

    def known(self, task: PageTask) -> ListKind | None:
        """The kind of list that a URL was when it was read last."""
        note = self.listings.list_of(task.fingerprint)
        return ListKind(note.kind) if note is not None and note.kind else None

    # After the answer

    def kind_of(self, task: PageTask, fetched: Fetched) -> ListKind | None:
        """What an answer lists; where somebody gave it as a list of seeds, as a file of them is read."""
        kind = self.formats.kind_of(fetched)
        if kind is None and not task.depth and self.is_of_seeds(task) and self.formats.has_seeds(fetched):
            return ListKind.TEXT
        return kind

    def is_of_seeds(self, task: PageTask) -> bool:
        """Whether somebody gave it as a list of seeds."""
        note = self.listings.list_of(task.fingerprint)
        return note is not None and note.seeds

    def sorted_out(self, task: PageTask, fetched: Fetched, wanted: Callable[[Fetched], bool]) -> Fetched:
        """An answer that was read because it might be a list, and is none, as if it had not been read (H7)."""
        if self._types is None or not 200 <= fetched.status < 300 or fetched.unwanted or not fetched.body:
            return fetched
        if wanted(fetched) or self.kind_of(task, fetched) is not None:
            return fetched
        return replace(fetched, body=b"", payload=b"", truncated=Truncation.UNSPECIFIED, unwanted=True)

    # robots.txt

    def named_by(self, rules: OriginRules) -> frozenset[Fingerprint]:
        """The sitemaps that a robots.txt names."""
        known = self._named.get(rules.origin)
        if known is not None and known[0] == rules.stored_at:
            return known[1]
        urls = self._politeness.sitemaps(rules)[: self.settings.per_robots]
        found = frozenset(address.fingerprint for url in urls if (address := self.identify(url)) is not None)
        if len(self._named) >= ORIGINS_REMEMBERED:
            self._named.clear()
        self._named[rules.origin] = rules.stored_at, found
        return found

    def announced(self, rules: OriginRules, user_agent: str) -> list[Candidate]:
        """The sitemaps of an origin whose robots.txt was read: those that it names, else the one that may be there."""
        if rules.kind not in {RulesKind.RULES, RulesKind.ALLOW_ALL}:
            return []
        urls = self._politeness.sitemaps(rules)[: self.settings.per_robots]
        if not urls and self.settings.guess:
            guess = rules.origin + GUESS
            urls = (guess,) if self._politeness.permits(rules, guess, user_agent).allowed else ()
        found = (self.sieve.lead(url, DEPTH) for url in urls)
        return [candidate for candidate in found if isinstance(candidate, Candidate)]


def _is_named_like_one(path: str, *, is_seed: bool) -> bool:
    """Whether a URL without its query ends as lists do; of a text, only a seed's, or one that is called a sitemap."""
    _, dot, ending = path[-5:].rpartition(".")
    ending = ending.lower()
    if not dot or ending != _TEXT:
        return bool(dot) and ending in _ENDINGS
    return is_seed or "sitemap" in path[path.rfind("/") + 1 : -len(_TEXT)].lower()
