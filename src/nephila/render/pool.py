"""The pool: so many browsers, each with so many pages at once, replaced when they are worn, large, stuck or gone.

Nothing is started before a page needs it. A page goes to the browser with fewest pages; one that has shown its share
takes no more and is closed when its last page is done. Where browsers cannot be started, that is said, and not tried
again for a while: pages are then judged as they came.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

from nephila.interfaces.renderer import Supply
from nephila.model.rendering import Rendered, RenderFailed, RenderFigures, RenderOrder
from nephila.model.settings import RenderSettings

if TYPE_CHECKING:
    from playwright.async_api import Playwright

    from .browser import PooledBrowser

AGAIN_S = 60.0
"""How long no browser is started after one could not be."""


class ChromiumPool:
    """Implements `interfaces.renderer.Renderer`."""

    def __init__(self, settings: RenderSettings, executable: str, user_agent: str, browsers: int) -> None:
        self._settings = settings
        self._executable = executable
        self._user_agent = user_agent
        self._most = browsers
        self._places = asyncio.Semaphore(browsers * settings.pages_at_once)
        self._starting = asyncio.Lock()
        self._driver: Playwright | None = None
        self._browsers: list[PooledBrowser] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._not_before = 0.0
        self._why = ""
        self._started = self._crashed = self._killed = self._recycled = 0

    @property
    def places(self) -> int:
        """As the interface."""
        return self._most * self._settings.pages_at_once

    @property
    def browsers(self) -> list[PooledBrowser]:
        """Those that there are, for tests that end them."""
        return list(self._browsers)

    async def render(self, order: RenderOrder, supply: Supply) -> Rendered | RenderFailed:
        """As the interface."""
        async with self._places:
            browser = await self._browser()
            if isinstance(browser, RenderFailed):
                return browser
            try:
                return await browser.show(order, supply, self._settings, self._user_agent)
            finally:
                self._look_at(browser)

    def figures(self) -> RenderFigures:
        """As the interface."""
        return RenderFigures(
            browsers=len(self._browsers),
            at_work=sum(browser.at_work for browser in self._browsers),
            memory_bytes=sum(browser.memory_bytes for browser in self._browsers),
            started=self._started,
            crashed=self._crashed,
            killed=self._killed,
            recycled=self._recycled,
        )

    async def close(self) -> None:
        """As the interface."""
        browsers, self._browsers = self._browsers, []
        await asyncio.gather(*(browser.close() for browser in browsers), *self._closing, return_exceptions=True)
        await self._stop_driver()

    # Parts

    async def _browser(self) -> PooledBrowser | RenderFailed:
        """The browser with fewest pages that takes one more, started if need be."""
        async with self._starting:
            for browser in self.browsers:
                self._look_at(browser)
            room = [one for one in self._browsers if one.at_work < self._settings.pages_at_once and self._takes(one)]
            idle = [one for one in room if not one.at_work]
            if idle or (room and len(self._browsers) >= self._most):
                return min(idle or room, key=lambda one: one.at_work)
            return await self._start()

    def _takes(self, browser: PooledBrowser) -> bool:
        return browser.is_alive and not browser.is_worn and browser.shown < self._settings.recycle_pages

    def _look_at(self, browser: PooledBrowser) -> None:
        """Let a browser go that is gone, or has shown its share."""
        if browser not in self._browsers or self._takes(browser):
            return
        if not browser.is_alive:
            self._killed += browser.killed
            self._crashed += not browser.killed
        elif browser.at_work:
            return
        else:
            self._recycled += 1
        self._browsers.remove(browser)
        closing = asyncio.create_task(browser.close(), name=f"close-browser-{browser.pid}")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _start(self) -> PooledBrowser | RenderFailed:
        from playwright.async_api import Error as BrowserError  # noqa: PLC0415 - where no page needs it, nothing is loaded
        from playwright.async_api import async_playwright  # noqa: PLC0415

        from .browser import PooledBrowser  # noqa: PLC0415

        loop = asyncio.get_running_loop()
        if loop.time() < self._not_before:
            return RenderFailed("start", self._why)
        try:
            if self._driver is None:
                self._driver = await async_playwright().start()
            browser = await PooledBrowser.open(self._driver, self._executable, sandbox=os.geteuid() != 0)
        except (BrowserError, TimeoutError, OSError) as error:
            await self._stop_driver()
            self._why = str(error).strip().partition("\n")[0][:200] or "it did not start in time"
            self._not_before = loop.time() + AGAIN_S
            return RenderFailed("start", self._why)
        self._started += 1
        self._browsers.append(browser)
        return browser

    async def _stop_driver(self) -> None:
        from playwright.async_api import Error as BrowserError  # noqa: PLC0415 - as above

        driver, self._driver = self._driver, None
        if driver is not None:
            with contextlib.suppress(BrowserError, TimeoutError, OSError):
                async with asyncio.timeout(5):
                    await driver.stop()
