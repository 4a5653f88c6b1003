"""The dashboard in a real browser, beside a real crawl of a simulated web."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from browser import opened, shown
from playwright.sync_api import Browser, Page, expect
from served import ServedWeb, nephila, plain_web, served
from waiting import wait_until

SHOTS = os.environ.get("NEPHILA_SCREENSHOTS", "")
"""A folder to keep pictures in, for the docs."""


@dataclass
class Watched:
    """A crawl that runs, and where its dashboard is."""

    web: ServedWeb
    url: str

    def api(self, path: str) -> Any:
        return json.loads(self.get(f"/api/v1/{path}")[2])

    def get(self, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Status, headers and body; the path is sent as it stands."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=10)
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        with connection.getresponse() as answer:
            found = answer.status, answer.headers, answer.read()
        connection.close()
        return found


def start(web: ServedWeb, out: Path, env: dict[str, str] | None = None) -> tuple[subprocess.Popen[str], str]:
    """A crawl with a dashboard; where that is."""
    flags = ("--scope", "all", "--delay", "0.1", "--forever", "--quiet", "--serve", "0")
    words = nephila("crawl", *web.seeds[:1], "--out", out, *web.flags, *flags)
    return started(words, out.parent / "log", env)


def serve(out: Path) -> tuple[subprocess.Popen[str], str]:
    """The dashboard of a crawl that does not run; where that is."""
    return started(nephila("serve", "--out", out, "--port", "0"), out.parent / "served.log")


def started(words: list[str], told: Path, env: dict[str, str] | None = None) -> tuple[subprocess.Popen[str], str]:
    """A command, and where it says that its dashboard is."""
    with told.open("w") as log:
        process = subprocess.Popen(words, stderr=log, stdout=log, text=True, env={**os.environ, **(env or {})})
    deadline = time.monotonic() + 120
    while not (found := re.search(r"http://127\.0\.0\.1:\d+", told.read_text())):
        assert process.poll() is None, told.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process, found[0]


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(20)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("dashboard")
    spec, arguments = plain_web(3, hosts=12, pages=2400)
    with served(folder / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        process, url = start(web, folder / "crawl")
        try:
            known = Watched(web, url)
            wait_until(lambda: known.api("pages?limit=1")["pages"], "nothing is listed")
            yield known
        finally:
            end(process)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened() as one:
        yield one


@pytest.fixture
def page(browser: Browser, watched: Watched) -> Iterator[Page]:
    with shown(browser, watched.url) as one:
        yield one


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png")


def figure(page: Page, name: str) -> str:
    """A figure of the overview, without the small print."""
    card = page.locator(".figures > div", has=page.locator("dt", has_text=re.compile(f"^{name}$")))
    return card.locator("dd").evaluate("cell => cell.firstChild.textContent")


def asked_of(watched: Watched, host: str) -> int:
    """Requests that a host has seen so far."""
    seen = watched.web.audit().hosts.get(host)
    return 0 if seen is None else seen.requests


def test_figures_and_charts_move(page: Page) -> None:
    """C3: the overview follows the crawl by itself."""
    expect(page.locator("#state")).to_contain_text("running")
    first = figure(page, "stored in all")
    expect(page.locator(".figures")).not_to_contain_text(f"stored in all{first}", timeout=15_000)
    chart = page.locator("svg[aria-label='Pages a second'] polygon")
    drawn = chart.get_attribute("points")
    page.wait_for_function(
        "old => document.querySelector(\"svg[aria-label='Pages a second'] polygon\").getAttribute('points') !== old",
        arg=drawn,
        timeout=25_000,
    )
    for picture in page.locator("svg.chart").all():
        scale = [label for label in picture.locator("text").all_text_contents() if ":" not in label]
        assert len(scale) >= 2
        assert len(set(scale)) == len(scale), f"{picture.get_attribute('aria-label')}: {scale}"
    shot(page, "dashboard")


def test_a_figure_that_is_alone_is_seen(page: Page) -> None:
    """C3: in the first seconds of a crawl there is one instant, and a line needs two."""
    drawn = page.evaluate(
        """async () => {
          const { Chart } = await import("/charts.js");
          return [{}, { stacked: true }, { lines: true }].map((kind) => {
            const chart = new Chart("alone", { write: String, ...kind });
            document.body.append(chart.element);
            chart.draw([1700000000000], [{ name: "one", figures: [3] }, { name: "two", figures: [2] }]);
            const parts = [...chart.picture.querySelectorAll("polygon, path")];
            const areas = parts.map((part) => {
              const { width, height } = part.getBBox();
              const round = part.getAttribute("stroke-linecap") === "round";
              const pen = round ? Number(part.getAttribute("stroke-width")) : 0;
              return (width + pen) * (height + pen);
            });
            chart.element.remove();
            return areas;
          });
        }"""
    )
    assert [len(areas) for areas in drawn] == [2, 2, 2]
    assert all(area >= 30 for areas in drawn for area in areas), drawn


def test_seeds_added_in_the_page_are_crawled(page: Page, watched: Watched) -> None:
    """C1, C3, S1: what is added, known and refused is told; what is added is fetched."""
    page.get_by_role("link", name="Add and forbid").click()
    web = watched.web.web
    wanted = f"{web.seeds()[0].rstrip('/')}/no-such-page-but-asked-for"
    page.get_by_label("URLs or domains").fill(f"{wanted}\n{wanted}\nftp://example.org/x")
    page.get_by_role("button", name="Add seeds").click()
    expect(page.locator("main")).to_contain_text("1 added, 1 known already, 1 refused.")
    deadline = time.monotonic() + 120
    while not watched.api(f"pages?url={wanted}")["pages"]:
        assert time.monotonic() < deadline, "the seed was not fetched"
        time.sleep(0.1)


def test_a_paused_host_rests_within_a_second(page: Page, watched: Watched) -> None:
    """C3, R4: after a question; resumed by undoing it."""
    page.get_by_role("link", name="Domains").click()
    button = page.get_by_role("button", name=re.compile("^Pause ")).first
    domain = (button.get_attribute("aria-label") or "").removeprefix("Pause ")
    button.click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#notices")).to_be_empty()
    page.get_by_role("button", name=f"Pause {domain}", exact=True).click()
    page.get_by_role("button", name="Pause it").click()
    expect(page.locator("#notices")).to_contain_text(f"{domain} is paused.")
    time.sleep(1)
    before = asked_of(watched, domain)
    time.sleep(2)
    assert asked_of(watched, domain) == before
    expect(page.get_by_role("button", name=f"Resume {domain}", exact=True)).to_be_visible()
    shot(page, "dashboard-domains")
    page.get_by_role("button", name="Undo").click()
    deadline = time.monotonic() + 60
    while asked_of(watched, domain) == before:
        assert time.monotonic() < deadline, "it did not go on"
        time.sleep(0.1)


def test_a_block_holds_and_can_be_lifted(page: Page, watched: Watched) -> None:
    """C3, T7: with its reason, which the story of a URL tells."""
    domain = watched.api("domains?limit=1&sort=domain&order=desc")["domains"][0]["domain"]
    page.get_by_role("link", name="Add and forbid").click()
    page.get_by_label("domain, host, or how URLs begin").fill(domain)
    page.get_by_label("why", exact=True).fill("they asked us")
    page.get_by_role("button", name="Block").click()
    expect(page.locator("#notices")).to_contain_text(f"{domain} is blocked.")
    time.sleep(1)
    before = asked_of(watched, domain)
    time.sleep(1.5)
    assert asked_of(watched, domain) == before
    page.get_by_role("button", name="Lift").click()
    page.get_by_role("button", name="Lift it").click()
    expect(page.locator("main")).to_contain_text("Nothing is blocked.")
    page.get_by_role("link", name="Changes").click()
    for told in ("block", "unblock", "they asked us", "loopback"):
        expect(page.locator("main")).to_contain_text(told)


def test_the_story_of_a_url_is_found(page: Page, watched: Watched) -> None:
    """C3, T8: by the keyboard alone, from the first page on."""
    url = watched.api("pages?limit=1")["pages"][0]["url"]
    page.keyboard.press("/")
    page.keyboard.type(url)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(url)
    expect(page.locator("main")).to_contain_text("fetched and stored")
    expect(page.locator("main table tbody tr")).to_have_count(1)
    shot(page, "dashboard-story")


def test_a_page_is_taken_down_from_its_story(page: Page, watched: Watched) -> None:
    """C3, K2: after a question that wants a reason; it is blocked at once, and gone when that was carried out."""
    url = watched.api("pages?limit=1")["pages"][0]["url"]
    page.keyboard.press("/")
    page.keyboard.type(url)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Take down").click()
    page.get_by_label("Why? It is kept with the record.").fill("they asked us")
    page.get_by_role("button", name="Take it down").click()
    expect(page.locator("#notices")).to_contain_text("is on record")
    number = watched.api("takedowns")["takedowns"][0]["id"]
    ended = time.monotonic() + 60
    while watched.api(f"takedowns/{number}")["state"] != "done":
        assert time.monotonic() < ended, "it is not carried out"
        time.sleep(0.2)
    assert watched.api(f"pages?url={quote(url, safe='')}")["pages"] == []
    expect(page.locator("main")).to_contain_text("taken down", timeout=15_000)


def test_a_policy_is_changed_and_taken_back(page: Page, watched: Watched) -> None:
    """R4, C3: the form says what holds."""
    domain = watched.api("domains?limit=1&sort=pages")["domains"][0]["domain"]
    page.locator("#wanted").fill(domain)
    page.locator("#wanted").press("Enter")
    expect(page.locator("h1")).to_have_text(domain)
    page.get_by_label("delay, seconds").fill("2.5")
    page.get_by_role("button", name="Change").click()
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_role("button", name="Take it back")).to_be_visible()
    assert watched.api(f"policies/{domain}")["delay_s"] == 2.5
    shot(page, "dashboard-domain")
    page.get_by_role("button", name="Take it back").click()
    page.get_by_role("dialog").get_by_role("button", name="Take it back").click()
    expect(page.get_by_role("button", name="Take it back")).to_have_count(0)
    assert watched.api(f"policies/{domain}")["delay_s"] is None


def test_a_change_of_a_policy_leaves_alone_what_others_have_changed_meanwhile(page: Page, watched: Watched) -> None:
    """R4, C3: whoever pauses a domain while somebody fills the form has paused it; undoing the form undoes no more."""
    domain = watched.api("domains?limit=1&sort=pages")["domains"][0]["domain"]
    page.locator("#wanted").fill(domain)
    page.locator("#wanted").press("Enter")
    page.get_by_label("delay, seconds").fill("2.5")
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("button", name="Pause it").click()
    expect(page.get_by_role("button", name="Resume", exact=True)).to_be_visible()
    page.get_by_role("button", name="Change").click()
    page.get_by_role("button", name="Change it").click()
    expect(page.locator("#notices")).to_contain_text("is changed.")
    told = watched.api(f"policies/{domain}")
    assert (told["delay_s"], told["paused"]) == (2.5, True)
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(page.locator("#notices")).to_contain_text("goes on.")
    page.locator(".notice", has_text="is changed.").get_by_role("button", name="Undo").click()
    expect(page.get_by_label("delay, seconds")).to_have_value("", timeout=15_000)
    told = watched.api(f"policies/{domain}")
    assert (told["delay_s"], told["paused"]) == (None, False)


def test_a_url_that_was_never_met_says_so(page: Page) -> None:
    """T8: not found is an answer, not a failure."""
    page.locator("#wanted").fill("https://nowhere.example/x?<b>y</b>")
    page.locator("#wanted").press("Enter")
    expect(page.locator("h1")).to_contain_text("<b>y</b>")
    expect(page.locator("main")).to_contain_text("It was never fetched.")


@pytest.mark.parametrize("part", ["", "domains", "orders", "traps", "dead", "changes", "alerts"])
def test_every_part_has_something_to_say(page: Page, part: str) -> None:
    """C3: what a part asks for is given; the console holds no complaint, and times say whose they are."""
    page.locator(f"nav a[href='#/{part}']").click()
    page.wait_for_load_state("networkidle")
    expect(page.locator("main section").first).to_be_visible()
    expect(page.locator("main")).not_to_contain_text("makes no sense")
    expect(page.locator("footer")).to_have_text("All times are UTC.")


def test_a_question_is_answered_by_enter_and_left_by_cancel(page: Page, watched: Watched) -> None:
    """C3, C4: whatever stands in its field."""
    domain = watched.api("domains?limit=1&sort=domain&order=desc")["domains"][0]["domain"]
    page.goto(f"{watched.url}/#/domain/{domain}")
    for answer in ("Cancel", "Escape"):
        page.get_by_role("button", name="Block").click()
        expect(page.get_by_role("dialog")).to_contain_text(f"Block {domain}?")
        if answer == "Cancel":
            page.get_by_role("button", name="Cancel").click()
        else:
            page.keyboard.press(answer)
        expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Block").click()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.type("they asked us")
    page.keyboard.press("Enter")
    expect(page.locator("#notices")).to_contain_text(f"{domain} is blocked.")
    expect(page.locator("main")).to_contain_text(f"Blocked by {domain}: they asked us")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("main")).not_to_contain_text("Blocked by", timeout=15_000)


def test_whoever_uses_the_keyboard_is_not_sent_away_by_new_figures(page: Page, watched: Watched) -> None:
    """C3: what has the focus keeps it when a part is drawn anew, also when it has changed its name by being used."""
    domain = watched.api("domains?limit=1&sort=domain&order=desc")["domains"][0]["domain"]
    page.goto(f"{watched.url}/#/domain/{domain}")
    focused = "[document.activeElement.name, document.activeElement.textContent].join(' ').trim()"
    drawn = re.compile(r"/api/v1/domains/")
    page.get_by_role("button", name="Take down").focus()
    for _ in range(2):
        page.wait_for_event("response", lambda told: drawn.search(told.url) is not None)
    assert page.evaluate(focused) == "Take down"
    page.get_by_label("depth at most").focus()
    for _ in range(2):
        page.wait_for_event("response", lambda told: drawn.search(told.url) is not None)
    assert page.evaluate(focused) == "crawl_depth"
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Pause")).to_be_focused()


def test_the_way_past_the_menu_stays_on_the_same_part(page: Page) -> None:
    """C3: for the keyboard and for screen readers."""
    page.get_by_role("link", name="Domains").click()
    expect(page.locator("main")).to_contain_text("errors of 100")
    page.get_by_role("link", name="Skip to the content").focus()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    expect(page.locator("main h2")).to_have_text("Domains")


def test_what_fails_is_told_as_what_it_is_and_comes_back_by_itself(browser: Browser, watched: Watched) -> None:
    """C3: a crawl that cannot answer for a moment is no page that is not found, nor one that is lost."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{watched.url}/#/domains")
    expect(page.locator("main")).to_contain_text("errors of 100")
    told = {"title": "This cannot be done now", "status": 503, "detail": "the engine is away", "hint": "wait"}
    page.route("**/api/v1/domains?*", lambda route: route.fulfill(status=503, json=told))
    expect(page.locator("main")).to_contain_text("the engine is away: wait", timeout=15_000)
    expect(page.locator("main h2")).to_have_text("This cannot be done now")
    page.unroute("**/api/v1/domains?*")
    expect(page.locator("main")).to_contain_text("errors of 100", timeout=15_000)
    expect(page.locator("main")).not_to_contain_text("the engine is away")
    page.route("**/api/v1/**", lambda route: route.abort())
    expect(page.locator("#state")).to_have_text("no answer", timeout=15_000)
    page.unroute("**/api/v1/**")
    expect(page.locator("#state")).to_contain_text("running", timeout=15_000)
    context.close()


@pytest.mark.parametrize(
    ("address", "told"),
    [("url/https://nowhere.example/100%", "It was never fetched."), ("constructor", "pages a second")],
)
def test_an_address_that_somebody_has_typed_is_shown(page: Page, watched: Watched, address: str, told: str) -> None:
    """C3: a bare per cent sign, and a part that there is not."""
    page.goto(f"{watched.url}/#/{address}")
    expect(page.locator("main")).to_contain_text(told)


def test_why_something_is_no_url_is_told_as_a_story(page: Page) -> None:
    """C3, T8: that it was refused, and by which rule."""
    page.locator("#wanted").fill("ftp://example.org/x")
    page.locator("#wanted").press("Enter")
    expect(page.locator("main")).to_contain_text("refused: neither http nor https")


def test_a_url_leads_to_its_own_story(page: Page) -> None:
    """C3: with commas and quotes in it, and without what ends the sentence that it stands in."""
    texts = {
        "on http://a.test/x,y;z='1'": ["http://a.test/x,y;z='1'"],
        "it forbids it (line 3 of http://a.test:1/robots.txt: Disallow: /p/)": ["http://a.test:1/robots.txt"],
        "'http://a.test/q' is none, http://a.test/r.": ["http://a.test/q", "http://a.test/r"],
        "see http://a.test/Name_(thing).": ["http://a.test/Name_(thing)"],
        "`dead DIR --retry http://a.test/d`": ["http://a.test/d"],
    }
    found = page.evaluate(
        """async (texts) => {
          const { linked } = await import("/dom.js");
          return texts.map((text) => {
            const parts = linked(text);
            const links = parts.filter((part) => part instanceof Element);
            const leads = links.map((link) => decodeURIComponent(link.getAttribute("href").slice(6)));
            return [parts.map((part) => part.textContent ?? part).join(""), leads];
          });
        }""",
        list(texts),
    )
    assert found == [[text, urls] for text, urls in texts.items()]


def test_what_strangers_write_does_not_turn_the_text_round(page: Page) -> None:
    """C3: marks of direction and control characters are seen as such, as on the command line; lines stay lines."""
    told = page.evaluate(
        """async (texts) => {
          const { h, plain } = await import("/dom.js");
          return texts.flatMap((text) => [h("p", {}, text).textContent, plain(text)]);
        }""",
        ["a\u202egpj.exe\u0007", "one\n\ttwo\u2066", "\u061cb"],
    )
    assert told == ["a\ufffdgpj.exe\ufffd"] * 2 + ["one\n\ttwo\ufffd"] * 2 + ["\ufffdb"] * 2


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_part_fits_the_screen(browser: Browser, watched: Watched, width: int, scheme: Any) -> None:
    """C3: phone and desk, light and dark: nothing runs over, text stands out from what is behind it."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    for part in ("", "domains", "orders", "traps", "dead", "changes", "alerts"):
        page.goto(f"{watched.url}/#/{part}")
        expect(page.locator("main section").first).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, part
    colours = page.evaluate(
        "(() => { const s = getComputedStyle(document.body); return [s.color, s.backgroundColor] })()"
    )
    ink, back = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
    assert (ink > back) == (scheme == "dark")
    assert abs(ink - back) > 400
    context.close()


def test_on_a_phone_a_domain_is_paused_without_looking_for_the_button(browser: Browser, watched: Watched) -> None:
    """C3: the table is wider than the screen, its buttons stay in sight; and every part begins at its top."""
    context = browser.new_context(viewport={"width": 360, "height": 800})
    page = context.new_page()
    page.goto(f"{watched.url}/#/domains")
    box = page.get_by_role("button", name=re.compile("^Pause ")).first.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 360
    page.get_by_role("link", name="Overview").click()
    expect(page.locator(".figures")).to_contain_text("pages a second")
    assert page.evaluate("scrollY") == 0
    context.close()


def test_where_a_token_is_wanted_the_page_asks_for_it(browser: Browser, tmp_path: Path) -> None:
    """C2, C3: without it nothing is shown; a wrong one is told, who has none is left alone; it is kept for the tab."""
    token = "0123456789abcdef" * 2
    spec, arguments = plain_web(4, hosts=2, pages=200)
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        process, url = start(web, tmp_path / "crawl", env={"NEPHILA_API_TOKEN": token})
        try:
            context = browser.new_context()
            page = context.new_page()
            page.goto(url + "/")
            expect(page.get_by_role("dialog")).to_contain_text("wants a token")
            expect(page.locator("#crawl")).to_have_text("Nephila")
            page.get_by_role("button", name="Cancel").click()
            expect(page.locator("main")).to_contain_text("a token is missing or wrong")
            page.wait_for_event("response")
            expect(page.get_by_role("dialog")).to_have_count(0)
            page.get_by_role("button", name="Give a token").click()
            for wrong in ("0123456789abcdef", "\u0437\u043d\u0430\u043a-0123456789"):
                page.get_by_label("Token", exact=True).fill(wrong)
                page.get_by_role("button", name="Use it").click()
                expect(page.get_by_role("dialog")).to_contain_text("is not known here")
                expect(page.get_by_label("Token", exact=True)).to_have_value("")
            page.get_by_label("Token", exact=True).fill(token)
            page.keyboard.press("Enter")
            expect(page.locator("#crawl")).to_have_text("crawl")
            assert page.evaluate("Object.keys(localStorage).length") == 0
            context.close()
        finally:
            end(process)


def test_a_takedown_promises_what_will_be_done(browser: Browser, tmp_path: Path) -> None:
    """C3, K2: where no crawl runs, nobody takes anything out until one does, or somebody purges."""
    spec, arguments = plain_web(4, hosts=2, pages=200)
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        process, _ = start(web, tmp_path / "crawl")
        end(process)
        process, url = serve(tmp_path / "crawl")
        try:
            with shown(browser, url) as page:
                page.goto(f"{url}/#/url/{quote(web.seeds[0], safe='')}")
                page.get_by_role("button", name="Take down").click()
                page.keyboard.type("they asked us")
                page.keyboard.press("Enter")
                expect(page.locator("#notices")).to_contain_text(
                    "when a crawl runs here again, or at once by nephila purge"
                )
        finally:
            end(process)


def test_the_page_runs_nothing_of_others(watched: Watched) -> None:
    """C2: only our own files, never in a frame, and a name that is not ours gets nothing."""
    status, headers, _ = watched.get("/")
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert watched.get("/", Host="evil.example")[0] == 421
    assert watched.get("/", If_None_Match=headers["etag"])[0] == 304
    for path in ("/../pages.py", "/pages.py", "/dashboard/main.js", "/%2e%2e/app.py", "/main.js/"):
        assert watched.get(path)[0] == 404, path
