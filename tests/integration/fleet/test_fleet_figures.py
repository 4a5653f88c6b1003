"""Figures and events of a fleet on a real server: added up by whoever comes, bounded, never less than they were."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest
from valkey_servers import ValkeySingle

from nephila.engines.valkey_servers import servers_of
from nephila.engines.valkey_state import ValkeyState
from nephila.model.errors import EngineRefusedError
from nephila.model.events import Event, EventKind
from nephila.model.settings import FleetSettings
from nephila.node.fleet import sight
from nephila.node.fleet.broadcasting import KEPT, Broadcast, StreamTail, stream_key
from nephila.node.fleet.publishing import Latest, Publication, SharedFigures, Verdict
from nephila.node.fleet.registry import Figures as Worked
from nephila.node.fleet.registry import Member, Registry
from nephila.node.logbook import FINE_POINTS, FINE_S, Alert, Process

Story = Callable[[ValkeyState, str], Awaitable[None]]


def play(valkey: ValkeySingle, story: Story) -> None:
    async def run() -> None:
        state = await ValkeyState.open(servers_of(valkey.names, {}))
        try:
            await story(state, f"t{uuid4().hex[:12]}")
        finally:
            await state.close()

    asyncio.run(run())


def said(worker: str, writer: int, pages: int, in_flight: int = 2, **more: int) -> Publication:
    counts = {"pages": pages, "responses": pages, "e.timeout": pages // 10, "l.2": pages, **more}
    process = Process(cpu_s=1.0, memory_bytes=100, open_files=writer, max_files=10, disk_free_bytes=5, disk_bytes=10)
    latest = Latest(worker, in_flight=in_flight, pages_per_s=1.5, process=process, busy_hosts={"a.test": 3})
    return Publication(worker, writer, counts, {"=q.high": 7, "=ready": writer}, latest)


def test_no_total_falls_whoever_leaves_or_says_it_twice(valkey: ValkeySingle) -> None:
    """O2: said twice is counted once; a worker that starts anew counts from nothing; one that leaves stays counted."""

    async def story(state: ValkeyState, crawl: str) -> None:
        shared = SharedFigures(state, crawl)
        await shared.publish(said("one", 1, 100), 5)
        await shared.publish(said("one", 1, 100), 5)
        await shared.publish(said("two", 2, 50), 5)
        assert (await shared.figures(30)).present.run.pages == 150
        await shared.publish(said("one", 3, 7), 5)  # another run of it
        await shared.leave("two")
        for reader in (shared, SharedFigures(state, crawl)):
            figures = await reader.figures(30)
            assert figures.present.run.pages == 157
            assert figures.present.run.errors == {"timeout": 15}
            assert sum(point.growth.pages for point in figures.fine) == 157
            assert [growth.pages for growth in figures.days.values()] == [157]
            assert figures.present.run.quantile_s(0.5) is not None
            assert (figures.present.workers, figures.present.in_flight) == (1, 2)
            assert figures.fine[-1].queued == {"high": 7}
            assert figures.present.busy_hosts == {"a.test": 3}
        gone = (await shared.figures(0)).present
        assert (gone.running, gone.workers, gone.run.pages) == (False, 0, 157)

    play(valkey, story)


def test_the_worst_of_all_files_and_disks_is_told(valkey: ValkeySingle) -> None:
    """O2: an alert is about the worker that is nearest to its limit."""

    async def story(state: ValkeyState, crawl: str) -> None:
        shared = SharedFigures(state, crawl)
        for number in (3, 9, 5):
            await shared.publish(said(f"w{number}", number, 1), 5)
        process = (await shared.figures(30)).present.process
        assert (process.open_files, process.max_files, process.memory_bytes) == (9, 10, 300)

    play(valkey, story)


def test_one_worker_is_the_judge_until_it_leaves(valkey: ValkeySingle) -> None:
    """O2: what it finds is told to all, with the time since when."""

    async def story(state: ValkeyState, crawl: str) -> None:
        shared = SharedFigures(state, crawl)
        assert await shared.publish(said("one", 1, 1), 5)
        assert not await shared.publish(said("two", 2, 1), 5)
        assert await shared.publish(said("one", 1, 2), 5)
        await shared.judged(Verdict(5, 77.0, [Alert("latency", 4, 9.0, 3.0, "slow")]))
        present = (await SharedFigures(state, crawl).figures(30)).present
        assert (present.longest_wait_s, [one.name for one in present.alerts]) == (77.0, ["latency"])
        await shared.leave("one")
        assert await shared.publish(said("two", 2, 2), 5)

    play(valkey, story)


def test_old_steps_are_thrown_away(valkey: ValkeySingle) -> None:
    """O2: an hour of steps of ten seconds, and no more, however long a crawl takes."""

    async def story(state: ValkeyState, crawl: str) -> None:
        shared = SharedFigures(state, crawl)
        key = f"nephila:{{{crawl}}}:figures:fine"
        old = {str(at * FINE_S * 1000): b"\x81\xa5pages\x01" for at in range(1, 1000)}
        await state.call("HSET", key, *(part for pair in old.items() for part in pair))
        await shared.publish(said("one", 1, 1), 5)
        assert len((await shared.figures(30)).fine) == 1
        assert await state.call("HLEN", key) <= FINE_POINTS + 1

    play(valkey, story)


def test_rare_events_are_told_before_frequent_ones_and_what_is_left_out_is_counted(valkey: ValkeySingle) -> None:
    """O1, C1: bounded in memory, in a second and on the server; a reader goes on after an id."""

    async def story(state: ValkeyState, crawl: str) -> None:
        settings = FleetSettings(crawl=crawl, events_per_s=10)
        broadcast, tail = Broadcast(state, settings, "w1", 0), StreamTail(state, crawl)
        assert await tail.begin("", 0) == []
        for number in range(5000):
            broadcast.emit(Event(EventKind.FETCH_OK, number, f"http://a.test/{number}?token=secret"))
        broadcast.emit(Event(EventKind.WARNING, 5001, reason="alert", detail="here"))
        await broadcast.tell()
        lines = await tail.look()
        kinds = [line.kind for line in lines]
        assert (len(kinds), kinds.count("warning"), kinds[-1]) == (10, 1, "warning")
        assert sum(line.skipped for line in lines) == 5001 - 10
        assert b"4999" in lines[-2].text
        assert not any(b"secret" in line.text for line in lines)
        assert await tail.look() == []
        other = StreamTail(state, crawl)
        assert await other.begin(lines[6].id, 0) == []
        assert [line.id for line in await other.look()] == [line.id for line in lines[7:]]
        latest = await StreamTail(state, crawl).begin("nonsense", 3)
        assert [line.id for line in latest] == [line.id for line in lines[7:]]
        broadcast.alive = 100
        broadcast.emit(Event(EventKind.FETCH_OK, 1))
        await broadcast.tell()
        assert await state.call("XLEN", stream_key(crawl)) == 11
        assert broadcast.most == 2
        for _ in range(3):
            rows = [Event(EventKind.RETRY, number) for number in range(10)]
            for row in rows:
                broadcast.emit(row)
            await broadcast.tell()
        assert await state.call("XLEN", stream_key(crawl)) < KEPT

    play(valkey, story)


def test_who_serves_goes_on_looking_after_it_was_refused(valkey: ValkeySingle, monkeypatch: pytest.MonkeyPatch) -> None:
    """C3, N4: a right that was taken away and given back leaves nobody with the workers of before for ever."""
    monkeypatch.setattr(sight, "LOOK_S", 0.01)

    async def story(state: ValkeyState, crawl: str) -> None:
        seen = sight.FleetSight(state, crawl, 30)
        await seen.look()
        looking = asyncio.create_task(seen.run())
        try:
            valkey.server.ask("ACL", "SETUSER", "default", "-hgetall", "-eval")
            with pytest.raises(EngineRefusedError):
                await seen.look()
            await asyncio.sleep(0.1)
            valkey.server.ask("ACL", "SETUSER", "default", "+@all")
            await Registry(state, crawl).beat(Member("1", "one"), Worked(), [1])
            async with asyncio.timeout(10):
                while not seen.is_running():  # noqa: ASYNC110 - who looks tells nobody
                    await asyncio.sleep(0.01)
        finally:
            valkey.server.ask("ACL", "SETUSER", "default", "+@all")
            looking.cancel()

    play(valkey, story)
