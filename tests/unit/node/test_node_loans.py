"""Loans to workers outside, and how long they are said to last."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from nephila.model.task import Token
from nephila.node.loans import renew
from nephila.testing.clock import VirtualClock


def test_a_loan_is_not_said_to_last_longer_than_it_does() -> None:
    """C1, P2: it was renewed when the frontier did so; its answer may have come much later."""
    clock = VirtualClock()
    began = clock.wall_ms()

    async def held(_ask: object) -> object:
        return SimpleNamespace(host="a.test", task=object(), block=None)

    async def slow(tokens: list[Token], _seconds: float) -> set[Token]:
        clock.advance(20)
        return set(tokens)

    desk: Any = SimpleNamespace(look=held, clock=clock, frontier=SimpleNamespace(renew=slow))
    assert asyncio.run(renew(desk, Token(1), 60)) == began + 60_000
