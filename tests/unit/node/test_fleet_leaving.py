"""A worker that is to end while the servers that workers share do not answer, whatever it had asked them just then."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nephila.model.errors import DatabaseAwayError, EngineLeftError, NephilaError
from nephila.model.summary import StoppedBy
from nephila.node.fleet.crawl import FleetCrawl

LEFT = EngineLeftError("Valkey at 127.0.0.1:1 does not answer, and is not waited for any more", "see that it runs")


class Leaving(FleetCrawl):
    """A worker whose servers are not waited for any more: whoever asks them is told so."""

    def __init__(self, told: list[str]) -> None:
        async def beat(*_given: object, **_also: object) -> None:
            raise LEFT

        parts: dict[str, Any] = {
            "_stopped_by": None,
            "_failure": None,
            "_crew": [None],
            "_has_left": False,
            "_away": "",
            "_writers": set(),
            "_quiet": SimpleNamespace(answered=None),
            "_m": SimpleNamespace(
                allowance=SimpleNamespace(reached=lambda _used: None),
                settings=SimpleNamespace(fleet=SimpleNamespace(silent_s=1.0)),
                look_at_directory=lambda: None,
            ),
            "_wake": asyncio.Event(),
            "_paused": False,
            "_post": SimpleNamespace(
                writer=1,
                member=None,
                directory=SimpleNamespace(spooled_writers=lambda: {2: [Path("a")]}),
                registry=SimpleNamespace(beat=beat),
            ),
        }
        self.__dict__.update(parts)
        self._told = told

    def warn(self, name: str, message: str) -> None:
        self._told.append(f"{name}: {message}")

    def _free(self) -> int:
        return 0

    def _used(self) -> Any:
        return None

    def _figures(self) -> Any:
        return None

    async def _sleep(self) -> None:
        raise LEFT

    async def conduct(self) -> None:
        sowing = asyncio.create_task(asyncio.sleep(0))
        await self._conduct(sowing)

    async def beat(self) -> None:
        await self._beat()


def test_a_worker_that_looks_for_work_when_it_is_to_end_is_interrupted_and_has_not_failed() -> None:
    """F10, N4: its books are closed as ever; that the servers were left is told once."""
    told: list[str] = []

    async def act() -> None:
        worker = Leaving(told)
        await worker.conduct()
        await worker.beat()
        assert worker._failure is None

    asyncio.run(act())
    assert told == [f"engine_away: {LEFT}; what it was to be told is told at the next start"]


def test_a_worker_that_has_not_begun_is_interrupted_too() -> None:
    """C4, N4: Ctrl-C while it waits for servers at its start is no failure of its own."""
    assert LEFT.exit_code == 130


@pytest.mark.parametrize("stopped", [None, StoppedBy.INTERRUPT])
def test_a_database_that_is_away_is_a_failure_unless_somebody_wants_an_end(stopped: StoppedBy | None) -> None:
    """F10, C4: the spool has what the catalogue lacks, and Ctrl-C is no failure."""
    told: list[str] = []

    async def main() -> NephilaError | None:
        worker: Any = Leaving(told)
        worker._stopped_by = stopped
        worker.stop = lambda *_: None
        worker.fail(DatabaseAwayError("PostgreSQL does not answer"))
        return worker._failure  # type: ignore[no-any-return]

    failure = asyncio.run(main())
    assert (failure is None) == (stopped is StoppedBy.INTERRUPT)
    left = "engine_away: PostgreSQL does not answer; what it was to be told is told at the next start"
    assert told == ([] if stopped is None else [left])
