"""What pages get of other hosts: notes on the shelf, what may be wanted, what is worth waiting for (J3)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from scripted_browser import HOME, SHELL, Scripted, ask, reasons
from worker import MemoryArchive, Worker, address, answer, linking

from nephila.interfaces.renderer import Supply
from nephila.model.events import EventKind
from nephila.model.exchange import Answer, FetchRequest
from nephila.model.record import Capture, StoredCapture
from nephila.model.rendering import (
    PartKind,
    Rendered,
    RenderFailed,
    RenderOrder,
    Sign,
    SiteRendering,
    Supplied,
    Withheld,
)
from nephila.model.settings import RenderSettings
from nephila.model.task import Level, PageTask, PartTask
from nephila.pipeline import holding
from nephila.pipeline.elsewhere import Elsewhere, hosts_of, readable
from nephila.pipeline.render_rule import WAIT_AGAIN, WAITS, after_waiting, is_worth_waiting
from nephila.pipeline.resources import MARK, ResourceNotes, bare, candidate_for, is_resource
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual
from nephila.testing.renderer import MemoryShelf

T = TypeVar("T")
FAR = "https://cdn.test/app.js"
JS = {"content-type": "text/javascript"}


class Patient(Scripted):
    """A browser whose page wants the same things every time that it is shown."""

    def __init__(self, *urls: str, kind: PartKind = PartKind.SCRIPT) -> None:
        super().__init__(lambda supply: ask(supply, *urls, kind=kind))
        self.every: list[list[str | int]] = []

    async def render(self, order: RenderOrder, supply: Supply) -> Rendered | RenderFailed:
        self.orders.append(order)
        self.got = await self._act(supply)
        self.every.append(reasons(self.got))
        whole = all(isinstance(one, Supplied) for one in self.got)
        return Rendered(b"<body>" + linking("/next", *(["/more"] if whole else [])))


def crawl(tmp_path: Path, browser: Scripted, *answers: Any, robots: bool = False) -> Worker:
    worker = Worker(tmp_path, robots=robots, renderer=browser)
    worker.script(answer(HOME, 200, SHELL), *answers)
    worker.run(lambda: worker.crawl(HOME))
    assert worker.failures == []
    return worker


def in_time(main: Callable[[VirtualClock], Awaitable[T]]) -> T:
    clock = VirtualClock()
    return run_virtual(lambda: main(clock), clock)


def test_a_page_waits_for_another_host_and_is_shown_again(tmp_path: Path) -> None:
    """J3, J4: the script is work of its own host; the page is neither asked for again nor archived twice."""
    browser = Patient(FAR)
    worker = crawl(tmp_path, browser, answer(FAR, 200, b"run()", headers=JS))
    assert browser.every == [["later"], [200]]
    assert worker.fetcher.urls == [HOME, FAR, "https://a.test/next", "https://a.test/more"]
    homes = [capture for capture in worker.archive.captures if capture.fetched.url == HOME]
    assert [capture.rendered for capture in homes] == [b"<body>" + linking("/next", "/more")]
    part = next(capture for capture in worker.archive.captures if isinstance(capture.task, PartTask))
    assert (part.fetched.url, part.via, dict(part.notes)["resource"]) == (FAR, HOME, "1")
    assert worker.ledger.outstanding == set()
    told = next(event for event in worker.recorder.events if event.kind is EventKind.RENDERED)
    assert dict(told.counts)["waits"] == 1
    assert worker.shelf.kept.keys() & {name for name in worker.shelf.kept if name.startswith("page-")} == set()


def test_what_its_own_host_gave_it_is_not_asked_for_again(tmp_path: Path) -> None:
    """J3: data that nobody may keep are given again when the page is shown again, and the host rests for them once."""
    own = "https://a.test/own.json"
    worker = crawl(tmp_path, Patient(own, FAR, kind=PartKind.DATA), answer(own, 200, b"{}"), answer(FAR, headers=JS))
    assert worker.fetcher.urls.count(own) == 1
    at = dict(zip(worker.fetcher.urls, worker.fetcher.at, strict=True))
    assert at["https://a.test/next"] - at[own] >= 2000


def test_a_redirect_of_a_resource_is_followed_by_its_own_host(tmp_path: Path) -> None:
    """J3: three hops over two hosts, in one wait; one that leads nowhere is known not to come."""
    there = "https://other.test/app.js"
    moved = answer(FAR, 302, headers={"location": there})
    browser = Patient(FAR)
    worker = crawl(tmp_path, browser, moved, answer(there, 200, b"run()", headers=JS))
    assert browser.every[-1] == [200]
    assert worker.fetcher.urls[:3] == [HOME, FAR, there]


def test_what_is_no_script_and_no_data_is_not_given(tmp_path: Path) -> None:
    """J3: a picture by the name of a script is not read; the page is told that there is none."""
    browser = Patient(FAR)
    picture = replace(answer(FAR, 200, b"", headers={"content-type": "image/png"}), unwanted=True)
    crawl(tmp_path, browser, picture)
    assert browser.every == [["later"], ["type"]]


def test_a_resource_that_nobody_waits_for_is_not_fetched(tmp_path: Path) -> None:
    """J3: one of an earlier run, or that came meanwhile: settled without a request, and told of by nobody."""
    worker = Worker(tmp_path, renderer=Scripted(ask))

    async def main() -> None:
        await worker.frontier.admit([candidate_for(address(FAR), 1)])
        (lease,) = await worker.claim()
        assert is_resource(lease.tasks[0])
        await worker.work(lease)

    worker.run(main)
    assert worker.fetcher.urls == []
    assert worker.failures == []


def test_so_many_resources_of_so_many_hosts() -> None:
    """J3: a page can make us ask for twenty things on six hosts, and for nothing else."""

    async def main(clock: VirtualClock) -> list[Supplied | Withheld]:
        notes = ResourceNotes(MemoryShelf(clock), clock, 60)
        page = Elsewhere(
            notes, RenderSettings(max_resources=8, max_resource_hosts=3), (HOME, "a.test", 0), {}, last=False
        )
        urls = [f"https://h{number % 5}.test/{number}.js" for number in range(20)]
        got = [await page.give(url, PartKind.SCRIPT, address(url)) for url in urls]
        assert len(await page.ask()) == 8
        assert {candidate.address.host for candidate in page.missing.values()} == {"h0.test", "h1.test", "h2.test"}
        frame = await page.give("https://h0.test/x", PartKind.DOCUMENT, address("https://h0.test/x"))
        return [*got, frame]

    got = in_time(main)
    assert [one.reason for one in got if isinstance(one, Withheld)].count("budget") == 12
    assert got[-1] == Withheld("host")


def test_hosts_whose_pages_wait_are_known_of_so_many_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """J3, Q5: those whose pages were put off last; a crawl of months has put off pages of millions."""
    monkeypatch.setattr(holding, "HOSTS_REMEMBERED", 2)

    async def main(clock: VirtualClock) -> list[bool]:
        shelf = MemoryShelf(clock)
        kept = holding.Holding(shelf, ResourceNotes(shelf, clock, 60), RenderSettings(), clock)
        task = PageTask(address(HOME).fingerprint, HOME, 0, Level.HIGH)
        first = holding.Held(1, Sign.SHELL, 0, 0, 0, 1, (1, 0), {}, {}, b"", answer(HOME))
        for host in ("a.test", "b.test", "a.test", "c.test"):
            elsewhere = kept.elsewhere(task, host, None, lambda _: True)
            assert await kept.hold(task, host, first, elsewhere, 0) is not None
        return [kept.has_some_of(host) for host in ("a.test", "b.test", "c.test")]

    assert in_time(main) == [True, False, True]


def test_an_answer_stands_for_as_long_as_its_server_says() -> None:
    """J3: fresh for all; afterwards for those who waited for it; what is asked for is not asked for again."""

    async def main(clock: VirtualClock) -> None:
        notes = ResourceNotes(MemoryShelf(clock), clock, 60)
        since = await notes.ask(FAR)
        assert notes.is_awaited(await notes.find(FAR))
        await asyncio.sleep(5)
        await notes.answer(FAR, Supplied(200, (("content-type", "application/json"),), b"{}"))
        note = await notes.find(FAR)
        assert not notes.is_awaited(note)
        assert notes.answers(note, since)
        assert not notes.answers(note, 0), "data of which the server does not say how long they last"
        await notes.answer(FAR, Supplied(200, (("cache-control", "max-age=10"),), b"{}"))
        assert notes.answers(await notes.find(FAR), 0)
        await asyncio.sleep(11)
        assert not notes.answers(await notes.find(FAR), 0)
        await notes.refuse(FAR, "robots")
        assert notes.refuses(await notes.find(FAR))
        await notes.ask("https://b.test/")
        await asyncio.sleep(61)
        assert not notes.is_awaited(await notes.find("https://b.test/"))

    in_time(main)


def test_a_resource_has_an_address_of_its_own() -> None:
    """J3, U3: a page of the same URL is another one; what is asked for is the URL."""
    one = candidate_for(address(FAR), 2)
    assert one.address.url == FAR + MARK
    assert bare(one.address.url) == FAR
    assert one.address.fingerprint != address(FAR).fingerprint
    assert address(one.address.url) == address(FAR), "no link can name it"


def test_hosts_that_bring_nothing_are_waited_for_no_more() -> None:
    """J1, J3: three times in a row, then now and then; one gain makes it good."""
    known = SiteRendering()
    for _ in range(WAITS):
        assert is_worth_waiting(known, "stats.test")
        known = after_waiting(known, ["stats.test", "cdn.test"], [], gained=False)
    assert not is_worth_waiting(known, "stats.test")
    assert is_worth_waiting(after_waiting(known, ["cdn.test"], [], gained=True), "cdn.test")
    for _ in range(WAIT_AGAIN):
        assert not is_worth_waiting(known, "stats.test")
        known = after_waiting(known, [], ["stats.test"], gained=False)
    assert is_worth_waiting(known, "stats.test")
    many = after_waiting(known, [f"h{number}.test" for number in range(100)], [], gained=False)
    assert len(many.others) == 32


def test_a_page_of_another_origin_may_read_what_was_asked_for_without_credentials() -> None:
    """J3: whatever the server would have said to whom; its own origin needs no leave."""
    given = Supplied(200, (("access-control-allow-origin", "https://b.test"), ("x", "y")), b"{}")
    seen = dict(readable(given, FAR, HOME).headers)
    assert seen == {
        "access-control-allow-origin": "https://a.test",
        "access-control-allow-credentials": "true",
        "x": "y",
    }
    assert readable(given, "https://a.test/x", HOME) is given
    assert hosts_of(["http://[::1]:80/x", "https://b.test:8/y", "https://c.test"]) == {"[::1]", "b.test", "c.test"}


def test_a_page_is_not_in_memory_while_it_is_settled(tmp_path: Path) -> None:
    """Q5: stored, a body is let go before the frontier is waited for; hundreds may wait there at once."""
    body = b"<p>" + b"word " * 100_000
    seen: list[int] = []

    class Forgetful(MemoryArchive):
        def append(self, capture: Capture, encoded: object = None) -> StoredCapture:
            stored = super().append(capture, encoded)
            self.captures.clear()
            return stored

    worker = Worker(tmp_path)
    archive = Forgetful()
    worker.pipeline._to = replace(worker.pipeline._to, archive=archive)
    worker.pipeline._conduct = replace(worker.pipeline._conduct, deliver=None)
    settle = worker.frontier.settle

    async def watched(*args: Any, **kwargs: Any) -> Any:
        if archive.captures == [] and seen:
            seen.append(sys.getrefcount(body))
        return await settle(*args, **kwargs)

    async def fetched(request: FetchRequest) -> Answer:
        seen.append(sys.getrefcount(body))
        return answer(request.url, 200, body)

    worker.frontier.settle = watched  # type: ignore[method-assign]
    worker.fetcher.script[HOME] = [fetched]
    worker.run(lambda: worker.crawl(HOME))
    before, while_settled = seen
    assert while_settled == before
