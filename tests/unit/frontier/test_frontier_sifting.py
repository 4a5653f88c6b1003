"""The loop of the sieve in C against its twin in Python."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nephila.frontier import sieve as sieves
from nephila.frontier import sifting
from nephila.frontier.scope import Scope, ScopeSeeds
from nephila.frontier.sieve import ScopeSieve
from nephila.interfaces.sieve import Sifted
from nephila.model.page import Directives, Link, Page
from nephila.model.settings import ScopeSettings
from nephila.model.task import Candidate
from nephila.native import native
from nephila.parse import links_that_matter, parse_html
from nephila.urls import Identifier, NormalRules, UrlLimits

RELS = ("", "", "", "nofollow", "stylesheet", "next", "nofollow ugc", "noopener", "canonical")
ORIGINS = (
    "https://a.test",
    "http://b.a.test:8080",
    "https://user@c.test",
    "https://127.0.0.1",
    "https://xn--mnchen-3ya.de",
)
SEGMENTS = (
    *(
        "login",
        "Login",
        "cart.php",
        "a.b.pdf",
        "x.PDF",
        "news",
        "",
        "a",
        "b",
        "c;x",
        "wiki",
        "Node.js",
        "%2e",
        "admin",
        "n" * 300,
    ),
    *("js", ".js", "b.", "x?login/y.pdf", "?", "q?utm_source=1&a=b", "(S(x))", "p%41"),
)
urls = st.builds(
    lambda origin, segments: f"{origin}/" + "/".join(segments),
    st.sampled_from(ORIGINS),
    st.lists(st.sampled_from(SEGMENTS), max_size=7),
)
pages = st.lists(
    st.builds(
        Link, urls, st.sampled_from(("a", "a", "link", "area")), st.sampled_from(RELS), st.sampled_from(("x", ""))
    ),
    max_size=12,
).map(lambda links: tuple({link.url: link for link in links}.values()))


def sieve_of(mode: str, links_per_page: int) -> ScopeSieve:
    settings = ScopeSettings(mode=mode, links_per_page=links_per_page)
    scope = Scope(settings, 9, ScopeSeeds(frozenset({"a.test"}), frozenset({"a.test"})))
    identifier = Identifier(7, NormalRules(), UrlLimits(max_length=400, max_segments=5))
    return ScopeSieve(identifier, scope, settings, links_that_matter, lambda: None)


def sifted_plainly(sieve: ScopeSieve, page: Page, depth: int) -> Sifted:
    sieves.sift, before = sifting.plain_sift, sieves.sift
    try:
        return sieve.sift(page, depth)
    finally:
        sieves.sift = before


@given(
    st.lists(pages, min_size=1, max_size=3),
    st.sampled_from(("all", "host", "domain")),
    st.integers(1, 9),
    st.integers(2, 500),
)
def test_links_are_sifted_alike(met: list[tuple[Link, ...]], mode: str, depth: int, limit: int) -> None:
    """X1, S2, U2: what C lets on is what Python lets on, in the same order, with the same identity."""
    one, other = sieve_of(mode, limit), sieve_of(mode, limit)
    assert sieves.sift is native.sift
    for links in met:
        page = Page("https://a.test/", "https://a.test/", "utf-8", "", links, Directives())
        assert one.sift(page, depth) == sifted_plainly(other, page, depth)


@given(
    st.lists(pages, min_size=1, max_size=3),
    st.sampled_from(("all", "host", "domain")),
    st.integers(1, 9),
    st.integers(2, 500),
)
def test_packed_links_are_sifted_like_others(met: list[tuple[Link, ...]], mode: str, depth: int, limit: int) -> None:
    """X1, S2, U2: links that are nouns, and links that lie packed as they were found, go the same way."""
    one, other = sieve_of(mode, limit), sieve_of(mode, limit)
    for links in met:
        body = "".join(
            f'<{link.tag} href="{link.url}" rel="{link.rel}" alt="{link.text}">{link.text}</{link.tag}>'
            for link in links
        ).encode()
        page = parse_html(body, "https://a.test/", "text/html", agent="x")
        assert type(page.links) is not tuple
        packed = one.sift(page, depth)
        assert packed == other.sift(replace(page, links=tuple(page.links)), depth)
        assert [type(candidate) for candidate in packed.candidates] == [Candidate] * len(packed.candidates)


def test_plain_urls_are_not_remembered_one_by_one() -> None:
    """Q1: an ordinary URL costs neither a look at every rule nor room in a memory."""
    sieve = sieve_of("all", 500)
    links = tuple(Link(f"https://a.test/news/article-{number}.html", "a", "", "x") for number in range(50))
    page = Page("https://a.test/", "https://a.test/", "utf-8", "", links, Directives())
    assert len(sieve.sift(page, 1).candidates) == 50
    assert len(sieve._known) == 1  # the first, by which the site became known
