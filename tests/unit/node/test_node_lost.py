"""What a fleet does about the archive of a worker that is lost with its disk."""

from __future__ import annotations

import asyncio
import random
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from nephila.model.errors import EngineAwayError, NephilaError, StoreAwayError, StoreRefusedError
from nephila.model.record import SegmentId
from nephila.node.fleet.crawl import FleetCrawl
from nephila.node.fleet.lost import Looked, LostWorkers
from nephila.node.recovery import Recovery
from nephila.store import SpooledArchive

WAITED_FOR, LISTED_BY_NOBODY, NEVER_ARRIVED, OF_THE_LIVING = (
    SegmentId(f"nephila-20260101000000-0000{number}-w{writer}.warc.gz")
    for number, writer in ((1, 7), (2, 7), (3, 7), (4, 8))
)


@dataclass
class Scene:
    """A register in which writer 7 is silent, and a store of objects with what `cut_short` says."""

    arrived: set[SegmentId]
    silent: list[int] = field(default_factory=lambda: [7])
    gone_through: list[SegmentId] = field(default_factory=list)
    queued_again: list[SegmentId] = field(default_factory=list)
    in_its_order: list[int] = field(default_factory=list)
    under_way: set[SegmentId] = field(default_factory=set)
    room: int = 9
    """Files that the spool still takes."""
    listings: int = 0

    async def give_up(self, lost_s: float, pending: set[int], silent_s: float) -> list[int]:
        assert silent_s == 5.0
        assert pending == {7}
        return self.silent

    async def in_order(self, writer: int) -> None:
        self.in_its_order.append(writer)

    async def cut_short(self) -> set[SegmentId]:
        self.listings += 1
        return self.arrived

    def is_under_way(self, segment: SegmentId) -> bool:
        return segment in self.under_way

    def is_full(self) -> bool:
        return self.room <= 0

    async def of_store(self, segment: SegmentId) -> bool:
        self.room -= 1
        self.gone_through.append(segment)
        return segment in self.arrived

    async def lose(self, segment: SegmentId, end: int) -> int:
        self.queued_again.append(segment)
        return 5


def look(scene: Scene) -> Looked:
    anything = cast("Any", scene)
    workers = LostWorkers(anything, anything, anything, scene.is_full, 60.0, 5.0)
    return asyncio.run(workers.look({WAITED_FOR, NEVER_ARRIVED}))


class Waiting(FleetCrawl):
    """A worker that has nothing to do, and whose looks for the lost find what they are told."""

    def __init__(self, answers: list[Any], told: list[str]) -> None:
        async def nothing() -> None:
            return None

        async def pending() -> set[SegmentId]:
            return set()

        async def look(_pending: set[SegmentId]) -> Looked:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return cast("Looked", answer)

        idle = SimpleNamespace(hosts_leased=0, next_in_ms=None)
        limits = SimpleNamespace(max_wait_s=3.0)
        parts: dict[str, Any] = {
            "_lost": SimpleNamespace(every_s=0.01, look=look),
            "_post": SimpleNamespace(
                draw=random.Random(1),
                pending=pending,
                refresh=nothing,
                fallback=SimpleNamespace(settled=nothing),
                directory=SimpleNamespace(note_asking=lambda: None),
            ),
            "_m": SimpleNamespace(
                settings=SimpleNamespace(limits=limits), frontier=SimpleNamespace(snapshot=lambda: idle)
            ),
            "_forgotten": asyncio.Event(),
            "_looking": asyncio.Lock(),
            "drained": False,
        }
        self.__dict__.update(parts)
        self._told = told

    def warn(self, name: str, message: str) -> None:
        del message
        self._told.append(name)

    def fail(self, error: NephilaError) -> None:
        self._told.append(f"failed: {error}")

    def nudge(self) -> None:
        pass

    async def look_for_lost(self) -> None:
        await self._look_for_lost()

    async def is_over(self) -> bool:
        return await self._is_over()


def test_segments_of_the_lost_that_nobody_listed_are_gone_through() -> None:
    """N3, W2: those on which pages wait, those that arrived and were not indexed; none of a living worker."""
    scene = Scene({WAITED_FOR, LISTED_BY_NOBODY, OF_THE_LIVING})
    assert look(scene) == Looked(2, 5)
    assert scene.gone_through == [WAITED_FOR, LISTED_BY_NOBODY, NEVER_ARRIVED]
    assert scene.queued_again == [NEVER_ARRIVED]
    assert scene.in_its_order == [7]


def test_what_an_earlier_look_began_is_not_begun_again() -> None:
    """N3, W2: it lies in the spool here until the store and the database have taken it; the books know it once."""
    scene = Scene({WAITED_FOR, LISTED_BY_NOBODY}, under_way={WAITED_FOR})
    assert look(scene) == Looked(1, 5)
    assert scene.gone_through == [LISTED_BY_NOBODY, NEVER_ARRIVED]
    assert scene.in_its_order == [7]


def test_no_more_is_brought_back_than_the_spool_has_room_for() -> None:
    """N3, W2: a worker that has died while the database was away leaves hundreds of files that nobody has listed."""
    scene = Scene({WAITED_FOR, LISTED_BY_NOBODY}, room=1)
    assert look(scene) == Looked(1, 0, is_whole=False)
    assert scene.in_its_order == [], "the next look goes on"
    scene.room, scene.under_way = 9, {WAITED_FOR}
    assert look(scene) == Looked(1, 5)
    assert scene.in_its_order == [7]


class SlowArchive(SpooledArchive):
    """One whose store has nothing, and takes its time to say so."""

    def __init__(self) -> None:
        self.asked, self.went_on = threading.Event(), threading.Event()

    def recall(self, segment: SegmentId) -> bool:
        del segment
        self.asked.set()
        assert self.went_on.wait(10), "nothing else is done meanwhile"
        return False


def test_others_are_fetching_while_a_file_of_the_lost_is_brought_back() -> None:
    """N3, P4: a loop that stands still takes what has arrived meanwhile for answers that came too late."""

    async def main() -> None:
        recovery, archive = Recovery.__new__(Recovery), SlowArchive()
        recovery._archive = archive
        bringing = asyncio.create_task(recovery.of_store(WAITED_FOR))
        await asyncio.to_thread(archive.asked.wait)
        archive.went_on.set()
        assert await bringing is False

    asyncio.run(main())


def test_the_store_is_listed_only_when_somebody_is_lost() -> None:
    """N3: every worker looks every minute."""
    scene = Scene({LISTED_BY_NOBODY}, silent=[])
    assert look(scene) == Looked()
    assert scene.listings == 0


def test_a_store_that_is_away_or_refuses_meanwhile_is_asked_again_later() -> None:
    """N3, W2: who was given up is not in order yet; nobody else fails over it."""
    answers: list[Any] = [StoreAwayError("away"), EngineAwayError("away"), StoreRefusedError("expired"), Looked(2, 5)]
    told: list[str] = []
    worker = Waiting(answers, told)

    def over() -> None:
        raise asyncio.CancelledError

    worker.nudge = over  # type: ignore[method-assign]

    async def main() -> None:
        with suppress(asyncio.CancelledError):
            await worker.look_for_lost()

    asyncio.run(main())
    assert told == ["worker_lost"]


def test_no_worker_ends_while_pages_of_the_lost_are_to_be_brought_back() -> None:
    """N3, N4: the next look may be a minute away; whoever ends before it leaves them behind."""
    troubles = [StoreAwayError("away"), StoreRefusedError("expired"), EngineAwayError("away")]
    answers: list[Any] = [*troubles, Looked(0, 5), Looked(1, 0), Looked(is_whole=False), Looked()]
    told: list[str] = []
    worker = Waiting(answers, told)

    async def main() -> list[bool]:
        return [await worker.is_over() for _ in range(7)]

    assert asyncio.run(main()) == [False] * 6 + [True]
    assert told == ["worker_lost"] * 2
