"""The dashboard of a fleet in a real browser: two workers on real engines, looked at and operated from one page."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from browser import opened, shown
from fleet_engines import Engines, Fleet
from playwright.sync_api import Browser, Page, expect
from served import ServedWeb, served_articles
from waiting import wait_until

SHOTS = os.environ.get("NEPHILA_SCREENSHOTS", "")
DELAY_S = 0.2


@dataclass
class Watched:
    """A fleet at work, and where its dashboard is."""

    web: ServedWeb
    fleet: Fleet
    api: Callable[..., Any]

    @property
    def url(self) -> str:
        found: str = self.api.url  # type: ignore[attr-defined] # as `Fleet.served` gives it
        return found

    def asked(self, host: str) -> int:
        """Requests that a host has seen so far."""
        seen = self.web.audit().hosts.get(host)
        return 0 if seen is None else seen.requests


@pytest.fixture(scope="module")
def watched(lasting_engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("fleet")
    with (
        served_articles(folder / "web", 9, hosts=12, pages=2400, delay_s=DELAY_S) as web,
        Fleet(folder / "fleet", lasting_engines, web, DELAY_S) as fleet,
        fleet.served() as api,
    ):
        for name in ("first", "second"):
            fleet.start(name, "--forever")
        yield Watched(web, fleet, api)


@pytest.fixture
def at_work(watched: Watched) -> Watched:
    """The same with pages: the first test gives seeds in the page, and whoever runs without it has them from here."""
    if not watched.api("GET", "/domains?limit=1")["domains"]:
        watched.api("POST", "/seeds", {"urls": list(watched.web.seeds)}, code=None)
    wait_until(lambda: watched.api("GET", "/pages?limit=1")["pages"], "nothing is listed")
    return watched


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as one:
        yield one


@pytest.fixture
def page(browser: Browser, watched: Watched) -> Iterator[Page]:
    with shown(browser, watched.url) as one:
        yield one


def test_seeds_added_in_the_page_are_crawled_by_both_workers(page: Page, watched: Watched) -> None:
    """C1, C3, N1, S1: from an empty crawl on; charts move, and each worker is shown with what it does."""
    page.get_by_role("link", name="Add and forbid").click()
    page.get_by_label("URLs or domains").fill("\n".join([*watched.web.seeds, "ftp://example.org/x"]))
    page.get_by_role("button", name="Add seeds").click()
    expect(page.locator("main")).to_contain_text("1 added, 0 known already, 1 refused.")
    wait_until(
        lambda: [one["pages"] > 5 for one in watched.api("GET", "/workers")["workers"]] == [True, True],
        "both do not work",
    )
    page.get_by_role("link", name="Overview").click()
    expect(page.locator("#crawl")).to_have_text(watched.fleet.crawl)
    expect(page.locator("#state")).to_contain_text("running")
    rows = page.locator("section", has=page.locator("h2", has_text="Workers")).locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("first")
    chart = "svg[aria-label='Pages a second'] polygon"
    drawn = page.locator(chart).get_attribute("points")
    page.wait_for_function(
        'old => document.querySelector("svg[aria-label=\'Pages a second\'] polygon").getAttribute("points") !== old',
        arg=drawn,
        timeout=30_000,
    )
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/dashboard-fleet.png", full_page=True)


def test_a_pause_holds_for_all_workers_until_it_is_undone(page: Page, at_work: Watched) -> None:
    """C3, R4: within two seconds, from the list of domains."""
    page.get_by_role("link", name="Domains").click()
    button = page.get_by_role("button", name=re.compile("^Pause ")).first
    domain = (button.get_attribute("aria-label") or "").removeprefix("Pause ")
    button.click()
    page.get_by_role("button", name="Pause it").click()
    expect(page.locator("#notices")).to_contain_text(f"{domain} is paused.")
    time.sleep(2)
    before = at_work.asked(domain)
    time.sleep(2)
    assert at_work.asked(domain) == before
    expect(page.get_by_role("button", name=f"Resume {domain}", exact=True)).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    wait_until(lambda: at_work.asked(domain) > before, "it did not go on", 20)


def test_a_block_holds_for_all_workers_and_can_be_lifted(page: Page, at_work: Watched) -> None:
    """C3, T7: with its reason; what was changed is on record."""
    domain = at_work.api("GET", "/domains?limit=1&sort=domain&order=desc")["domains"][0]["domain"]
    page.get_by_role("link", name="Add and forbid").click()
    page.get_by_label("domain, host, or how URLs begin").fill(domain)
    page.get_by_label("why", exact=True).fill("they asked us")
    page.get_by_role("button", name="Block").click()
    expect(page.locator("#notices")).to_contain_text(f"{domain} is blocked.")
    time.sleep(2)
    before = at_work.asked(domain)
    time.sleep(1.5)
    assert at_work.asked(domain) == before
    page.get_by_role("button", name="Lift").click()
    page.get_by_role("button", name="Lift it").click()
    expect(page.locator("main")).to_contain_text("Nothing is blocked.")
    page.get_by_role("link", name="Changes").click()
    for told in ("block", "unblock", "they asked us", "loopback"):
        expect(page.locator("main")).to_contain_text(told)


def test_the_story_of_a_url_is_found(page: Page, at_work: Watched) -> None:
    """C3, T8: what was decided, and its capture; a domain leads to its hosts."""
    url = at_work.api("GET", "/pages?limit=1")["pages"][0]["url"]
    page.keyboard.press("/")
    page.keyboard.type(url)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(url)
    expect(page.locator("main")).to_contain_text("fetched and stored")
    expect(page.locator("main table tbody tr")).to_have_count(1)
    domain = at_work.api("GET", "/domains?limit=1&sort=pages&order=desc")["domains"][0]["domain"]
    page.locator("#wanted").fill(domain)
    page.locator("#wanted").press("Enter")
    expect(page.locator("h1")).to_have_text(domain)
    expect(page.locator("main")).to_contain_text("robots")
