"""Visits that are cut short by a kill, and audits of crawls with visits (J3, J4, Q4)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from crashes import World, die_before_settling
from simulation import simulate
from three_books import Contents, check_books, contents

from nephila.model.terms import Terms
from nephila.node.audit import FindingKind, audit
from nephila.node.inspect import CrawlView
from nephila.pipeline.visit import Visit
from nephila.testing.renderer import SimulatedRenderer
from nephila.testing.web import BundleSite, ScriptSite, SimulatedWeb, WebSpec

Say = Callable[[str], None]
WEB = WebSpec(1, hosts=1, pages=1, traps=(ScriptSite(8, label="spa"), ScriptSite(5, label="shop")))
STEPS = 260
PAGES = 9 + 6


def world_of(folder: Path) -> World:
    return World(SimulatedWeb(WEB), folder, renderer=lambda: SimulatedRenderer(2))


def pages_of(books: Contents, seeds: Sequence[str]) -> int:
    """Pages that were stored, each once."""
    found = {url: count for url, count in books.pages.items() if re.search(r"/view/\d+$", url) or url in seeds}
    assert set(found.values()) == {1}
    return len(found)


@pytest.mark.parametrize("seed", range(6))
def test_killed_in_the_middle_of_visits_it_ends_with_the_same_pages(tmp_path: Path, seed: int, say: Say) -> None:
    """J3, J4, Q4, P2: nothing is lost or listed twice; a host rests for the whole of a visit that was cut short."""
    draw = random.Random(seed)
    world = world_of(tmp_path)
    seeds = world.web.trap_seeds()
    moments = [draw.randint(10, STEPS // 2) for _ in range(3)]
    for moment in moments:
        world.crawl(moment, seeds=seeds)
    assert world.crawl(seeds=seeds) is not None
    books = contents(world)
    check_books(books)
    assert pages_of(books, seeds) == PAGES
    kinds = {violation.kind for violation in world.auditor.report().violations}
    assert kinds <= {"repeat"}, [
        violation for violation in world.auditor.report().violations if violation.kind != "repeat"
    ]
    found = audit(world.out)
    assert found.is_clean, found.findings[:3]
    say(f"killed after {moments} steps: {found.visits} visits, {found.cut_visits} of them cut short")


@pytest.mark.parametrize("seed", range(4))
def test_killed_while_pages_wait_for_other_hosts_nothing_is_lost(tmp_path: Path, seed: int, say: Say) -> None:
    """J3, Q4, P2: pages that wait are found again on the shelf; what a page was given there is not asked for again."""
    far = ScriptSite(4, label="shop", bundle="cdn-1.test", api="api-3.test")
    sites = (ScriptSite(6, label="spa", bundle="cdn-1.test"), BundleSite("cdn"), far, BundleSite("api", data_of=far))
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=sites))
    world = World(web, tmp_path, renderer=lambda: SimulatedRenderer(2))
    draw = random.Random(seed)
    moments = [draw.randint(10, STEPS // 2) for _ in range(3)]
    seeds = web.trap_seeds()
    for moment in moments:
        world.crawl(moment, seeds=seeds)
    assert world.crawl(seeds=seeds) is not None
    books = contents(world)
    check_books(books)
    assert pages_of(books, seeds) == 7 + 5
    report = world.auditor.report()
    assert {violation.kind for violation in report.violations} <= {"repeat"}, report.violations
    found = audit(world.out)
    assert found.is_clean, found.findings[:3]
    repeated = len(report.violations)
    say(f"killed after {moments} steps: {found.requests} requests, {repeated} of them for something asked before")
    assert repeated <= 6


def test_a_page_that_was_shown_is_settled_from_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """J4: killed between storing and settling, its links are read out of what the browser had made, without asking."""
    died: list[str] = []
    die_before_settling(monkeypatch, lambda url: url.endswith("/view/1"), died)
    world = world_of(tmp_path)
    seeds = world.web.trap_seeds()
    while world.crawl(10**9, seeds=seeds) is None:
        pass
    assert len(died) == 2
    assert sum(recovered.settled for recovered in world.recovered) == 2
    assert pages_of(contents(world), seeds) == PAGES
    assert {violation.kind for violation in world.auditor.report().violations} <= {"repeat"}, "scripts at hand are lost"
    assert audit(world.out).is_clean


def test_an_audit_knows_visits(tmp_path: Path) -> None:
    """J3, K1: every request is on record, visits are counted, and nothing is wrong with them."""
    crawled = simulate(SimulatedWeb(WEB), tmp_path / "crawl", renderer=SimulatedRenderer())
    found = audit(crawled.out)
    assert found.is_clean, found.findings[:3]
    assert found.requests == crawled.audit.requests
    assert found.parts == PAGES + 2
    assert found.visits == PAGES
    assert (found.untold, found.lost, found.cut_visits) == (0, 0, 0)


def test_an_audit_finds_visits_that_are_too_large_or_rested_for_too_shortly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J3, K1, P5: a crawler that makes one request more than it promises is found out, and one that does not rest."""
    of = Terms.of
    monkeypatch.setattr(Terms, "of", lambda settings: replace(of(settings), visit_requests=2))
    monkeypatch.setattr(Visit, "release", property(lambda self: self._release))
    crawled = simulate(SimulatedWeb(WEB), tmp_path / "crawl", renderer=SimulatedRenderer())
    found = audit(crawled.out)
    assert found.counts[FindingKind.VISIT] == 2, "the first page of each site asks for its script, too"
    assert found.counts[FindingKind.HURRY] > 5
    assert {violation.kind for violation in crawled.audit.violations} == {"hurry"}


def test_raw_and_rendered_are_both_kept(tmp_path: Path) -> None:
    """J4, W1: the answer as it was sent, and behind it the document as its scripts left it, concurrent to it."""
    from warcio.archiveiterator import ArchiveIterator  # noqa: PLC0415 - as readers of archives do

    crawled = simulate(SimulatedWeb(WEB), tmp_path / "crawl", renderer=SimulatedRenderer())
    responses: dict[str, tuple[str, bytes]] = {}
    resources: dict[str, tuple[str, bytes]] = {}
    for path in sorted((crawled.out / "warc").glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                uri, body = record.rec_headers["WARC-Target-URI"], record.content_stream().read()
                if record.rec_type == "response":
                    responses[uri] = (record.rec_headers["WARC-Record-ID"], body)
                elif record.rec_type == "resource":
                    resources[uri] = (record.rec_headers["WARC-Concurrent-To"], body)
    url = "http://spa-0.test/view/1"
    assert b'<div id="root"></div>' in responses[url][1]
    concurrent, rendered = resources[f"urn:nephila:rendered:{url}"]
    assert concurrent == responses[url][0]
    assert b'<div id="root"><h1>' in rendered
    assert responses["http://spa-0.test/data/view/1.json"][1].startswith(b"{")
    pages = {row.url for row in CrawlView(crawled.out).pages(limit=1000)}
    assert "http://spa-0.test/data/view/1.json" not in pages
