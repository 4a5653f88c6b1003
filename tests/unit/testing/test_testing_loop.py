from __future__ import annotations

import asyncio
import time

import pytest

from nephila.testing.clock import VirtualClock
from nephila.testing.loop import DeadlockError, LivelockError, run_virtual


def test_a_day_of_sleeping_passes_in_no_time() -> None:
    clock = VirtualClock()

    async def sleep_a_day() -> str:
        for _ in range(24 * 60):
            await asyncio.sleep(60)
        return "morning"

    began, steady = time.monotonic(), clock.steady_ms()
    assert run_virtual(sleep_a_day, clock) == "morning"
    assert clock.steady_ms() - steady == 24 * 3600 * 1000
    assert time.monotonic() - began < 5


def test_a_coroutine_may_be_given_as_well_as_a_function() -> None:
    async def seven() -> int:
        return 7

    assert run_virtual(seven()) == 7


def test_timers_run_in_the_order_of_their_times() -> None:
    async def record() -> list[float]:
        loop, seen = asyncio.get_running_loop(), []
        for delay in (0.3, 0.1, 0.2, 1e-9, 7200.0):
            loop.call_later(delay, lambda: seen.append(loop.time()))
        await asyncio.sleep(9000)
        return seen

    assert run_virtual(record) == pytest.approx([1e-9, 0.1, 0.2, 0.3, 7200.0])


def test_timeouts_strike_at_their_instant() -> None:
    async def impatient() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert run_virtual(impatient) == 30


def test_two_runs_do_the_same_in_the_same_order() -> None:
    async def race() -> list[str]:
        seen: list[str] = []

        async def runner(name: str) -> None:
            for lap in range(5):
                await asyncio.sleep(0.1)
                seen.append(f"{name}{lap}")

        await asyncio.gather(*(runner(name) for name in "abcdef"))
        return seen

    assert run_virtual(race) == run_virtual(race)


def test_a_deadlock_is_an_error_that_names_the_tasks() -> None:
    async def wait_for_nobody() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait(), name="the waiter")

    with pytest.raises(DeadlockError, match=r"(?s)2 task\(s\) wait.*the waiter at .*locks\.py"):
        run_virtual(wait_for_nobody)


def test_a_live_lock_is_an_error() -> None:
    async def spin() -> None:
        while True:  # noqa: ASYNC110 - spinning is what is tested
            await asyncio.sleep(0)

    with pytest.raises(LivelockError, match="without time passing"):
        run_virtual(spin)


def test_executors_run_on_the_spot() -> None:
    async def think() -> tuple[int, str]:
        result = await asyncio.to_thread(lambda: 6 * 7)
        with pytest.raises(ZeroDivisionError):
            await asyncio.get_running_loop().run_in_executor(None, lambda: 1 / 0)
        return result, asyncio.current_task().get_name()

    assert run_virtual(think)[0] == 42


def test_an_exception_comes_out_as_it_is() -> None:
    async def fail() -> None:
        await asyncio.sleep(1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run_virtual(fail)


def test_what_still_runs_at_the_end_is_cancelled() -> None:
    ended: list[str] = []

    async def leave_somebody_behind() -> None:
        async def background() -> None:
            try:
                await asyncio.sleep(1e6)
            finally:
                ended.append("cancelled")

        task = asyncio.create_task(background())
        await asyncio.sleep(1)
        del task

    run_virtual(leave_somebody_behind)
    assert ended == ["cancelled"]
