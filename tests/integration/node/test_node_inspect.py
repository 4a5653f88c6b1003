"""Looking into a crawl directory: what `status`, `why`, `pages` and `dead` stand on."""

from __future__ import annotations

import shlex
import sqlite3
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import lmdb
import pytest
from simulation import PATIENT, Simulated, simulate

from nephila.cli.main import run
from nephila.config import write_stored
from nephila.model.errors import CrawlDirectoryError, NephilaError, UsageError
from nephila.model.events import Event, EventKind
from nephila.node.directory import CrawlDirectory
from nephila.node.inspect import CrawlView, open_view
from nephila.testing.web import SimulatedWeb, WebSpec

SETTINGS = replace(
    PATIENT,
    scope=replace(PATIENT.scope, mode="all", exclude=("harvest",)),
    limits=replace(PATIENT.limits, max_wait_s=250.0, max_pages_per_host=12),
)


@dataclass(frozen=True)
class Looked:
    """A crawl that has ended, and a view of it."""

    crawled: Simulated
    view: CrawlView

    def first(self, kind: EventKind, **wanted: object) -> Event:
        return next(
            event
            for event in self.crawled.recorder.events
            if event.kind is kind and all(getattr(event, name) == value for name, value in wanted.items())
        )


def begin(folder: Path) -> Looked:
    web = SimulatedWeb(replace(WebSpec.standard(6), hosts=20, pages=260, page_bytes=600))
    crawled = simulate(web, folder / "crawl", SETTINGS)
    write_stored(crawled.out, SETTINGS)
    return Looked(crawled, open_view(crawled.out))


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Looked:
    return begin(tmp_path_factory.mktemp("inspect"))


def test_status_tells_where_a_crawl_stands(looked: Looked) -> None:
    """F2, C4: from counters, the same as the summary's and the catalogue's."""
    status, summary = looked.view.status(), looked.crawled.summary
    assert (status.pages, status.cycle, status.running) == (summary.total_pages, 1, False)
    assert (status.captures, status.bytes) == (summary.responses, summary.bytes)
    assert sum(status.queued.values()) + sum(status.waiting_for_a_time.values()) == summary.remaining > 0
    assert status.urls["dead"] == summary.dead > 0
    assert status.urls["pending"] == 0
    assert status.hosts_by_place["leased"] == 0
    assert status.hosts_put_off["host_limit"] > 0


def test_looking_at_the_crawl_of_somebody_else_says_what_it_takes(
    looked: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C4: nobody is advised to delete or to begin anew what he may only not write to."""

    def forbidden(path: str, **_options: object) -> None:
        raise lmdb.Error(f"{path}: Permission denied")

    monkeypatch.setattr("lmdb.open", forbidden)
    for look in (looked.view.status, lambda: looked.view.dead(1)):
        with pytest.raises(NephilaError, match="Permission denied") as told:
            look()
        assert "mend its permissions" in told.value.hint


def test_status_knows_a_crawl_that_runs(looked: Looked) -> None:
    """F10: by its lock; looking takes nothing away from it."""
    with CrawlDirectory(looked.crawled.out).held():
        assert looked.view.status().running
    assert not looked.view.status().running


def test_why_tells_of_a_page(looked: Looked) -> None:
    """T8: found where, fetched when, stored where."""
    event = next(event for event in looked.crawled.recorder.events if event.is_page() and event.via)
    why = looked.view.why(event.url)
    lines = dict(why.lines)
    assert why.found
    assert lines["verdict"] == "fetched and stored"
    assert lines["found"] == f"on {event.via}"
    assert f"HTTP {event.status}" in lines["capture"]
    assert (why.data["state"], why.data["status"], why.data["depth"]) == ("completed", event.status, event.depth)
    seed = looked.view.why(looked.crawled.web.seeds()[0])
    assert dict(seed.lines)["found"] == "given as a seed"


def test_why_tells_where_a_redirect_leads(looked: Looked) -> None:
    """T8: the target of every capture that is one, for people and for scripts."""
    events = looked.crawled.recorder.events
    moved = {event.url for event in events if event.kind is EventKind.FETCH_OK and event.status in {301, 302}}
    found = next(event for event in events if event.is_page() and event.via in moved)
    why = looked.view.why(found.via)
    assert dict(why.lines)["leads to"] == found.url
    assert [capture["redirects_to"] for capture in cast("Any", why.data["captures"])] == [found.url]
    page = next(event for event in events if event.is_page())
    assert "leads to" not in dict(looked.view.why(page.url).lines)


def test_why_of_a_url_that_was_never_met_blames_no_page(looked: Looked) -> None:
    """T8, X1: a page may link to it beyond those of its links that are taken."""
    verdict = dict(looked.view.why(f"{looked.crawled.web.seeds()[0]}never").lines)["verdict"]
    assert "never met" in verdict
    assert "at most 500 of each: scope.links_per_page" in verdict


def test_why_names_the_page_that_has_more_links_than_are_taken(tmp_path: Path) -> None:
    """T8, X1: with how many; the event log has one line of each page, not of each link."""
    few = replace(SETTINGS, scope=replace(SETTINGS.scope, links_per_page=2))
    web = SimulatedWeb(WebSpec.plain(3, hosts=1, pages=30, page_bytes=300, links_per_page=9))
    crawled = simulate(web, tmp_path / "crawl", few)
    write_stored(crawled.out, few)
    view = open_view(crawled.out)
    told = [event for event in crawled.recorder.events if event.kind is EventKind.EXCLUDED_BY_RULE]
    assert told
    assert {dict(event.counts)["links_per_page"] > 0 for event in told} == {True}
    assert len({event.url for event in told}) == len(told)
    stories = [view.why(url) for url in web.truth().urls()]
    left = [story for story in stories if story.data["state"] == "refused"]
    assert left, "no page was left out: the web has too few links"
    for story in left:
        lines = dict(story.lines)
        assert story.data["reason"] == "links_per_page"
        assert lines["found"].removeprefix("on ") in {event.url for event in told}
        assert "more links than are taken from one (scope.links_per_page)" in lines["because"]
        assert "links of the page may be followed, 2 were taken" in lines["because"]


def test_why_tells_which_line_of_robots_txt_forbids(looked: Looked) -> None:
    """T8, P1: dropped, with the rule."""
    event = looked.first(EventKind.ROBOTS_DISALLOW)
    why = looked.view.why(event.url)
    assert (why.data["state"], why.data["reason"]) == ("dropped", "robots")
    assert "forbids it: line" in dict(why.lines)["robots.txt"]


def test_why_tells_of_a_dead_letter(
    looked: Looked, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """T8, F9: the kind of failure, how often it was tried, and what to type to try it again."""
    monkeypatch.setenv("NEPHILA_COMMAND", "./nephila")
    event = looked.first(EventKind.DEAD_LETTER, reason="http_5xx")
    why = looked.view.why(event.url)
    assert (why.data["state"], why.data["reason"], why.data["retries"]) == ("dead_letter", "http_5xx", 3)
    assert dict(why.lines)["verdict"] == "given up"
    assert run(["why", str(looked.crawled.out), event.url]) == 0
    typed = f"`./nephila dead {looked.crawled.out} --retry {shlex.quote(event.url)}`"
    assert typed in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("reason", ["excluded", "excluded_builtin", "nofollow", "extension"])
def test_why_tells_which_rule_refused_a_link(looked: Looked, reason: str) -> None:
    """T8, S2: which rule, when, from which page."""
    event = looked.first(EventKind.EXCLUDED_BY_RULE, reason=reason)
    why = looked.view.why(event.url)
    lines = dict(why.lines)
    assert why.data["state"] == "refused"
    assert lines["verdict"] == "found, but not admitted"
    assert event.detail in lines["because"]
    assert lines["found"].startswith("on http")


def test_why_tells_what_a_queued_url_waits_for(looked: Looked) -> None:
    """T8, S3, P1: a host that has had its pages, a robots.txt that cannot be had."""
    reasons = set()
    for url in looked.crawled.web.truth("Nephila").pages:
        why = looked.view.why(url)
        if why.data["state"] == "queued":
            reasons.add(why.data["reason"])
            assert dict(why.lines)["verdict"] == "queued: it waits for its turn"
    assert "host_limit" in reasons


def test_why_of_what_was_never_met_says_what_would_become_of_it(looked: Looked) -> None:
    """T8: by the rules in force."""
    why = looked.view.why("https://never.example/harvest")
    assert (why.found, why.data["state"]) == (False, "unknown")
    assert "an exclude pattern matches (harvest)" in dict(why.lines)["if it were found"]
    assert dict(why.lines)["robots.txt"] == "not fetched"


@pytest.mark.parametrize("url", ["mailto:x@a.test", "https://a.test/" + "x" * 3000])
def test_why_of_what_is_no_url_says_so(looked: Looked, url: str) -> None:
    """T8, U4: refused by its own shape."""
    why = looked.view.why(url)
    assert not why.found
    assert dict(why.lines)["verdict"].startswith("refused: ")


def test_pages_are_those_of_the_catalogue(looked: Looked) -> None:
    """W3: newest first, by host and part of the URL."""
    pages = list(looked.view.pages(limit=10_000))
    with sqlite3.connect(f"file:{looked.crawled.out}/catalogue.sqlite?mode=ro", uri=True) as connection:
        assert len(pages) == connection.execute("SELECT count(*) FROM pages").fetchone()[0]
    connection.close()
    assert [page.crawled_at for page in pages] == sorted((page.crawled_at for page in pages), reverse=True)
    host = pages[0].url.split("/")[2]
    assert {page.url.split("/")[2] for page in looked.view.pages(host=host, limit=5)} == {host}


def test_dead_letters_are_listed_and_put_back(tmp_path: Path) -> None:
    """F9: one by its URL, or all; a crawl tries them again."""
    looked = begin(tmp_path)
    letters = looked.view.dead(1000)
    assert len(letters) == looked.crawled.summary.dead > 2
    assert len(looked.view.dead(2)) == 2
    one = letters[0].url
    assert looked.view.revive([one]) == 1
    assert looked.view.why(one).data["state"] == "queued"
    assert looked.view.why(one).data["retries"] == 0
    with pytest.raises(UsageError, match="not a dead letter"):
        looked.view.revive([one])
    with pytest.raises(UsageError, match="not a dead letter"):
        looked.view.revive(["https://never.example/"])
    assert looked.view.revive(None) == len(letters) - 1
    assert looked.view.revive(None) == 0
    assert looked.view.dead(10) == []
    assert looked.view.status().urls["dead"] == 0


def test_what_is_no_crawl_is_not_looked_into(tmp_path: Path) -> None:
    """C4: told in a sentence; a crawl that has not begun too."""
    with pytest.raises(CrawlDirectoryError, match="no crawl"):
        open_view(tmp_path / "none")
    with CrawlDirectory(tmp_path / "crawl").held(), pytest.raises(CrawlDirectoryError, match="not begun"):
        open_view(tmp_path / "crawl")
