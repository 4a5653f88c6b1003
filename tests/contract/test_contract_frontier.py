"""F1, F2, F3, F6, F9, F10, P1, P2, S3, D1, T8, H5: every engine keeps the frontier's promises."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.embedded.book import Policy
from nephila.model.settings import FrontierSettings
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts import frontier as suite


class LmdbHarness:
    """The LMDB frontier in a directory, under a virtual clock."""

    def __init__(self, path: Path, *, threaded: bool, robots: bool = True) -> None:
        self.clock = VirtualClock()
        self.robots = robots
        self._path = path
        self._threaded = threaded
        self._open()

    def _open(self) -> None:
        settings = FrontierSettings(sync=False, linger_ms=0, look_ahead_ms=0, map_bytes=1 << 28)
        policy = Policy(settings, base_delay_ms=suite.DELAY_MS, robots=self.robots)
        self.frontier = LmdbFrontier(self._path, self.clock, policy, threaded=self._threaded)

    @property
    def view(self) -> LmdbFrontier:
        return self.frontier

    async def reopen(self) -> None:
        await self.frontier.close()
        self._open()

    async def begin_cycle(self) -> None:
        await self.frontier.begin_cycle()


@pytest.mark.parametrize("robots", [True, False], ids=["robots", "no-robots"])
@pytest.mark.parametrize("threaded", [True, False], ids=["threaded", "in-place"])
@pytest.mark.parametrize("check", suite.checks())
def test_the_lmdb_frontier_keeps_its_promises(tmp_path: Path, check: str, threaded: bool, robots: bool) -> None:
    """F1, F2, F3, F6, F9, F10, P1, P2, S3, D1, T8, H5: see the check of that name in the contract suite."""

    async def run() -> None:
        harness = LmdbHarness(tmp_path / "frontier", threaded=threaded, robots=robots)
        try:
            await getattr(suite.FrontierContract(harness), check)()
        finally:
            await harness.frontier.close()

    asyncio.run(run())
