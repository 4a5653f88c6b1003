"""From the links of a page to candidates for the frontier: identity, scope, directives, in one sweep a page.

A URL that is refused is told of once for a while, because menus repeat on every page. What counts as told is what was
noted for good: the links of a page when its settle was accepted (`noted`), for a result that comes too late
takes its refusals with it; those of a list at once, for they are admitted whatever becomes of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from nephila.interfaces.aliases import Aliases, HostAliases
from nephila.interfaces.sieve import Sifted
from nephila.model.page import FRAMES, Link, Page
from nephila.model.settings import PrioritySettings, ScopeSettings
from nephila.model.task import Candidate, Level, PageTask, Refusal
from nephila.native import AVAILABLE, native
from nephila.urls import Address, Identifier, UrlRefused, origin_of, resolve_location

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

ALIAS = "alias"
"""The reason of a link that is admitted under another name."""

BEYOND = "links_per_page"
"""The reason of a link that might go on, of a page that has more of them than do (X1)."""

TOLD_OF_A_HOST = {ALIAS: 1_000, BEYOND: 10_000}
"""What is told one by one of one host, at most, for reasons that know no end: a site that puts a session into every
link has no end of aliases, and the rule that catches them is listed anyway; of links, a page may have 20,000."""

REFUSALS_REMEMBERED = 100_000
"""Refused URLs that are not told of again: some ten megabytes."""
JUDGED_REMEMBERED = 32_768
"""URLs whose address and verdict are at hand, about 15 MB: the pages of a site share most of their links."""
HOSTS_REMEMBERED = 16_384
"""Hosts of which it is known whether they are in scope: some two megabytes."""
RELS_REMEMBERED = 1_000
"""Spellings of rel of which it is known what they mean."""


_NOTHING: frozenset[str] = frozenset()


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
        aliases: Aliases | None = None,
    ) -> None:
        """`save_scope` is called when a seed's redirect has widened the scope, before its target is admitted.

        `aliases` says which links are admitted under another name (D4).
        """
        self._identifier = identifier
        self._scope = scope
        self._nofollow = settings.nofollow
        self._limit = settings.links_per_page
        self._requisites = settings.requisites
        self._choose = choose
        self._save_scope = save_scope
        self._priority = priority
        self._aliases = aliases
        self._told: dict[tuple[str, str], int] = {}
        self._refused_lately: set[bytes] = set()
        self._known: dict[str, Judged] = {}
        self._version = scope.version
        self._rels = Rels({}, self._is_followed, {}, self._is_forbidden)
        self._hosts: dict[str, bool] = {}
        self._rules = self._sieve_rules()

    def sift(self, page: Page, depth: int) -> Sifted:
        """The links of a page that was found at `depth`, and what it is shown with."""
        sifted = self._sift_links(page, depth)
        return self._with_requisites(sifted, page, depth + 1) if page.requisites else sifted

    def _sift_links(self, page: Page, depth: int) -> Sifted:
        sifted = Sifted()
        if self._nofollow and page.directives.nofollow:
            self._refuse_all(page, sifted, ("nofollow", "page"))
            return sifted
        if not self._scope.reaches(depth + 1):
            self._refuse_all(page, sifted, self._scope.too_deep(depth + 1))
            return sifted
        self._forget_some()
        links, tried = page.links, _NOTHING
        if self._aliases is not None and (rules := self._aliases.in_force()) is not None:
            links, tried = self._with_stand_ins(links, rules, sifted.refused)
        wanted, candidates, refused = sift(
            links, self._known, self._learn, depth + 1, Candidate, self._rels, self._rules
        )
        if tried:  # it is wanted soon: until it is known to be good, all that it may stand for is asked for too
            candidates = [one._replace(level=Level.HIGH) if one.address.url in tried else one for one in candidates]
        if refused:
            self._tell(refused, sifted)
        if len(wanted) > self._limit:
            # What may be followed is chosen from, not all that is on the page: foreign links must not hide its own.
            chosen = self._choose(wanted, self._limit)
            if len(chosen) < len(wanted):
                by_link = dict(zip(wanted, candidates, strict=True))
                candidates = [by_link[link] for link in chosen]
                sifted.malformed[BEYOND] = len(wanted) - len(chosen)
                sifted.refused.extend(self._beyond(by_link.values(), candidates))
        return Sifted(candidates, sifted.refused, sifted.malformed)

    def _with_requisites(self, sifted: Sifted, page: Page, depth: int) -> Sifted:
        """With what a page is shown with: wherever it is, and soon, for without it the page is not whole.

        Frames of what is itself outside of the scope lead ever further away, and are left out.
        """
        (own,) = self._identifier.identify_resolved((page.url,))
        inside = isinstance(own, Address) and self._scope.contains(own)
        wanted = [one.url for one in page.requisites if inside or one.tag not in FRAMES]
        found: dict[bytes, Candidate] = {}
        refused: dict[bytes, Refusal] = {}
        for answer in self._identifier.identify_resolved(wanted[: self._limit]):
            if isinstance(answer, UrlRefused):
                sifted.malformed[answer.reason] = sifted.malformed.get(answer.reason, 0) + 1
            elif (verdict := self._scope.judge_requisite(answer, depth)) is None:
                found.setdefault(answer.fingerprint, Candidate(answer, depth, Level.HIGH))
            elif answer.fingerprint not in self._refused_lately:
                refused.setdefault(answer.fingerprint, Refusal(answer, *verdict))
        if len(wanted) > self._limit:
            sifted.malformed[BEYOND] = sifted.malformed.get(BEYOND, 0) + len(wanted) - self._limit
        links = [one for one in sifted.candidates if one.address.fingerprint not in found]
        left = [one for one in sifted.refused if one.address.fingerprint not in found]
        return Sifted([*links, *found.values()], [*left, *refused.values()], sifted.malformed)

    def sift_listed(self, urls: Sequence[str], depth: int, *, seeds: bool = False) -> Sifted:
        """URLs of a sitemap or feed as candidates of `depth`."""
        sifted = Sifted()
        if seeds:
            return self._sow(urls)
        if not self._scope.reaches(depth):
            sifted.malformed["depth"] = len(urls)
            return sifted
        self._forget_some()
        links: Sequence[Link] = tuple([Link(url, "loc", "", str(place)) for place, url in enumerate(urls)])
        if self._aliases is not None and (rules := self._aliases.in_force()) is not None:
            links, _ = self._with_stand_ins(links, rules, sifted.refused)
        wanted, candidates, refused = sift(links, self._known, self._learn, depth, Candidate, self._rels, self._rules)
        if refused:
            self._tell(refused, sifted)
        self.noted(sifted.refused)
        return Sifted(candidates, sifted.refused, sifted.malformed, [int(link.text) for link in wanted])

    def _sow(self, urls: Sequence[str]) -> Sifted:
        """URLs that somebody gave as seeds, by naming a list of them."""
        refused: dict[bytes, Refusal] = {}
        candidates: list[Candidate] = []
        sifted = Sifted(candidates)
        for place, answer in enumerate(self._identifier.identify_resolved(urls)):
            if isinstance(answer, UrlRefused):
                sifted.malformed[answer.reason] = sifted.malformed.get(answer.reason, 0) + 1
                continue
            verdict = self._scope.judge_seed(answer)
            if verdict is not None:
                refused.setdefault(answer.fingerprint, Refusal(answer, *verdict))
                continue
            self._scope.add_seed(answer)
            candidates.append(Candidate(answer, 0, Level.HIGH))
            sifted.places.append(place)
        sifted.refused.extend(self.noted(list(refused.values())))
        self._save_scope()
        return sifted

    def lead(self, url: str, depth: int) -> Candidate | Refusal | None:
        """A sitemap or feed as a candidate of `depth`."""
        address = self._identifier.identify(url)
        if isinstance(address, UrlRefused):
            return None
        verdict = self._scope.judge_list(address, depth)
        return Candidate(address, depth) if verdict is None else Refusal(address, *verdict)

    def _with_stand_ins(
        self, links: Sequence[Link], rules: Mapping[str, HostAliases | None], refused: list[Refusal]
    ) -> tuple[Sequence[Link], frozenset[str]]:
        """The links with aliases under their other name, and with what is to be tried beside them, by its URL."""
        ruled = self._ruled(links, rules)
        if not ruled:
            return links, frozenset()
        new, tried = list(links), set[str]()
        told: dict[bytes, Refusal] = {}
        for at, link in enumerate(links):
            own = ruled.get(origin_of(link.url))
            if own is None or (link.tag == "link" and not _leads_to_document(link.rel)):
                continue
            (address,) = self._identifier.identify_resolved((link.url,))
            found = own.resolve(address) if isinstance(address, Address) else None
            if found is None or not isinstance(address, Address):
                continue
            other = self._identifier.identify(found.url) if found.url else None
            if isinstance(other, Address) and other.fingerprint != address.fingerprint:
                new[at] = link._replace(url=other.url)
                told.setdefault(address.fingerprint, Refusal(address, ALIAS, f"{other.url}: {found.detail}"))
            also = self._identifier.identify(found.also) if found.also else None
            if isinstance(also, Address):
                new.append(link._replace(url=also.url))
                tried.add(also.url)
        refused.extend(self._untold(told.values()))
        return tuple(new), frozenset(tried)

    def _ruled(self, links: Sequence[Link], rules: Mapping[str, HostAliases | None]) -> dict[str, HostAliases]:
        """The origins among the links whose hosts have rules. They are few: a page links to its own host most."""
        found: dict[str, HostAliases] = {}
        for origin in {origin_of(link.url) for link in links}:
            address = self._identifier.identify(f"{origin}/")
            own = rules[address.host] if isinstance(address, Address) else None
            if own is not None:
                found[origin] = own
        return found

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
                sifted.refused.append(Refusal(address, *found))

    def _is_followed(self, rel: str) -> bool:
        """Whether a <link> of that rel is, for what it leads to and by choice."""
        return _leads_to_document(rel) and len(self._choose((Link("", "link", rel, ""),), 1)) == 1

    def _is_forbidden(self, rel: str) -> bool:
        return self._nofollow and "nofollow" in rel.split()

    def target(self, location: str, task: PageTask) -> Address | Refusal | None:
        """Where a redirect leads."""
        url = resolve_location(task.url, location)
        address = None if url is None else self._identifier.identify(url)
        return address if isinstance(address, Address) else None

    def instead_of(self, task: PageTask) -> tuple[Candidate, str] | None:
        """What a URL that was fetched before is an alias of, with the evidence; seeds are what they are."""
        rules = self._aliases.in_force() if self._aliases is not None and task.depth and task.digest else None
        address = self._identifier.identify(task.url) if rules is not None else None
        if rules is None or not isinstance(address, Address) or (own := rules[address.host]) is None:
            return None
        found = own.resolve(address)
        other = self._identifier.identify(found.url) if found is not None and found.url else None
        if found is None or not isinstance(other, Address) or other.fingerprint == task.fingerprint:
            return None
        told = f"{other.url}: {found.detail}"
        return (Candidate(other, task.depth), told) if self.allows(other, task.depth) else None

    def allows(self, address: Address, depth: int) -> bool:
        """Whether an address may be admitted at a depth."""
        return self._scope.judge(address, depth) is None

    def follow(self, target: Address, task: PageTask) -> Candidate | Refusal:
        """A redirect's target as a candidate: same depth and urgency, one hop further."""
        target = self._stand_in(target, task)
        if self._scope.widen(target, task.depth, task.hops + 1):
            self._save_scope()
        verdict = self._scope.judge(target, task.depth)
        if verdict is not None and self._requisites and self._is_requisite(task):
            verdict = self._scope.judge_requisite(target, task.depth)
        if verdict is not None:
            return Refusal(target, *verdict)
        level = Level(task.level)
        return Candidate(target, task.depth, level, task.hops + 1)

    def _is_requisite(self, task: PageTask) -> bool:
        """Whether a task is only there because a page is shown with it: as a link it would have been refused."""
        (own,) = self._identifier.identify_resolved((task.url,))
        return isinstance(own, Address) and task.depth > 0 and self._scope.judge(own, task.depth) is not None

    def _refuse_all(self, page: Page, sifted: Sifted, verdict: tuple[str, str]) -> None:
        """No link of a page goes on."""
        links = [link for link in page.links if link.tag != "link" or _leads_to_document(link.rel)]
        refused: dict[bytes, Refusal] = {}
        for answer in self._identifier.identify_resolved([link.url for link in links]):
            if isinstance(answer, UrlRefused):
                sifted.malformed[answer.reason] = sifted.malformed.get(answer.reason, 0) + 1
            elif answer.fingerprint not in self._refused_lately:
                refused.setdefault(answer.fingerprint, Refusal(answer, *verdict))
        sifted.refused.extend(refused.values())

    def _stand_in(self, target: Address, task: PageTask) -> Address:
        """What a redirect's target is an alias of, unless that is where the redirect came from."""
        rules = self._aliases.in_force() if self._aliases is not None else None
        own = rules[target.host] if rules is not None else None
        found = own.resolve(target) if own is not None else None
        other = self._identifier.identify(found.url) if found is not None and found.url else None
        return other if isinstance(other, Address) and other.fingerprint != task.fingerprint else target

    def noted(self, refused: Sequence[Refusal]) -> list[Refusal]:
        """These were noted for good: they are not told of again for a while. Gives those that were not told before."""
        new: list[Refusal] = []
        for refusal in refused:
            fingerprint, host = refusal.address.fingerprint, refusal.address.host
            if fingerprint in self._refused_lately:
                continue
            if len(self._refused_lately) >= REFUSALS_REMEMBERED:
                self._refused_lately.clear()
            self._refused_lately.add(fingerprint)
            new.append(refusal)
            if refusal.reason in TOLD_OF_A_HOST:
                kind = refusal.reason, host
                if kind not in self._told and len(self._told) >= REFUSALS_REMEMBERED:
                    self._told.clear()
                self._told[kind] = self._told.get(kind, 0) + 1
        return new

    def _beyond(self, candidates: Iterable[Candidate], chosen: Sequence[Candidate]) -> Iterator[Refusal]:
        """What might have gone on, of a page with too many links: told with how many there were."""
        seen = {candidate.address.fingerprint for candidate in chosen}
        left: list[Address] = []
        for candidate in candidates:
            address = candidate.address
            if address.fingerprint not in seen:
                seen.add(address.fingerprint)
                left.append(address)
        detail = f"{len(seen):,} links of the page may be followed, {len(seen) - len(left):,} were taken"
        told = self._untold(Refusal(address, BEYOND, detail) for address in left)
        return islice(told, TOLD_OF_A_HOST[BEYOND])

    def _untold(self, refused: Iterable[Refusal]) -> Iterator[Refusal]:
        """Those refusals of a page that are to be told of, where they are not without end."""
        told: dict[tuple[str, str], int] = {}
        for refusal in refused:
            kind = refusal.reason, refusal.address.host
            before = told.get(kind) or self._told.get(kind, 0)
            if before < TOLD_OF_A_HOST[refusal.reason] and refusal.address.fingerprint not in self._refused_lately:
                told[kind] = before + 1
                yield refusal


def _leads_to_document(rel: str) -> bool:
    """Whether a <link> of that rel leads to another document; an alternate style sheet is a style sheet."""
    words = rel.split()
    return "stylesheet" not in words and not FOLLOWED_RELS.isdisjoint(words)
