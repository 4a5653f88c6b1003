"""Sitemaps and feeds in whole crawls: what they alone lead to is found, and sites that lie are found out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from crashes import World
from simulation import PATIENT, Simulated, simulate

from nephila.config import write_stored
from nephila.dedup import LearnedEnvironment, LmdbListings
from nephila.interfaces.catalogue import PageRow
from nephila.model.events import EventKind
from nephila.model.listing import SiteTrust
from nephila.model.settings import Settings
from nephila.model.summary import StoppedBy
from nephila.node.directory import CrawlDirectory
from nephila.node.inspect import CrawlView
from nephila.pipeline.trust import is_believed
from nephila.testing.clock import VirtualClock
from nephila.testing.web import Auditor, Dates, ListedSite, Naming, SimulatedWeb, TrapSite, ViolationKind, WebSpec

Say = Callable[[str], None]
DAY_S = 86_400.0
NAMINGS: tuple[TrapSite, ...] = (
    ListedSite(40, Naming.ROBOTS, label="robots"),
    ListedSite(40, Naming.GUESS, label="guess"),
    ListedSite(40, Naming.FEED, label="feed"),
)
BLIND = replace(PATIENT, sitemaps=replace(PATIENT.sitemaps, follow=False))
OFTEN = replace(PATIENT, recrawl=replace(PATIENT.recrawl, policy="simple", first_s=2 * DAY_S, max_s=4 * DAY_S))
"""By the simple policy pages are late that change every three days: there is something for lists to bring forward."""


def web_of(*sites: TrapSite) -> SimulatedWeb:
    return SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=sites))


def crawl_of(folder: Path, settings: Settings, *sites: TrapSite) -> Simulated:
    web = web_of(*sites)
    crawled = simulate(web, folder / "crawl", settings, seeds=web.trap_seeds())
    write_stored(crawled.out, settings)
    return crawled


def trust_of(crawled: Simulated, host: str) -> SiteTrust:
    environment = LearnedEnvironment(CrawlDirectory(crawled.out).aliases, read_only=True)
    try:
        return LmdbListings(environment).site(host)
    finally:
        environment.close()


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    return crawl_of(tmp_path_factory.mktemp("sitemaps"), PATIENT, *NAMINGS)


def test_pages_that_only_lists_name_are_all_found(found: Simulated, tmp_path: Path, say: Say) -> None:
    """X3: by robots.txt and an index, by /sitemap.xml, by the feed of a page; without them hardly any."""
    blind = crawl_of(tmp_path, BLIND, *NAMINGS)
    for name, figures in found.traps.items():
        say(f"{name}: {figures.found} of {figures.real_pages} with lists, {blind.traps[name].found} without")
        assert figures.found == figures.real_pages
        assert blind.traps[name].found == 3
    assert found.summary.listed >= 3 * (40 - 2)
    assert found.summary.lists == 4 + 1 + 1


def test_lists_are_asked_for_politely_and_what_robots_forbids_is_not_asked_for(found: Simulated) -> None:
    """P5, X3: the auditor has nothing to say, and the page that lists name and robots.txt forbids was not sent for."""
    assert found.audit.violations == ()
    assert not [sent.target for sent in found.sent if sent.target.startswith("/private/")]
    assert "http://robots-0.test/private/report" in found.recorder.urls(EventKind.ROBOTS_DISALLOW)


def test_a_missing_sitemap_is_no_error(found: Simulated) -> None:
    """X3: nobody named /sitemap.xml; that it is not there is not counted, and it is asked for once."""
    guesses = [(sent.host, sent.status) for sent in found.sent if sent.target == "/sitemap.xml"]
    assert sorted(guesses) == [("feed-2.test", 404), ("guess-1.test", 200)]
    assert "http_4xx" not in found.summary.errors


def test_lists_are_stored_and_are_no_pages(found: Simulated) -> None:
    """X3, W1: the archive has them; they count neither as pages nor as duplicates, and none is delivered as one."""
    assert found.summary.pages == 3 * 41
    stored = {row.url: row for row in CrawlView(found.out).pages(limit=1000)}
    assert "http://robots-0.test/maps/one.xml.gz" in stored
    kinds = Counter(event.reason for event in found.recorder.events if event.kind is EventKind.LISTED)
    assert kinds == {"sitemap_index": 1, "sitemap": 3, "text_sitemap": 1, "feed": 1}


def test_status_and_why_tell_of_lists(found: Simulated) -> None:
    """X3, T8: how many URLs lists have brought, and which list named a URL."""
    view = CrawlView(found.out)
    assert view.status().lists["added"] == found.summary.listed
    lines = dict(view.why("http://robots-0.test/story/8").lines)
    assert lines["found"] == "in the sitemap http://robots-0.test/maps/two.xml"
    assert dict(view.why("http://robots-0.test/maps/index.xml").lines)["found"] == "as a Sitemap line of its robots.txt"
    guessed = dict(view.why("http://guess-1.test/sitemap.xml").lines)
    assert guessed["found"] == "tried, as many sites have it"
    assert guessed["is a list"].startswith("the sitemap: 41 entries")
    item = dict(view.why("http://feed-2.test/story/9").lines)
    assert item["found"] == "in the feed http://feed-2.test/news/feed.xml"


def test_lists_come_round_by_themselves_and_cost_no_body_when_nothing_changed(tmp_path: Path) -> None:
    """X3, H3: after a day sitemaps are due, a feed after an hour, each asked for conditionally."""
    web = web_of(ListedSite(20, Naming.ROBOTS), ListedSite(20, Naming.FEED, label="feed"))
    clock = VirtualClock()
    auditor = Auditor(web)
    seeds = web.trap_seeds()
    settings = replace(PATIENT, limits=replace(PATIENT.limits, max_wait_s=60.0))
    simulate(web, tmp_path / "crawl", settings, seeds=seeds, clock=clock, auditor=auditor)
    clock.advance(2 * 3600)
    auditor.new_cycle()
    soon = simulate(web, tmp_path / "crawl", settings, seeds=seeds, clock=clock, auditor=auditor)
    assert [(sent.target, sent.status) for sent in soon.sent] == [("/news/feed.xml", 304)]
    clock.advance(DAY_S)
    auditor.new_cycle()
    later = simulate(web, tmp_path / "crawl", settings, seeds=seeds, clock=clock, auditor=auditor)
    asked = Counter(sent.target for sent in later.sent if sent.status == 304)
    lists = {"/maps/index.xml", "/maps/one.xml.gz", "/maps/two.xml", "/maps/three.txt", "/news/feed.xml"}
    assert set(asked) == lists
    assert later.summary.pages == 0
    assert auditor.report().violations == ()


def test_what_a_host_has_not_earned_is_parked_and_comes_back(tmp_path: Path) -> None:
    """F5, X3: a sitemap fills no queue; its host earns the rest page by page."""
    settings = replace(PATIENT, budget=replace(PATIENT.budget, first_urls=6, urls_per_page=1))
    crawled = crawl_of(tmp_path, settings, ListedSite(40, Naming.GUESS))
    (figures,) = crawled.traps.values()
    assert figures.found == figures.real_pages
    assert crawled.summary.stopped_by is StoppedBy.DONE


LIARS: tuple[TrapSite, ...] = (
    ListedSite(40, Naming.GUESS, Dates.TRUE, 3 * DAY_S, label="true"),
    ListedSite(40, Naming.GUESS, Dates.RESTLESS, 0, label="restless"),
    ListedSite(40, Naming.GUESS, Dates.SILENT, 3 * DAY_S, label="silent"),
)


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> list[Simulated]:
    """A crawl that is taken up again each day, for three weeks."""
    folder = tmp_path_factory.mktemp("liars")
    web, clock = web_of(*LIARS), VirtualClock()
    auditor = Auditor(web)
    crawled = []
    for _ in range(21):
        auditor.new_cycle()
        crawled.append(simulate(web, folder / "crawl", OFTEN, seeds=web.trap_seeds(), clock=clock, auditor=auditor))
        clock.advance(DAY_S)
    write_stored(folder / "crawl", OFTEN)
    return crawled


def test_a_site_whose_lastmod_lies_is_no_longer_believed(rounds: list[Simulated], say: Say) -> None:
    """X3, R2: new dates without new content, and new content without new dates; an honest site stays believed."""
    trust = {
        name: trust_of(rounds[-1], f"{name}-{place}.test") for place, name in enumerate(("true", "restless", "silent"))
    }
    for name, site in trust.items():
        say(f"{name}: {site.right} right, {site.false} false, {site.missed} missed")
    believed = {name: is_believed(site, OFTEN.sitemaps) for name, site in trust.items()}
    assert believed == {"true": True, "restless": False, "silent": False}
    assert trust["restless"].evidence
    warned = {event.host for one in rounds for event in one.recorder.events if event.reason == "lastmod_lies"}
    assert warned == {"restless-1.test", "silent-2.test"}
    told = dict(CrawlView(rounds[-1].out).why("http://restless-1.test/story/3").lines)
    assert told["lastmod"].startswith("of restless-1.test: not believed")
    assert rounds[-1].audit.violations == ()


def test_a_believed_lastmod_brings_changed_pages_at_once_and_a_liar_costs_little(
    rounds: list[Simulated], say: Say
) -> None:
    """X3, R2: pages of the honest site are fetched when it says so; the liar is asked no more often than others."""
    asked = Counter(sent.host for one in rounds[1:] for sent in one.sent if sent.target.startswith("/story/"))
    renewed = {event.host: 0 for one in rounds for event in one.recorder.events if event.kind is EventKind.LISTED}
    for one in rounds:
        for event in one.recorder.events:
            if event.kind is EventKind.LISTED:
                renewed[event.host] += dict(event.counts).get("renewed", 0)
    say(f"visits after the first day: {dict(asked)}; due because of a lastmod: {renewed}")
    assert renewed["true-0.test"] >= 40 * 4
    assert renewed["restless-1.test"] <= 2 * 40
    assert renewed["silent-2.test"] == 0


@pytest.mark.parametrize("step", range(8, 60, 9))
def test_a_crawl_that_dies_while_lists_are_read_misses_nothing(tmp_path: Path, step: int) -> None:
    """Q4, X3: wherever it is cut, what only lists name is found when it goes on, politely."""
    web = web_of(ListedSite(12, Naming.ROBOTS), ListedSite(6, Naming.FEED, label="feed"))
    limits = replace(PATIENT.limits, max_wait_s=600.0)  # the feed would be due again within the hour
    settings = replace(PATIENT, sitemaps=replace(PATIENT.sitemaps, batch=2), limits=limits)
    world = World(web, tmp_path, settings)
    seeds = web.trap_seeds()
    assert world.crawl(step, seeds=seeds) is None
    world.crawl(step, seeds=seeds)
    assert world.crawl(seeds=seeds) is not None
    stored = {row.url for row in _pages(world.out)}
    wanted = {
        f"http://{host}/story/{n}"
        for host, count in (("listed-0.test", 12), ("feed-1.test", 6))
        for n in range(1, count + 1)
    }
    assert wanted <= stored
    violations = world.auditor.report().violations
    assert {one.kind for one in violations} <= {ViolationKind.REPEAT}
    assert len(violations) <= 2 * 2  # what was under way at a crash, on each of two hosts


def _pages(out: Path) -> list[PageRow]:
    write_stored(out, PATIENT)
    return list(CrawlView(out).pages(limit=1000))
