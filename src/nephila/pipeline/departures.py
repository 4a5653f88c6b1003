"""Requests leave at their moment, whatever else the loop has to do.

A loop runs what is ready in the order in which it became so, and looks at its timers only when all of that is done. In
a polite crawl of many hosts a turn of the loop may have thirty answers to read, half a millisecond each, and a request
that becomes due meanwhile would wait for all of them, and then behind those that came in the meantime. Each host would
be asked some hundredths of a second late, every time. Reading can wait; that cannot be made up for.

So those who wait for their moment are not woken by timers of their own. They stand in one line (`Departures`), and the
line is looked at between any two answers (`leave`, which the fetcher calls), as well as by a timer for when there are
none. Who is due is resumed there and then, not behind what is ready. So many may be on their way at once (`has_place`):
who waits for a moment takes nobody's place, and when the moment has come and there is none, waits on.

What must stay true: `leave` is called by the loop itself, never inside a task, as a task cannot be resumed in another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from heapq import heappop, heappush
from typing import Any, Self

HELD_MS = 50
"""After so long the line looks by itself whether there is a place, should nobody tell."""

Resume = Callable[[Any], object]


class Turn:
    """What a task awaits until its moment: a future, as far as tasks and loops care, that resumes its task in place."""

    __slots__ = ("_asyncio_future_blocking", "_cancelled", "_context", "_done", "_loop", "_resume")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._asyncio_future_blocking = False
        self._loop = loop
        self._done = self._cancelled = False
        self._resume: Resume | None = None
        self._context: Context | None = None

    def __await__(self) -> Generator[Self, None, None]:
        if not self._done:
            self._asyncio_future_blocking = True
            yield self
        self.result()

    def come(self) -> None:
        """It is time: the task goes on now, before this returns."""
        if self._done:
            return
        self._done = True
        if self._resume is not None and self._context is not None:
            self._context.run(self._resume, self)

    # What a task asks of a future

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop that it belongs to."""
        return self._loop

    def add_done_callback(self, resume: Resume, *, context: Context) -> None:
        """Who is to be resumed: one task."""
        self._resume, self._context = resume, context

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - a future's signature
        """The task is cancelled: it goes on with that in a turn of its own."""
        if self._done:
            return False
        self._done = self._cancelled = True
        if self._resume is not None:
            self._loop.call_soon(self._resume, self, context=self._context)
        return True

    def result(self) -> None:
        """Nothing, or that it was cancelled."""
        if self._cancelled:
            raise asyncio.CancelledError


class Departures:
    """The line of those who wait for their moment, in milliseconds of the clock that is given, and for a place."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._line: list[tuple[int, int, Turn]] = []
        self._joined = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_for = 0
        self.waiting = 0
        """How many wait."""
        self.is_held = False
        """Whether somebody's moment has come, and there is no place: `leave` is to be called when there is one."""
        self.has_place: Callable[[], bool] = lambda: True
        """Whether one more may leave."""

    async def until(self, moment: int) -> None:
        """Wait for a moment, and for a place. Who is cancelled meanwhile is passed over."""
        turn = Turn(asyncio.get_running_loop())
        self._joined += 1
        heappush(self._line, (moment, self._joined, turn))
        if self._timer is None or moment < self._timer_for:
            self._watch()
        self.waiting += 1
        try:
            await turn
        finally:
            self.waiting -= 1

    def leave(self) -> None:
        """Let those go whose moment has come, as far as there are places."""
        line = self._line
        if not line or line[0][0] > self._now():
            return
        try:
            self.is_held = False
            while line and line[0][0] <= self._now():
                if not self.has_place():
                    self.is_held = True
                    break
                heappop(line)[2].come()
        finally:
            self._watch()

    def _watch(self) -> None:
        """Look again when the next moment comes; a little later where it has come, and there was no place."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._line:
            self._timer_for = self._line[0][0]
            wait_ms = max(HELD_MS if self.is_held else 0, self._timer_for - self._now())
            self._timer = self._line[0][2].get_loop().call_later(wait_ms / 1000, self._look)

    def _look(self) -> None:
        self._timer = None
        self.leave()
        if self._timer is None:  # a timer may be early by what a clock rounds off
            self._watch()
