"""One browser of the pool: started, watched, replaced.

It counts what it has shown, knows its processes by a mark in their arguments, and is ended by their ids where it takes
too much memory or does not answer. Whoever is shown a page then gets a failure that is worth another browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import uuid
from pathlib import Path

from playwright.async_api import Browser, Playwright
from playwright.async_api import Error as BrowserError

from nephila.engines.secrets import without_secrets
from nephila.interfaces.renderer import Supply
from nephila.model.rendering import Rendered, RenderFailed, RenderOrder
from nephila.model.settings import RenderSettings

from . import processes
from .page import Showing
from .seclusion import FLAGS, ClosedPort, secluded

START_S = 20.0
WATCH_S = 1.0
"""How often its memory is measured while it shows something."""
NOTICE_S = 0.1
"""A browser that is gone is known to be so a moment after its pages are."""
SLACK_S = 10.0
"""Over the time of a page, for starting and closing it."""


class PooledBrowser:
    """A Chromium with its processes. `open` makes one."""

    def __init__(self, browser: Browser, pid: int, port: ClosedPort, folder: tempfile.TemporaryDirectory[str]) -> None:
        self._browser = browser
        self._port = port
        self._folder = folder
        self._watching: asyncio.Task[None] | None = None
        self.pid = pid
        self.shown = 0
        self.at_work = 0
        self.memory_bytes = 0
        self.killed = False
        self.is_worn = False
        """Whether it keeps a page that was closed: it is to take no more."""

    @classmethod
    async def open(cls, playwright: Playwright, executable: str, *, sandbox: bool) -> PooledBrowser:
        """Start one. Raises `BrowserError` or TimeoutError."""
        port = ClosedPort()
        folder = tempfile.TemporaryDirectory(prefix="nephila-browser-")
        mark = f"--nephila-browser={uuid.uuid4().hex}"
        try:
            async with asyncio.timeout(START_S):
                browser = await playwright.chromium.launch(
                    executable_path=secluded(executable, Path(folder.name)),
                    args=[*FLAGS, *port.flags, mark],
                    chromium_sandbox=sandbox,
                    env={**without_secrets(os.environ)},
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                )
            pid = await asyncio.get_running_loop().run_in_executor(None, processes.find_marked, mark)
        except BaseException:
            port.close()
            folder.cleanup()
            raise
        return cls(browser, pid, port, folder)

    @property
    def is_alive(self) -> bool:
        """Whether it can show pages."""
        return not self.killed and self._browser.is_connected()

    async def show(
        self, order: RenderOrder, supply: Supply, settings: RenderSettings, agent: str
    ) -> Rendered | RenderFailed:
        """Show a page."""
        self.shown += 1
        self.at_work += 1
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(settings.memory_bytes), name=f"browser-{self.pid}")
        showing = Showing(order, supply, settings, agent)
        try:
            async with asyncio.timeout(settings.time_s + SLACK_S):
                return await showing.run(self._browser)
        except TimeoutError:
            self.kill()
            return RenderFailed("hang", "the browser did not answer")
        except BrowserError as error:
            await asyncio.sleep(NOTICE_S)
            gone = not self.is_alive or not processes.is_there(self.pid)
            return RenderFailed("crash" if gone else "page", str(error).partition("\n")[0][:200])
        finally:
            self.at_work -= 1
            self.is_worn = self.is_worn or not showing.is_closed

    def kill(self) -> None:
        """End it at once."""
        self.killed = True
        processes.end(self.pid)

    async def close(self) -> None:
        """End it, gently if it listens."""
        if self._watching is not None:
            self._watching.cancel()
        try:
            with contextlib.suppress(BrowserError, TimeoutError):
                async with asyncio.timeout(3):
                    await self._browser.close()
        finally:
            processes.end(self.pid)
            self._port.close()
            self._folder.cleanup()

    async def _watch(self, most: int) -> None:
        loop = asyncio.get_running_loop()
        while self.at_work and self.is_alive:
            self.memory_bytes = await loop.run_in_executor(None, processes.memory_of, self.pid)
            if self.memory_bytes > most:
                self.kill()
                return
            await asyncio.sleep(WATCH_S)
