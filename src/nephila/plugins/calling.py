"""Three ways to call a plugin, one promise: the answer as plain values, or an exception that says what went wrong.

What is on the crawl's own loop cannot be interrupted while it computes. It is timed, and one that takes too long counts
as over its deadline when it has returned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from .answers import Plain, plain
from .child import complaint
from .offspring import Child, OverranError, RaisedError
from .points import CLOSE, Point, is_awaited


class Caller(Protocol):
    """Calls the methods of one plugin."""

    async def call(self, point: Point, arguments: tuple[Any, ...], asked: int) -> Plain:
        """The answer. Raises `OverranError`, `RaisedError` or `BadAnswerError`."""

    def retire(self) -> None:
        """Let nobody in any more who waits to be."""

    async def close(self) -> None:
        """Let the plugin close what it has open. Raises the same."""


class ChildCaller:
    """A synchronous plugin, in its own process."""

    def __init__(self, child: Child, deadline_s: float, *, closes: bool) -> None:
        """`closes`: the plugin has a method `close`."""
        self._child = child
        self._deadline_s = deadline_s
        self._closes = closes

    async def call(self, point: Point, arguments: tuple[Any, ...], asked: int) -> Plain:
        """Call it there."""
        return await self._child.call(point, arguments, asked, self._deadline_s)

    def retire(self) -> None:
        """Those who wait for their turn are sent away."""
        self._child.is_retired = True

    async def close(self) -> None:
        """Let it close, and end its process."""
        await self._child.close(self._deadline_s, says_so=self._closes)


class QuickCaller:
    """A synchronous plugin that is called on the loop: it says that it is quick, or time is virtual."""

    def __init__(self, plugin: object, deadline_s: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._plugin = plugin
        self._deadline_s = deadline_s
        self._clock = clock

    async def call(self, point: Point, arguments: tuple[Any, ...], asked: int) -> Plain:
        """Call it here."""
        return self.call_now(point, arguments, asked)

    def call_now(self, point: Point, arguments: tuple[Any, ...], asked: int) -> Plain:
        """The same for who cannot wait."""
        started = self._clock()
        answer = self._called(point, arguments)
        if (took := self._clock() - started) > self._deadline_s:
            raise OverranError(f"it took {took:.3f} s on the crawl's own loop, {self._deadline_s:g} s are allowed")
        return plain(point, answer, asked)

    def _called(self, method: str, arguments: tuple[Any, ...]) -> object:
        try:
            answer: object = getattr(self._plugin, method)(*arguments)
        except (Exception, SystemExit) as error:
            raise RaisedError(complaint(error)) from error
        return answer

    def retire(self) -> None:
        """Nobody waits here."""

    async def close(self) -> None:
        """Let it close."""
        if callable(getattr(self._plugin, CLOSE, None)):
            self._called(CLOSE, ())


class AwaitedCaller:
    """An asynchronous plugin: cancelled at its deadline, and not waited for when it does not obey."""

    def __init__(self, plugin: object, deadline_s: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._plugin = plugin
        self._deadline_s = deadline_s
        self._clock = clock
        self._abandoned: set[asyncio.Task[Any]] = set()
        """Held until they end: the loop itself holds tasks loosely."""

    async def call(self, point: Point, arguments: tuple[Any, ...], asked: int) -> Plain:
        """Await it."""
        try:
            answer: object = getattr(self._plugin, point)(*arguments)
        except (Exception, SystemExit) as error:
            raise RaisedError(complaint(error)) from error
        if isinstance(answer, Awaitable) and is_awaited(self._plugin, point):
            answer = await self._awaited(answer)
        return plain(point, answer, asked)

    async def _awaited(self, doing: Awaitable[object]) -> object:
        task = asyncio.ensure_future(self._timed(doing))
        try:
            await asyncio.wait({task}, timeout=self._deadline_s)
        finally:
            if not task.done():
                task.cancel()
                self._abandoned.add(task)
                task.add_done_callback(self._forget)
        if not task.done() or task.cancelled():
            raise OverranError(f"no answer within {self._deadline_s:g} s")
        return task.result()

    async def _timed(self, doing: Awaitable[object]) -> object:
        """Await it. One that blocks the loop is not seen to be late before it has answered."""
        started = self._clock()
        answer = await _contained(doing)
        if (took := self._clock() - started) > self._deadline_s:
            raise OverranError(
                f"it took {took:.3f} s, {self._deadline_s:g} s are allowed: an asynchronous plugin must not block"
            )
        return answer

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._abandoned.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that nobody complains about it

    def retire(self) -> None:
        """Nobody waits here."""

    async def close(self) -> None:
        """Let it close."""
        close = getattr(self._plugin, CLOSE, None)
        if not callable(close):
            return
        try:
            closing = close()
        except (Exception, SystemExit) as error:
            raise RaisedError(complaint(error)) from error
        if asyncio.iscoroutine(closing):
            await self._awaited(closing)


async def _contained(doing: Awaitable[object]) -> object:
    """Await it. What it raises is told here: a task that ends with `SystemExit` would take its loop with it."""
    try:
        return await doing
    except (Exception, SystemExit) as error:
        raise RaisedError(complaint(error)) from error
