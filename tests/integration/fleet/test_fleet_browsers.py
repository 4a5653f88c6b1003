"""What the workers of a fleet share for pages in browsers, on a real server: the shelf, and the browsers (J2, J3)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from valkey_servers import ValkeySingle

from nephila.engines.valkey_servers import servers_of
from nephila.engines.valkey_state import ValkeyState
from nephila.interfaces.renderer import Supply
from nephila.model.errors import EngineAwayError
from nephila.model.rendering import PartKind, Rendered, RenderFailed, RenderOrder, Supplied, Wanted, Withheld
from nephila.render import BorrowedBrowsers, BrowserLender, SharedShelf, lending
from nephila.testing.renderer import SimulatedRenderer

ORDER = RenderOrder("http://a.test/", 200, (("content-type", "text/html"),), b"<p>shell" * 1000, "Nephila/1")


class Away:
    """Servers that do not answer."""

    async def call(self, *_: object) -> object:
        raise EngineAwayError("nobody there")

    async def run(self, *_: object) -> object:
        raise EngineAwayError("nobody there")


class Asking(SimulatedRenderer):
    """A browser whose page wants two things at once."""

    async def render(self, order: RenderOrder, supply: Supply) -> Rendered | RenderFailed:
        self.shown.append(order.url)
        wanted = [Wanted(f"http://a.test/{name}", PartKind.SCRIPT) for name in ("one.js", "two.js")]
        got = await asyncio.gather(*map(supply, wanted))
        told = b"|".join(one.body if isinstance(one, Supplied) else one.reason.encode() for one in got)
        return Rendered(order.body + told, targets=("http://a.test/there",))


def on(valkey: ValkeySingle, act: Callable[[ValkeyState, str], Awaitable[None]]) -> None:
    async def run() -> None:
        state = await ValkeyState.open(servers_of(valkey.names, {}))
        try:
            await act(state, f"t{uuid4().hex[:10]}")
        finally:
            await state.close()

    asyncio.run(run())


async def give(wanted: Wanted) -> Supplied | Withheld:
    return Supplied(200, (), wanted.url.encode()) if wanted.url.endswith("one.js") else Withheld("robots")


class CutOff:
    """A worker that ends after its first word."""

    def __init__(self, state: ValkeyState) -> None:
        self._said: Callable[..., Awaitable[Any]] | None = state.call
        self._run: Callable[..., Awaitable[Any]] | None = state.run

    async def call(self, *words: Any) -> Any:
        return await self._once(self._said, *words)

    async def run(self, *words: Any) -> Any:
        return await self._once(self._run, *words)

    async def _once(self, act: Callable[..., Awaitable[Any]] | None, *words: Any) -> Any:
        self._said = self._run = None
        if act is None:
            raise asyncio.CancelledError
        return await act(*words)


def test_a_worker_that_ends_in_the_middle_leaves_no_page_on_the_servers(valkey: ValkeySingle) -> None:
    """J2, Q5: whatever is sent is gone after its time, though nobody says another word."""

    async def act(state: ValkeyState, crawl: str) -> None:
        with suppress(asyncio.CancelledError):
            await lending._Wire(CutOff(state), crawl).push("order:x", b"a page", 60.0)
        key = f"nephila:{{{crawl}:browsers}}:order:x"
        assert 0 < int(await state.call("PTTL", key)) <= 60_000
        assert await lending._Wire(state, crawl).pull("order:x") == b"a page"

    on(valkey, act)


def test_a_shelf_is_shared_for_its_time_and_bounded(valkey: ValkeySingle) -> None:
    """J3, N2, Q5: what one worker keeps another finds; what is oldest goes when there is too much; away is nothing."""

    async def act(state: ValkeyState, crawl: str) -> None:
        one, other = (SharedShelf(state, crawl, 1 << 20) for _ in range(2))
        assert await one.keep("x", b"script", 60_000)
        assert await other.find("x") == b"script"
        await other.drop("x")
        assert await one.find("x") is None
        assert await one.keep("short", b"y", 30)
        await asyncio.sleep(0.05)
        assert await one.find("short") is None
        noise = [bytes([number % 251]) + os.urandom(100_000) for number in range(20)]
        for number, data in enumerate(noise):
            assert await one.keep(f"n{number}", data, 60_000 + number)
        found = [number for number in range(20) if await other.find(f"n{number}") is not None]
        assert found == list(range(20 - len(found), 20))
        assert 8 <= len(found) <= 10
        assert not await one.keep("huge", os.urandom(200_000), 60_000)
        away = SharedShelf(Away(), crawl, 1 << 20)
        assert not await away.keep("x", b"y", 1000)
        assert await away.find("x") is None

    on(valkey, act)


def test_a_worker_without_a_browser_borrows_one(valkey: ValkeySingle) -> None:
    """J2, J3, N2: the page is shown elsewhere, and what it wants is asked of whoever holds its host."""

    async def act(state: ValkeyState, crawl: str) -> None:
        browser, borrowed = Asking(), BorrowedBrowsers(state, crawl, 10)
        lender = BrowserLender(state, crawl, 10)
        assert await borrowed.render(ORDER, give) == RenderFailed("no_browser", "no worker of the fleet has one")
        lending_task = asyncio.create_task(lender.run(browser))
        await asyncio.sleep(0.1)
        pages = await asyncio.gather(*(borrowed.render(ORDER, give) for _ in range(6)))
        whole = ORDER.body + b"http://a.test/one.js|robots"
        assert pages == [Rendered(whole, targets=("http://a.test/there",))] * 6
        assert lender.shown == len(browser.shown) == 6
        lending_task.cancel()
        with suppress(asyncio.CancelledError):
            await lending_task
        left = await state.call("KEYS", f"nephila:{{{crawl}:browsers}}:*")
        assert not [key for key in left if b":order:" in key or key.endswith(b":orders")]

    on(valkey, act)


def test_a_lender_that_dies_costs_a_page_its_time_and_nothing_else(valkey: ValkeySingle, monkeypatch: Any) -> None:
    """J2: the borrower gives up; an order that nobody takes is taken back; servers that are away are said to be."""
    monkeypatch.setattr(lending, "TAKEN_S", 0.5)
    monkeypatch.setattr(lending, "SLACK_S", 0.3)

    class Dying(SimulatedRenderer):
        async def render(self, order: RenderOrder, supply: Supply) -> Rendered | RenderFailed:
            await supply(Wanted("http://a.test/one.js", PartKind.SCRIPT))
            task.cancel()
            await asyncio.sleep(10)
            raise AssertionError("it is gone")

    async def act(state: ValkeyState, crawl: str) -> None:
        nonlocal task
        borrowed = BorrowedBrowsers(state, crawl, 0.5)
        task = asyncio.create_task(BrowserLender(state, crawl, 0.5).run(Dying()))
        await asyncio.sleep(0.1)
        failed = await borrowed.render(ORDER, give)
        assert isinstance(failed, RenderFailed)
        assert failed.reason == "hang"
        with suppress(asyncio.CancelledError):
            await task
        failed = await borrowed.render(ORDER, give)
        assert isinstance(failed, RenderFailed)
        assert failed.reason == "busy"
        assert await state.call("LLEN", f"nephila:{{{crawl}:browsers}}:orders") == 0
        gone = await BorrowedBrowsers(Away(), crawl, 0.5).render(ORDER, give)
        assert gone == RenderFailed("lent", "nobody there")

    task: asyncio.Task[None]
    on(valkey, act)
