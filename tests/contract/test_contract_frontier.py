"""F1, F2, F3, F4, F5, F6, F7, F9, F10, P1, P2, P4, R2, R3, R4, R5, S3, S4, T1, T2, T7, T8: what frontiers promise."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.estimated import recrawl_of
from nephila.frontier.policy import Policy
from nephila.model.settings import FrontierSettings
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts import frontier as suite
from nephila.testing.contracts import frontier_policy as policy_suite
from nephila.testing.contracts.frontier_policy import Options
from nephila.testing.memory import MemoryFrontier, Rules

SETTINGS = FrontierSettings(linger_ms=0, look_ahead_ms=0, map_bytes=1 << 28)


def policy_for(options: Options, *, robots: bool) -> Policy:
    return Policy(
        SETTINGS,
        base_delay_ms=suite.DELAY_MS,
        robots=robots,
        priority=options.priority,
        budget=options.budget,
        traps=options.traps,
        politeness=options.politeness,
        recrawl=recrawl_of(options.recrawl) if options.recrawl else None,
        target_domains=options.target_domains,
        repute=options.repute,
        lease_span_ms=int(options.lease_span_s * 1000),
    )


class LmdbHarness:
    """The LMDB frontier in a directory, under a virtual clock."""

    def __init__(self, path: Path, *, threaded: bool, robots: bool = True, alone: bool = False) -> None:
        self.clock = VirtualClock()
        self.robots = robots
        self._path = path
        self._threaded, self._alone = threaded, alone
        self._crawls = 0
        self._open(Options())

    def _open(self, options: Options) -> None:
        self._options = options
        policy = policy_for(options, robots=self.robots)
        folder = self._path / str(self._crawls)
        self.frontier = LmdbFrontier(folder, self.clock, policy, threaded=self._threaded, alone=self._alone)

    @property
    def view(self) -> LmdbFrontier:
        return self.frontier

    @property
    def operating(self) -> LmdbFrontier:
        return self.frontier

    async def configure(self, options: Options) -> None:
        await self.frontier.close()
        self._crawls += 1
        self._open(options)

    async def go_on(self, options: Options) -> None:
        await self.frontier.close()
        self._open(options)

    async def reopen(self) -> None:
        await self.go_on(self._options)

    async def begin_cycle(self) -> None:
        await self.frontier.begin_cycle()


class MemoryHarness:
    """The frontier in memory, under a virtual clock."""

    def __init__(self, *, robots: bool) -> None:
        self.clock = VirtualClock()
        self.robots = robots
        self._open(Options())

    def _open(self, options: Options) -> None:
        self.frontier = MemoryFrontier(self.clock, self._rules(options))

    def _rules(self, options: Options) -> Rules:
        policy = policy_for(options, robots=self.robots)
        return Rules(**{field.name: getattr(policy, field.name) for field in fields(Rules)})

    @property
    def view(self) -> MemoryFrontier:
        return self.frontier

    @property
    def operating(self) -> MemoryFrontier:
        return self.frontier

    async def configure(self, options: Options) -> None:
        self._open(options)

    async def go_on(self, options: Options) -> None:
        await self.frontier.reopen(self._rules(options))

    async def reopen(self) -> None:
        await self.frontier.reopen()

    async def begin_cycle(self) -> None:
        await self.frontier.begin_cycle()


CHECKS = [*suite.checks(), *policy_suite.checks()]
OF_ARCHIVES = {"check_what_was_taken_down_is_forgotten"}
"""The frontier in memory is for models: nothing is taken out of an archive there."""


def run_check(harness: LmdbHarness | MemoryHarness, check: str) -> Coroutine[Any, Any, None]:
    kind = suite.FrontierContract if check in suite.checks() else policy_suite.PolicyContract
    verb: Coroutine[Any, Any, None] = getattr(kind(harness), check)()
    return verb


@pytest.mark.parametrize("robots", [True, False], ids=["robots", "no-robots"])
@pytest.mark.parametrize(
    ("threaded", "alone"), [(True, True), (False, True), (False, False)], ids=["threaded", "in-place", "shared"]
)
@pytest.mark.parametrize("check", CHECKS)
def test_the_lmdb_frontier_keeps_its_promises(
    tmp_path: Path, check: str, threaded: bool, alone: bool, robots: bool
) -> None:
    """F1, F2, F3, F4, F5, F6, F7, F9, F10, P1, P2, P4, R2, R3, R4, R5, S3, S4, D1, T1, T2, T7, T8, H5: the check."""

    async def run() -> None:
        harness = LmdbHarness(tmp_path / "frontier", threaded=threaded, robots=robots, alone=alone)
        try:
            await run_check(harness, check)
        finally:
            await harness.frontier.close()

    asyncio.run(run())


@pytest.mark.parametrize("robots", [True, False], ids=["robots", "no-robots"])
@pytest.mark.parametrize("check", [check for check in CHECKS if check not in OF_ARCHIVES])
def test_the_frontier_in_memory_keeps_the_same_promises(check: str, robots: bool) -> None:
    """F1, F2, F3, F4, F5, F6, F7, F9, F10, P1, P2, P4, R2, R3, R4, R5, S3, S4, D1, T1, T2, T7, T8, H5: the check."""
    asyncio.run(run_check(MemoryHarness(robots=robots), check))
