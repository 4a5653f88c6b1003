"""An event loop under virtual time: a day of sleeping passes in milliseconds.

The loop is asyncio's own but for one thing: where it would wait for the operating system, it moves a `VirtualClock` to
the next timer. There are no sockets and no threads (`run_in_executor` runs its function on the spot), so that the same
program does the same things in the same order every time.

What would hang for ever under real time is an error here: no timer and nothing ready is a deadlock; a hundred thousand
turns of the loop without time passing is a live-lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

from .clock import VirtualClock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MAX_TURNS_AT_ONE_INSTANT = 100_000
"""Everything that is ready runs in one turn, so the longest chain of wake-ups counts: a crawl needs some hundred."""


class DeadlockError(RuntimeError):
    """Nothing is ready and no timer is set: every task waits for another. The message names them and their lines."""


class LivelockError(RuntimeError):
    """Tasks keep waking each other without time passing."""


class _TimeJumper:
    """Stands where asyncio expects a selector: `select` is called once a turn, with the time it may wait."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise DeadlockError(_describe_waiting(self._loop))
        if timeout > 0:
            self._turns = 0
            self._loop.jump_to_next_timer()
        else:
            self._turns += 1
            if self._turns > MAX_TURNS_AT_ONE_INSTANT:
                self._turns = 0  # the tasks get their chance to be cancelled
                raise LivelockError(f"{MAX_TURNS_AT_ONE_INSTANT} turns without time passing")
        return []

    def close(self) -> None:
        """Nothing is held."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Deterministic: time moves only when nothing is ready, and then straight to the next timer."""

    # BaseEventLoop keeps these two for its subclasses, under these names in CPython 3.11 to 3.14.
    _selector: _TimeJumper
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self.clock = clock
        self._selector = _TimeJumper(self)

    def time(self) -> float:
        """Seconds since the simulation began."""
        return self.clock.elapsed_s()

    def jump_to_next_timer(self) -> None:
        """Move the clock to the earliest timer, to the bit: no rounding can leave a timer a hair in the future."""
        self.clock.advance_to(max(self._scheduled[0].when(), self.clock.elapsed_s()))

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run the function now, in this thread: threads would bring chance in."""
        del executor
        future: asyncio.Future[T] = self.create_future()
        try:
            result = func(*args)
        except Exception as error:  # noqa: BLE001 - as an executor does: whatever was raised belongs to the future
            future.set_exception(error)
        else:
            future.set_result(result)
        return future

    def _process_events(self, event_list: list[Any]) -> None:
        """Called by asyncio with what `select` returned: never anything."""

    def _write_to_self(self) -> None:
        """Called by `call_soon_threadsafe` to wake a sleeping loop: this one never sleeps."""


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
