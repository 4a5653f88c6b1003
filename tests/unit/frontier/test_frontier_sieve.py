"""From the links of a page to candidates: directives, rels, refusals, and where redirects lead."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nephila.frontier import sieve as module
from nephila.frontier.scope import Scope
from nephila.frontier.sieve import ScopeSieve
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
    assert len(sieve.sift(menu, 0).refused) == 2
    assert sieve.sift(menu, 0).refused == []
    assert len(sieve.sift(page(link("https://b.test/3")), 0).refused) == 1
    assert len(sieve.sift(menu, 0).refused) == 2, "forgotten, and told again"
    assert len(sieve._refused_lately) <= 2


def test_the_links_of_a_page_are_limited() -> None:
    """X1: 500 links a page by default."""
    links = [link(f"https://a.test/{number}") for number in range(20)]
    assert len(Bench(ScopeSettings(links_per_page=7)).sieve.sift(page(*links), 0).candidates) == 7


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
