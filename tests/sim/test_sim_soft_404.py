"""Sites that never say 404, in whole crawls: what stands for missing pages is known for it, and no honest page is."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from crashes import World
from simulation import PATIENT, Simulated, simulate

from nephila.config import write_stored
from nephila.model.events import Event, EventKind
from nephila.model.summary import StoppedBy
from nephila.node.inspect import CrawlView
from nephila.pipeline.notfound import PROBE_MARK
from nephila.testing.clock import VirtualClock
from nephila.testing.web import MovedMissing, OneShell, SimulatedWeb, SoftMissing, WebSpec
from nephila.testing.web.truth import Expect

Say = Callable[[str], None]
SETTINGS = replace(PATIENT, traps=replace(PATIENT.traps, slow_after=10**6, stop_after=10**6))
"""Traps would stop a site that answers everything alike before this has its say."""
SITES = (SoftMissing(), SoftMissing(counted=True, label="counted"), MovedMissing(), OneShell())
SOFT_HOSTS = {"soft-0.test", "counted-1.test", "movedmissing-2.test"}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """A web of 2,000 honest pages with sites beside it that are not, looked at by several tests."""
    web = SimulatedWeb(replace(WebSpec.standard(6), pages=2800, traps=SITES))
    crawled = simulate(web, tmp_path_factory.mktemp("soft") / "crawl", SETTINGS)
    write_stored(crawled.out, SETTINGS)
    return crawled


def called_missing(crawled: Simulated | World) -> list[Event]:
    """Answers that were judged to stand for missing pages."""
    events = crawled.recorder.events
    return [event for event in events if event.kind is EventKind.FETCH_OK and event.reason == "soft_404"]


def is_real(web: SimulatedWeb, name: str, target: str) -> bool:
    """What the web itself knows of a URL: whether there is something behind it."""
    host = web.traps.find(name)
    page = web.traps.page(host, target) if host else None
    return bool(page.real) if page is not None else web.identify(f"http://{name}{target}") is not None


def test_soft_404s_are_found_and_no_honest_page_is_taken_for_one(crawled: Simulated, say: Say) -> None:
    """T4: by what the servers know; pages with the same text, error words and redirects among the honest ones."""
    found = called_missing(crawled)
    by_host = Counter(event.host for event in found)
    say(f"soft 404s: {dict(by_host)}")
    web = crawled.web
    assert [event.url for event in found if is_real(web, event.host, event.url.partition(".test")[2])] == []
    assert set(by_host) == SOFT_HOSTS
    asked = [sent for sent in crawled.sent if sent.target != "/robots.txt" and PROBE_MARK not in sent.target]
    served = Counter(sent.host for sent in asked if not is_real(web, sent.host, sent.target))
    for host in SOFT_HOSTS:
        say(f"{host}: {by_host[host]} of {served[host]} answers for missing pages were known for it")
        assert by_host[host] > 0.85 * served[host]
    wanted = web.truth("Nephila").urls(Expect.PAGE, Expect.RECOVERS)
    done = {web.identify(event.url) for event in crawled.recorder.events if event.is_page()}
    honest = sum(figures.found for figures in crawled.traps.values()) + len(wanted)
    say(f"{honest} honest pages of {len(web.hosts) + len(SITES)} hosts, none of them called missing")
    assert honest > 2000
    assert wanted <= done
    assert crawled.summary.stopped_by is StoppedBy.DONE
    assert not crawled.audit.violations


def test_a_host_is_probed_once_and_only_for_a_reason(crawled: Simulated, say: Say) -> None:
    """T4, P1, P2: one question to a suspicious host, none to the others, none that robots.txt forbids."""
    probes = Counter(sent.host for sent in crawled.sent if PROBE_MARK in sent.target)
    say(f"{len(probes)} of {len(crawled.audit.hosts)} hosts were probed, of {crawled.audit.requests} requests")
    assert set(probes.values()) == {1}
    assert set(probes) >= SOFT_HOSTS
    assert len(probes) < len(crawled.audit.hosts) / 2
    shown = [event for event in crawled.recorder.events if PROBE_MARK in event.url]
    assert not [event for event in shown if event.is_page() or event.kind is EventKind.ERROR]


def test_an_application_with_one_shell_for_all_loses_nothing(crawled: Simulated) -> None:
    """T4: where the home page says the same as the probe's answer, equal texts prove nothing."""
    figures = crawled.traps["shell-3.test"]
    assert figures.found == figures.real_pages


def test_soft_404s_count_as_errors_and_as_missing(crawled: Simulated, say: Say) -> None:
    """T4, R5, T8, W3: no pages, no links of theirs, an error each in the catalogue; `why` tells it."""
    found = called_missing(crawled)
    assert crawled.summary.errors["soft_404"] == len(found)
    event = next(event for event in found if event.host == "soft-0.test")
    why = CrawlView(crawled.out).why(event.url)
    lines = dict(why.lines)
    say(f"{event.url}: {lines['soft 404']}; {lines['missing']}")
    assert (why.data["state"], why.data["status"], why.data["missing"]) == ("completed", 404, 1)
    assert why.data["soft_404"] is True
    with closing(sqlite3.connect(crawled.out / "catalogue.sqlite")) as catalogue:
        kinds = Counter(kind for (kind,) in catalogue.execute("select kind from errors"))
    assert kinds["soft_404"] == len(found)


def test_a_restart_knows_the_hosts_and_switched_off_it_judges_nothing(tmp_path: Path, say: Say) -> None:
    """T4, F10: the second cycle begins with what was learned; with --no-soft-404 every page counts as one."""
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=(SoftMissing(),)))
    seeds, clock = web.trap_seeds(), VirtualClock()
    first = simulate(web, tmp_path / "crawl", SETTINGS, seeds=seeds, clock=clock)
    again = simulate(web, tmp_path / "crawl", SETTINGS, seeds=seeds, new_cycle=True, clock=clock)
    off = replace(SETTINGS, aliases=replace(SETTINGS.aliases, soft_404=False))
    blind = simulate(web, tmp_path / "blind", off, seeds=seeds)
    say(f"{len(called_missing(first))} soft 404s, {len(called_missing(again))} in the next cycle")
    assert len(called_missing(again)) > len(called_missing(first)) > 50
    assert called_missing(blind) == []
    assert not [sent for sent in blind.sent if PROBE_MARK in sent.target]
    assert blind.summary.pages > first.summary.pages + 50


def test_killed_at_any_step_what_stood_for_missing_pages_is_no_page(tmp_path: Path, say: Say) -> None:
    """T4, F10: also what is settled from the archive, whose bytes are those of another capture."""
    site = SoftMissing(articles=15, gone=40)
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=(site,)))
    unguessed = replace(SETTINGS, sitemaps=replace(SETTINGS.sitemaps, guess=False))  # it would be one step more
    world = World(web, tmp_path, unguessed)
    for moment in range(20, 80, 3):
        world.crawl(moment, seeds=web.trap_seeds())
    summary = world.crawl(seeds=web.trap_seeds())
    assert summary is not None
    write_stored(world.out, SETTINGS)
    settled = sum(recovered.settled for recovered in world.recovered)
    pages, missing = CrawlView(world.out).status().pages, len({event.url for event in called_missing(world)})
    say(f"killed {world.runs} times, {settled} settled from the archive; {pages} pages, {missing} URLs called missing")
    assert settled > 0
    assert site.real_pages <= pages <= site.real_pages + 3, "and those that were stored before the probe was answered"
    assert not world.auditor.report().violations
