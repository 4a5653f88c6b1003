"""From the links of a page to candidates for the frontier: identity, scope, directives, in one sweep a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nephila.interfaces.aliases import Aliases, HostAliases
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

ALIAS = "alias"
"""The reason of a link that is admitted under another name."""

ALIASES_TOLD = 1_000
"""Aliases of one host that are told one by one: a site that puts a session into every link has no end of them, and the
rule that catches them is listed anyway."""

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
        aliases: Aliases | None = None,
    ) -> None:
        """`save_scope` is called when a seed's redirect has widened the scope, before its target is admitted.

        `aliases` says which links are admitted under another name (D4).
        """
        self._identifier = identifier
        self._scope = scope
        self._nofollow = settings.nofollow
        self._limit = settings.links_per_page
        self._choose = choose
        self._save_scope = save_scope
        self._priority = priority
        self._aliases = aliases
        self._refused_lately: set[bytes] = set()
        self._aliases_told: dict[str, int] = {}

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
        rules = self._aliases.in_force() if self._aliases is not None else None
        known = len(links)
        if rules is not None:
            links, addresses = self._resolved(links, addresses, rules, refused)
        # What is tried is wanted soon: until it is known to be good, all that it may stand for is asked for too.
        tried = {link.url for link in links[known:]}
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
                level = Level.HIGH if link.url in tried else None
                wanted[link] = Candidate(address, depth + 1, level, bonus=bonus_of(self._priority, address.url))
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
        if verdict is not None:
            return Refusal(target, *verdict)
        level = Level(task.level)
        return Candidate(target, task.depth, level, task.hops + 1)

    def _resolved(
        self,
        links: list[Link],
        addresses: list[Address | UrlRefused],
        rules: Mapping[str, HostAliases | None],
        refused: list[Refusal],
    ) -> tuple[list[Link], list[Address | UrlRefused]]:
        """The links with aliases under their other name, and with what is to be tried beside them."""
        hosts = {one.host for one in addresses if isinstance(one, Address)}  # few: a page links to its own most
        ruled = {host: own for host in hosts if (own := rules[host]) is not None}
        if not ruled:
            return links, addresses
        new_links, new_addresses = list(links), list(addresses)
        for at, address in enumerate(addresses):
            if not isinstance(address, Address) or (own := ruled.get(address.host)) is None:
                continue
            found = own.resolve(address)
            if found is None:
                continue
            other = self._identifier.identify(found.url) if found.url else None
            if isinstance(other, Address) and other.fingerprint != address.fingerprint:
                new_addresses[at] = other
                self._tell_alias(refused, Refusal(address, ALIAS, f"{other.url}: {found.detail}"))
            also = self._identifier.identify(found.also) if found.also else None
            if isinstance(also, Address):
                new_links.append(links[at]._replace(url=also.url))
                new_addresses.append(also)
        return new_links, new_addresses

    def _stand_in(self, target: Address, task: PageTask) -> Address:
        """What a redirect's target is an alias of, unless that is where the redirect came from."""
        rules = self._aliases.in_force() if self._aliases is not None else None
        own = rules[target.host] if rules is not None else None
        found = own.resolve(target) if own is not None else None
        other = self._identifier.identify(found.url) if found is not None and found.url else None
        return other if isinstance(other, Address) and other.fingerprint != task.fingerprint else target

    def _refuse_all(self, links: Sequence[Link], sifted: Sifted, detail: str) -> None:
        for address in self._identifier.identify_resolved([link.url for link in links]):
            if isinstance(address, Address):
                self._refuse(sifted.refused, Refusal(address, "nofollow", detail))

    def _tell_alias(self, refused: list[Refusal], refusal: Refusal) -> None:
        told = self._aliases_told.get(refusal.address.host, 0)
        if told >= ALIASES_TOLD:
            return
        if not told and len(self._aliases_told) >= REFUSALS_REMEMBERED:
            self._aliases_told.clear()
        before = len(refused)
        self._refuse(refused, refusal)
        self._aliases_told[refusal.address.host] = told + len(refused) - before

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
