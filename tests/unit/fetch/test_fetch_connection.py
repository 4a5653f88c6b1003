"""A connection's deadline, a process that did not run when it came, and answers that come together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nephila.fetch.budget import ByteBudget
from nephila.fetch.connection import GRACE_S, Connection
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual


class Reading:
    """A reader that wants four bytes."""

    def __init__(self) -> None:
        self.read = b""
        self.finished = False
        self.expired_at_s: float | None = None

    def feed(self, data: bytes) -> bool:
        self.read += data
        self.finished = len(self.read) >= 4
        return self.finished

    def end(self, error: Exception | None = None) -> None:
        del error
        self.finished = True

    def expire(self) -> None:
        self.finished = True
        self.expired_at_s = asyncio.get_running_loop().time()


class Wire(asyncio.Transport):
    """A transport that takes everything."""

    def write(self, data: Any) -> None:
        del data

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        """Nothing is open."""


def conversation(stops_at_s: float, goes_on_at_s: float, arrivals: list[tuple[float, bytes]]) -> Reading:
    """What is read within five seconds by a process that does not run from one moment to another."""
    clock = VirtualClock()

    async def play() -> Reading:
        loop = asyncio.get_running_loop()
        connection, reader = Connection(ByteBudget(1 << 20), clock), Reading()
        connection.connection_made(Wire())
        loop.call_at(stops_at_s, lambda: clock.advance_to(goes_on_at_s))
        for at_s, data in arrivals:
            loop.call_at(at_s, connection.data_received, data)
        await connection.converse(b"GET", reader, 5.0)
        return reader

    return run_virtual(play, clock)


@pytest.mark.parametrize("came_at_s", [6.0, 19.0])
def test_what_came_while_the_process_was_stopped_is_read(came_at_s: float) -> None:
    """F9, P1: the timer runs before what lies in the socket is read, and does not throw it away."""
    reader = conversation(4.0, 20.0, [(came_at_s, b"whole")])
    assert reader.read == b"whole"
    assert reader.expired_at_s is None


def test_a_stopped_process_does_not_wait_for_what_did_not_come() -> None:
    """F9: a server that said nothing in time, or only half of it, has no time more than it takes to look."""
    assert conversation(4.0, 20.0, []).expired_at_s == pytest.approx(20.0 + GRACE_S)
    assert conversation(4.0, 20.0, [(6.0, b"ha")]).expired_at_s == pytest.approx(20.0 + GRACE_S)


def test_a_process_that_runs_gives_up_on_time() -> None:
    """F9: the deadline holds to the millisecond where nothing was stopped."""
    assert conversation(1.0, 1.0, []).expired_at_s == pytest.approx(5.0)


def test_when_an_answer_had_come_is_known_however_long_it_has_waited_since() -> None:
    """P1, Q2: several come in the same moment, and each takes a second to read."""
    clock = VirtualClock()

    async def look(connection: Connection) -> tuple[int, int]:
        await connection.converse(b"GET", Reading(), 60.0)
        clock.advance(1.0)
        return connection.ended_at, connection.ended_ms

    async def play() -> list[tuple[int, int]]:
        connections = [Connection(ByteBudget(1 << 20), clock) for _ in range(3)]
        for connection in connections:
            connection.connection_made(Wire())
        tasks = [asyncio.create_task(look(one)) for one in connections]
        await asyncio.sleep(1.0)
        for connection in connections:
            connection.data_received(b"whole")
        return await asyncio.gather(*tasks)

    came = clock.wall_ms() + 1000, clock.steady_ms() + 1000
    assert run_virtual(play, clock) == [came] * 3
