"""A renderer under virtual time: does what the scripts of `testing.web.script_sites` do, without a browser.

It asks for what they ask for, in their order, through the same `supply`, and writes the document that they make. Pages
of other sites come back as they were. It takes its time, may crash or hang when told to, and remembers what was asked
and withheld, so that decisions, lines, budgets and crashes can be tested by the hour.
"""

from __future__ import annotations

import asyncio
import json
import re
from html import escape
from urllib.parse import urljoin, urlsplit

from nephila.interfaces.clock import Clock
from nephila.interfaces.renderer import Supply
from nephila.model.rendering import (
    PartKind,
    Rendered,
    RenderFailed,
    RenderFigures,
    RenderOrder,
    Supplied,
    Wanted,
    Withheld,
)

_SCRIPT = re.compile(rb'<script src="([^"]+)"')
_LOADS = re.compile(rb"^// loads: (\S+)$", re.MULTILINE)
_API = re.compile(rb'data-api="([^"]+)"')
_ROOT = b'<div id="root"></div>'


class MemoryShelf:
    """Implements `interfaces.renderer.Shelf`, in memory and without bounds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.kept: dict[str, tuple[int, bytes]] = {}

    async def find(self, name: str) -> bytes | None:
        """As the interface."""
        until, data = self.kept.get(name, (0, b""))
        return data if until > self._clock.wall_ms() else None

    async def keep(self, name: str, data: bytes, lasts_ms: int) -> bool:
        """As the interface."""
        self.kept[name] = self._clock.wall_ms() + lasts_ms, data
        return True

    async def drop(self, name: str) -> None:
        """As the interface."""
        self.kept.pop(name, None)


class SimulatedRenderer:
    """Implements `interfaces.renderer.Renderer`."""

    def __init__(self, places: int = 4, *, takes_s: float = 0.5, crash_every: int = 0, hang_every: int = 0) -> None:
        """`crash_every`: so many pages, and the browser is gone under the next one; `hang_every` likewise."""
        self._free = asyncio.Semaphore(places)
        self._places = places
        self._takes_s = takes_s
        self._crash_every = crash_every
        self._hang_every = hang_every
        self._at_work = 0
        self._crashed = 0
        self.shown: list[str] = []
        """URLs in the order in which they were begun, repeats kept."""
        self.most_at_work = 0
        self.asked: list[tuple[str, str]] = []
        """What pages wanted, and what they got: a status, or the reason why not."""

    @property
    def places(self) -> int:
        """As the interface."""
        return self._places

    async def render(self, order: RenderOrder, supply: Supply) -> Rendered | RenderFailed:
        """As the interface."""
        async with self._free:
            self.shown.append(order.url)
            self._at_work += 1
            self.most_at_work = max(self.most_at_work, self._at_work)
            try:
                return await self._show(order, supply, len(self.shown))
            finally:
                self._at_work -= 1

    def figures(self) -> RenderFigures:
        """As the interface."""
        return RenderFigures(browsers=1, at_work=self._at_work, started=1 + self._crashed, crashed=self._crashed)

    async def close(self) -> None:
        """Nothing to do."""

    async def _show(self, order: RenderOrder, supply: Supply, number: int) -> Rendered | RenderFailed:
        await asyncio.sleep(self._takes_s / 2)
        if self._crash_every and number % self._crash_every == 0:
            self._crashed += 1
            return RenderFailed("crash", "as it was told to")
        if self._hang_every and number % self._hang_every == 0:
            await asyncio.sleep(10)
            return RenderFailed("hang", "as it was told to")
        script = _SCRIPT.search(order.body)
        if script is None or _ROOT not in order.body:
            return Rendered(order.body)
        source: str | None = urljoin(order.url, script[1].decode())
        while source is not None:
            got = await self._ask(supply, source, PartKind.SCRIPT)
            if not isinstance(got, Supplied) or got.status != 200:
                return Rendered(order.body)
            more = _LOADS.search(got.body)
            source = None if more is None else urljoin(source, more[1].decode())
        path, api = urlsplit(order.url).path, _API.search(order.body)
        home = api[1].decode() if api is not None else order.url
        data = urljoin(home, f"/data{'/index' if path == '/' else path}.json")
        given = await self._ask(supply, data, PartKind.DATA)
        if not isinstance(given, Supplied) or given.status != 200:
            return Rendered(order.body)
        page = json.loads(given.body)
        for extra in page["extras"]:
            await self._ask(supply, urljoin(order.url, extra), PartKind.DATA)
        await asyncio.sleep(self._takes_s / 2)
        return Rendered(order.body.replace(_ROOT, _made(page)))

    async def _ask(self, supply: Supply, url: str, kind: PartKind) -> Supplied | Withheld:
        given = await supply(Wanted(url, kind))
        self.asked.append((url, given.reason if isinstance(given, Withheld) else str(given.status)))
        return given


def _made(page: dict[str, str]) -> bytes:
    links = "".join(f'<li><a href="{escape(href)}">on to {escape(href)}</a></li>' for href in page["links"])
    text = f"<h1>{escape(page['title'])}</h1><p>{escape(page['text'])}</p><ul>{links}</ul>"
    return f'<div id="root">{text}</div>'.encode()
