"""Pages that are made by their scripts, in whole crawls under virtual time (J1-J4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from simulation import PATIENT, Simulated, simulate

from nephila.model.events import EventKind
from nephila.model.settings import Settings
from nephila.testing.renderer import SimulatedRenderer
from nephila.testing.web import FramedSite, HostMix, ScriptSite, SimulatedWeb, TrapSite, WebSpec

Say = Callable[[str], None]
SITES: tuple[TrapSite, ...] = (
    ScriptSite(30, label="spa"),
    ScriptSite(12, label="shop"),
    FramedSite(60, label="framed"),
)


def web_of(*sites: TrapSite, hosts: int = 1, pages: int = 1) -> SimulatedWeb:
    return SimulatedWeb(WebSpec(1, hosts=hosts, pages=pages, traps=sites, host_mix=HostMix(refusing=0, nameless=0)))


def crawl_of(
    folder: Path, renderer: SimulatedRenderer | None, *sites: TrapSite, settings: Settings = PATIENT, pages: int = 1
) -> Simulated:
    web = web_of(*sites, hosts=max(1, pages // 40), pages=pages)
    return simulate(web, folder / "crawl", settings, renderer=renderer)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Simulated, SimulatedRenderer]:
    renderer = SimulatedRenderer()
    return crawl_of(tmp_path_factory.mktemp("rendering"), renderer, *SITES, pages=400), renderer


def test_pages_that_scripts_make_are_all_found(
    shown: tuple[Simulated, SimulatedRenderer], tmp_path: Path, say: Say
) -> None:
    """J1, J4: links that exist only after scripts ran are followed; without a browser only the homes are found."""
    crawled, _ = shown
    blind = crawl_of(tmp_path, None, *SITES)
    for name in ("spa-0.test", "shop-1.test"):
        found, without = crawled.traps[name], blind.traps[name]
        say(f"{name}: {found.found} of {found.real_pages} with a browser, {without.found} without")
        assert found.found == found.real_pages
        assert without.found == 1
    assert crawled.traps["framed-2.test"].found == 61


def test_static_pages_are_not_rendered(shown: tuple[Simulated, SimulatedRenderer], say: Say) -> None:
    """J1: less than 2 % of the pages that need no browser are shown to one, and a site is decided within five pages."""
    crawled, renderer = shown
    by_host = Counter(url.split("/")[2] for url in renderer.shown)
    static = crawled.summary.pages - by_host["spa-0.test"] - by_host["shop-1.test"]
    wasted = sum(by_host.values()) - by_host["spa-0.test"] - by_host["shop-1.test"]
    say(f"{wasted} of {static} static pages shown in vain; {dict(by_host)}")
    assert static > 300
    assert wasted < 0.02 * static
    assert by_host["framed-2.test"] <= 5
    waited = sum(got == "later" for _, got in renderer.asked)
    assert by_host["spa-0.test"] + by_host["shop-1.test"] == 31 + 13 + waited


def test_visits_are_polite(shown: tuple[Simulated, SimulatedRenderer]) -> None:
    """J3, P5: the servers' auditor, who knows visits, has nothing to say."""
    crawled, _ = shown
    assert crawled.audit.violations == ()


def test_forbidden_and_inner_parts_are_never_sent(shown: tuple[Simulated, SimulatedRenderer]) -> None:
    """J3, H6: a part that robots.txt forbids is withheld, and so is one whose address is not public."""
    crawled, renderer = shown
    reasons = Counter((url.rpartition("/")[2], got) for url, got in renderer.asked if not url.endswith("app.js"))
    assert reasons["extra.json", "robots"] == 44 + reasons["inner.json", "later"]
    assert reasons["inner.json", "address"] == 44
    assert 1 <= reasons["inner.json", "later"] <= 4, "waited for until it is known"
    assert not [sent.target for sent in crawled.sent if sent.target.endswith(("/extra.json", "/inner.json"))]


def test_scripts_are_asked_for_once(shown: tuple[Simulated, SimulatedRenderer]) -> None:
    """J3: what one page was given is at hand for the next; every other part is asked for once."""
    crawled, _ = shown
    scripts = [sent.host for sent in crawled.sent if sent.target == "/static/app.js"]
    assert sorted(scripts) == ["shop-1.test", "spa-0.test"]
    data = Counter((sent.host, sent.target) for sent in crawled.sent if sent.target.endswith(".json"))
    assert len(data) == 44
    assert set(data.values()) == {1}


def test_what_was_shown_is_told(shown: tuple[Simulated, SimulatedRenderer]) -> None:
    """J2, O1: events and summary say how many pages were shown, what it brought, and what was asked for on top."""
    crawled, _ = shown
    rendered = [event for event in crawled.recorder.events if event.kind is EventKind.RENDERED]
    assert crawled.summary.rendered == len(rendered) == 44 + 4
    assert crawled.summary.render_gained == 44
    assert crawled.summary.visit_parts == 44 + 2
    assert crawled.summary.render_missed == {}


def test_without_a_browser_pages_that_need_one_are_counted(tmp_path: Path) -> None:
    """J2: everything else works, and the summary says what was missed."""
    crawled = crawl_of(tmp_path, None, ScriptSite(5))
    assert crawled.summary.render_missed == {"no_browser": 1}
    assert crawled.summary.rendered == 0
    assert crawled.audit.violations == ()


def test_switched_off_nothing_is_looked_for(tmp_path: Path) -> None:
    """J1: `render.enabled = never`."""
    off = replace(PATIENT, render=replace(PATIENT.render, enabled="never"))
    crawled = crawl_of(tmp_path, SimulatedRenderer(), ScriptSite(5), settings=off)
    assert crawled.summary.render_missed == {}
    assert crawled.summary.rendered == 0


def test_a_browser_that_crashes_or_hangs_loses_no_page(tmp_path: Path) -> None:
    """J2: every third page brings the browser down, every seventh hangs: all are found, each part asked for once."""
    renderer = SimulatedRenderer(crash_every=3, hang_every=7)
    crawled = crawl_of(tmp_path, renderer, ScriptSite(40, label="spa"))
    assert crawled.traps["spa-0.test"].found == 41
    assert crawled.audit.violations == ()
    assert crawled.summary.render_missed == {}
    assert len(renderer.shown) > 50


def test_the_line_to_the_browsers_is_bounded_and_loses_nothing(tmp_path: Path) -> None:
    """J2: one slow browser for twelve sites: no more pages than the share are on their way, and all are found."""
    renderer = SimulatedRenderer(1, takes_s=8.0)
    tight = replace(PATIENT, fetch=replace(PATIENT.fetch, concurrency=40))
    crawled = crawl_of(tmp_path, renderer, *(ScriptSite(3, label=f"s{n}") for n in range(12)), settings=tight)
    assert renderer.most_at_work == 1
    assert all(figures.found == figures.real_pages for figures in crawled.traps.values())
    assert any(event.kind is EventKind.DEFERRED and event.reason == "render" for event in crawled.recorder.events)
    repeated = [violation for violation in crawled.audit.violations if violation.kind != "repeat"]
    assert repeated == []
