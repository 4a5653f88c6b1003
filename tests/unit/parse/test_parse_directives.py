from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.page import Directives
from nephila.parse.directives import agent_token, directives_of

AGENT = "Nephila/0.1 (+https://crawler.example/bot)"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("noindex", Directives(noindex=True)),
        ("NOINDEX, NoFollow", Directives(noindex=True, nofollow=True)),
        ("none", Directives(noindex=True, nofollow=True)),
        ("noarchive", Directives(noarchive=True)),
        ("noindex nofollow", Directives(noindex=True, nofollow=True)),
        ("noindex;nofollow", Directives(noindex=True, nofollow=True)),
        ("index, follow, all", Directives()),
        ("max-image-preview: none, max-snippet:-1", Directives()),
        ("nofollow max-image-preview:none", Directives(nofollow=True)),
        ("noindexed", Directives()),
        ("", Directives()),
    ],
)
def test_words_of_meta_robots(content: str, expected: Directives) -> None:
    """X2: three words count, none is two of them, words with values are not words."""
    assert directives_of([("Robots", content)], [], AGENT) == expected


def test_what_is_said_to_all_and_to_our_agent_adds_up() -> None:
    """X2: per-agent metas of others do not concern us."""
    metas = [("robots", "noarchive"), ("nephila", "nofollow"), ("googlebot", "noindex"), ("description", "noindex")]
    assert directives_of(metas, [], AGENT) == Directives(nofollow=True, noarchive=True)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("noindex", Directives(noindex=True)),
        ("nephila: noindex, nofollow", Directives(noindex=True, nofollow=True)),
        ("googlebot: noindex, nofollow", Directives()),
        ("googlebot: noindex, Nephila: nofollow", Directives(nofollow=True)),
        ("noarchive, otherbot: noindex", Directives(noarchive=True)),
        ("*: noindex", Directives(noindex=True)),
        ("unavailable_after: Saturday, 25-Jun-10 15:00:00 PST, noindex", Directives(noindex=True)),
        ("max-image-preview: none", Directives()),
        ("max-snippet:-1, noindex", Directives(noindex=True)),
    ],
)
def test_words_of_the_header(header: str, expected: Directives) -> None:
    """X2: X-Robots-Tag, with and without the name of a crawler before the words."""
    assert directives_of([], [header], AGENT) == expected


def test_headers_and_metas_add_up() -> None:
    """X2: the more restrictive wins, wherever it stands."""
    assert directives_of([("robots", "noindex")], ["nofollow", "noarchive"], AGENT) == Directives(
        nofollow=True, noindex=True, noarchive=True
    )


def test_agent_token_is_the_first_word_of_the_user_agent() -> None:
    """X2: pages call a crawler by its product token."""
    assert agent_token(AGENT) == agent_token("nephila") == "nephila"


@given(st.lists(st.tuples(st.just("robots"), st.text())), st.lists(st.text()))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(metas: list[tuple[str, str]], headers: list[str]) -> None:
    """X2, Q5: never an exception."""
    assert isinstance(directives_of(metas, headers, AGENT), Directives)
