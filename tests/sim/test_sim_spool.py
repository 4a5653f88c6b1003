"""Crawls whose archive goes to a store of objects: that is away, slow or forgetful, and dies with them at any step."""

from __future__ import annotations

import asyncio
import gzip
import random
import re
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from crashes import World
from simulation import PATIENT, Recorder
from three_books import check_books, check_whole, contents

from nephila.engines.disk import LocalDisk
from nephila.interfaces.objects import ObjectBody
from nephila.model.errors import StoreAwayError, StoreRefusedError
from nephila.model.events import EventKind
from nephila.model.settings import Settings
from nephila.model.summary import CrawlSummary, StoppedBy
from nephila.node.crawl import Crawl
from nephila.node.directory import CrawlDirectory
from nephila.node.ground import Ground
from nephila.node.wiring import build
from nephila.seeds import ArgumentSeeds
from nephila.store.rotation import index_name
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual
from nephila.testing.objects import STORMY, SimulatedObjectStore, Weather
from nephila.testing.web import Auditor, SimulatedNetwork, SimulatedWeb, WebSpec
from nephila.testing.web.spec import PageMix

SMALL = replace(WebSpec.standard(5), hosts=8, pages=60, page_bytes=1500, links_per_page=10)
SPOOLED = replace(
    PATIENT,
    archive=replace(PATIENT.archive, url="s3://crawls/spiders"),
    spool=replace(PATIENT.spool, segment_bytes=30_000, segment_age_s=20.0),
)
STEPS = 500

View = Callable[[Crawl], Coroutine[Any, Any, None]]


def crawl(
    out: Path, web: SimulatedWeb, objects: SimulatedObjectStore, settings: Settings = SPOOLED, view: View | None = None
) -> tuple[CrawlSummary, Recorder]:
    """Crawl to the end under virtual time, with `view` beside it."""
    clock, recorder = VirtualClock(), Recorder()

    async def run() -> CrawlSummary:
        network = SimulatedNetwork(web, clock, Auditor(web, base_delay_ms=1000))
        ground = Ground(clock, network, network, LocalDisk(), objects, threaded=False)
        with CrawlDirectory(out).held():
            async with AsyncExitStack() as stack:
                built = await build(CrawlDirectory(out), settings, ground, stack, listeners=[recorder])
                beside = asyncio.create_task(view(built)) if view is not None else None
                summary = await built.run([ArgumentSeeds(web.seeds())])
                if beside is not None:
                    beside.cancel()
                    with suppress(asyncio.CancelledError):
                        await beside
                return summary

    return run_virtual(run, clock), recorder


def spool_of(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "spool").iterdir())


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The pages of an undisturbed crawl, of which the bucket has everything and the spool nothing."""
    world = World(SimulatedWeb(SMALL), tmp_path_factory.mktemp("calm"), SPOOLED, objects=SimulatedObjectStore())
    summary = world.crawl()
    assert summary is not None
    assert (summary.stopped_by, summary.failure) == (StoppedBy.DONE, "")
    pages = set(contents(world).pages)
    check_whole(world, pages)
    assert spool_of(world.out) == []
    assert len([name for name in world.archive() if name.endswith(".warc.gz")]) > 5
    return pages


def test_the_archive_in_a_store_holds_what_a_local_one_does(tmp_path: Path, wanted: set[str]) -> None:
    """W2: through the same code, the same pages."""
    local = World(SimulatedWeb(SMALL), tmp_path, PATIENT)
    local.crawl()
    assert set(contents(local).pages) == wanted


@pytest.mark.parametrize("stormy", [False, True], ids=["fair", "stormy"])
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_random_steps_everything_is_in_the_bucket_once(
    tmp_path: Path, seed: int, stormy: bool, wanted: set[str], say: Callable[[str], None]
) -> None:
    """W2, F10, Q4: after any event, write, sync, commit, or object that was stored and not yet acknowledged."""
    draw = random.Random(seed)
    objects = SimulatedObjectStore(seed)
    world = World(SimulatedWeb(SMALL), tmp_path, SPOOLED, objects=objects)
    moments = [draw.randint(1, STEPS // 2) for _ in range(4)]
    for moment in moments:
        world.crawl(moment)
        objects.weather = STORMY if stormy else objects.weather
    summary = world.crawl()
    assert summary is not None
    assert summary.failure == ""
    check_whole(world, wanted)
    assert spool_of(world.out) == []
    settled = sum(recovered.settled for recovered in world.recovered)
    say(f"killed {world.runs} times after {moments} steps, {settled} settled from the spool; {dict(objects.asked)}")


@pytest.mark.parametrize("seed", range(6))
def test_after_power_losses_everything_is_in_the_bucket_once(tmp_path: Path, seed: int, wanted: set[str]) -> None:
    """W2, Q4: the spool loses what was not synced, journals and indexes included."""
    draw = random.Random(seed)
    lazy = replace(SPOOLED, archive=replace(SPOOLED.archive, sync_ms=draw.choice([100.0, 3000.0, 10_000.0])))
    objects = SimulatedObjectStore(seed)
    world = World(SimulatedWeb(SMALL), tmp_path, lazy, power=draw, objects=objects)
    for moment in [draw.randint(1, STEPS // 2) for _ in range(4)]:
        world.crawl(moment)
    summary = world.crawl()
    assert summary is not None
    check_whole(world, wanted)


@pytest.mark.parametrize("power", [False, True], ids=["kill", "power"])
def test_whatever_step_it_dies_at(tmp_path: Path, power: bool) -> None:
    """W2, F10, Q4: a tiny crawl that dies once, at every third of its steps in turn, the last uploads included."""
    web = SimulatedWeb(WebSpec.plain(9, hosts=2, pages=6, page_bytes=300, links_per_page=4))
    settings = replace(SPOOLED, spool=replace(SPOOLED.spool, segment_bytes=4_000))
    step = 1 + power
    while True:
        draw = random.Random(step) if power else None
        world = World(web, tmp_path / f"at-{step}", settings, power=draw, objects=SimulatedObjectStore())
        if world.crawl(step) is not None:
            break
        assert world.crawl() is not None
        found = contents(world)
        check_whole(world, set(found.pages))
        assert len(found.pages) == 6
        step += 3
    assert step > 80


def test_nothing_counts_before_its_upload_was_acknowledged(tmp_path: Path) -> None:
    """W2: neither confirmed in the frontier nor in the catalogue while the store is away; all of it later."""
    objects = SimulatedObjectStore()
    seen: list[tuple[int, int]] = []

    async def view(running: Crawl) -> None:
        await asyncio.sleep(5)
        objects.away = True
        stored = len(objects.objects)
        await asyncio.sleep(300)
        frontier = running._m.frontier.snapshot()
        seen.append((frontier.states["completed"], frontier.states["pending"]))
        assert len(objects.objects) == stored
        standing = running.snapshot().spool
        assert standing is not None
        assert "connection refused" in standing.away
        assert standing.segments > 3
        assert running._m.bookkeeper._rows == [], "rows wait on disk, not in memory"
        objects.away = False

    web = SimulatedWeb(SMALL)
    summary, recorder = crawl(tmp_path / "crawl", web, objects, view=view)
    [(completed, pending)] = seen
    assert pending > completed
    assert (summary.stopped_by, summary.failure) == (StoppedBy.DONE, "")
    assert spool_of(tmp_path / "crawl") == []
    told = Counter(event.reason for event in recorder.events if event.kind is EventKind.WARNING)
    assert told["store_away"] == told["store_back"] == 1


def test_a_full_spool_holds_fetching_back_until_there_is_room(tmp_path: Path, wanted: set[str]) -> None:
    """W2: nothing new is asked for, nothing grows; it goes on by itself, and says both."""
    objects = SimulatedObjectStore()
    settings = replace(
        SPOOLED,
        spool=replace(SPOOLED.spool, segment_bytes=8_000, max_bytes=60_000),
        fetch=replace(SPOOLED.fetch, concurrency=2),
    )
    sizes: list[int] = []
    fetched: list[int] = []

    async def view(running: Crawl) -> None:
        await asyncio.sleep(3)
        objects.away = True
        for _ in range(10):
            await asyncio.sleep(600)
            standing = running.snapshot().spool
            assert standing is not None
            sizes.append(standing.bytes)
            fetched.append(running.snapshot().responses)
        assert standing.full
        objects.away = False

    summary, recorder = crawl(tmp_path / "crawl", SimulatedWeb(SMALL), objects, settings, view)
    assert len(set(sizes[1:])) == 1, "the spool stands still"
    assert 60_000 <= sizes[-1] < 60_000 + 2 * 600_000, "and holds what was on its way beside: two answers at most"
    assert len(set(fetched[1:])) == 1, "as does fetching"
    assert summary.failure == ""
    assert summary.responses > fetched[-1]
    told = [event.reason for event in recorder.events if event.kind is EventKind.WARNING]
    assert "spool_full" in told
    assert "spool_room" in told
    assert told.count("spool_full") == told.count("spool_room")


def test_what_cannot_be_uploaded_stays_in_the_spool_and_the_next_start_brings_it(
    tmp_path: Path, wanted: set[str]
) -> None:
    """W2: the end waits for --max-wait and no longer, fails with a sentence, and loses nothing."""
    objects = SimulatedObjectStore()

    class Leaving(Recorder):
        def emit(self, event: Any) -> None:
            super().emit(event)
            if event.kind is EventKind.FETCH_OK:
                objects.away = True

    world = World(SimulatedWeb(SMALL), tmp_path, SPOOLED, objects=objects)
    world.recorder = Leaving()
    summary = world.crawl()
    assert summary is not None
    assert summary.stopped_by is StoppedBy.UNSENT
    assert "not all of the archive has arrived" in summary.failure
    assert "nephila flush" in summary.failure
    assert summary.spool is not None
    assert summary.spool.segments > 5
    assert set(world.archive()) == set()
    world.recorder = Recorder()
    objects.away = False
    again = world.crawl()
    assert again is not None
    assert (again.stopped_by, again.failure) == (StoppedBy.DONE, "")
    assert again.responses == 0, "nothing is fetched twice"
    check_whole(world, wanted)
    assert spool_of(world.out) == []


def test_a_catalogue_that_was_moved_away_is_read_from_the_bucket(tmp_path: Path, wanted: set[str]) -> None:
    """W2, W3: the table of contents is built anew from objects, in stretches."""
    objects = SimulatedObjectStore()
    world = World(SimulatedWeb(SMALL), tmp_path, SPOOLED, objects=objects)
    world.crawl()
    before = contents(world)
    for path in world.out.glob("catalogue.sqlite*"):
        path.unlink()
    assert objects.asked["read"] == 0 or objects.asked.pop("read") >= 0
    assert world.crawl() is not None
    assert contents(world) == before
    assert objects.asked["read"] >= len(objects.objects) // 2 - 1
    check_whole(world, wanted)


def test_a_spool_that_was_lost_after_its_upload_is_brought_back(tmp_path: Path, say: Callable[[str], None]) -> None:
    """W2: what the store has is settled, listed and indexed from there, however far its writer had come with it."""
    web = SimulatedWeb(SMALL)
    lost = Counter[str]()
    for step in range(70, 300, 10):
        objects = SimulatedObjectStore()
        world = World(web, tmp_path / str(step), SPOOLED, objects=objects)
        assert world.crawl(step) is None
        arrived = {key.rpartition("/")[2] for key in objects.objects}
        segments = [name for name in arrived if name.endswith(".warc.gz")]
        for path in (world.out / "spool").iterdir():
            if path.name.removesuffix(".rows") in segments:
                path.unlink()
                lost["with its index" if index_name(path.name) in arrived else "without its index"] += 1
        assert world.crawl() is not None
        found = contents(world)
        check_books(found)
        assert {url: count for url, count in found.pages.items() if count > 1} == {}
    assert lost["without its index"] > 0
    say(f"files of the spool that were lost after their upload: {dict(lost)}")


@pytest.mark.parametrize("error", ["away", "refuses"])
def test_a_store_that_cannot_be_used_is_found_out_before_anything_is_fetched(tmp_path: Path, error: str) -> None:
    """W2: a new crawl fails at once; one that goes on spools while the store is away."""
    objects = SimulatedObjectStore(away=error == "away", refuses="there is no bucket" if error == "refuses" else "")
    world = World(SimulatedWeb(SMALL), tmp_path, SPOOLED, objects=objects)
    with pytest.raises(StoreAwayError if error == "away" else StoreRefusedError):
        world.crawl()
    assert world.auditor.report().requests == 0


def test_a_file_for_each_domain_and_hour_goes_there_when_its_hour_is_over(tmp_path: Path, wanted: set[str]) -> None:
    """W1, W2: the layout domain-hour; a crawl over a full hour leaves every domain more than one object."""
    settings = replace(
        SPOOLED,
        archive=replace(SPOOLED.archive, layout="domain-hour"),
        spool=replace(SPOOLED.spool, segment_bytes=10_000_000),
        politeness=replace(SPOOLED.politeness, delay_s=900.0),
    )
    world = World(SimulatedWeb(SMALL), tmp_path, settings, objects=SimulatedObjectStore())
    world.crawl(150)
    assert world.crawl() is not None
    check_books(contents(world))
    names = [name for name in world.archive() if name.endswith(".warc.gz")]
    assert len({name.split("-")[1] for name in names}) > 1, "of several hours"
    assert len({name.rpartition("-w0-")[2] for name in names}) > 3, "and several domains"
    assert set(contents(world).pages) == wanted
    assert spool_of(world.out) == []


def test_two_crawls_never_share_a_prefix(tmp_path: Path) -> None:
    """W2: the second one is told whose it is, before anything is fetched."""
    objects = SimulatedObjectStore()
    web = SimulatedWeb(WebSpec.plain(9, hosts=2, pages=6, page_bytes=300, links_per_page=4))
    crawl(tmp_path / "one", web, objects)
    with pytest.raises(StoreRefusedError, match="holds the archive of another crawl"):
        crawl(tmp_path / "two", web, objects)


def test_half_made_uploads_of_the_dead_are_aborted(tmp_path: Path) -> None:
    """W2: at the next start, those of this crawl and no others."""
    objects = SimulatedObjectStore(half_made=["spiders/nephila-1-w0.warc.gz", "spiders-too/nephila-1-w0.warc.gz"])
    web = SimulatedWeb(WebSpec.plain(9, hosts=2, pages=6, page_bytes=300, links_per_page=4))
    crawl(tmp_path / "one", web, objects)
    assert objects.half_made == ["spiders-too/nephila-1-w0.warc.gz"]


class SomeAreSlow(SimulatedObjectStore):
    """Every second segment takes a minute more to arrive. Remembers what was sent and what arrived, in order."""

    def __init__(self) -> None:
        super().__init__(5)
        self.under_way_too: set[str] = set()
        self.most_segments = 0
        self.dangling: list[str] = []
        """Revisits that lay in the store without their original after some segment had arrived."""
        self.is_closed = False

    async def create(self, key: str, body: ObjectBody) -> None:
        if not key.endswith(".warc.gz"):
            await super().create(key, body)
            return
        if self.is_closed:
            raise StoreAwayError("closed")
        self.under_way_too.add(key)
        self.most_segments = max(self.most_segments, len(self.under_way_too))
        if serial_of(key) % 2 == 0:
            await asyncio.sleep(60)
        try:
            await super().create(key, body)
        finally:
            self.under_way_too.discard(key)
        self.dangling += revisits_of_nothing(self)

    def arrived(self) -> list[int]:
        """The numbers of segments, in the order in which they arrived."""
        return [serial_of(key) for key in self.objects if key.endswith(".warc.gz")]


def serial_of(key: str) -> int:
    [found] = re.findall(r"-\d{14}-(\d{5})-w", key)
    return int(found)


def revisits_of_nothing(store: SimulatedObjectStore) -> list[str]:
    text = b"".join(gzip.decompress(data) for key, (data, _) in store.objects.items() if key.endswith(".warc.gz"))
    there = set(re.findall(rb"WARC-Record-ID: (\S+)", text))
    return [one.decode() for one in re.findall(rb"WARC-Refers-To: (\S+)", text) if one not in there]


COPIES = replace(
    WebSpec.standard(7), hosts=6, pages=150, page_bytes=1500, links_per_page=10, page_mix=PageMix(duplicate=0.5)
)
BY_HOUR = replace(SPOOLED, archive=replace(SPOOLED.archive, layout="domain-hour"))


@pytest.mark.parametrize(
    ("settings", "at_once"), [(SPOOLED, 1), (BY_HOUR, SPOOLED.s3.uploads)], ids=["rolling", "hour"]
)
def test_no_revisit_arrives_before_its_original(settings: Settings, at_once: int, tmp_path: Path) -> None:
    """D2, W2: whatever else of the spool is lost. By the order of segments, or by what may be referred to."""
    objects = SomeAreSlow()
    world = World(SimulatedWeb(COPIES), tmp_path, settings, objects=objects)
    summary = world.crawl()
    assert summary is not None
    assert summary.failure == ""
    assert objects.dangling == []
    assert objects.most_segments == at_once
    if settings is SPOOLED:
        assert objects.arrived() == sorted(objects.arrived())
        assert summary.duplicates > 50
    assert spool_of(world.out) == []


@pytest.mark.parametrize("settings", [SPOOLED, BY_HOUR], ids=["rolling", "hour"])
def test_what_an_earlier_run_left_arrives_first_and_in_order(settings: Settings, tmp_path: Path) -> None:
    """D2, W2: what is stored now may refer to it, in whatever layout."""
    objects = SomeAreSlow()
    world = World(SimulatedWeb(COPIES), tmp_path, SPOOLED, objects=objects)
    objects.is_closed = True
    assert world.crawl(400) is None
    left = [serial_of(name) for name in spool_of(world.out) if name.endswith(".warc.gz")]
    assert len(left) > 3
    objects.is_closed = False
    world.settings = settings
    assert world.crawl() is not None
    assert objects.dangling == []
    assert objects.arrived()[: len(left)] == left


def test_nothing_overtakes_a_segment_that_cannot_be_brought(tmp_path: Path) -> None:
    """D2, W2: its crawl ends with a sentence, and does not wait; indexes and segments before it have arrived."""

    class Occupied(SimulatedObjectStore):
        async def create(self, key: str, body: ObjectBody) -> None:
            if key.endswith(".warc.gz") and serial_of(key) == 3:
                self.objects[key] = (b"of somebody else", "")
            await super().create(key, body)

    objects = Occupied()
    world = World(SimulatedWeb(COPIES), tmp_path, SPOOLED, objects=objects)
    summary = world.crawl()
    assert summary is not None
    assert "holds something else than what was to be stored there" in summary.failure
    assert [serial_of(key) for key in objects.objects if key.endswith(".warc.gz")] == [0, 1, 2, 3]
    assert [serial_of(key) for key in objects.objects if key.endswith(".cdxj")] == [0, 1, 2]
    assert summary.spool is not None
    assert summary.spool.segments > 1


def test_a_slow_store_is_given_indexes_beside_a_segment(tmp_path: Path) -> None:
    """W2: no more than a few uploads at once."""
    objects = SimulatedObjectStore(weather=Weather(latency_s=15.0))
    summary, _ = crawl(tmp_path / "crawl", SimulatedWeb(SMALL), objects)
    assert summary.failure == ""
    assert 1 < objects.most_under_way <= SPOOLED.s3.uploads


def test_ctrl_c_does_not_wait_for_the_store(tmp_path: Path) -> None:
    """W2, F10: what is not uploaded stays in the spool, and the exit is that of an interrupt."""
    objects = SimulatedObjectStore()
    ended: list[float] = []

    async def view(running: Crawl) -> None:
        await asyncio.sleep(5)
        objects.away = True
        await asyncio.sleep(60)
        ended.append(asyncio.get_running_loop().time())
        running.stop(StoppedBy.INTERRUPT)

    clock_at_end: list[float] = []

    async def watched(running: Crawl) -> None:
        try:
            await view(running)
            await asyncio.sleep(10_000)
        finally:
            clock_at_end.append(asyncio.get_running_loop().time())

    summary, _ = crawl(tmp_path / "crawl", SimulatedWeb(SMALL), objects, view=watched)
    assert (summary.stopped_by, summary.failure) == (StoppedBy.INTERRUPT, "")
    assert summary.spool is not None
    assert summary.spool.segments > 0
    assert clock_at_end[0] - ended[0] < 6


def test_ctrl_c_in_the_last_uploads_is_an_interrupt(tmp_path: Path) -> None:
    """W2, F10: everything is fetched, the store is away, nobody wants to wait: the rest stays, and is told."""
    objects = SimulatedObjectStore()

    async def view(running: Crawl) -> None:
        await asyncio.sleep(2)
        objects.away = True
        while running._stopped_by is None:  # noqa: ASYNC110 - what it waits for has no event, and time is virtual
            await asyncio.sleep(1)
        running.stop(StoppedBy.INTERRUPT)

    web = SimulatedWeb(WebSpec.plain(9, hosts=2, pages=6, page_bytes=300, links_per_page=4))
    summary, _ = crawl(tmp_path / "crawl", web, objects, view=view)
    assert (summary.stopped_by, summary.failure, summary.pages) == (StoppedBy.INTERRUPT, "", 6)
    assert summary.spool is not None
    assert summary.spool.segments > 0
