"""The line of those who wait for their moment to ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest
import uvloop

from nephila.pipeline.departures import Departures
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine on either loop."""

    def runner(main: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=request.param) as one:
            return one.run(main)

    return runner


def test_everybody_leaves_at_their_moment_and_in_its_order() -> None:
    """P1, Q2: whoever joins when; nobody a millisecond early."""
    clock = VirtualClock()
    left: list[tuple[int, int]] = []

    async def wait(line: Departures, moment: int) -> None:
        await line.until(moment)
        left.append((moment, clock.steady_ms()))

    async def play() -> None:
        line, began = Departures(clock.steady_ms), clock.steady_ms()
        moments = [began + ms for ms in (70, 20, 50, 20, 1, 300)]
        await asyncio.gather(*(wait(line, moment) for moment in moments))

    run_virtual(play, clock)
    assert [moment for moment, _ in left] == sorted(moment for moment, _ in left)
    assert [at - moment for moment, at in left] == [0] * 6


def test_who_is_due_does_not_wait_until_all_that_is_ready_was_done(run: Run) -> None:
    """Q2: a hundred answers were read in one turn of the loop, and a request left in the midst of them."""
    read: list[int] = []
    left_after: list[int] = []

    async def play() -> None:
        loop, line = asyncio.get_running_loop(), Departures(lambda: len(read))  # reading one takes a millisecond

        async def ask(moment: int) -> None:
            await line.until(moment)
            left_after.append(len(read))

        asking = [asyncio.create_task(ask(moment)) for moment in (20, 40)]
        await asyncio.sleep(0)
        for number in range(100):
            loop.call_soon(line.leave)
            loop.call_soon(read.append, number)
        await asyncio.gather(*asking)

    run(play())
    assert len(read) == 100
    assert left_after == [20, 40]


def test_who_is_cancelled_hears_of_it_and_does_not_leave(run: Run) -> None:
    """F9: a stop does not wait for anybody's moment, and the others keep theirs."""
    left: list[str] = []

    async def ask(line: Departures, name: str, ms: int) -> None:
        await line.until(now_ms() + ms)
        left.append(name)

    async def play() -> None:
        line, began = Departures(now_ms), now_ms()
        first, second = (asyncio.create_task(ask(line, *one)) for one in (("first", 60_000), ("second", 30)))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert now_ms() - began < 30_000, "at once"
        assert not first.cancel(), "it is over"
        await second

    run(play())
    assert left == ["second"]


def test_somebody_who_fails_holds_nobody_up(run: Run) -> None:
    """F9: what a task raises is its own; the line moves on."""

    async def fail(line: Departures) -> None:
        await line.until(now_ms() + 5)
        raise ZeroDivisionError

    async def play() -> list[object]:
        line = Departures(now_ms)
        return await asyncio.gather(fail(line), line.until(now_ms() + 5), fail(line), return_exceptions=True)

    first, second, third = run(play())
    assert (type(first), second, type(third)) == (ZeroDivisionError, None, ZeroDivisionError)


def test_a_task_goes_on_as_itself(run: Run) -> None:
    """What belongs to a task (its context, that it is the current one) is there when it goes on."""
    name = ContextVar("name", default="nobody")

    async def ask(line: Departures, own: str) -> tuple[str, bool]:
        name.set(own)
        task = asyncio.current_task()
        await line.until(now_ms() + 5)
        return name.get(), asyncio.current_task() is task

    async def play() -> list[tuple[str, bool]]:
        line = Departures(now_ms)
        return await asyncio.gather(*(ask(line, own) for own in ("one", "two")))

    assert run(play()) == [("one", True), ("two", True)]


def test_a_moment_that_has_passed_is_now(run: Run) -> None:
    """P1: a host that was claimed late is asked at once; again and again, nothing is left behind."""

    async def play() -> float:
        line, began = Departures(now_ms), now_ms()
        for _ in range(20):
            await line.until(now_ms() - 1000)
        return now_ms() - began

    assert run(play()) < 1000
