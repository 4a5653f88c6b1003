"""Browsers that the workers of a fleet lend each other: a page is shown where there is one, and asked for by its own.

Whoever holds the lease of a host is the only one who may ask it, and may have no browser. So the page goes to a worker
that has one, through the servers that all of them share: an order with its answer. What the page wants comes back, is
got by the holder of the lease under its own rules, and is sent after it. A browser knows nothing of leases, and a lease
stays where it is.

What must stay true: an order is taken by one lender; whatever dies, everybody else is done within the time of a page
and a little more; nothing stays on the servers for longer than that.
"""

from __future__ import annotations

import asyncio
import secrets
import zlib
from contextlib import suppress
from typing import Any

import msgspec

from nephila.interfaces.renderer import Renderer, Supply
from nephila.interfaces.shared import Argument, SharedState
from nephila.model.errors import NephilaError
from nephila.model.rendering import Rendered, RenderFailed, RenderFigures, RenderOrder, Supplied, Wanted, Withheld

LOOK_S = 0.05
"""How often it is looked for an answer of the other side while a page is shown."""
IDLE_S = 0.25
"""How often a lender with nothing to do looks for orders."""
ALIVE_MS = 10_000
"""How long a lender counts as there after its last look."""
TAKEN_S = 30.0
"""An order that nobody has taken by then is taken back."""
SLACK_S = 25.0
"""Over the time of a page, for everything else: then the other side is taken for dead."""

_ORDERS, _ALIVE = "orders", "alive"

_PUSH = "redis.call('RPUSH', KEYS[1], ARGV[1]); redis.call('PEXPIRE', KEYS[1], ARGV[2])"
"""In one act: whoever ends between the two would leave a page there for ever."""


class _Message(msgspec.Struct, omit_defaults=True):
    """What goes between the two: what a page wants, what it is given, how it ended."""

    number: int = 0
    wanted: Wanted | None = None
    supplied: Supplied | None = None
    withheld: Withheld | None = None
    rendered: Rendered | None = None
    failed: RenderFailed | None = None


_encode = msgspec.msgpack.Encoder().encode
_message = msgspec.msgpack.Decoder(_Message).decode
_order = msgspec.msgpack.Decoder(RenderOrder).decode


class _Wire:
    """The lists that orders and messages go through, each gone after a while."""

    def __init__(self, state: SharedState, crawl: str) -> None:
        self._state = state
        self._tag = f"nephila:{{{crawl}:browsers}}:"

    async def call(self, command: str, name: str, *arguments: Argument) -> Any:  # noqa: ANN401 - what the command says
        return await self._state.call(command, self._tag + name, *arguments)

    async def push(self, name: str, value: bytes, seconds: float) -> None:
        await self._state.run(_PUSH, [self._tag + name], [zlib.compress(value, 1), int(seconds * 1000)])

    async def pull(self, name: str) -> bytes | None:
        packed = await self.call("LPOP", name)
        return None if packed is None else zlib.decompress(packed)


class BorrowedBrowsers:
    """Implements `interfaces.renderer.Renderer` with the browsers of other workers."""

    def __init__(self, state: SharedState, crawl: str, time_s: float, places: int = 4) -> None:
        self._wire = _Wire(state, crawl)
        self._time_s = time_s
        self._places = places
        self._at_work = 0

    @property
    def places(self) -> int:
        """As the interface."""
        return self._places

    async def render(self, order: RenderOrder, supply: Supply) -> Rendered | RenderFailed:
        """As the interface; where no worker has a browser, that is said at once."""
        self._at_work += 1
        try:
            return await self._render(order, supply)
        except (NephilaError, zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
            return RenderFailed("lent", str(error)[:200])
        finally:
            self._at_work -= 1

    def figures(self) -> RenderFigures:
        """As the interface: the browsers are counted by those who have them."""
        return RenderFigures(at_work=self._at_work)

    async def close(self) -> None:
        """Nothing is its own."""

    async def _render(self, order: RenderOrder, supply: Supply) -> Rendered | RenderFailed:
        wire, name = self._wire, secrets.token_hex(12)
        if await wire.call("GET", _ALIVE) is None:
            return RenderFailed("no_browser", "no worker of the fleet has one")
        lasts = TAKEN_S + self._time_s + SLACK_S
        await wire.push(f"order:{name}", _encode(order), lasts)
        await wire.call("RPUSH", _ORDERS, name)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + TAKEN_S
        taken = False
        giving: set[asyncio.Task[None]] = set()
        try:
            while loop.time() < deadline:
                packed = await wire.pull(f"wants:{name}")
                if packed is None:
                    await asyncio.sleep(LOOK_S)
                    continue
                if not taken:
                    taken, deadline = True, loop.time() + self._time_s + SLACK_S
                message = _message(packed)
                if message.wanted is not None:
                    task = asyncio.create_task(self._give(name, message.number, message.wanted, supply, lasts))
                    giving.add(task)
                    task.add_done_callback(giving.discard)
                elif message.rendered is not None or message.failed is not None:
                    return message.rendered or message.failed or RenderFailed("lent")
            if taken:
                return RenderFailed("hang", "the worker that shows it does not answer")
            return RenderFailed("busy", "every browser of the fleet is busy")
        finally:
            for task in giving:
                task.cancel()
            with suppress(NephilaError):
                await wire.call("LREM", _ORDERS, 1, name)
                await wire.call("DEL", f"order:{name}")

    async def _give(self, name: str, number: int, wanted: Wanted, supply: Supply, lasts: float) -> None:
        got = await supply(wanted)
        message = _Message(number)
        if isinstance(got, Supplied):
            message.supplied = got
        else:
            message.withheld = got
        with suppress(NephilaError):  # the page is then told that there is nothing
            await self._wire.push(f"given:{name}", _encode(message), lasts)


class BrowserLender:
    """Shows the pages of other workers in the browsers of this one."""

    def __init__(self, state: SharedState, crawl: str, time_s: float) -> None:
        self._wire = _Wire(state, crawl)
        self._time_s = time_s
        self.shown = 0
        """Pages of others that were shown here."""

    async def run(self, renderer: Renderer) -> None:
        """Look for orders until cancelled; servers that are away are looked for again."""
        showing: set[asyncio.Task[None]] = set()
        try:
            while True:
                with suppress(NephilaError, zlib.error, msgspec.DecodeError):
                    await self._wire.call("SET", _ALIVE, b"1", "PX", ALIVE_MS)
                    while len(showing) < renderer.places and (name := await self._wire.call("LPOP", _ORDERS)):
                        task = asyncio.create_task(self._show(renderer, name.decode()), name="lent-browser")
                        showing.add(task)
                        task.add_done_callback(showing.discard)
                await asyncio.sleep(IDLE_S)
        finally:
            for task in showing:
                task.cancel()
            await asyncio.gather(*showing, return_exceptions=True)

    async def _show(self, renderer: Renderer, name: str) -> None:
        with suppress(NephilaError, zlib.error, msgspec.DecodeError):  # the other side finds that nobody answers
            packed = await self._wire.pull(f"order:{name}")
            if packed is None:
                return  # taken back
            self.shown += 1
            lasts = self._time_s + SLACK_S
            waiting: dict[int, asyncio.Future[Supplied | Withheld]] = {}
            hearing = asyncio.create_task(self._hear(name, waiting), name="lent-answers")

            async def supply(wanted: Wanted) -> Supplied | Withheld:
                number = len(waiting) + 1
                waiting[number] = asyncio.get_running_loop().create_future()
                try:
                    await self._wire.push(f"wants:{name}", _encode(_Message(number, wanted)), lasts)
                    async with asyncio.timeout(self._time_s + SLACK_S):
                        return await waiting[number]
                except (NephilaError, TimeoutError):
                    return Withheld("lent")

            try:
                rendered = await renderer.render(_order(packed), supply)
            finally:
                hearing.cancel()
            message = _Message(rendered=rendered) if isinstance(rendered, Rendered) else _Message(failed=rendered)
            await self._wire.push(f"wants:{name}", _encode(message), lasts)

    async def _hear(self, name: str, waiting: dict[int, asyncio.Future[Supplied | Withheld]]) -> None:
        """Hand on what the other side gives."""
        while True:
            with suppress(NephilaError, zlib.error, msgspec.DecodeError):
                while (packed := await self._wire.pull(f"given:{name}")) is not None:
                    message = _message(packed)
                    future = waiting.get(message.number)
                    if future is not None and not future.done():
                        future.set_result(message.supplied or message.withheld or Withheld("lent"))
            await asyncio.sleep(LOOK_S)
