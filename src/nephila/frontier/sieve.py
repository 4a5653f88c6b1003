"""From the links of a page to candidates for the frontier: identity, scope, directives, in one sweep a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nephila.interfaces.sieve import Sifted
from nephila.model.page import Link, Page
from nephila.model.settings import PrioritySettings, ScopeSettings
from nephila.model.task import Candidate, Level, PageTask, Refusal
from nephila.native import AVAILABLE, native
from nephila.urls import Address, Identifier, UrlRefused, resolve_location

from .scope import MEANINGFUL_WORDS, Scope
from .score import bonus_of
from .sifting import Judged, Refused, Rels, Rules, sift

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
JUDGED_REMEMBERED = 32_768
"""URLs whose address and verdict are at hand, about 15 MB: the pages of a site share most of their links."""
HOSTS_REMEMBERED = 16_384
"""Hosts of which it is known whether they are in scope: some two megabytes."""
RELS_REMEMBERED = 1_000
"""Spellings of rel of which it is known what they mean."""


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
        self._known: dict[str, Judged] = {}
        self._version = scope.version
        self._rels = Rels({}, _leads_to_document, {}, self._is_forbidden)
        self._hosts: dict[str, bool] = {}
        self._rules = self._sieve_rules()

    def sift(self, page: Page, depth: int) -> Sifted:
        """The links of a page that was found at `depth`."""
        sifted = Sifted()
        if self._nofollow and page.directives.nofollow:
            self._refuse_all(page, sifted, ("nofollow", "page"))
            return sifted
        if not self._scope.reaches(depth + 1):
            self._refuse_all(page, sifted, self._scope.too_deep(depth + 1))
            return sifted
        self._forget_some()
        wanted, candidates, refused, elements = sift(
            page.links, self._known, self._learn, depth + 1, Candidate, self._rels, self._rules
        )
        if refused:
            self._tell(refused, sifted)
        if elements or len(wanted) > self._limit:
            # What may be followed is chosen from, not all that is on the page: foreign links must not hide its own.
            by_link = dict(zip(wanted, candidates, strict=True))
            chosen = self._choose(wanted, self._limit)
            candidates = [by_link[link] for link in chosen]
            if len(chosen) < len(wanted):
                sifted.malformed["links_per_page"] = len(wanted) - len(chosen)
        sifted.candidates.extend(candidates)
        return sifted

    def _forget_some(self) -> None:
        """Keep the memories small, and true to the scope."""
        if self._version != self._scope.version:
            self._version = self._scope.version
            self._known.clear()
            self._hosts.clear()
        if len(self._known) > JUDGED_REMEMBERED:
            self._known.clear()
        if len(self._hosts) > HOSTS_REMEMBERED:
            self._hosts.clear()
        if len(self._rels.leads) + len(self._rels.forbids) > RELS_REMEMBERED:
            self._rels.leads.clear()
            self._rels.forbids.clear()

    def _learn(self, url: str) -> Judged:
        """Identify and judge a URL that is met for the first time, or that is not plain."""
        (answer,) = self._identifier.identify_plainly((url,))
        if isinstance(answer, UrlRefused):
            return None, answer.reason, 0  # not remembered: it may be megabytes long
        verdict = self._scope.judge_new(answer)
        bonus = bonus_of(self._priority, answer.url) if verdict is None else 0
        judged = self._known[url] = (answer, verdict, bonus)
        return judged

    def _sieve_rules(self) -> Rules | None:
        """What plain URLs are judged by; None where every URL must be looked at."""
        shared = self._identifier.shared
        if not AVAILABLE or shared is None or not self._scope.by_host:
            return None
        words = native.word_table(MEANINGFUL_WORDS)
        return Rules(
            *shared, Address, words, self._scope.repeats, self._hosts, self._scope.admits_host, self._scope.outside
        )

    def _tell(self, refused: Sequence[Refused], sifted: Sifted) -> None:
        """Count and remember what does not go on."""
        for address, verdict in refused:
            if address is None:
                reason = str(verdict)
                sifted.malformed[reason] = sifted.malformed.get(reason, 0) + 1
            elif address.fingerprint not in self._refused_lately:
                found = verdict if isinstance(verdict, tuple) else ("nofollow", "rel")
                self._refuse(sifted.refused, Refusal(address, *found))

    def _is_forbidden(self, rel: str) -> bool:
        return self._nofollow and "nofollow" in rel.split()

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

    def _refuse_all(self, page: Page, sifted: Sifted, verdict: tuple[str, str]) -> None:
        """No link of a page goes on."""
        links = [link for link in page.links if link.tag != "link" or _leads_to_document(link.rel)]
        for answer in self._identifier.identify_resolved([link.url for link in links]):
            if isinstance(answer, UrlRefused):
                sifted.malformed[answer.reason] = sifted.malformed.get(answer.reason, 0) + 1
            else:
                self._refuse(sifted.refused, Refusal(answer, *verdict))

    def _refuse(self, refused: list[Refusal], refusal: Refusal) -> None:
        """Tell of a refusal, unless the same URL was refused a short while ago: menus repeat on every page."""
        fingerprint = refusal.address.fingerprint
        if fingerprint in self._refused_lately:
            return
        if len(self._refused_lately) >= REFUSALS_REMEMBERED:
            self._refused_lately.clear()
        self._refused_lately.add(fingerprint)
        refused.append(refusal)


def _leads_to_document(rel: str) -> bool:
    """Whether a <link> of that rel leads to another document; an alternate style sheet is a style sheet."""
    words = rel.split()
    return "stylesheet" not in words and not FOLLOWED_RELS.isdisjoint(words)
