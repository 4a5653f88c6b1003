"""When ranks are computed beside a crawl, and what becomes of failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nephila.model.settings import RankSettings
from nephila.node.importance.beside import Recomputing
from nephila.testing.loop import run_virtual

OUT = Path("crawl")


class Started:
    """Stands for a process that takes a minute and then ends as it is told."""

    def __init__(self, code: int, said: bytes, takes_s: float = 60.0) -> None:
        self._code, self._said, self._takes_s = code, said, takes_s
        self.returncode: int | None = None
        self.was_killed = False

    async def communicate(self) -> tuple[bytes, bytes]:
        await asyncio.sleep(self._takes_s)
        self.returncode = self._code
        return b"", self._said

    def kill(self) -> None:
        self.was_killed = True

    async def wait(self) -> int:
        self.returncode = -9
        return -9


class Starter:
    """Starts them, and notes when."""

    def __init__(self, *ends: tuple[int, bytes] | OSError) -> None:
        self._ends = ends
        self.at: list[float] = []
        self.processes: list[Started] = []

    async def __call__(self, out: Path) -> Any:
        assert out == OUT
        self.at.append(asyncio.get_running_loop().time())
        end = self._ends[min(len(self.at), len(self._ends)) - 1] if self._ends else (0, b"")
        if isinstance(end, OSError):
            raise end
        self.processes.append(Started(*end))
        return self.processes[-1]


def watched(
    starter: Starter, settings: RankSettings, pages: Callable[[float], int], seconds: float
) -> tuple[list[float], list[str]]:
    """When it was started, from the begin on, and what was told, in so many seconds."""
    told: list[str] = []

    async def main() -> float:
        loop = asyncio.get_running_loop()
        begun = loop.time()

        def warn(reason: str, detail: str) -> None:
            told.append(f"{reason}: {detail}")

        work = Recomputing(OUT, settings, lambda: pages(loop.time() - begun), warn, starter)
        task = asyncio.create_task(work.run())
        await asyncio.sleep(seconds)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return begun

    begun = run_virtual(main)
    return [at - begun for at in starter.at], told


def test_it_is_computed_after_every_interval() -> None:
    """R3: recomputed while crawling; the first time after one interval, too."""
    at, told = watched(Starter(), RankSettings(every_s=3600), lambda s: int(10 * s), 3 * 3600 + 700)
    assert [round(one / 3600) for one in at] == [1, 2, 3]
    assert told == []


def test_not_before_enough_pages_were_added() -> None:
    """R3: since the last one."""
    at, _ = watched(Starter(), RankSettings(every_s=60, least_pages=1000), int, 3000)
    assert [round(one, -2) for one in at] == [1000, 2000]


def test_it_can_be_switched_off() -> None:
    """R3: nothing is started at all."""
    assert watched(Starter(), RankSettings(every_s=0), lambda _: 10**9, 10**6) == ([], [])


def test_one_at_a_time() -> None:
    """R3: a computation that takes longer than the interval is waited for."""
    starter = Starter()
    at, _ = watched(starter, RankSettings(every_s=20, least_pages=1), int, 200)
    assert all(later - one >= 60 for one, later in pairwise(at))
    assert len(at) > 1


def test_what_is_being_computed_when_the_crawl_ends_is_cut_off() -> None:
    """R3: ended with the crawl."""
    starter = Starter()
    watched(starter, RankSettings(every_s=20, least_pages=1), int, 40)
    assert [process.was_killed for process in starter.processes] == [True]


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        ((1, b"rank cannot be written: no space left on device\n"), "rank cannot be written: no space left on device"),
        ((-9, b""), "its process was ended by SIGKILL"),
        (OSError(11, "Resource temporarily unavailable"), "no process could be started for it: Resource temporarily"),
    ],
    ids=["sentence", "killed", "not started"],
)
def test_a_failure_is_told_once(end: tuple[int, bytes] | OSError, sentence: str) -> None:
    """R3: and the next one is tried all the same."""
    at, told = watched(Starter(end), RankSettings(every_s=100, least_pages=1), int, 1000)
    assert len(at) > 3
    assert len(told) == 1
    assert told[0].startswith("rank: ranks could not be computed anew, and the crawl goes on")
    assert sentence in told[0]


def test_a_failure_after_a_success_is_told_again() -> None:
    """R3: it may be another one."""
    starter = Starter((1, b"one"), (0, b""), (1, b"two"), (1, b"three"))
    _, told = watched(starter, RankSettings(every_s=100, least_pages=1), int, 1000)
    assert [sentence.rpartition(" ")[2] for sentence in told] == ["one", "two"]
