"""An event loop under virtual time: a day of sleeping passes in milliseconds.

The loop is asyncio's own but for one thing: where it would wait for the operating system, it moves a `VirtualClock` to
the next timer. There are no sockets and no threads (`run_in_executor` runs its function on the spot), so that the same
program does the same things in the same order every time.

What would hang for ever under real time is an error here: no timer and nothing ready is a deadlock; a hundred thousand
turns of the loop without time passing is a live-lock.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, Unpack

from .clock import VirtualClock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_TURNS_AT_ONE_INSTANT = 100_000
"""Everything that is ready runs in one turn, so the longest chain of wake-ups counts: a crawl needs some hundred."""
MANY_TIMERS, MOSTLY = 100, 0.5
"""Among more timers than that, if more than this share of them was cancelled, all of those are dropped at once."""


class DeadlockError(RuntimeError):
    """Nothing is ready and no timer is set: every task waits for another. The message names them and their lines."""


class LivelockError(RuntimeError):
    """Tasks keep waking each other without time passing."""


class _Timer(float):
    """A timer in the loop's heap: its instant, compared as a number and not by a method of its handle."""

    __slots__ = ("handle",)
    handle: asyncio.TimerHandle


class _NoSelector:
    """Stands where asyncio expects a selector: there is nothing to wait for."""

    def close(self) -> None:
        """Nothing is held."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Deterministic: time moves only when nothing is ready, and then straight to the next timer.

    A simulated crawl takes thousands of turns, most of them with one callback. So the turn and the ways into it are
    written here, without what asyncio needs for real time, sockets and threads.
    """

    # BaseEventLoop keeps these for its subclasses, under these names in CPython 3.11 to 3.14.
    _selector: _NoSelector
    _ready: deque[asyncio.Handle]
    _scheduled: list[_Timer]
    _clock_resolution: float
    _stopping: bool
    _closed: bool
    _timer_cancelled_count: int

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self.clock = clock
        self._selector = _NoSelector()
        self._idle_turns = 0

    def time(self) -> float:
        """Seconds since the simulation began."""
        return self.clock.elapsed_s()

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """As asyncio's."""
        if self._closed:
            raise RuntimeError("the loop is closed")
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As asyncio's."""
        if self._closed:
            raise RuntimeError("the loop is closed")
        timer = _Timer(when)
        timer.handle = handle = asyncio.TimerHandle(when, callback, args, self, context)
        handle._scheduled = True  # type: ignore[attr-defined]  # a handle that is cancelled tells the loop, then
        heapq.heappush(self._scheduled, timer)
        return handle

    def _run_once(self) -> None:
        """One turn: let time pass where nothing is ready, then run all that is ready now, and not what comes of it."""
        scheduled, clock = self._scheduled, self.clock
        if scheduled:
            self._clear_out()
        waits = not self._ready and not self._stopping
        if waits and not scheduled:
            raise DeadlockError(_describe_waiting(self))
        if waits and clock.elapsed_s() < scheduled[0]:
            self._idle_turns = 0
            clock.advance_to(float(scheduled[0]))  # to the bit: no rounding can leave a timer a hair in the future
        else:
            self._idle_turns += 1
            if self._idle_turns > MAX_TURNS_AT_ONE_INSTANT:
                self._idle_turns = 0  # the tasks get their chance to be cancelled
                raise LivelockError(f"{MAX_TURNS_AT_ONE_INSTANT} turns without time passing")
        self._begin_turn()
        if scheduled:
            self._take_due(clock.elapsed_s() + self._clock_resolution)
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle._cancelled:  # asking by a call would cost as much as the turn
                handle._run()  # what BaseEventLoop calls

    def _clear_out(self) -> None:
        """Drop timers that were cancelled: those on top, and all where they are most."""
        scheduled = self._scheduled
        if len(scheduled) > MANY_TIMERS and self._timer_cancelled_count > len(scheduled) * MOSTLY:
            for timer in scheduled:
                timer.handle._scheduled = not timer.handle.cancelled()  # type: ignore[attr-defined]  # as asyncio does
            scheduled[:] = [timer for timer in scheduled if not timer.handle.cancelled()]
            heapq.heapify(scheduled)
            self._timer_cancelled_count = 0
        while scheduled and scheduled[0].handle.cancelled():
            self._timer_cancelled_count -= 1
            heapq.heappop(scheduled).handle._scheduled = False  # type: ignore[attr-defined]  # as above

    def _take_due(self, end_s: float) -> None:
        """Make ready what is due before then, in order."""
        scheduled, ready = self._scheduled, self._ready
        while scheduled and scheduled[0] < end_s:
            handle = heapq.heappop(scheduled).handle
            handle._scheduled = False  # type: ignore[attr-defined]  # as above
            ready.append(handle)

    def _begin_turn(self) -> None:
        """Called once a turn, after time has moved and before timers are looked at."""

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run the function now, in this thread: threads would bring chance in."""
        del executor
        future: asyncio.Future[T] = self.create_future()
        tell = run_aside(func, *args)
        tell(future)
        return future

    def _write_to_self(self) -> None:
        """Called by `call_soon_threadsafe` to wake a sleeping loop: this one never sleeps."""


def run_aside(func: Callable[[Unpack[Ts]], T], *args: *Ts) -> Callable[[asyncio.Future[T]], None]:
    """Run a function as an executor does; what tells a future that waits for it what came of it."""
    try:
        result = func(*args)
    except Exception as error:  # noqa: BLE001 - as an executor does: whatever was raised belongs to the future
        failure = error
        return lambda future: None if future.done() else future.set_exception(failure)
    return lambda future: None if future.done() else future.set_result(result)


def run_virtual(
    main: Callable[[], Coroutine[Any, Any, T]] | Coroutine[Any, Any, T], clock: VirtualClock | None = None
) -> T:
    """Run a coroutine (or a function that makes one) to its end under virtual time, and return what it returns."""
    clock = clock or VirtualClock()
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(main() if callable(main) else main)


def _describe_waiting(loop: asyncio.AbstractEventLoop) -> str:
    """One line a task: its name and the line of code it waits in."""
    places = []
    for task in sorted(asyncio.all_tasks(loop), key=asyncio.Task.get_name):
        stack = task.get_stack(limit=1)
        place = f"{stack[-1].f_code.co_filename}:{stack[-1].f_lineno}" if stack else "?"
        places.append(f"  {task.get_name()} at {place}")
    return "\n".join([f"deadlock: nothing is ready, no timer is set, {len(places)} task(s) wait:", *places])
