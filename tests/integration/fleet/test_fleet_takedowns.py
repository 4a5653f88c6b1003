"""The parts of a fleet's takedowns: records and receipts in a store, the lock, and how a worker goes quiet."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import postgres
import pytest
from postgres import Postgres

from nephila.dedup import LmdbNearIndex, MemoryDigestIndex, SharedDigestIndex
from nephila.engines.postgres_address import PostgresAddress
from nephila.engines.postgres_lock import PostgresLock
from nephila.model.errors import DatabaseAwayError, EngineAwayError, StorageError, UsageError
from nephila.model.settings import CatalogueSettings, FleetSettings, Settings, SpoolSettings
from nephila.node.addressing import identify_with
from nephila.node.clock import SystemClock
from nephila.node.directory import CrawlDirectory
from nephila.node.evidence import Evidence
from nephila.node.fleet.purging import check_region
from nephila.node.fleet.quiet import Hold, Quiet
from nephila.node.fleet.takedown_records import TakedownObjects
from nephila.node.fleet.trail_shipping import TrailShipper
from nephila.node.takedown import Order, Takedown, TakedownState
from nephila.store import ArchivePlace
from nephila.store.stored_chain import StoredChain
from nephila.store.trail_line import Receipt
from nephila.testing.contracts.digests import sample_digest, sample_original
from nephila.testing.objects import SimulatedObjectStore, Weather
from nephila.urls import Identifier, NormalRules, UrlLimits

AT_ONCE = Weather(latency_s=0.0, bytes_per_s=1e12)
PLACE = ArchivePlace("bucket", "crawl")
ORDER = Order(("https://example.org/a",), ("example.net",), "they asked us", "me")


@pytest.fixture
def store() -> SimulatedObjectStore:
    return SimulatedObjectStore(weather=AT_ONCE)


def test_records_in_a_store_have_numbers_of_their_own_and_are_never_changed(store: SimulatedObjectStore) -> None:
    """K2, W2: filed by several at once, each has one; what is done is told by a second object."""
    one, two = TakedownObjects(store, PLACE), TakedownObjects(store, PLACE)
    assert [one.add(ORDER, 1).id, two.add(ORDER, 2).id, one.add(ORDER, 3).id] == ["000001", "000002", "000003"]
    filed = dict(store.objects)
    assert [known.id for known in two.pending()] == ["000001", "000002", "000003"]
    two.save(Takedown("000002", ORDER, 2, TakedownState.DONE, captures=7))
    one.save(Takedown("000002", ORDER, 2, TakedownState.DONE, captures=8))
    done = one.get("000002")
    assert done is not None
    assert (done.state, done.captures) == (TakedownState.DONE, 7), "the first who says so is believed"
    assert [known.id for known in one.pending()] == ["000001", "000003"]
    assert [known.id for known in one.newest(2)] == ["000003", "000002"]
    assert [known.id for known in one.newest(9, before="000002")] == ["000001"]
    assert (one.count(), one.get("000004"), one.get("../x")) == (3, None, None)
    assert filed.items() <= store.objects.items()


def test_receipts_in_a_store_are_a_chain_that_anybody_goes_on_with(store: SimulatedObjectStore) -> None:
    """K1, K2: every line holds to the one before; a run that has ended says so once; a changed line is noticed."""
    receipt = Receipt("warc/a.warc.gz", (1, "0" * 64), (1, "1" * 64), ["2" * 64], "takedown 000001")
    StoredChain(store, PLACE, SystemClock()).append(end=True)
    assert store.objects == {}, "nothing happened"
    StoredChain(store, PLACE, SystemClock()).append([receipt])
    for _ in range(2):
        StoredChain(store, PLACE, SystemClock()).append(end=True)
    StoredChain(store, PLACE, SystemClock()).append([receipt, receipt], end=True)
    lines = list(StoredChain(store, PLACE, SystemClock()).lines())
    assert [line.n for line in lines] == list(range(6))
    assert [line.prev for line in lines[1:]] == [line.hash for line in lines[:-1]]
    assert [line.end for line in lines] == [False, False, True, False, False, True]
    assert [line.chain for line in lines] == ["w0", "", "", "", "", ""]
    found, head = StoredChain(store, PLACE, SystemClock()).receipts()
    assert ([one for _, one in found], head) == ([receipt] * 3, lines[-1].hash)
    key = next(key for key in store.objects if "chain-000000000003" in key)
    data = store.objects[key][0].replace(b"000001", b"000002")
    store.objects[key] = (data, sha256(data).hexdigest())
    with pytest.raises(StorageError, match="was changed"):
        StoredChain(store, PLACE, SystemClock()).receipts()


def test_what_another_group_asks_is_ordered_there() -> None:
    """K2, N6: its archive is another one; a block would hold, and nothing would be taken out."""
    whole = Settings(fleet=FleetSettings(regions=("eu=de,example.org",)))
    check_region(whole, ORDER.__class__((), ("example.net",), "why", "me"))
    with pytest.raises(UsageError, match="belongs to the group eu"):
        check_region(whole, ORDER)
    abroad = Settings(fleet=FleetSettings(regions=("eu=de,example.org",), group="eu"))
    with pytest.raises(UsageError, match=r"example\.net belongs to no group"):
        check_region(abroad, ORDER)


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres.running() as server:
        yield server


def test_one_at_a_time_holds_the_lock_and_knows_when_it_is_lost(database: Postgres) -> None:
    """K2, N3: by name; let go of it is free; a server that went away has let go of it."""

    async def run() -> None:
        address = PostgresAddress.of(CatalogueSettings(url=database.url), database.environ)
        one, two, other = (PostgresLock(address, name) for name in ("a", "a", "b"))
        assert (await one.acquire(), await two.acquire(), await other.acquire()) == (True, False, True)
        await one.check()
        with pytest.raises(StorageError, match="was lost"):
            await two.check()
        await one.release()
        for _ in range(50):  # the server notices the end of a connection in its own time
            if await two.acquire():
                break
            await asyncio.sleep(0.1)
        await two.check()
        await asyncio.to_thread(database.crash)
        with pytest.raises(StorageError, match="was lost"):
            await two.check()
        with pytest.raises(DatabaseAwayError):
            await one.acquire()
        await asyncio.to_thread(database.start)
        assert await one.acquire()
        for lock in (one, two, other):
            await lock.release()

    asyncio.run(run())


class Nobody:
    """Servers that are not asked."""

    async def call(self, *_: object) -> object:
        raise EngineAwayError("nobody there")

    async def run(self, *_: object) -> object:
        raise EngineAwayError("nobody there")


class Held:
    """What a worker holds, in the hands of a test."""

    def __init__(self, folder: Path) -> None:
        self.working: set[object] = {"before"}
        self.left = {"open.warc.gz", "events-000001.jsonl"}
        self.did: list[str] = []
        self.looks = 0
        self.away = False
        self.contents = SharedDigestIndex(MemoryDigestIndex(), Nobody(), "quiet")
        self.near = LmdbNearIndex(folder, "boot")
        for number in (1, 2):
            self.contents.remember(sample_digest(number), sample_original(number))

    def orders(self) -> list[Takedown]:
        if self.away:
            raise StorageError("the store does not answer")
        self.did.append("read")
        return [Takedown("000001", Order((sample_original(1).url,), (), "why", "me"), 1)]

    def flush(self) -> None:
        """Nothing was told."""

    def roll(self) -> None:
        self.did.append("roll")

    def hold(self) -> Hold:
        identify = identify_with(Identifier(7, NormalRules(), UrlLimits()))

        def working() -> frozenset[object]:
            self.looks += 1
            return frozenset(self.working)

        def left() -> frozenset[str]:
            return frozenset(self.left)

        return Hold(self.orders, identify, self.contents, self.near, working, self.flush, self.roll, left, lambda: None)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - a test
            await asyncio.sleep(0.02)


def test_a_worker_is_quiet_when_nothing_of_it_can_come_any_more(tmp_path: Path) -> None:
    """K2, N3: what was claimed ends, what is kept is forgotten, what is being judged ends, files arrive; not before."""

    async def run() -> None:
        held = Held(tmp_path)
        quiet = Quiet(held.hold())
        task = asyncio.create_task(quiet.run())
        held.away = True
        quiet.hear(5)
        await asyncio.sleep(0.3)
        assert held.did == [], "a page that was claimed before is on its way"
        held.working = {"judging"}
        held.away = False
        await until(lambda: held.did == ["read"])
        await until(lambda: held.contents.find(sample_digest(1)) is None)
        assert held.contents.find(sample_digest(2)) == sample_original(2)
        looks = held.looks
        await until(lambda: held.looks > looks + 1)
        assert "roll" not in held.did, "what is being judged may refer to it"
        held.working = {"after"}
        await until(lambda: held.did == ["read", "roll"])
        held.left = {"events-000001.jsonl", "of-later.warc.gz"}
        await asyncio.sleep(0.3)
        assert quiet.answered == 0, "an event file has not arrived"
        held.left = {"of-later.warc.gz"}
        await until(lambda: quiet.answered == 5)
        quiet.hear(4)
        quiet.hear(5)
        await asyncio.sleep(0.2)
        assert held.did == ["read", "roll"], "it was answered"
        held.away = True
        quiet.hear(6)
        held.working, held.left = set(), set()
        await asyncio.sleep(0.3)
        held.away = False
        await until(lambda: quiet.answered == 6)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        held.near.close()

    asyncio.run(run())


class Told:
    """Event file and chain, which note in which thread they are written."""

    def __init__(self) -> None:
        self.flushed: list[bool] = []
        self.sealed: list[bool] = []

    def flush(self) -> None:
        self.flushed.append(threading.current_thread() is threading.main_thread())

    def seal(self, *, now: bool) -> None:
        assert now
        self.sealed.append(threading.current_thread() is threading.main_thread())


def test_events_are_written_on_the_loop_and_sealed_beside_it(tmp_path: Path, store: SimulatedObjectStore) -> None:
    """K1, O1: an event that is told while a thread writes the others could be lost, or break off the writing."""
    told = Told()
    evidence = cast("Evidence", SimpleNamespace(sink=told, trail=told))
    settings, clock = SpoolSettings(), SystemClock()
    shipper = TrailShipper(CrawlDirectory(tmp_path), evidence, "a" * 16, (store, PLACE), settings, clock, print)
    asyncio.run(shipper._seal())
    assert (told.flushed, told.sealed) == ([True], [False])
