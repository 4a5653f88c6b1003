"""Candidates as a fleet's frontier is told of them: packed in C and by the twin in Python alike, whatever comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_128_digest

from nephila.frontier.redis.asking import NO_GRADE, plain_pack_group, poured
from nephila.model.task import Candidate, Level
from nephila.native import AVAILABLE, native
from nephila.urls import Address, Fingerprint

HOST = "www.site.example"


def test_the_extension_is_there() -> None:
    """Without it the comparison below would compare the twin with itself."""
    assert AVAILABLE


@st.composite
def candidates(draw: st.DrawFn) -> Candidate:
    path = draw(
        st.sampled_from(("", "/", "/a", "?x", ":81/a", "x.test/", "/ü", "/" + "a" * 254, "/" + "a" * 300 + "b"))
    )
    begin = draw(st.sampled_from((f"https://{HOST}", f"http://{HOST}", "https://other.example", "ftp:")))
    url = begin + path + draw(st.sampled_from(("", "c", "/long/" * 60)))
    address = Address(url, HOST, url + "#", Fingerprint(xxh3_128_digest(url.encode())))
    return Candidate(
        address,
        draw(st.sampled_from((0, 1, 1, 1, 255, 300))),
        draw(st.sampled_from((None, None, Level.IMMEDIATE, Level.LOW))),
        draw(st.sampled_from((0, 0, 3, 400))),
        draw(st.sampled_from((0, 0, -20, 15, 32767, -32768))),
    )


@given(
    st.lists(candidates(), min_size=1, max_size=9),
    st.integers(0, 2**32 - 1),
    st.none() | st.integers(0, 2**32 - 1),
    st.integers(0, 64) | st.just(NO_GRADE),
)
def test_candidates_are_packed_alike(given_: list[Candidate], seed: int, salt: int | None, grade: int) -> None:
    """F2, F8, N1, R3: facts and items, byte for byte."""
    assert native.pack_group(HOST, given_, seed, salt, grade) == plain_pack_group(HOST, given_, seed, salt, grade)


@pytest.mark.parametrize("wrong", [(), [()], [1], [(1, 2, 3, 4, 5)], [(("u", "h", "k", b"short"), 1, None, 0, 0)]])
def test_what_is_no_candidate_is_refused(wrong: list[object]) -> None:
    """N1: by an exception, and nothing else."""
    with pytest.raises((TypeError, ValueError)):
        native.pack_group(HOST, wrong, 1, None, 0)  # type: ignore[arg-type]


def test_a_page_pours_out_what_lies_under_it() -> None:
    """T1: a mark for each candidate of its host; none where a page has no parameters and no depth."""
    urls = [f"https://{HOST}/x/{name}" for name in ("1/3", "2", "1/4")] + [f"https://{HOST}/y"]
    links = [Candidate(Address(url, HOST, url, Fingerprint(bytes(16))), 1) for url in urls]
    assert poured(f"https://{HOST}/x/1/2", links) == "1110"
    assert poured(f"https://{HOST}/about", links) == ""
