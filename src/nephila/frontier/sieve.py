"""From the links of a page to candidates for the frontier: identity, scope, directives, in one sweep a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nephila.interfaces.sieve import Sifted
from nephila.model.page import Link, Page
from nephila.model.settings import PrioritySettings, ScopeSettings
from nephila.model.task import Candidate, Level, PageTask, Refusal
from nephila.urls import Address, Identifier, UrlRefused, resolve_location

from .scope import Scope
from .score import bonus_of

FOLLOWED_RELS = frozenset(
    {
        *("alternate", "amphtml", "author", "bookmark", "canonical", "chapter", "contents", "copyright", "first"),
        *("help", "home", "index", "last", "license", "next", "prev", "previous", "section", "start", "subsection"),
        *("toc", "up"),
    }
)
"""What a <link> may be followed for: other documents. The rest are style sheets, icons, fonts, hints to browsers."""

REFUSALS_REMEMBERED = 100_000
"""Refused URLs that are not told of again: some ten megabytes."""


class ScopeSieve:
    """Implements `LinkSieve` for one crawl."""

    def __init__(
        self,
        identifier: Identifier,
        scope: Scope,
        settings: ScopeSettings,
        choose: Callable[[Sequence[Link], int], Sequence[Link]],
        save_scope: Callable[[], None],
        priority: PrioritySettings = PrioritySettings(),  # noqa: B008 - frozen
    ) -> None:
        """`save_scope` is called when a seed's redirect has widened the scope, before its target is admitted."""
        self._identifier = identifier
        self._scope = scope
        self._nofollow = settings.nofollow
        self._limit = settings.links_per_page
        self._choose = choose
        self._save_scope = save_scope
        self._priority = priority
        self._refused_lately: set[bytes] = set()

    def sift(self, page: Page, depth: int) -> Sifted:
        """The links of a page that was found at `depth`."""
        sifted = Sifted()
        links = [link for link in page.links if link.tag != "link" or _names_a_document(link.rel.split())]
        if self._nofollow and page.directives.nofollow:
            self._refuse_all(links, sifted, "page")
            return sifted
        addresses = self._identifier.identify_resolved([link.url for link in links])
        judge, refused = self._scope.judge, sifted.refused
        met: set[bytes] = set()
        wanted: dict[Link, Candidate] = {}
        for link, address in zip(links, addresses, strict=True):
            if isinstance(address, UrlRefused):
                sifted.malformed[address.reason] = sifted.malformed.get(address.reason, 0) + 1
                continue
            if address.fingerprint in met:
                continue
            met.add(address.fingerprint)
            if self._nofollow and link.rel and "nofollow" in link.rel.split():
                self._refuse(refused, Refusal(address, "nofollow", "rel"))
                continue
            verdict = judge(address, depth + 1)
            if verdict is None:
                wanted[link] = Candidate(address, depth + 1, bonus=bonus_of(self._priority, address.url))
            else:
                self._refuse(refused, Refusal(address, *verdict))
        # What may be followed is chosen from, not what is on the page: a page of foreign links must not hide its own.
        chosen = self._choose(tuple(wanted), self._limit)
        sifted.candidates.extend(wanted[link] for link in chosen)
        if len(chosen) < len(wanted):
            sifted.malformed["links_per_page"] = len(wanted) - len(chosen)
        return sifted

    def target(self, location: str, task: PageTask) -> Address | Refusal | None:
        """Where a redirect leads."""
        url = resolve_location(task.url, location)
        address = None if url is None else self._identifier.identify(url)
        return address if isinstance(address, Address) else None

    def follow(self, target: Address, task: PageTask) -> Candidate | Refusal:
        """A redirect's target as a candidate: same depth and urgency, one hop further."""
        if self._scope.widen(target, task.depth, task.hops + 1):
            self._save_scope()
        verdict = self._scope.judge(target, task.depth)
        if verdict is not None:
            return Refusal(target, *verdict)
        level = Level(task.level)
        return Candidate(target, task.depth, level, task.hops + 1)

    def _refuse_all(self, links: Sequence[Link], sifted: Sifted, detail: str) -> None:
        for address in self._identifier.identify_resolved([link.url for link in links]):
            if isinstance(address, Address):
                self._refuse(sifted.refused, Refusal(address, "nofollow", detail))

    def _refuse(self, refused: list[Refusal], refusal: Refusal) -> None:
        """Tell of a refusal, unless the same URL was refused a short while ago: menus repeat on every page."""
        fingerprint = refusal.address.fingerprint
        if fingerprint in self._refused_lately:
            return
        if len(self._refused_lately) >= REFUSALS_REMEMBERED:
            self._refused_lately.clear()
        self._refused_lately.add(fingerprint)
        refused.append(refusal)


def _names_a_document(rel: list[str]) -> bool:
    """Whether a <link> of these words leads to another document; an alternate style sheet is a style sheet."""
    return "stylesheet" not in rel and not FOLLOWED_RELS.isdisjoint(rel)
