"""The ranks of a directory as the frontier asks for them: newest ones, and none where there are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from link_graphs import graph_of, row_of, web_of

from nephila.frontier.policy import Policy
from nephila.model.settings import FetchSettings, Settings
from nephila.node.engines import policy_of
from nephila.node.importance import grades
from nephila.node.importance.grades import LOOK_MS, DirectoryRanks
from nephila.ranking import DOMAINS, PAGES, DomainRanks, compute
from nephila.urls import fingerprint

WEB = {"a.test/": ["b.test/"], "c.test/": ["b.test/"], "b.test/": []}


class Clock:
    now = 1_000_000

    def __call__(self) -> int:
        return self.now


def ranked(folder: Path, pages: dict[str, list[str]], made_at: int = 7) -> None:
    """Compute the ranks of just these pages."""
    for path in folder.glob("*.links"):
        path.unlink()
    with graph_of(folder, web_of(pages)) as graph:
        assert compute(graph, folder, "crawl", 0.85, made_at)


def test_where_nothing_was_computed_there_is_nothing(tmp_path: Path) -> None:
    """R3: no folder, no file, no identity yet."""
    ranks = DirectoryRanks(tmp_path / "rank", Clock(), "crawl")
    assert not ranks.look()
    assert ranks.grade_of("a.test") is None
    assert ranks.of_page(bytes(16)) is ranks.of_domain("a.test") is None
    ranked(tmp_path, WEB)
    assert not DirectoryRanks(tmp_path, Clock()).look()
    assert not DirectoryRanks(tmp_path, Clock(), "another").look()


def test_grades_are_those_of_the_domain_of_a_host(tmp_path: Path) -> None:
    """R3: whatever host of it is asked for."""
    ranked(tmp_path, WEB)
    ranks = DirectoryRanks(tmp_path, Clock(), "crawl")
    assert ranks.look()
    with DomainRanks(tmp_path / DOMAINS, "crawl") as known:
        assert ranks.grade_of("www.b.test") == ranks.grade_of("b.test") == known.grade_of("b.test")
    assert ranks.grade_of("a.test") == 0
    assert ranks.grade_of("never.test") is None
    ranks.close()


def test_a_host_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R3: the frontier asks for every host that a page brings something new of; memory is bounded."""
    ranked(tmp_path, WEB)
    asked: list[str] = []
    monkeypatch.setattr(DomainRanks, "grade_of", lambda _, domain: asked.append(domain) or 5)
    monkeypatch.setattr(grades, "HOSTS_AT_HAND", 2)
    ranks = DirectoryRanks(tmp_path, Clock(), "crawl")
    assert ranks.look()
    for _ in range(3):
        assert ranks.grade_of("a.test") == ranks.grade_of("www.b.test") == 5
    assert asked == ["a.test", "b.test"]
    ranks.grade_of("c.test")
    assert len(ranks._grades) == 1


def test_newer_ranks_are_taken_up_within_seconds(tmp_path: Path) -> None:
    """R3: used while crawling, without stopping; deleted ones are forgotten likewise."""
    clock = Clock()
    ranks = DirectoryRanks(tmp_path, clock, "crawl")
    assert not ranks.look()
    ranked(tmp_path, WEB)
    clock.now += LOOK_MS - 1
    assert not ranks.look(), "not at every question"
    clock.now += 1
    assert ranks.look()
    before = ranks.grade_of("b.test")
    ranked(tmp_path, {"a.test/": [], "b.test/": []})
    assert ranks.grade_of("b.test") == before
    clock.now += LOOK_MS
    assert ranks.look()
    assert ranks.grade_of("b.test") == 0
    assert before != 0
    (tmp_path / DOMAINS).unlink()
    clock.now += LOOK_MS
    assert not ranks.look()
    assert ranks.grade_of("b.test") is None


def test_damaged_ranks_are_as_none(tmp_path: Path) -> None:
    """R3: the crawl goes on by what it has counted."""
    (tmp_path / DOMAINS).write_bytes(b"x" * 100)
    (tmp_path / PAGES).write_bytes(b"")
    ranks = DirectoryRanks(tmp_path, Clock(), "crawl")
    assert not ranks.look()
    assert ranks.of_page(bytes(16)) is None


def test_people_are_told_of_pages_and_domains(tmp_path: Path) -> None:
    """R3: with the computation that it comes from."""
    ranked(tmp_path, WEB, made_at=77)
    ranks = DirectoryRanks(tmp_path, Clock(), "crawl")
    page, domain = ranks.of_page(fingerprint("b.test/", 7)), ranks.of_domain("b.test")
    assert page is not None
    assert domain is not None
    assert (page[1].made_at, page[1].count) == (77, 3)
    assert page[0] > 1 / 3
    assert domain[0].referring == 2
    assert ranks.of_page(row_of("never.test/").name.to_bytes(16, "little")) is None
    ranks.close()


def test_with_one_exchange_at_a_time_ranks_do_not_count(tmp_path: Path) -> None:
    """F6, R3: when they are computed depends on time, and the order must not."""
    ranks = DirectoryRanks(tmp_path, Clock(), "crawl")
    ordered: Policy = policy_of(Settings(fetch=FetchSettings(concurrency=1)), repute=ranks)
    assert ordered.repute is None
    assert policy_of(Settings(), repute=ranks).repute is ranks
