"""From the links of a page to candidates: directives, rels, refusals, and where redirects lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from nephila.frontier import sieve as module
from nephila.frontier.scope import Scope
from nephila.frontier.sieve import ScopeSieve
from nephila.model.alias import Aliased
from nephila.model.page import Directives, Link, Page
from nephila.model.settings import ScopeSettings
from nephila.model.task import Candidate, Level, PageTask, Refusal
from nephila.urls import Address, Identifier, NormalRules, UrlLimits

IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())


def address(url: str) -> Address:
    found = IDENTIFIER.identify(url)
    assert isinstance(found, Address)
    return found


class Bench:
    """A sieve over a scope whose seed is https://a.test/."""

    def __init__(self, settings: ScopeSettings | None = None, max_depth: int = 15) -> None:
        settings = settings or ScopeSettings()
        self.scope = Scope(settings, max_depth)
        self.scope.add_seed(address("https://a.test/"))
        self.saved = 0
        self.sieve = ScopeSieve(IDENTIFIER, self.scope, settings, lambda links, limit: links[:limit], self.save)

    def save(self) -> None:
        self.saved += 1


def page(*links: Link, nofollow: bool = False) -> Page:
    return Page("https://a.test/", "https://a.test/", "utf-8", "", links, Directives(nofollow=nofollow))


def link(url: str, tag: str = "a", rel: str = "") -> Link:
    return Link(url, tag, rel, "")


def urls(found: Sequence[Candidate | Refusal]) -> list[str]:
    return [one.address.url for one in found]


def task(url: str = "https://a.test/", depth: int = 0, hops: int = 0, level: Level = Level.HIGH) -> PageTask:
    return PageTask(address(url).fingerprint, url, depth, level, hops)


def test_links_become_candidates_one_hop_further() -> None:
    """X1, S3, U2: each page once, whatever its spelling; what is no address is counted."""
    spellings = [link("https://a.test/x"), link("https://a.test/x/"), link("https://a.test/x?utm_source=y")]
    sifted = Bench().sieve.sift(page(*spellings, link("mailto:x@a.test"), link("https://a.test/" + "y" * 3000)), 4)
    assert [(one.address.url, one.depth, one.hops) for one in sifted.candidates] == [("https://a.test/x", 5, 0)]
    assert sum(sifted.malformed.values()) == 2
    assert not sifted.refused


@pytest.mark.parametrize(
    ("rel", "followed"),
    [
        ("next", True),
        ("alternate", True),
        ("canonical", True),
        ("prev nofollow", False),
        ("stylesheet", False),
        ("alternate stylesheet", False),
        ("icon", False),
        ("preconnect", False),
        ("", False),
    ],
)
def test_a_link_element_is_followed_for_documents_only(rel: str, followed: bool) -> None:
    """X1: style sheets, icons and hints to browsers are no pages."""
    sifted = Bench().sieve.sift(page(link("https://a.test/x", "link", rel)), 0)
    assert bool(sifted.candidates) == followed


def test_rel_nofollow_refuses_the_link_and_a_nofollow_page_refuses_all() -> None:
    """X2, T8: with the place where it was said."""
    links = [link("https://a.test/1", rel="external nofollow"), link("https://a.test/2")]
    sifted = Bench().sieve.sift(page(*links), 0)
    assert urls(sifted.candidates) == ["https://a.test/2"]
    assert [(one.reason, one.detail) for one in sifted.refused] == [("nofollow", "rel")]
    whole = Bench().sieve.sift(page(*links, nofollow=True), 0)
    assert whole.candidates == []
    assert [(one.reason, one.detail) for one in whole.refused] == [("nofollow", "page")] * 2


def test_nofollow_can_be_disobeyed() -> None:
    """X2: a setting."""
    bench = Bench(ScopeSettings(nofollow=False))
    sifted = bench.sieve.sift(page(link("https://a.test/1", rel="nofollow"), nofollow=True), 0)
    assert urls(sifted.candidates) == ["https://a.test/1"]


def test_a_rel_that_merely_contains_the_word_is_followed() -> None:
    """X2: rel is a list of words."""
    sifted = Bench().sieve.sift(page(link("https://a.test/1", rel="x-nofollow-not")), 0)
    assert urls(sifted.candidates) == ["https://a.test/1"]


def test_out_of_scope_and_too_deep_are_refused_with_their_rule() -> None:
    """S2, S3, T8: the rule that says no."""
    bench = Bench(max_depth=3)
    assert [(one.reason, one.detail) for one in bench.sieve.sift(page(link("https://b.test/")), 0).refused] == [
        ("scope", "domain")
    ]
    (refusal,) = bench.sieve.sift(page(link("https://a.test/x")), 3).refused
    assert refusal.reason == "depth"


def test_a_refusal_is_told_once_while_it_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """T8, F8: menus repeat on every page; what is remembered is bounded."""
    monkeypatch.setattr(module, "REFUSALS_REMEMBERED", 2)
    sieve = Bench().sieve
    menu = page(link("https://b.test/1"), link("https://b.test/2"))
    assert len(sieve.noted(sieve.sift(menu, 0).refused)) == 2
    assert sieve.sift(menu, 0).refused == []
    assert len(sieve.noted(sieve.sift(page(link("https://b.test/3")), 0).refused)) == 1
    assert len(sieve.sift(menu, 0).refused) == 2, "forgotten, and told again"
    assert len(sieve._refused_lately) <= 2


@pytest.mark.parametrize("nofollow", [False, True])
def test_a_refusal_that_nobody_noted_is_told_again(*, nofollow: bool) -> None:
    """T8, F3: the page that had the link was settled too late; the next one that has it tells of it."""
    sieve = Bench().sieve
    menu = page(link("https://b.test/1"), link("https://b.test/1#again"), nofollow=nofollow)
    first, second = sieve.sift(menu, 0).refused, sieve.sift(menu, 0).refused
    assert first == second
    assert len(first) == 1
    assert sieve.noted(first) == first
    assert sieve.noted(second) == [], "no news any more"
    assert sieve.sift(menu, 0).refused == []


def test_what_a_list_names_and_is_refused_counts_as_told() -> None:
    """T8, X3: it is admitted whatever becomes of the list."""
    sieve = Bench().sieve
    assert len(sieve.sift_listed(["https://b.test/1", "https://b.test/1"], 1).refused) == 1
    assert sieve.sift_listed(["https://b.test/1"], 1).refused == []


def test_the_links_of_a_page_are_limited() -> None:
    """X1: 500 links a page by default."""
    links = [link(f"https://a.test/{number}") for number in range(20)]
    assert len(Bench(ScopeSettings(links_per_page=7)).sieve.sift(page(*links), 0).candidates) == 7


def test_what_is_beyond_the_limit_is_told_with_how_many_there_were() -> None:
    """T8, X1: each URL once, and none that another link of the page takes along."""
    sieve = Bench(ScopeSettings(links_per_page=3)).sieve
    many = [link(f"https://a.test/{number}") for number in (0, 1, 2, 3, 4, 4, 0)]
    sifted = sieve.sift(page(*many, link("https://a.test/4#part"), link("https://b.test/")), 0)
    assert urls(sifted.candidates) == [f"https://a.test/{number}" for number in (0, 1, 2)]
    told = "5 links of the page may be followed, 3 were taken"
    assert [(one.address.url, one.reason, one.detail) for one in sifted.refused] == [
        ("https://b.test/", "scope", "domain"),
        ("https://a.test/3", "links_per_page", told),
        ("https://a.test/4", "links_per_page", told),
    ]
    assert sieve.noted(sifted.refused) == sifted.refused
    assert sieve.sift(page(*many), 0).refused == [], "a menu is told of once"


def test_endless_lists_of_links_are_told_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """T8, X1: they must not drive out what else was refused, nor be written down for every page."""
    monkeypatch.setitem(module.TOLD_OF_A_HOST, module.BEYOND, 30)
    sieve = Bench(ScopeSettings(links_per_page=3)).sieve
    told = []
    for number in range(5):
        sifted = sieve.sift(page(*(link(f"https://a.test/{number}/{n}") for n in range(23))), 0)
        assert sifted.malformed == {"links_per_page": 20}
        told.append(len(sieve.noted(sifted.refused)))
    assert told == [20, 10, 0, 0, 0]
    whole = Bench(ScopeSettings(links_per_page=3, mode="all")).sieve
    hosts = page(*(link(f"https://h{n}.test/") for n in range(50)))
    assert len(whole.sift(hosts, 0).refused) == 30, "nor those of one page to many hosts"


# What pages are shown with

SHOWN = ScopeSettings(requisites=True, exclude=(r"/ads/",))


def shown_with(*requisites: Link, links: Sequence[Link] = (), url: str = "https://a.test/") -> Page:
    return replace(page(*links), url=url, requisites=requisites)


def test_what_a_page_is_shown_with_may_be_anywhere_and_is_called_what_it_likes() -> None:
    """X1, S2: it goes soon, each once, a link to the same URL included; only what a person excluded stays out."""
    sieve = Bench(SHOWN).sieve
    sheet, picture = link("https://cdn.test/login/s.css", "link"), link("https://a.test/p.png", "img")
    advert = link("https://cdn.test/ads/x.js", "script")
    links = [link("https://a.test/p.png"), link("https://a.test/x"), link("https://cdn.test/page")]
    sifted = sieve.sift(shown_with(sheet, picture, advert, link("https://cdn.test/login/s.css?"), links=links), 4)
    assert [(one.address.url, one.depth, one.level) for one in sifted.candidates] == [
        ("https://a.test/x", 5, None),
        ("https://cdn.test/login/s.css", 5, Level.HIGH),
        ("https://a.test/p.png", 5, Level.HIGH),
    ]
    assert [(one.address.url, one.reason) for one in sifted.refused] == [
        ("https://cdn.test/page", "scope"),
        ("https://cdn.test/ads/x.js", "excluded"),
    ]


def test_the_deepest_page_is_shown_whole_and_one_without_followed_links_too() -> None:
    """X1, S3, X2: depth and nofollow are about documents; what nests without end ends."""
    bench = Bench(SHOWN, max_depth=1)
    sheet = link("https://cdn.test/s.css", "link")
    assert urls(bench.sieve.sift(shown_with(sheet, links=[link("https://a.test/x")]), 1).candidates) == [sheet.url]
    assert urls(bench.sieve.sift(shown_with(sheet), 3).candidates) == [sheet.url]
    assert bench.sieve.sift(shown_with(sheet), 4).refused[0].reason == "depth"
    unfollowed = replace(shown_with(sheet), directives=Directives(nofollow=True))
    assert urls(bench.sieve.sift(unfollowed, 0).candidates) == [sheet.url]


def test_frames_within_what_is_outside_lead_nowhere() -> None:
    """X1, S2: those of a page of the scope are part of it."""
    frame, picture = link("https://b.test/frame", "iframe"), link("https://c.test/p.png", "img")
    sieve = Bench(SHOWN).sieve
    assert urls(sieve.sift(shown_with(frame, picture), 1).candidates) == [frame.url, picture.url]
    outside = shown_with(frame, picture, url="https://b.test/other")
    assert urls(sieve.sift(outside, 2).candidates) == [picture.url]


def test_what_a_page_is_shown_with_is_limited() -> None:
    """X1, T1: as its links are, beside them."""
    many = [link(f"https://a.test/{number}.png", "img") for number in range(20)]
    sifted = Bench(replace(SHOWN, links_per_page=7)).sieve.sift(shown_with(*many), 0)
    assert (len(sifted.candidates), sifted.malformed) == (7, {"links_per_page": 13})


def test_what_redirects_is_followed_outside_where_a_page_is_shown_with_it() -> None:
    """X1, H2: a link that redirects outside is not."""
    sieve, target = Bench(SHOWN).sieve, address("https://cdn2.test/s.css")
    assert isinstance(sieve.follow(target, task("https://cdn.test/s.css", depth=2)), Candidate)
    assert isinstance(sieve.follow(target, task("https://a.test/p.png", depth=2)), Candidate)
    assert isinstance(sieve.follow(target, task("https://a.test/page", depth=2)), Refusal)
    assert isinstance(Bench().sieve.follow(target, task("https://cdn.test/s.css", depth=2)), Refusal)


# Redirects


def test_a_redirect_keeps_depth_and_urgency_and_counts_a_hop() -> None:
    """H2: the target goes through scope as any URL does, at the same depth."""
    sieve = Bench().sieve
    target = sieve.target("/y#part", task(depth=3, hops=2))
    assert isinstance(target, Address)
    assert target.url == "https://a.test/y"
    assert sieve.follow(target, task(depth=3, hops=2)) == Candidate(target, 3, Level.HIGH, 3)


@pytest.mark.parametrize("location", ["", "http://", "mailto:x@a.test", "javascript:void(0)", "https://[::1"])
def test_a_redirect_to_no_address_leads_nowhere(location: str) -> None:
    """H2: None, not an error; an empty Location is the page itself and no target either."""
    target = Bench().sieve.target(location, task())
    assert target is None or (location == "" and isinstance(target, Address) and target.url == "https://a.test/")


def test_a_seed_takes_its_scope_along() -> None:
    """S2: a.test answering with www.b.test would else end a crawl at its first page; saved before it is admitted."""
    bench = Bench()
    target = address("https://www.b.test/")
    assert isinstance(bench.sieve.follow(target, task(depth=0)), Candidate)
    assert bench.saved == 1
    assert urls(bench.sieve.sift(page(link("https://b.test/x")), 0).candidates) == ["https://b.test/x"]


def test_a_page_found_later_takes_no_scope_along() -> None:
    """S2: out of scope is out of scope."""
    bench = Bench()
    refusal = bench.sieve.follow(address("https://b.test/"), task("https://a.test/x", depth=1))
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, bench.saved) == ("scope", 0)


class TaughtAliases:
    """Rules of one host, as the sieve asks for them."""

    def __init__(self, host: str, found: dict[str, Aliased]) -> None:
        self._host = host
        self._found = found

    def __getitem__(self, host: str) -> TaughtAliases | None:
        return self if host == self._host else None

    def in_force(self) -> TaughtAliases:
        return self

    def resolve(self, address: Address) -> Aliased | None:
        return self._found.get(address.url)


def aliased(found: dict[str, Aliased]) -> ScopeSieve:
    settings, rules = ScopeSettings(), TaughtAliases("a.test", found)
    scope = Scope(settings, 15)
    scope.add_seed(address("https://a.test/"))
    return ScopeSieve(
        IDENTIFIER,
        scope,
        settings,
        lambda links, limit: links[:limit],
        lambda: None,
        aliases=rules,  # type: ignore[arg-type]  # all that a sieve asks of them
    )


def test_an_alias_is_admitted_under_its_other_name_and_told() -> None:
    """D4, T8: once, however many links lead there; the refusal names the other URL and the evidence."""
    links = [
        link("https://a.test/x?s=1"),
        link("https://a.test/x?s=2"),
        link("https://a.test/x"),
        link("https://a.test/y"),
    ]
    sieve = aliased({f"https://a.test/x?s={n}": Aliased("https://a.test/x", "s changes nothing") for n in (1, 2)})
    sifted = sieve.sift(page(*links), 2)
    assert urls(sifted.candidates) == ["https://a.test/x", "https://a.test/y"]
    assert [(one.address.url, one.reason, one.detail) for one in sifted.refused] == [
        (f"https://a.test/x?s={n}", "alias", "https://a.test/x: s changes nothing") for n in (1, 2)
    ]
    assert {one.level for one in sifted.candidates} == {None}


def test_endless_aliases_of_a_host_are_told_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """D4, T8: they must not drive out what else was refused."""
    monkeypatch.setitem(module.TOLD_OF_A_HOST, module.ALIAS, 3)
    numbers = range(10)
    sieve = aliased({f"https://a.test/x?s={n}": Aliased("https://a.test/x", "s") for n in numbers})
    whole = sieve.sift(page(*(link(f"https://a.test/x?s={n}") for n in numbers)), 1)
    assert len(whole.refused) == 3, "nor those of one page"
    sifted = []
    for n in numbers:
        sifted.append(sieve.sift(page(link(f"https://a.test/x?s={n}"), link(f"https://b.test/{n}")), 1))
        sieve.noted(sifted[-1].refused)
    assert sum(one.reason == "alias" for found in sifted for one in found.refused) == 3
    assert sum(one.reason == "scope" for found in sifted for one in found.refused) == 10
    assert all(urls(found.candidates) == ["https://a.test/x"] for found in sifted)


def test_what_an_alias_stands_for_is_judged_by_scope_as_any_link() -> None:
    """D4, S2: a host that moved out of scope takes its links with it."""
    sieve = aliased({"https://a.test/x": Aliased("https://elsewhere.example/x", "moved")})
    sifted = sieve.sift(page(link("https://a.test/x")), 2)
    assert sifted.candidates == []
    assert [(one.address.url, one.reason) for one in sifted.refused] == [
        ("https://a.test/x", "alias"),
        ("https://elsewhere.example/x", "scope"),
    ]


def test_what_is_tried_comes_beside_the_link_and_soon() -> None:
    """D4: nothing is refused before its stand-in was seen to be good."""
    sieve = aliased({"https://a.test/x?s=1": Aliased("", "", "https://a.test/x")})
    sifted = sieve.sift(page(link("https://a.test/x?s=1")), 2)
    assert [(one.address.url, one.level) for one in sifted.candidates] == [
        ("https://a.test/x?s=1", None),
        ("https://a.test/x", Level.HIGH),
    ]
    assert sifted.refused == []


def test_a_redirect_leads_to_what_its_target_is_an_alias_of_but_never_back() -> None:
    """D4, H2: a page that sets a session by redirecting to itself with one is still fetched."""
    sieve = aliased({"https://a.test/x?s=1": Aliased("https://a.test/x", "s changes nothing")})
    elsewhere = sieve.follow(address("https://a.test/x?s=1"), task("https://a.test/old"))
    assert elsewhere.address.url == "https://a.test/x"
    itself = sieve.follow(address("https://a.test/x?s=1"), task("https://a.test/x"))
    assert itself.address.url == "https://a.test/x?s=1"


def test_what_is_due_again_and_an_alias_by_now_gives_way() -> None:
    """D4, R2: where it was fetched before; not a seed, not what is new, not to what is out of scope."""
    sieve = aliased(
        {
            "https://a.test/x?s=1": Aliased("https://a.test/x", "s changes nothing"),
            "https://a.test/moved": Aliased("https://elsewhere.example/moved", "moved"),
        }
    )
    due = replace(task("https://a.test/x?s=1", depth=3), digest=b"d" * 32)
    assert sieve.instead_of(due) == (Candidate(address("https://a.test/x"), 3), "https://a.test/x: s changes nothing")
    assert sieve.instead_of(replace(due, digest=b"")) is None
    assert sieve.instead_of(replace(due, depth=0)) is None
    assert sieve.instead_of(replace(task("https://a.test/moved", depth=3), digest=b"d" * 32)) is None
    assert sieve.instead_of(replace(task("https://a.test/y", depth=3), digest=b"d" * 32)) is None
    assert Bench().sieve.instead_of(due) is None


def test_whether_an_address_is_allowed_is_what_scope_says() -> None:
    """S2, T4: for what is asked for beside the links of a page."""
    sieve = Bench().sieve
    assert sieve.allows(address("https://a.test/x"), 15)
    assert not sieve.allows(address("https://a.test/x"), 16)
    assert not sieve.allows(address("https://b.test/x"), 1)
