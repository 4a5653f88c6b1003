"""From captures to ranks: what counts as a page, whose links count, and that the way of reading does not."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from link_graphs import adjacency_of, exact_ranks, graph_of, row_of, web_of

from nephila.native import AVAILABLE, native
from nephila.ranking import DOMAINS, PAGES, DomainRanks, Kind, PageRanks, Row, compute
from nephila.ranking.adjacency import plain_join_links
from nephila.ranking.words import NOWHERE
from nephila.urls import fingerprint

URLS = [f"d{number // 3}.test/{number}" for number in range(9)]


def ranks_in(folder: Path, *parts: Sequence[Row]) -> dict[str, float]:
    """The ranks of the pages among `URLS`."""
    with graph_of(folder, *parts) as graph:
        if not compute(graph, folder, "crawl", 0.85, 5):
            return {}
    with PageRanks(folder / PAGES, "crawl") as pages:
        known = {url: pages.rank_of(fingerprint(url, 7)) for url in URLS}
    return {url: rank for url, rank in known.items() if rank is not None}


def domains_in(folder: Path, pages: Mapping[str, Sequence[str]]) -> dict[str, float]:
    with graph_of(folder, web_of(pages)) as graph:
        assert compute(graph, folder, "crawl", 0.85, 5)
    names = {link.partition("/")[0] for url, links in pages.items() for link in (url, *links)}
    with DomainRanks(folder / DOMAINS, "crawl") as found:
        known = {name: found.of(name) for name in names}
    return {name: one.rank for name, one in known.items() if one is not None}


def exact(pages: Mapping[str, Sequence[str]]) -> dict[str, float]:
    numbers = {url: number for number, url in enumerate(pages)}
    once = [set(links) - {url} for url, links in pages.items()]
    inside = [sorted(numbers[link] for link in links if link in numbers) for links in once]
    outside = [len(links) - len(own) for links, own in zip(once, inside, strict=True)]
    solved = exact_ranks(inside, outside, [1] * len(pages), Fraction(85, 100))
    return {url: float(rank) for url, rank in zip(pages, solved, strict=True)}


@st.composite
def webs(draw: st.DrawFn) -> dict[str, list[str]]:
    stored = draw(st.lists(st.sampled_from(URLS), unique=True, min_size=1))
    return {url: draw(st.lists(st.sampled_from(URLS), max_size=6)) for url in stored}


@settings(max_examples=50)
@given(webs())
def test_ranks_of_stored_pages_are_exact(pages: dict[str, list[str]]) -> None:
    """R3: repeated links count once, links to itself not at all, links to what is not stored take their share."""
    with TemporaryDirectory() as folder:
        assert ranks_in(Path(folder), web_of(pages)) == pytest.approx(exact(pages), abs=1e-7)


@settings(max_examples=50)
@given(webs(), webs(), st.data())
def test_reading_in_pieces_and_in_any_order_changes_nothing(
    first: dict[str, list[str]], second: dict[str, list[str]], data: st.DataObject
) -> None:
    """R3: a graph that grew by what was added is the one that is read in one go."""
    rows = [*web_of(first), *(row._replace(at=2, offset=row.offset + 50) for row in web_of(second))]
    mixed = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        whole, pieces = ranks_in(Path(one), rows), ranks_in(Path(two), mixed[:cut], mixed[cut:])
    assert pieces == pytest.approx(whole, abs=1e-9)
    assert whole == pytest.approx(exact(first | second), abs=1e-7)


def test_of_a_page_the_newest_capture_counts(tmp_path: Path) -> None:
    """R3: whichever was read last."""
    new = row_of(URLS[0], [URLS[1]], at=9, offset=5)
    old = row_of(URLS[0], [URLS[2]], at=3, offset=9)
    pages = [row_of(url) for url in URLS[1:3]]
    found = ranks_in(tmp_path, [new, *pages], [old])
    assert found[URLS[1]] > found[URLS[2]]


def test_of_two_captures_at_one_instant_the_later_in_the_archive_counts(tmp_path: Path) -> None:
    first, then = row_of(URLS[0], [URLS[1]], offset=5), row_of(URLS[0], [URLS[2]], offset=9)
    pages = [row_of(url) for url in URLS[1:3]]
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    found = ranks_in(tmp_path / "one", [first, *pages], [then])
    assert found[URLS[2]] > found[URLS[1]]
    assert ranks_in(tmp_path / "two", [then], [first, *pages]) == pytest.approx(found)


def test_a_redirect_hands_all_on(tmp_path: Path) -> None:
    """R3: links to what redirects are links to where it leads in the end; what redirects is no page."""
    moved = [
        row_of(URLS[0], [URLS[1], URLS[3]]),
        row_of(URLS[1], [URLS[2]], kind=Kind.MOVED),
        row_of(URLS[2], [URLS[4]], kind=Kind.MOVED),
        row_of(URLS[3]),
        row_of(URLS[4]),
    ]
    found = ranks_in(tmp_path, moved)
    assert found.keys() == {URLS[0], URLS[3], URLS[4]}
    assert found == pytest.approx(exact({URLS[0]: [URLS[4], URLS[3]], URLS[3]: [], URLS[4]: []}))


def test_redirects_in_a_circle_lead_nowhere(tmp_path: Path) -> None:
    rows = [
        row_of(URLS[0], [URLS[1]]),
        row_of(URLS[1], [URLS[2]], kind=Kind.MOVED),
        row_of(URLS[2], [URLS[1]], kind=Kind.MOVED),
    ]
    assert ranks_in(tmp_path, rows) == pytest.approx({URLS[0]: 1.0})


def test_a_page_stands_for_its_canonical_form(tmp_path: Path) -> None:
    """R3: who links to a copy links to the page that it names, and its own links do not count twice."""
    rows = [
        row_of(URLS[0], [URLS[1]]),
        row_of(URLS[1], [URLS[3]], canonical=URLS[2]),
        row_of(URLS[2], [URLS[3]]),
        row_of(URLS[3]),
    ]
    assert ranks_in(tmp_path, rows) == pytest.approx(exact({URLS[0]: [URLS[2]], URLS[2]: [URLS[3]], URLS[3]: []}))


@pytest.mark.parametrize("named", [URLS[5], URLS[0]], ids=["never stored", "names the first"])
def test_a_canonical_form_that_is_no_page_or_names_another_is_not_believed(tmp_path: Path, named: str) -> None:
    rows = [row_of(URLS[0], [URLS[1]], canonical=URLS[1]), row_of(URLS[1], canonical=named)]
    found = ranks_in(tmp_path, rows)
    assert found.keys() == ({URLS[1]} if named == URLS[5] else {URLS[0], URLS[1]})


def test_what_is_gone_is_no_page_until_it_is_back(tmp_path: Path) -> None:
    """R3, R5: links to it lead nowhere, and it has none."""
    pages = [row_of(URLS[0], [URLS[1]]), row_of(URLS[1], [URLS[0]])]
    gone = row_of(URLS[1], at=2, kind=Kind.GONE)
    (tmp_path / "one").mkdir()
    assert ranks_in(tmp_path / "one", pages, [gone]) == pytest.approx({URLS[0]: 1.0})
    (tmp_path / "two").mkdir()
    assert len(ranks_in(tmp_path / "two", pages, [gone, row_of(URLS[1], at=3)])) == 2


def test_without_a_page_there_are_no_ranks(tmp_path: Path) -> None:
    """And none of before."""
    assert ranks_in(tmp_path, [row_of(URLS[0])])
    assert not ranks_in(tmp_path, [row_of(URLS[0], at=2, kind=Kind.GONE)])
    assert not (tmp_path / PAGES).exists()
    assert not (tmp_path / DOMAINS).exists()


def test_a_domain_speaks_once_however_many_pages_it_has(tmp_path: Path) -> None:
    """R3: pages cost nothing, so a thousand of them lift nobody more than one does."""
    few = {"farm.test/0": ["a.test/"], "other.test/": ["b.test/"], "a.test/": [], "b.test/": []}
    many = few | {f"farm.test/{number}": ["a.test/", f"a.test/{number}"] for number in range(200)}
    for name in ("few", "many"):
        (tmp_path / name).mkdir()
    one, two = domains_in(tmp_path / "few", few), domains_in(tmp_path / "many", many)
    assert two == pytest.approx(one)
    assert two["a.test"] == pytest.approx(two["b.test"])


def test_domains_are_ranked_by_who_links_to_them(tmp_path: Path) -> None:
    """R3: the exact PageRank of the graph of domains, jumps going to those of which a page is stored."""
    pages = {"a.test/": ["b.test/", "c.test/", "a.test/2"], "b.test/": ["c.test/x"], "c.test/": [], "d.test/": []}
    found = domains_in(tmp_path, pages | {"a.test/2": ["b.test/9", "never.test/"]})
    names = ["a.test", "b.test", "c.test", "d.test", "never.test"]
    solved = exact_ranks([[1, 2, 4], [2], [], [], []], [0] * 5, [1, 1, 1, 1, 0], Fraction(85, 100))
    assert [found[name] for name in names] == pytest.approx([float(rank) for rank in solved], abs=1e-8)


@pytest.mark.skipif(not AVAILABLE, reason="the extension was not built")
@given(
    st.lists(st.tuples(st.integers(0, 40), st.one_of(st.just(NOWHERE), st.integers(0, 9))), max_size=30),
    st.lists(st.lists(st.integers(0, 40), max_size=12), max_size=8),
)
def test_c_and_python_join_links_alike(known: list[tuple[int, int]], links: list[list[int]]) -> None:
    where = dict(known)
    names, standing = array("Q", sorted(where)), array("I", (where[name] for name in sorted(where)))
    nodes = array("I", (row if row % 3 else NOWHERE for row in range(len(links))))
    flat, counts = array("Q", (link for own in links for link in own)), array("Q", map(len, links))
    results = []
    for join in (native.join_links, plain_join_links):
        targets, degrees, sizes = array("I", bytes(4 * len(flat))), array("I", bytes(40)), array("I", bytes(40))
        used = join(names, standing, flat, counts, nodes, targets, degrees, sizes)
        results.append((used, targets[:used], degrees, sizes))
    assert results[0] == results[1]


@pytest.mark.skipif(not AVAILABLE, reason="the extension was not built")
def test_links_that_contradict_their_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="contradict"):
        native.join_links(
            array("Q"), array("I"), array("Q", [1]), array("Q", [2]), array("I", [0]), array("I", [0]),
            array("I", [0]), array("I", [0]),
        )  # fmt: skip


def test_an_adjacency_for_tests_is_what_it_says() -> None:
    known = adjacency_of([[1], []], [2, 0])
    assert (list(known.degrees), list(known.sizes), list(known.targets)) == ([3, 0], [1, 0], [1])
