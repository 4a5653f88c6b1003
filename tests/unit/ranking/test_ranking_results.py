"""The files of ranks: what was computed comes back, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest
from link_graphs import graph_of, web_of

from nephila.ranking import DOMAINS, PAGES, DamagedFileError, DomainRanks, PageRanks, compute, text_name
from nephila.ranking.results import HIGHEST_GRADE, grade_of
from nephila.urls import fingerprint

WEB = {
    "a.test/": ["b.test/", "a.test/2"],
    "a.test/2": ["b.test/"],
    "b.test/": ["c.test/"],
    "c.test/": ["b.test/"],
    "d.test/": [],
}


@pytest.fixture
def ranked(tmp_path: Path) -> Path:
    with graph_of(tmp_path, web_of(WEB)) as graph:
        assert compute(graph, tmp_path, "crawl", 0.85, 1234)
    return tmp_path


def test_pages_come_highest_first(ranked: Path) -> None:
    """R3: ranks of pages, found by their fingerprints."""
    with PageRanks(ranked / PAGES, "crawl") as pages:
        top = pages.top(2)
        assert [page.fingerprint for page in top] == [fingerprint("b.test/", 7), fingerprint("c.test/", 7)]
        assert pages.rank_of(top[0].fingerprint) == top[0].rank
        assert len(pages.top(99)) == 5
        assert pages.rank_of(fingerprint("never.test/", 7)) is None
        assert pages.rank_of(fingerprint("b.test/", 7)[:8] + bytes(8)) is None
        assert (pages.said.made_at, pages.said.count, pages.said.links) == (1234, 5, 5)


def test_domains_come_with_what_they_have(ranked: Path) -> None:
    """R3: ranks of domains, with pages, referring domains and grade."""
    with DomainRanks(ranked / DOMAINS, "crawl") as domains:
        first = domains.top(1)[0]
        assert first.name == text_name("b.test")
        assert domains.of("b.test") == first
        assert (first.pages, first.referring) == (1, 2)
        alone = domains.of("d.test")
        assert alone is not None
        assert (alone.pages, alone.referring, alone.grade) == (1, 0, 0)
        assert alone.rank == pytest.approx(domains.said.floor)
        assert first.grade == domains.grade_of("b.test") == grade_of(first.rank, alone.rank) > 0
        assert domains.of("never.test") is domains.grade_of("never.test") is None


@pytest.mark.parametrize("name", [PAGES, DOMAINS])
def test_what_is_damaged_or_of_another_crawl_is_not_read(ranked: Path, name: str) -> None:
    """R3: versioned and checksummed."""
    kind = PageRanks if name == PAGES else DomainRanks
    with pytest.raises(DamagedFileError):
        kind(ranked / name, "another")
    data = bytearray((ranked / name).read_bytes())
    data[3] ^= 0x10
    (ranked / name).write_bytes(data)
    with pytest.raises(DamagedFileError):
        kind(ranked / name, "crawl")
    with pytest.raises(FileNotFoundError):
        kind(ranked / "not there", "crawl")


def test_grades_are_eighths_of_doublings() -> None:
    """R3: above what a domain has that nobody links to."""
    assert [grade_of(rank, 0.01) for rank in (0.0, 0.005, 0.01, 0.02, 0.04, 2.56, 9.0)] == [0, 0, 0, 8, 16, 64, 64]
    assert grade_of(0.5, 0.0) == 0
    assert HIGHEST_GRADE == 64


def test_a_reader_keeps_what_it_has_while_another_file_takes_its_place(ranked: Path) -> None:
    """R3: the crawl reads while it is computed anew."""
    with DomainRanks(ranked / DOMAINS, "crawl") as before:
        known = before.of("b.test")
        with graph_of(ranked, web_of({"z.test/": []})) as graph:
            assert compute(graph, ranked, "crawl", 0.5, 9)
        assert before.of("b.test") == known
    with DomainRanks(ranked / DOMAINS, "crawl") as after:
        assert after.said.made_at == 9
