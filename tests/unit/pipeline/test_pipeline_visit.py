"""What a page in a browser is given, and what is withheld from it (J3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_browser import HOME, MADE, SHELL, Scripted, ask, reasons
from worker import Worker, answer, failure

from nephila.interfaces.renderer import Supply
from nephila.model.errors import EngineAwayError
from nephila.model.events import EventKind
from nephila.model.exchange import Answer, FailureKind, FetchRequest
from nephila.model.rendering import (
    PartKind,
    Rendered,
    RenderFailed,
    Wanted,
    Withheld,
)
from nephila.model.task import Lease, Pace, PageTask, PartTask, Token
from nephila.pipeline.visit import Visit

ROBOTS = "https://a.test/robots.txt"


def visit(
    tmp_path: Path, act: Callable[[Supply], Awaitable[Any]], *answers: Any, robots: bool = False, **more: Any
) -> tuple[Worker, Scripted]:
    """Crawl a page that is a shell, and act as its browser."""
    browser = Scripted(act, **more)
    worker = Worker(tmp_path, robots=robots, renderer=browser)
    worker.script(answer(HOME, 200, SHELL), answer("https://a.test/next", 200, SHELL), *answers)
    worker.run(lambda: worker.crawl(HOME))
    assert worker.failures == []
    return worker, browser


def test_a_page_is_judged_as_it_was_shown_and_kept_as_it_was_sent(tmp_path: Path) -> None:
    """J4: links out of what the browser made; the archive has both."""
    worker, browser = visit(tmp_path, lambda supply: ask(supply, "https://a.test/app.js"))
    assert worker.fetcher.urls == [HOME, "https://a.test/app.js", "https://a.test/next"]
    page = next(capture for capture in worker.archive.captures if capture.fetched.url == HOME)
    assert (page.fetched.body, page.rendered) == (SHELL, MADE)
    part = worker.archive.captures[0]
    assert part.task == PartTask("https://a.test/app.js", HOME)
    assert dict(part.notes)["visit"] == dict(page.notes)["visit"]
    assert browser.orders[0].body == SHELL
    assert worker.ledger.outstanding == set()
    assert [row.via for row in worker.ledger.rows if not row.fingerprint] == [HOME]


def test_the_host_rests_for_every_request(tmp_path: Path) -> None:
    """J3, P2: three requests, three delays before the next page."""
    urls = ("https://a.test/1.js", "https://a.test/2.js")
    worker, _ = visit(tmp_path, lambda supply: ask(supply, *urls), *(answer(url) for url in urls))
    first, *_, last, following = worker.fetcher.at[:4]
    assert last - first < 1000
    assert following - last >= 3000


def test_thirty_requests_and_two_at_once(tmp_path: Path) -> None:
    """J3: the page counts among them; the others are withheld."""
    under_way, most = 0, 0

    async def slow(request: FetchRequest) -> Answer:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.05)
        under_way -= 1
        return answer(request.url)

    urls = [f"https://a.test/{number}.js" for number in range(40)]

    async def act(supply: Supply) -> Any:
        worker.fetcher.script.update({url: [slow] for url in urls})
        return await asyncio.gather(*(supply(Wanted(url, PartKind.SCRIPT)) for url in urls))

    browser = Scripted(act)
    worker = Worker(tmp_path, renderer=browser)
    worker.script(answer(HOME, 200, SHELL))
    worker.run(lambda: worker.crawl(HOME))
    got = reasons(browser.got)
    assert (got.count(200), got.count("budget")) == (29, 11)
    assert most == 2
    told = next(event for event in worker.recorder.events if event.kind is EventKind.RENDERED)
    assert dict(told.counts)["requests"] == 30
    assert dict(told.counts)["withheld_budget"] == 11


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (Wanted("https://a.test/x.png", PartKind.OTHER), "kind"),
        (Wanted("https://a.test/x", PartKind.DATA, "POST"), "method"),
        (Wanted("https://b.test/frame", PartKind.DOCUMENT), "host"),
        (Wanted("ftp://a.test/x.js", PartKind.SCRIPT), "scheme"),
        (Wanted("nonsense", PartKind.SCRIPT), "scheme"),
        (Wanted("https://a.test/secret/x.js", PartKind.SCRIPT), "robots"),
        (Wanted("http://a.test/x.js", PartKind.SCRIPT), "robots"),
        (Wanted("https://a.test:8443/x.js", PartKind.SCRIPT), "robots"),
    ],
)
def test_what_is_withheld_is_not_sent(tmp_path: Path, wanted: Wanted, reason: str) -> None:
    """J3, P1, H6: other hosts, other methods, what robots.txt forbids, and origins whose rules nobody knows."""
    rules = answer(ROBOTS, 200, b"User-agent: *\nDisallow: /secret\n")
    worker, browser = visit(tmp_path, lambda supply: supply(wanted), rules, robots=True)
    assert browser.got == Withheld(reason)
    assert {url for url in worker.fetcher.urls if url not in (ROBOTS, HOME, "https://a.test/next")} == set()


def test_whether_it_may_be_sent_waits_for_an_engine_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N4, J3: nothing is sent unasked, and nothing is given up for it."""
    allows, tries = Visit._is_allowed, list[str]()

    def away_at_first(self: Visit, url: str) -> bool:
        tries.append(url)
        if len(tries) < 3:
            raise EngineAwayError("Valkey does not answer")
        return allows(self, url)

    monkeypatch.setattr(Visit, "_is_allowed", away_at_first)
    url = "https://a.test/app.js"
    worker, browser = visit(tmp_path, lambda supply: ask(supply, url), answer(url))
    assert tries == [url] * 3
    assert reasons(browser.got) == [200]
    assert worker.fetcher.urls.count(url) == 1


def test_a_url_is_asked_for_once_however_often_the_page_is_shown(tmp_path: Path) -> None:
    """J2, J3: the browser crashes twice; what it was given is given again, without asking."""
    crash = RenderFailed("crash")
    urls = ("https://a.test/x.json", "https://a.test/x.json#y")
    worker, browser = visit(
        tmp_path, lambda supply: ask(supply, *urls, kind=PartKind.DATA), answer(urls[0]), rendered=crash
    )
    assert len(browser.orders) == 3
    assert worker.fetcher.urls == [HOME, urls[0]]
    assert reasons(browser.got) == [200, 200]
    missed = [event.reason for event in worker.recorder.events if event.kind is EventKind.RENDER_MISSED]
    assert missed == ["crash"]
    page = worker.archive.captures[-1]
    assert (page.fetched.url, page.rendered) == (HOME, None)


def test_redirects_are_followed_by_the_same_rules(tmp_path: Path) -> None:
    """J3: on our side, each a request of its own; one that leads to another host waits for it."""
    answers = (
        answer("https://a.test/1.js", 302, headers={"location": "/2.js"}),
        answer("https://a.test/2.js", 200, b"two"),
        answer("https://a.test/3.js", 302, headers={"location": "http://169.254.169.254/"}),
        answer("https://a.test/4.js", 302, headers={"location": "/4.js"}),
    )
    urls = [f"https://a.test/{number}.js" for number in (1, 3, 4)]
    worker, browser = visit(tmp_path, lambda supply: ask(supply, *urls), *answers)
    assert reasons(browser.got) == [200, "later", "redirects"]
    assert browser.got[0].body == b"two"
    there = worker.fetcher.urls.index("http://169.254.169.254/")
    assert "https://a.test/4.js" in worker.fetcher.urls[:there], "its turn, and its guard, come after the visit"


def test_a_busy_host_is_left_alone(tmp_path: Path) -> None:
    """J3, P3: after a 429 nothing more is asked, and its Retry-After is kept."""
    busy = answer("https://a.test/1.js", 429, headers={"retry-after": "60"})
    urls = ("https://a.test/1.js", "https://a.test/2.js")
    worker, browser = visit(tmp_path, lambda supply: ask(supply, *urls), busy)
    assert reasons(browser.got) == [429, "busy"]
    assert worker.fetcher.urls[2] == "https://a.test/next"
    assert worker.fetcher.at[2] - worker.fetcher.at[1] >= 60_000


def test_a_part_that_fails_is_told_and_rested_for(tmp_path: Path) -> None:
    """K1, J3: when and where, though nothing of it is in the archive."""
    worker, browser = visit(
        tmp_path, lambda supply: ask(supply, "https://a.test/1.js"), failure("https://a.test/1.js", FailureKind.RESET)
    )
    assert reasons(browser.got) == ["failed"]
    told = [event for event in worker.recorder.events if event.kind is EventKind.VISIT_PART]
    assert [(event.reason, event.via) for event in told] == [("reset", HOME)]
    assert worker.fetcher.at[2] - worker.fetcher.at[1] >= 2000


def test_a_turn_at_the_address_is_waited_for(tmp_path: Path) -> None:
    """P2, J3: nothing is sent, and nothing is counted, while the address is busy."""
    busy = failure("https://a.test/1.js", FailureKind.ADDRESS_BUSY, sent=False)
    worker, browser = visit(
        tmp_path, lambda supply: ask(supply, "https://a.test/1.js"), busy, answer("https://a.test/1.js")
    )
    assert reasons(browser.got) == [200]
    told = next(event for event in worker.recorder.events if event.kind is EventKind.RENDERED)
    assert dict(told.counts)["requests"] == 2


def test_nothing_of_the_wire_and_no_cookie_reaches_a_page(tmp_path: Path) -> None:
    """J3, K4: what is to be remembered is thrown away; codings are undone."""
    headers = {"set-cookie": "a=b", "content-encoding": "gzip", "alt-svc": "h3", "x-own": "kept"}
    script = answer("https://a.test/1.js", 200, b"x", headers=headers)
    _, browser = visit(tmp_path, lambda supply: ask(supply, "https://a.test/1.js"), script)
    assert dict(browser.got[0].headers) == {"content-type": "text/html", "x-own": "kept"}


def test_a_full_disk_ends_the_crawl_and_settles_nothing_over_it(tmp_path: Path) -> None:
    """W2: a part that could not be stored is our failure, and not the page's."""

    async def act(supply: Supply) -> Any:
        worker.archive.full = True
        return await ask(supply, "https://a.test/1.js")

    worker = Worker(tmp_path, renderer=Scripted(act))
    worker.script(answer(HOME, 200, SHELL), answer("https://a.test/1.js"))
    worker.run(lambda: worker.crawl(HOME))
    assert [str(error) for error in worker.failures] == ["the disk is full"]


def test_a_page_that_finds_no_place_is_put_off_and_takes_its_place_first(tmp_path: Path) -> None:
    """J2: asked for once more, when there is a place; the capture says that it counted for nothing."""
    browser = Scripted(ask)
    worker = Worker(tmp_path, renderer=browser, places=1)
    clause = worker.pipeline._to.rendering
    assert clause is not None
    worker.script(answer(HOME, 200, SHELL))

    async def main() -> None:
        assert clause.enter()
        await worker.admit(HOME)
        for lease in await worker.claim():
            await worker.work(lease)
        assert worker.story(HOME).state == "delayed"
        assert clause.expects(Lease(Token(9), "a.test", "a.test", (), 0, 0, Pace(0)))
        clause.leave()
        await worker.crawl()

    worker.run(main)
    assert worker.fetcher.urls[:2] == [HOME, HOME]
    first, second = (capture for capture in worker.archive.captures[:2] if isinstance(capture.task, PageTask))
    assert ("renderPutOff", "no place") in first.notes
    assert second.rendered == MADE


def test_where_scripts_want_to_go_is_followed_as_a_link(tmp_path: Path) -> None:
    """J4: a page that sends its visitor elsewhere leads there."""
    there = Rendered(b"<body>on my way</body>", targets=("https://a.test/there#top", "mailto:x@a.test"))
    worker, _ = visit(tmp_path, ask, rendered=there)
    assert worker.fetcher.urls == [HOME, "https://a.test/there"]


def test_of_a_stop_in_the_middle_everything_is_told(tmp_path: Path) -> None:
    """K1, J3: the page goes back, the host rests for all that was sent, and the trail names the visit."""

    async def act(supply: Supply) -> Any:
        await ask(supply, "https://a.test/1.js")
        worker.pipeline.stopping = True
        task = next(iter(worker.pipeline.sending))
        asyncio.get_running_loop().call_soon(task.cancel)
        await asyncio.sleep(100)

    worker = Worker(tmp_path, renderer=Scripted(act))
    worker.script(answer(HOME, 200, SHELL), answer("https://a.test/1.js"))

    async def main() -> int:
        await worker.admit(HOME)
        (lease,) = await worker.claim()
        await worker.work(lease)
        return worker.story(HOME).host_wait_ms

    waits = worker.run(main)
    assert waits >= 2000
    told = next(event for event in worker.recorder.events if event.kind is EventKind.BROKEN_OFF)
    assert "visit_token" in dict(told.counts)
    assert worker.ledger.outstanding == set()
