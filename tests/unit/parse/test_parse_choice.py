from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.model.page import Link
from nephila.parse import MAX_LINKS, links_that_matter

TAGS = ["a", "area", "link", "iframe", "frame", "form", "meta", "img", "srcset"]
LINKS = st.lists(
    st.builds(
        Link,
        url=st.integers(0, 10_000).map(lambda number: f"http://site.example/{number}"),
        tag=st.sampled_from(TAGS),
        rel=st.sampled_from(["", "nofollow", "stylesheet", "next"]),
        text=st.sampled_from(["", "words"]),
    ),
    max_size=40,
)


def link(path: str, tag: str = "a", rel: str = "", text: str = "words") -> Link:
    return Link(f"http://site.example/{path}", tag, rel, text)


def test_few_links_stay_as_they_are() -> None:
    """X1: document order where nothing must be left out."""
    links = [link("form", "form"), link("a"), link("next", "link", "next"), link("b", "area")]
    assert links_that_matter(links) == links


def test_what_is_no_document_is_left_out() -> None:
    """X1: style sheets, icons and connection hints are no work for the frontier."""
    rels = ["stylesheet", "shortcut icon", "preconnect", "dns-prefetch", "preload", "alternate stylesheet"]
    links = [link(rel, "link", rel) for rel in rels] + [link("feed", "link", "alternate")]
    assert links_that_matter(links) == links[-1:]


def test_of_too_many_the_ones_that_people_follow_go_first() -> None:
    """X1: anchors with text, anchors, areas, frames, links, forms; ties in document order."""
    links = [
        link("form", "form"),
        link("link", "link", "next"),
        link("frame", "iframe"),
        link("area", "area"),
        link("image", text=""),
        link("first"),
        link("second"),
    ]
    assert [chosen.url.rpartition("/")[2] for chosen in links_that_matter(links, 6)] == [
        "first", "second", "image", "area", "frame", "link",
    ]  # fmt: skip


def test_at_most_five_hundred_by_default() -> None:
    """X1: 500 links a page go on to the frontier."""
    links = [link(str(number)) for number in range(700)]
    assert links_that_matter(links) == links[:MAX_LINKS]
    assert MAX_LINKS == 500


@given(LINKS, st.integers(0, 20))
@settings(max_examples=100, deadline=None)
def test_choice_is_a_part_and_never_longer_than_the_limit(links: list[Link], limit: int) -> None:
    """X1: every tag has its place."""
    chosen = links_that_matter(links, limit)
    assert len(chosen) <= limit
    assert set(chosen) <= set(links)
