"""The pool with a real Chromium: pages that misbehave, browsers that die, memory that stays (J2)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import chromium

from nephila.model.rendering import (
    PartKind,
    Rendered,
    RenderFailed,
    RenderOrder,
    Supplied,
    Wanted,
    Withheld,
)
from nephila.model.settings import RenderSettings
from nephila.render import ChromiumPool, browser_on, found_browser, processes
from nephila.testing.web.script_sites import APP, SCRIPT, shell

Say = Callable[[str], None]
AGENT = "Nephila/0.1 (+https://nephila.invalid/bot)"
SETTINGS = RenderSettings(rest_s=0.2, pages_at_once=3)
DATA = b'{"title": "A page", "text": "made by its script", "links": ["/view/2"], "extras": []}'
HTML = (("content-type", "text/html"),)


async def supply(wanted: Wanted) -> Supplied | Withheld:
    """The parts of a script site."""
    if wanted.url.endswith(SCRIPT):
        return Supplied(200, (("content-type", "text/javascript"),), APP.encode())
    if wanted.url.endswith(".json"):
        return Supplied(200, (("content-type", "application/json"),), DATA)
    return Withheld("test")


def order_of(body: str, url: str = "http://site.test/view/1") -> RenderOrder:
    return RenderOrder(url, 200, HTML, body.encode())


def in_pool(
    act: Callable[[ChromiumPool], Coroutine[Any, Any, Any]], settings: RenderSettings = SETTINGS, browsers: int = 1
) -> Any:
    """Act with a pool, and close it."""

    async def run() -> Any:
        pool = ChromiumPool(settings, chromium(), AGENT, browsers)
        try:
            return await act(pool)
        finally:
            await pool.close()

    return asyncio.run(run())


def shown(body: str, settings: RenderSettings = SETTINGS) -> Rendered | RenderFailed:
    result: Rendered | RenderFailed = in_pool(lambda pool: pool.render(order_of(body), supply), settings)
    return result


def test_a_browser_is_found() -> None:
    """J2: by name, or where it is said to be; one that is not there is none."""
    assert found_browser() is not None
    assert browser_on("/nowhere/chromium") is None


DONE = "document.title='after';"
PAGES = {
    "dialogs": f"<script>alert(1); confirm(2); prompt(3); {DONE}</script>",
    "pop-ups": f"<script>for (let n = 0; n < 5; n++) window.open('http://other.test/' + n); {DONE}</script>",
    "elsewhere": f"<script>{DONE} location.href = 'http://other.test/there'</script>",
    "endless navigation": f"<script>{DONE} setInterval(() => location.reload(), 5)</script>",
    "refresh": f"<meta http-equiv=refresh content='0;url=http://other.test/'><script>{DONE}</script>",
    "leaving": f"<script>onbeforeunload = () => 'stay'; {DONE} location.href='http://other.test/'</script>",
    "download": f"<a id=a href='data:application/octet-stream,x' download=f></a><script>a.click(); {DONE}</script>",
    "service worker": f"<script>{DONE} navigator.serviceWorker.register('/w.js').catch(() => 0)</script>",
    "form": f"<form id=f method=post action=/post></form><script>{DONE} f.submit()</script>",
    "print": f"<script>print(); {DONE}</script>",
    "errors": f"<script>{DONE} throw new Error('x')</script><script>nonsense(</script>",
    "timers": f"<script>{DONE} setInterval(() => fetch('/x.png').catch(() => 0), 50)</script>",
}


def test_pages_that_misbehave_are_read_all_the_same(say: Say) -> None:
    """J2: dialogs, pop-ups, downloads, workers, pages that go on for ever: each is read, in its time."""

    async def act(pool: ChromiumPool) -> dict[str, Rendered | RenderFailed]:
        results = await asyncio.gather(
            *(pool.render(order_of(f"<title>x</title>{page}"), supply) for page in PAGES.values())
        )
        return dict(zip(PAGES, results, strict=True))

    found = in_pool(act, replace(SETTINGS, time_s=6.0))
    wrong = {
        name: one for name, one in found.items() if not isinstance(one, Rendered) or b"<title>after" not in one.html
    }
    assert wrong == {}
    assert found["elsewhere"].targets == ("http://other.test/there",)
    assert "http://other.test/" in found["refresh"].targets
    assert len(found["pop-ups"].targets) >= 1
    assert not found["timers"].settled
    say(f"{len(found)} kinds of pages read")


def test_a_page_whose_scripts_never_rest_is_given_up_in_its_time() -> None:
    """J2: nothing can be read out of it, and it does not hold up the others."""
    failed = shown("<script>while (true) {}</script>", replace(SETTINGS, time_s=2.0))
    assert isinstance(failed, RenderFailed)
    assert failed.reason == "stuck"


def test_a_page_that_asks_without_end_does_not_hold_up_others() -> None:
    """J2: whatever becomes of it, the next page is shown."""

    async def act(pool: ChromiumPool) -> tuple[Any, Any]:
        flood = "<script>setInterval(() => { for (let n = 0; n < 9; n++) fetch('/x.png').catch(() => 0) }, 1)</script>"
        return await pool.render(order_of(flood), supply), await pool.render(order_of(shell()), supply)

    first, second = in_pool(act, replace(SETTINGS, time_s=3.0))
    assert isinstance(first, Rendered) or first.reason in {"stuck", "hang"}
    assert isinstance(second, Rendered)
    assert b"made by its script" in second.html


def test_a_page_that_grows_without_bounds_is_not_read_into_our_memory() -> None:
    """J2, Q5: its size is asked for in the browser, where its scripts cannot lie about it, before it is read."""
    body = """<body><div hidden id=much></div><script>
    Object.defineProperty(Element.prototype, "outerHTML", { get: () => "<p>small</p>" });
    document.getElementById("much").append("x".repeat(1 << 20).repeat(40));
    </script></body>"""
    failed = shown(body, replace(SETTINGS, time_s=30.0))
    assert isinstance(failed, RenderFailed)
    assert failed.reason == "size"
    assert int(failed.detail.split()[0].replace(",", "")) > 40 << 20


def test_where_a_page_wants_to_go_is_bounded() -> None:
    """J2, Q5: it wants to go to endless names, then to ever new places, and is read with the first of those."""
    body = """<body>here<script>
    for (let n = 0; n < 20; n++) setTimeout(() => { location.href = "/long?" + "x".repeat(1 << 19); }, n);
    for (let n = 0; n < 300; n++) setTimeout(() => { location.href = "/go?" + n; }, 100 + 20 * n);
    </script></body>"""
    found = shown(body, replace(SETTINGS, time_s=30.0, rest_s=2.0))
    assert isinstance(found, Rendered)
    assert 1 <= len(found.targets) <= 100
    assert max(map(len, found.targets)) < 4096


def test_what_a_browser_takes_for_a_download_is_no_page() -> None:
    """J2, J4: an empty page in its place would hide what was sent."""
    headers = (*HTML, ("content-disposition", "attachment; filename=x.html"))
    order = replace(order_of("<body>the page</body>"), headers=headers)
    failed = in_pool(lambda pool: pool.render(order, supply))
    assert isinstance(failed, RenderFailed)
    assert failed.reason in {"blank", "page"}


def test_a_page_over_the_size_is_not_kept() -> None:
    """J2: a document may grow without end; what is kept may not."""
    grown = "<script>document.body.textContent = 'x'.repeat(300000)</script>"
    failed = shown(f"<body>{grown}", replace(SETTINGS, max_dom_bytes=100_000))
    assert isinstance(failed, RenderFailed)
    assert failed.reason == "size"


def test_a_browser_over_its_memory_is_killed_and_replaced() -> None:
    """J2: a page that eats memory costs its browser, and the next page gets another one."""

    async def act(pool: ChromiumPool) -> tuple[Any, Any, int]:
        eat = "setInterval(() => { kept.push(new Float64Array(2e6).fill(1)); fetch('/x.json') }, 40)"
        greedy = f"<script>window.kept = []; {eat}</script>"
        first = await pool.render(order_of(greedy), supply)
        second = await pool.render(order_of(shell()), supply)
        return first, second, pool.figures().killed

    first, second, killed = in_pool(act, replace(SETTINGS, memory_bytes=700 << 20, time_s=20.0))
    assert isinstance(first, RenderFailed)
    assert first.reason == "crash"
    assert isinstance(second, Rendered)
    assert b"made by its script" in second.html
    assert killed == 1


def test_a_browser_that_cannot_be_started_is_said_so(tmp_path: Path) -> None:
    """J2: in a sentence, and not tried again for every page."""
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)

    async def run() -> list[Rendered | RenderFailed]:
        pool = ChromiumPool(SETTINGS, str(broken), AGENT, 1)
        try:
            return [await pool.render(order_of(shell()), supply) for _ in range(3)]
        finally:
            await pool.close()

    results = asyncio.run(run())
    assert [one.reason for one in results if isinstance(one, RenderFailed)] == ["start"] * 3


def test_nothing_is_kept_from_one_page_to_the_next() -> None:
    """J3: no cookies, no storage."""

    async def act(pool: ChromiumPool) -> Any:
        await pool.render(order_of("<script>document.cookie='a=b'; localStorage.c = 'd'</script>"), supply)
        return await pool.render(
            order_of("<p id=p></p><script>p.textContent=document.cookie+localStorage.c</script>"), supply
        )

    assert b">undefined</p>" in in_pool(act).html


def test_parts_of_a_page_are_told_by_kind() -> None:
    """J2, J3: pictures, fonts, style sheets and media are told apart from what makes the text of a page."""
    kinds: dict[str, PartKind] = {}

    async def noting(wanted: Wanted) -> Supplied | Withheld:
        kinds[wanted.url.rpartition("/")[2]] = wanted.kind
        return Withheld("test")

    body = "<link rel=stylesheet href=/a.css><img src=/b.png><script src=/c.js></script><video src=/d.mp4></video>"
    body += "<iframe src=/e.html></iframe><script>fetch('/f.json').catch(() => 0)</script>"
    in_pool(lambda pool: pool.render(order_of(body), noting))
    wanted = {"c.js": PartKind.SCRIPT, "e.html": PartKind.DOCUMENT, "f.json": PartKind.DATA, "a.css": PartKind.OTHER}
    assert {name: kind for name, kind in kinds.items() if name in wanted} == wanted
    assert {kinds[name] for name in kinds.keys() & {"b.png", "d.mp4"}} <= {PartKind.OTHER}


async def _many(
    pool: ChromiumPool, pages: int, kill_every: int, settle_at: int
) -> tuple[list[Rendered | RenderFailed], int, int]:
    """Show so many pages, with a browser killed now and then; how many were lost, and memory at two times."""
    lost: list[Rendered | RenderFailed] = []
    done = 0

    async def one(number: int) -> None:
        nonlocal done
        for _ in range(3):
            result = await pool.render(order_of(shell(), f"http://site.test/view/{number}"), supply)
            if isinstance(result, Rendered) or not result.worth_another:
                break
        if not (isinstance(result, Rendered) and b"made by its script" in result.html):
            lost.append(result)
        done += 1
        if done % kill_every == 0:
            victim = next((browser for browser in pool.browsers if browser.is_alive), None)
            if victim is not None:
                os.kill(victim.pid, signal.SIGKILL)

    def memory() -> int:
        return processes.memory_of(os.getpid())

    places = asyncio.Semaphore(pool.places)

    async def placed(number: int) -> None:
        async with places:
            await one(number)

    await asyncio.gather(*map(placed, range(settle_at)))
    early = memory()
    await asyncio.gather(*map(placed, range(settle_at, pages)))
    return lost, early, memory()


def test_sixty_pages_with_a_browser_killed_every_ten(say: Say) -> None:
    """J2: none is lost, and browsers are replaced."""

    async def act(pool: ChromiumPool) -> tuple[list[Any], int, int, Any]:
        lost, early, late = await _many(pool, 60, 10, 20)
        return lost, early, late, pool.figures()

    lost, early, late, figures = in_pool(act, replace(SETTINGS, recycle_pages=25))
    told = f"{early / 1e6:.0f} MB after 20, {late / 1e6:.0f} MB at the end"
    say(f"{len(lost)} lost of 60; {figures.started} browsers; {told}")
    assert lost == []
    assert figures.crashed >= 4


@pytest.mark.long
def test_five_hundred_pages_with_a_browser_killed_every_fifty(say: Say) -> None:
    """J2: none is lost; memory at the end is within 1.2 times that after a hundred pages."""

    async def act(pool: ChromiumPool) -> tuple[list[Any], int, int, Any]:
        lost, early, late = await _many(pool, 500, 50, 100)
        return lost, early, late, pool.figures()

    lost, early, late, figures = in_pool(act, browsers=2)
    told = f"{early / 1e6:.0f} MB after 100, {late / 1e6:.0f} MB at the end"
    say(f"{len(lost)} lost of 500; {figures.started} browsers; {told}")
    assert lost == []
    assert figures.crashed >= 8
    assert late <= 1.2 * early


def test_a_browser_is_told_no_password_of_the_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    """J2, K4: what breaks out of a page finds none in the memory of its own process."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nobody-is-to-see")
    monkeypatch.setenv("NEPHILA_FETCH_PROXY", "http://ann:nobody-is-to-see@proxy.test:8080")

    async def act(pool: ChromiumPool) -> list[bytes]:
        await pool.render(order_of(shell()), supply)
        pids = [pid for browser in pool.browsers for pid in processes.family_of(browser.pid)]
        return list(map(_environ_of, pids))

    known = in_pool(act)
    assert any(b"PATH=" in environ for environ in known)
    assert not [environ for environ in known if b"nobody-is-to-see" in environ]


def test_no_process_is_left_behind() -> None:
    """J2: closing the pool ends every browser, the one that was killed included."""

    async def act(pool: ChromiumPool) -> list[int]:
        await pool.render(order_of(shell()), supply)
        return [pid for browser in pool.browsers for pid in processes.family_of(browser.pid)]

    pids = in_pool(act)
    assert len(pids) > 3
    assert not [pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists() and _is_alive(pid)]


def _environ_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # some of a browser's processes come and go
        return b""


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
