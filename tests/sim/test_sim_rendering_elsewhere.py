"""Pages whose scripts and data lie on other hosts, in whole crawls under virtual time (J1-J4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from simulation import PATIENT, Simulated, simulate

from nephila.model.events import EventKind
from nephila.model.settings import RenderSettings
from nephila.node.audit import audit
from nephila.node.inspect import CrawlView
from nephila.testing.renderer import SimulatedRenderer
from nephila.testing.web import BundleSite, FramedSite, HostMix, ScriptSite, SimulatedWeb, TrapSite, WebSpec

Say = Callable[[str], None]
OWN_DATA = ScriptSite(12, label="spa", bundle="cdn-1.test")
FAR_DATA = ScriptSite(8, label="shop", bundle="cdn-1.test", api="api-3.test")
SITES: tuple[TrapSite, ...] = (
    OWN_DATA,
    BundleSite("cdn"),
    FAR_DATA,
    BundleSite("api", data_of=FAR_DATA, lasting="no-store"),
    FramedSite(20, label="framed"),
)


def crawl_of(folder: Path, *sites: TrapSite, **render: object) -> tuple[Simulated, SimulatedRenderer]:
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=sites, host_mix=HostMix(refusing=0, nameless=0)))
    settings = replace(PATIENT, render=replace(RenderSettings(), **render))
    renderer = SimulatedRenderer()
    return simulate(web, folder / "crawl", settings, renderer=renderer), renderer


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Simulated, SimulatedRenderer]:
    return crawl_of(tmp_path_factory.mktemp("elsewhere"), *SITES)


def notes_of(out: Path) -> dict[str, dict[str, str]]:
    """What the metadata of rendered pages say, by host."""
    from warcio.archiveiterator import ArchiveIterator  # noqa: PLC0415 - as readers of archives do

    found: dict[str, dict[str, str]] = {}
    for path in sorted((out / "warc").glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "metadata":
                    lines = record.content_stream().read().decode().splitlines()
                    notes = dict(line[5:].split(": ", 1) for line in lines if line.startswith("note-"))
                    if "rendered" in notes:
                        found[record.rec_headers["WARC-Target-URI"].split("/")[2]] = notes
    return found


def sent_to(crawled: Simulated, host: str) -> Counter[str]:
    return Counter(sent.target for sent in crawled.sent if sent.host == host)


def test_pages_whose_bundle_lies_on_another_host_are_all_found(shown: tuple[Simulated, SimulatedRenderer]) -> None:
    """J1, J3: a script that loads a script, and data of a third host, are waited for; without them only homes are."""
    crawled, _ = shown
    assert crawled.traps["spa-0.test"].found == 13
    assert crawled.traps["shop-2.test"].found == 9
    assert crawled.summary.render_missed == {}


def test_a_resource_is_fetched_once_for_all_pages_and_no_page_twice(
    shown: tuple[Simulated, SimulatedRenderer], say: Say
) -> None:
    """J3: 22 pages of two sites share two scripts; a page that waits is kept, with what its host gave it."""
    crawled, renderer = shown
    scripts = sent_to(crawled, "cdn-1.test")
    assert (scripts["/v1/loader.js"], scripts["/v1/app.js"]) == (1, 1)
    everything = Counter((sent.host, sent.target) for sent in crawled.sent)
    assert set(everything.values()) == {1}
    resources = crawled.summary.render_resources
    say(f"{len(renderer.shown)} showings of {crawled.summary.rendered} pages, {resources} resources")
    assert max(Counter(renderer.shown).values()) <= 1 + RenderSettings().rounds


def test_nobody_has_anything_to_complain_of(shown: tuple[Simulated, SimulatedRenderer]) -> None:
    """J3, K1, P5: neither the servers' auditor nor the audit of the trail, which knows of every request."""
    crawled, _ = shown
    assert crawled.audit.violations == ()
    found = audit(crawled.out)
    assert found.is_clean, found.findings[:3]
    assert (found.requests, found.resources) == (crawled.audit.requests, crawled.summary.render_resources)
    assert (found.untold, found.lost, found.cut_visits) == (0, 0, 0)


def test_bait_on_an_inner_address_is_refused_and_not_waited_for_twice(
    shown: tuple[Simulated, SimulatedRenderer],
) -> None:
    """H6, J3: data of 10.1.2.3 are wanted by every page: judged once, by the guard of addresses, and never sent."""
    crawled, renderer = shown
    assert sent_to(crawled, "10.1.2.3") == {}
    got = Counter(what for url, what in renderer.asked if url.endswith("/inner.json"))
    assert set(got) == {"later", "address"}
    refused = [event for event in crawled.recorder.events if event.kind is EventKind.RENDER_RESOURCE and event.reason]
    assert [(event.host, event.reason) for event in refused] == [("10.1.2.3", "address")]


def test_resources_are_no_pages(shown: tuple[Simulated, SimulatedRenderer]) -> None:
    """J3, S3: they are in the archive and in the index, and in no count of pages."""
    crawled, _ = shown
    assert crawled.summary.pages == 13 + 9 + 21 + 1
    assert crawled.summary.render_resources == 2 + 9
    rows = {row.url for row in CrawlView(crawled.out).pages(limit=1000)}
    assert not [url for url in rows if "cdn-1.test/v1" in url or "/data/" in url]
    index = "".join(path.read_text() for path in (crawled.out / "warc").glob("*.cdxj"))
    assert index.count("http://cdn-1.test/v1/app.js") == 1
    assert index.count("http://api-3.test/data/view/1.json") == 1
    assert "nephila-resource" not in index


def test_a_page_says_what_it_had_to_do_without(tmp_path: Path) -> None:
    """J3, P1, H1: a bundle that robots.txt forbids, one on a dead host, one without a name: shown as it is then."""
    sites = (
        ScriptSite(3, label="closed", bundle="cdn-1.test"),
        BundleSite("cdn", forbids=True),
        ScriptSite(3, label="dead", bundle="gone-3.test"),
        BundleSite("gone", is_dead=True),
        ScriptSite(3, label="lost", bundle="nowhere.test"),
    )
    crawled, renderer = crawl_of(tmp_path, *sites)
    assert crawled.audit.violations == ()
    assert set(sent_to(crawled, "cdn-1.test")) <= {"/robots.txt"}
    for name in ("closed-0.test", "dead-2.test", "lost-4.test"):
        assert crawled.traps[name].found == 1
    finals = {event.host: dict(event.counts) for event in crawled.recorder.events if event.kind is EventKind.RENDERED}
    assert finals["closed-0.test"]["withheld_robots"] == 1
    assert finals["dead-2.test"]["withheld_absent"] == 1, "its robots.txt does not answer: its time is up"
    assert finals["lost-4.test"]["withheld_failed"] == 1
    assert all(counts["waits"] == 1 for counts in finals.values())
    told = {host: notes["renderedWithout"] for host, notes in notes_of(crawled.out).items()}
    assert told == {"closed-0.test": "robots:1", "dead-2.test": "absent:1", "lost-4.test": "failed:1"}
    assert audit(crawled.out).is_clean
    assert len(renderer.shown) == 6


def test_other_hosts_may_be_left_alone(tmp_path: Path) -> None:
    """J3: `render.resources = none` asks nobody but the page's own host; `site` only hosts of its own domain."""
    for which in ("none", "site"):
        crawled, renderer = crawl_of(tmp_path / which, OWN_DATA, BundleSite("cdn"), resources=which)
        assert crawled.traps["spa-0.test"].found == 1
        assert sent_to(crawled, "cdn-1.test") == {}
        assert {got for _, got in renderer.asked} == {"host"}
        assert crawled.summary.render_resources == 0


def test_a_page_waits_so_often_and_no_more(tmp_path: Path) -> None:
    """J3: one round is not enough for a script that loads a script; it is shown with what there is then."""
    crawled, renderer = crawl_of(tmp_path, OWN_DATA, BundleSite("cdn"), rounds=1)
    assert crawled.traps["spa-0.test"].found == 1
    assert renderer.asked[-1] == ("http://cdn-1.test/v1/app.js", "absent")
    assert len(renderer.shown) == 2


def test_a_crawl_that_goes_on_has_its_resources_still(tmp_path: Path) -> None:
    """J3: a second run of the same directory, within their time, asks for no script again."""
    web = SimulatedWeb(WebSpec(1, hosts=1, pages=1, traps=SITES[:2], host_mix=HostMix(refusing=0, nameless=0)))
    few = replace(PATIENT, limits=replace(PATIENT.limits, max_pages=4))
    first = simulate(web, tmp_path / "crawl", few, renderer=SimulatedRenderer())
    second = simulate(web, tmp_path / "crawl", PATIENT, renderer=SimulatedRenderer())
    assert sent_to(first, "cdn-1.test")["/v1/app.js"] == 1
    assert sent_to(second, "cdn-1.test")["/v1/app.js"] == 0
    assert first.traps["spa-0.test"].found + second.traps["spa-0.test"].found >= 13
