"""The shape of URLs: what is left open, what stays."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nephila.urls import is_open, skeleton

quick = settings(max_examples=200, deadline=None)
words = st.sampled_from(["news", "about", "wiki", "shop", "river"])


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("", "/"),
        ("/product/4711", "/product/{n}"),
        ("/page12/", "/page{n}/"),
        ("/calendar/2031/07/02", "/calendar/{date}"),
        ("/calendar/2031/7", "/calendar/{date}"),
        ("/calendar/2031-07-02", "/calendar/{date}"),
        ("/calendar/20310702", "/calendar/{date}"),
        ("/calendar/02.07.2031", "/calendar/{date}"),
        ("/event-2031-07-02", "/event-{date}"),
        ("/x/8f3a01bc77de", "/x/{hex}"),
        ("/u/123e4567-e89b-12d3-a456-426614174000", "/u/{uuid}"),
        ("/watch/dQw4w9WgXcQ", "/watch/{id}"),
        ("/t/k3v9z1q8", "/t/{id}"),
        ("/iphone15", "/iphone{n}"),
        ("/caf%C3%A9/menu", "/café/menu"),
        ("/p/red-chair-with-arms-4711.html", "/p/{words}.html"),
        ("/terms-of-use", "/terms-of-use"),
        ("/list?page=7", "/list?page"),
        ("/list?b=1&a=2&a=3", "/list?a&b"),
        ("/list?x[12]=1", "/list?x[{n}]"),
        ("/list?", "/list?"),
    ],
)
def test_values_are_left_open_and_words_stay(path: str, shape: str) -> None:
    """T2: digits, dates, hashes, uuids and titles to placeholders; the query by its sorted names."""
    assert skeleton(f"https://site.example{path}") == shape


@pytest.mark.parametrize("times", [2, 3, 7, 40])
@pytest.mark.parametrize("block", ["a", "a/b", "one/two/three"])
def test_an_endless_relative_path_has_one_skeleton(block: str, times: int) -> None:
    """T2: whatever the number of repeats, and wherever it breaks off."""
    path = "/".join([block] * times)
    assert skeleton(f"http://h.example/{path}") == f"/({block})+"
    assert skeleton(f"http://h.example/{path}/{block.partition('/')[0]}") == f"/({block})+"
    assert skeleton(f"http://h.example/docs/{path}/end") == f"/docs/({block})+/end"


def test_two_numbers_side_by_side_are_no_repeat() -> None:
    """T2: /2024/17 is as good paths are; three in a row are folded."""
    assert skeleton("http://h.example/a/7/17") == "/a/{n}/{n}"
    assert skeleton("http://h.example/a/7/17/27") == skeleton("http://h.example/a/7/17/27/37") == "/a/({n})+"


@quick
@given(st.integers(0, 10**9), st.integers(0, 10**9), words)
def test_numbers_do_not_matter_and_sections_do(first: int, second: int, section: str) -> None:
    """T2: pages of one rule share a skeleton, sections do not. Some numbers are dates, which are another rule."""
    assume(not any("{date}" in skeleton(f"http://a.example/x/{number}") for number in (first, second)))
    assert skeleton(f"http://a.example/{section}/{first}") == skeleton(f"https://b.example/{section}/{second}")
    assert skeleton(f"http://a.example/{section}/{first}") != skeleton(f"http://a.example/other/{first}")


@quick
@given(st.text(st.sampled_from("abz019-_./?&=%éX+;"), max_size=300))
def test_any_url_has_a_skeleton_and_a_closed_one_is_its_path(rest: str) -> None:
    """T2: nothing raises; what stands for one URL only holds nothing open."""
    shape = skeleton(f"http://h.example/{rest}")
    assert shape.startswith("/")
    if not is_open(shape) and "%" not in rest:
        assert shape == f"/{rest}"
