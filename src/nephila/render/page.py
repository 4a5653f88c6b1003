"""One page in a browser: shown, waited for, read, closed.

The document is the one that was fetched: the browser never asks for it. Every further request is held until our own
side has answered it or withheld it. The page may go nowhere else: where it tries to, the address is noted and the
attempt fails. It is read when nothing was asked for and nothing has come for a moment, or when its time is up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from playwright.async_api import Browser, BrowserContext, CDPSession, Dialog, Page, Request, Route
from playwright.async_api import Error as BrowserError

from nephila.interfaces.renderer import Supply
from nephila.model.rendering import PartKind, Rendered, RenderFailed, RenderOrder, Supplied, Wanted
from nephila.model.settings import RenderSettings

from .seclusion import NO_DETOURS

KINDS: Mapping[str, PartKind] = {
    "document": PartKind.DOCUMENT,
    "script": PartKind.SCRIPT,
    "xhr": PartKind.DATA,
    "fetch": PartKind.DATA,
}
CLOSE_S = 3.0
"""A page that is not closed by then is stuck, and its browser is replaced."""
READ_S = 5.0
"""Reading a document takes no longer, unless its scripts never rest."""
LOOK_S = 0.05
LOADED = "new Promise((told) => setTimeout(() => told(document.readyState === 'complete'), 0))"
"""Answered behind what waits to run: on a busy machine a script that has come may not have begun yet."""
SIZE = "document.documentElement ? document.documentElement.outerHTML.length : 0"
MAX_TARGETS = 100
LONGEST_URL = 4_096
"""Places that a page wants to go to, and how long their names may be: more than are followed as links."""
MAX_ASKED = 500
"""A page that asks for more than this, withheld or not, is read as it is: it would never rest."""
NO_CONTENT = 204
"""The answer to which a browser stays where it is; a request that fails may put an error page there instead."""


class Showing:
    """A page while it is shown."""

    def __init__(self, order: RenderOrder, supply: Supply, settings: RenderSettings, user_agent: str) -> None:
        self._order = order
        self._supply = supply
        self._settings = settings
        self._user_agent = order.user_agent or user_agent
        self._page: Page | None = None
        self._given = False
        """Whether the document was handed over."""
        self._asking = self._asked = 0
        self._last = 0.0
        self._targets: dict[str, None] = {}
        self._crashed = asyncio.Event()
        self.is_closed = True
        """Whether it went when it was told to; a browser that keeps a page is to be replaced."""

    async def run(self, browser: Browser) -> Rendered | RenderFailed:
        """Show the page. Raises `BrowserError` where the browser is gone."""
        context = await browser.new_context(
            user_agent=self._user_agent, service_workers="block", accept_downloads=False, locale="en-US"
        )
        try:
            return await self._in(context)
        finally:
            self.is_closed = await _close(context)

    async def _in(self, context: BrowserContext) -> Rendered | RenderFailed:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.time_s
        await context.add_init_script(NO_DETOURS)
        await context.route("**/*", self._answer)
        self._page = page = await context.new_page()
        context.on("page", self._popped_up)
        page.on("dialog", _dismiss)
        page.on("crash", lambda _: self._crashed.set())
        self._last = loop.time()
        try:
            await page.goto(self._order.url, wait_until="commit", timeout=self._settings.time_s * 1000)
        except BrowserError:
            if not self._given:
                raise
        settled = await self._rest(page, deadline)
        if self._crashed.is_set():
            return RenderFailed("crash", "the page brought its process down")
        try:
            async with asyncio.timeout(max(READ_S, deadline - loop.time())):
                html = await self._read(context, page)
        except TimeoutError:
            return RenderFailed("stuck", "its scripts do not rest")
        if isinstance(html, RenderFailed):
            return html
        if page.url.startswith("chrome-error:"):
            return RenderFailed("page", "it has given way to an error page")
        if page.url == "about:blank":
            return RenderFailed("blank", "the browser did not take it for a page")
        return self._made(html, settled=settled)

    async def _read(self, context: BrowserContext, page: Page) -> str | RenderFailed:
        """The document, where it is not too large."""
        session = await context.new_cdp_session(page)
        await session.send("Emulation.setScriptExecutionDisabled", {"value": True})  # nor may timers run any more
        await session.send("Page.stopLoading")  # a page on its way elsewhere cannot be read until it is there
        size = await _size(session)
        if size > self._settings.max_dom_bytes:
            return RenderFailed("size", f"{size:,} characters")
        return await page.content()

    def _made(self, html: str, *, settled: bool) -> Rendered | RenderFailed:
        body = html.encode("utf-8", "replace")
        if len(body) > self._settings.max_dom_bytes:
            return RenderFailed("size", f"{len(body):,} bytes")
        return Rendered(body, settled=settled, targets=tuple(self._targets))

    async def _rest(self, page: Page, deadline: float) -> bool:
        """Wait until the page has come to rest; False where its time was up before."""
        loop = asyncio.get_running_loop()
        while (now := loop.time()) < deadline and not self._crashed.is_set():
            if self._asked > MAX_ASKED:
                return False
            last = self._last
            quiet = self._has_been_quiet(last) and now - last >= self._settings.rest_s
            if quiet and await _is_loaded(page, deadline - now) and self._has_been_quiet(last):
                return True
            await asyncio.sleep(LOOK_S)
        return False

    def _has_been_quiet(self, since: float) -> bool:
        """Whether nothing is asked for, and nothing was since a moment."""
        return not self._asking and self._last == since

    # Requests

    async def _answer(self, route: Route, request: Request) -> None:
        self._asking += 1
        self._asked += 1
        try:
            await self._serve(route, request)
        except BrowserError:
            """The page is gone: nobody waits for the answer any more."""
        finally:
            self._asking -= 1
            self._last = asyncio.get_running_loop().time()

    async def _serve(self, route: Route, request: Request) -> None:
        order = self._order
        if request.is_navigation_request() and self._is_main(request):
            if not self._given:
                self._given = True
                await route.fulfill(status=order.status, headers=_joined(order.headers), body=order.body)
                return
            self._note_target(request.url)
            await route.fulfill(status=NO_CONTENT)
            return
        kind = KINDS.get(request.resource_type, PartKind.OTHER)
        given = await self._supply(Wanted(request.url, kind, request.method))
        if isinstance(given, Supplied):
            await route.fulfill(status=given.status, headers=_joined(given.headers), body=given.body)
        else:
            await route.abort("blockedbyclient")

    def _is_main(self, request: Request) -> bool:
        """Whether a request would replace the page, or be a page of its own."""
        with contextlib.suppress(BrowserError):
            return request.frame.parent_frame is None
        return True

    async def _popped_up(self, page: Page) -> None:
        if page is not self._page:
            with contextlib.suppress(BrowserError):
                if page.url.startswith("http"):
                    self._note_target(page.url)
                await page.close()

    def _note_target(self, url: str) -> None:
        """Where its scripts want to go: so many places, and none with a name that is a memory of its own."""
        if len(self._targets) < MAX_TARGETS and len(url) <= LONGEST_URL:
            self._targets[url] = None


async def _is_loaded(page: Page, seconds: float) -> bool:
    """Whether the document is all there, and its scripts have had their turn; where they never rest, they have not."""
    try:
        async with asyncio.timeout(max(0.1, seconds)):
            return bool(await page.evaluate(LOADED))
    except (TimeoutError, BrowserError):
        return False


async def _size(session: CDPSession) -> int:
    """How long a document is, asked in a world that its scripts have no hand in: a page may grow to gigabytes.

    What is too long is never sent to us, who have to hold it in memory.
    """
    tree = await session.send("Page.getFrameTree")
    frame = tree["frameTree"]["frame"]["id"]
    world = await session.send("Page.createIsolatedWorld", {"frameId": frame})
    asked = {"expression": SIZE, "contextId": world["executionContextId"], "returnByValue": True}
    told = await session.send("Runtime.evaluate", asked)
    return int(told["result"].get("value") or 0)


async def _dismiss(dialog: Dialog) -> None:
    with contextlib.suppress(BrowserError):
        await dialog.dismiss()


async def _close(context: BrowserContext) -> bool:
    """Close a page and forget all of it; False where it does not go."""
    try:
        async with asyncio.timeout(CLOSE_S):
            await context.close()
    except TimeoutError:
        return False
    except BrowserError:
        """It is gone already."""
    return True


def _joined(headers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in headers:
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined
