"""The loops of the sieve in C against their twins in Python."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nephila.frontier import sifting
from nephila.frontier.scope import Scope
from nephila.model.page import Link
from nephila.model.settings import ScopeSettings
from nephila.model.task import Candidate
from nephila.native import native
from nephila.urls import Address, Fingerprint

ADDRESSES = [
    Address(f"https://a.test/{n}", "a.test", f"https://a.test/{n % 4}", Fingerprint(bytes((n % 4,)) * 16))
    for n in range(6)
]
RELS = ("", "nofollow", "stylesheet", "next", "nofollow ugc", "noopener")
judged = st.one_of(
    st.tuples(st.none(), st.sampled_from(("malformed", "scheme")), st.just(0)),
    st.tuples(st.sampled_from(ADDRESSES), st.sampled_from((None, None, ("scope", "host"))), st.integers(-20, 20)),
)
links = st.lists(
    st.builds(
        Link,
        st.sampled_from([one.url for one in ADDRESSES]),
        st.sampled_from(("a", "link", "area")),
        st.sampled_from(RELS),
        st.just("x"),
    ),
    max_size=12,
).map(tuple)
words = st.sampled_from(
    (
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
        "js",
        ".js",
        "b.",
    )
)


@given(links, st.fixed_dictionaries({one.url: judged for one in ADDRESSES}), st.integers(0, 20))
def test_links_are_sifted_alike(page: tuple[Link, ...], known: dict[str, sifting.Judged], depth: int) -> None:
    """X1, S2: what C lets on is what Python lets on, in the same order."""
    some = {url: known[url] for url in list(known)[::2]}
    assert native.unknown_urls(page, some) == sifting.plain_unknown_urls(page, some)
    arguments = (lambda rel: "next" in rel), (lambda rel: "nofollow" in rel)
    plain = sifting.plain_sift(page, known, depth, Candidate, {}, arguments[0], {}, arguments[1])
    assert native.sift(page, known, depth, Candidate, {}, arguments[0], {}, arguments[1]) == plain
    assert all(
        isinstance(one, Candidate)
        for one in native.sift(page, known, depth, Candidate, {}, *arguments[:1], {}, arguments[1])[1]
    )


@given(st.lists(words, max_size=8), st.sampled_from(("", "?login/x.pdf", "?")))
def test_a_path_that_is_called_plain_is_refused_by_no_rule(segments: list[str], query: str) -> None:
    """S2, T1: C only says of a path that nothing in it means anything where that is so."""
    url = "https://a.test/" + "/".join(segments) + query
    address = Address(url, "a.test", url, Fingerprint(bytes(16)))
    scope = Scope(ScopeSettings(mode="all"))
    ((verdict, _),) = scope.judge_new([address])
    assert verdict == scope.judge(address, 0)


def test_most_paths_are_plain() -> None:
    """Q1: an ordinary path does not cost a look at every rule."""
    table = native.word_table(["login", "pdf"])
    urls = (
        "https://a.test/news/2024/an-article.html",
        "https://a.test/",
        "https://a.test/x?login",
        "https://a.test/a/a",
    )
    found = native.plain_paths([Address(url, "a.test", url, Fingerprint(bytes(16))) for url in urls], table, 3)
    assert found == [True] * 4
    others = ("https://a.test/login", "https://a.test/x.PDF", "https://a.test/a/a/a", "https://a.test/login.php")
    assert not any(
        native.plain_paths([Address(url, "a.test", url, Fingerprint(bytes(16))) for url in others], table, 3)
    )
