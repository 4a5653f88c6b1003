"""F2, N1: links of several pages to one shard go there together, and each page is told of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from nephila.frontier.redis.asking import Asked
from nephila.frontier.redis.joining import MOST, Joining, Part
from nephila.interfaces.frontier import Admission
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual


class Engine:
    """Says of each part which it was, and remembers what came together."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, list[int]]] = []
        self.fails = False
        self.gate: asyncio.Event | None = None

    async def send(self, shard: int, parts: Sequence[Part]) -> list[Admission]:
        numbers = [part.source["number"] for part in parts]
        self.calls.append((shard, numbers))
        if self.gate is not None:
            await self.gate.wait()
        if self.fails:
            raise ConnectionError("away")
        return [Admission(number) for number in numbers]


def part(number: int) -> Part:
    return Part(Asked(), {"number": number}, [])


def test_what_comes_in_the_same_moment_goes_together() -> None:
    """F2, N1: one call for each shard, and everybody is told of his own part."""

    async def run() -> None:
        engine = Engine()
        joining = Joining(engine.send)
        told = await asyncio.gather(*(joining.admit(number % 2, part(number)) for number in range(6)))
        assert [one.added for one in told] == list(range(6))
        assert engine.calls == [(0, [0, 2, 4]), (1, [1, 3, 5])]
        assert (await joining.admit(0, part(7))).added == 7  # and what comes later, by itself
        assert engine.calls[2:] == [(0, [7])]

    asyncio.run(run())


def test_no_call_has_more_than_so_many() -> None:
    """F2, N1: the engine answers nobody else meanwhile."""

    async def run() -> None:
        engine = Engine()
        joining = Joining(engine.send)
        count = 2 * MOST + 3
        told = await asyncio.gather(*(joining.admit(0, part(number)) for number in range(count)))
        assert [one.added for one in told] == list(range(count))
        assert sorted(len(numbers) for _, numbers in engine.calls) == [3, MOST, MOST]

    asyncio.run(run())


def lingering() -> tuple[Engine, Joining]:
    """Whoever is first waits a twentieth of a second."""
    engine = Engine()
    joining = Joining(engine.send)
    joining.linger_s = 0.05
    return engine, joining


def test_whoever_is_first_waits_for_company() -> None:
    """F2, N1: for a moment, where one is given; a call that is full leaves at once, and takes nobody's time."""
    clock = VirtualClock()

    async def run() -> None:
        engine, joining, began_ms = *lingering(), clock.steady_ms()
        first = joining.admit(0, part(0), waits=True)
        await asyncio.sleep(0.04)
        second = joining.admit(0, part(1), waits=True)
        other = joining.admit(1, part(2), waits=True)
        assert not engine.calls
        await asyncio.gather(first, second)
        assert clock.steady_ms() - began_ms in range(50, 53)
        assert (await other).added == 2
        assert engine.calls == [(0, [0, 1]), (1, [2])]
        await asyncio.gather(*(joining.admit(0, part(number), waits=True) for number in range(MOST)))
        assert clock.steady_ms() - began_ms < 100
        third = joining.admit(0, part(3), waits=True)
        await asyncio.sleep(0.045)
        assert len(engine.calls) == 3  # the moment of the call that was full is not the next one's
        await third

    run_virtual(run, clock)


def test_who_cannot_wait_takes_along_those_who_do() -> None:
    """F2, N1: at once."""
    clock = VirtualClock()

    async def run() -> None:
        engine, joining, began_ms = *lingering(), clock.steady_ms()
        first = joining.admit(0, part(0), waits=True)
        await joining.admit(0, part(1))
        assert clock.steady_ms() == began_ms
        assert engine.calls == [(0, [0, 1])]
        await first
        second = joining.admit(0, part(2), waits=True)
        await second
        assert clock.steady_ms() - began_ms in range(50, 53)

    run_virtual(run, clock)


def test_who_is_cancelled_leaves_the_others_their_answers() -> None:
    """F2, N1: also whoever came first."""

    async def run() -> None:
        engine = Engine()
        engine.gate = asyncio.Event()
        joining = Joining(engine.send)
        first, second = (joining.admit(0, part(number)) for number in range(2))
        for _ in range(3):
            await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        engine.gate.set()
        assert (await second).added == 1

    asyncio.run(run())


def test_an_error_is_told_to_all() -> None:
    """F2, N1: nobody waits for ever, and the next call is a call."""

    async def run() -> None:
        engine = Engine()
        engine.fails = True
        joining = Joining(engine.send)
        told = await asyncio.gather(*(joining.admit(0, part(number)) for number in range(3)), return_exceptions=True)
        assert [type(one) for one in told] == [ConnectionError] * 3
        engine.fails = False
        assert (await joining.admit(0, part(4))).added == 4

    asyncio.run(run())
