"""Ways to call a plugin, by a clock that is moved by hand."""

from __future__ import annotations

import asyncio

import pytest

from nephila.plugins.calling import AwaitedCaller
from nephila.plugins.offspring import OverranError
from nephila.plugins.points import Point


class Blocking:
    """Is asynchronous by its name, and keeps the loop for so long."""

    def __init__(self, takes_s: float) -> None:
        self.takes_s = takes_s
        self.now = 0.0

    async def more_seeds(self) -> list[str]:
        self.now += self.takes_s
        return ["https://a.test/"]


def test_an_asynchronous_plugin_that_blocks_is_late_when_it_has_answered() -> None:
    """E1: nothing can interrupt it, so it is timed: named, counted, and switched off like any other that overruns."""
    slow, quick = Blocking(6), Blocking(4)
    with pytest.raises(OverranError, match=r"6\.000 s, 5 s are allowed: an asynchronous plugin must not block"):
        asyncio.run(AwaitedCaller(slow, 5, lambda: slow.now).call(Point.SEEDS, (), 0))
    assert asyncio.run(AwaitedCaller(quick, 5, lambda: quick.now).call(Point.SEEDS, (), 0)) == ["https://a.test/"]
