"""What the workers of a fleet leave in the store as evidence, audited from there, on real engines (K1)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fleet_engines import Engines, Fleet
from seaweed import ask_object
from served import ServedWeb, served_articles
from waiting import wait_until

from nephila.config import load
from nephila.node.archiving import object_store
from nephila.node.audit import Audit, audit_fleet
from nephila.node.clock import SystemClock
from nephila.store import ArchivePlace
from nephila.store.rotation import WARC_SUFFIX
from nephila.store.trail_place import TrailListing
from nephila.testing.web import AuditReport

DELAY_S = 0.3
SHORT = {"more": "[frontier]\nlease_s = 15", "fetch": "timeout_s = 12"}
"""What a worker that is killed held is free again soon."""


@dataclass
class Crawled:
    """A crawl by three workers, of whom one was killed and came back."""

    fleet: Fleet
    seen: AuditReport
    """By the servers."""
    listing: TrailListing

    def audit(self, **more: object) -> Audit:
        """From the store alone."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.fleet.environ.items():
                patch.setenv(name, value)
            return audit_fleet(load(file=self.fleet.settings).settings, **more)  # type: ignore[arg-type]

    @contextmanager
    def changed(self, key: str, data: bytes | None) -> Iterator[None]:
        """With an object replaced, removed or put in; afterwards as it was."""
        store = self.fleet.engines.store
        status, before = ask_object(store, "GET", key)
        if data is None:
            ask_object(store, "DELETE", key)
        else:
            ask_object(store, "PUT", key, data)
        try:
            yield
        finally:
            if status == 200:
                ask_object(store, "PUT", key, before)
            else:
                ask_object(store, "DELETE", key)

    def data(self, key: str) -> bytes:
        return ask_object(self.fleet.engines.store, "GET", key)[1]


def listing_of(fleet: Fleet) -> TrailListing:
    """What lies in the store."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in fleet.environ.items():
            patch.setenv(name, value)
        settings = load(file=fleet.settings).settings
        place = ArchivePlace.parse(settings.archive.url)

        async def keys() -> list[str]:
            store = object_store(settings, SystemClock(), uploads=1)
            try:
                return await store.keys(place.key(""))
            finally:
                await store.close()

        return TrailListing(place, asyncio.run(keys()))


def web_of(hold: ExitStack, folder: Path, pages: int, *, seed: int, hosts: int) -> ServedWeb:
    made = served_articles(folder / "web", seed, hosts=hosts, pages=pages, delay_s=DELAY_S, latency_ms=60)
    return hold.enter_context(made)


@pytest.fixture(scope="module")
def crawled(lasting_engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("fleet-audit")
    with ExitStack() as hold:
        web = web_of(hold, folder, 400, seed=81, hosts=16)
        fleet = hold.enter_context(Fleet(folder / "fleet", lasting_engines, web, DELAY_S, **SHORT))
        fleet.seed()
        first, second, third = fleet.start("first"), fleet.start("second"), fleet.start("third")
        wait_until(lambda: fleet.pages >= 60, "nothing is fetched")
        second.kill_and_begin()
        for worker in (first, second, third):
            worker.end(120)
        yield Crawled(fleet, web.audit(), listing_of(fleet))


def test_the_audit_of_a_fleet_is_clean_and_every_request_is_on_record(
    crawled: Crawled, say: Callable[[str], None]
) -> None:
    """K1, P5, N1, W2: robots.txt, delays and addresses over all workers, from the store alone; every byte is sealed."""
    found = json.loads(crawled.fleet.say("audit", "--json"))
    assert found["clean"], (found["trail"]["breaches"], found["findings"][:3])
    trail = found["trail"]
    assert (len(trail["heads"]), trail["ended"], trail["unsealed_bytes"], trail["under_way"]) == (3, True, 0, 0)
    assert crawled.seen.requests - 8 <= found["requests"] <= crawled.seen.requests, "but what was on the wire"
    assert found["judged"] > 350
    assert found["gaps"] > 300
    assert found["shortest_gap_ms"] >= DELAY_S * 1000 - 1
    keys = [*crawled.listing.archives.values(), *(key for of in crawled.listing.events.values() for key in of.values())]
    sealed = [key for key in keys if not key.endswith(".cdxj")]
    assert trail["sealed_bytes"] == sum(len(crawled.data(key)) for key in sealed)
    say(f"{found['requests']} requests of 3 workers, {len(sealed)} sealed objects, {trail['lines']} lines")
    host = max(crawled.seen.hosts, key=lambda name: crawled.seen.hosts[name].requests)
    assert 0 < json.loads(crawled.fleet.say("audit", "--host", host, "--json"))["requests"] < found["requests"]
    told = crawled.fleet.say("audit", "--expect", next(iter(trail["heads"].values())))
    assert told.splitlines()[0] == f"Audit of the crawl {crawled.fleet.crawl}: clean"
    assert "0" * 64 in crawled.fleet.say("audit", "--expect", "0" * 64, code=1)


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def blamed(found: Audit) -> str:
    assert not found.is_clean
    return " ".join(f"{breach.file}: {breach.what}" for breach in found.trail.breaches)


def test_an_archive_that_is_changed_removed_or_added_is_noticed(crawled: Crawled) -> None:
    """K1, W2: whoever may write in the bucket is found out by the chain of the worker that wrote it."""
    name, key = sorted(item for item in crawled.listing.archives.items() if item[0].endswith(WARC_SUFFIX))[3]
    data = crawled.data(key)
    for change in (flipped(data), data[:-200], data + data, None):
        with crawled.changed(key, change):
            assert f"warc/{name}" in blamed(crawled.audit())
    added = key.replace("-w", "-w7")
    with crawled.changed(added, data):
        assert "no worker's chain knows it" in blamed(crawled.audit())
    assert crawled.audit().is_clean


def test_an_event_file_or_a_stretch_of_a_chain_that_is_changed_or_removed_is_noticed(crawled: Crawled) -> None:
    """K1: events and chains lie in the bucket like archives, and are sealed like them."""
    owner = crawled.listing.owners[0]
    name, key = min(crawled.listing.events[owner].items())
    for change in (flipped(crawled.data(key)), None):
        with crawled.changed(key, change):
            assert f"{owner}/events/{name}" in blamed(crawled.audit())
    stretch = crawled.listing.chains[owner][1].key
    for change in (flipped(crawled.data(stretch)), None):
        with crawled.changed(stretch, change):
            assert f"{owner}/chain/w0.jsonl" in blamed(crawled.audit())


def test_a_whole_trail_that_is_taken_away_is_missed_by_the_others(crawled: Crawled) -> None:
    """K1: every worker notes the heads of the others when it begins and when it ends."""
    owner = crawled.listing.owners[1]
    keys = [*crawled.listing.events[owner].values(), *(one.key for one in crawled.listing.chains[owner])]
    with ExitStack() as hold:
        for key in keys:
            hold.enter_context(crawled.changed(key, None))
        assert f"{owner}/chain/w0.jsonl: the chain is missing" in blamed(crawled.audit())


def test_a_fleet_that_is_at_work_is_not_accused_of_what_has_not_arrived(tmp_path: Path, engines: Engines) -> None:
    """K1, W2: while workers run, and when some of them are gone for good with what they had not uploaded."""
    with ExitStack() as hold:
        web = web_of(hold, tmp_path, 200, seed=82, hosts=8)
        fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, DELAY_S, **SHORT))
        fleet.seed()
        stays, goes = fleet.start("stays"), fleet.start("goes")
        crawl = Crawled(fleet, web.audit(), TrailListing(ArchivePlace("none", ""), ()))
        wait_until(lambda: fleet.pages >= 40, "nothing is fetched")
        goes.kill()
        for _ in range(3):
            found = crawl.audit()
            assert found.is_clean, (found.trail.breaches, found.findings[:3])
            assert not found.trail.ended
            time.sleep(1)
        stays.process.kill()
        stays.process.wait()
        found = crawl.audit()
        assert found.is_clean, (found.trail.breaches, found.findings[:3])


def test_a_worker_that_ended_well_is_started_again_on_its_directory(tmp_path: Path, engines: Engines) -> None:
    """K1, N3, W2: all that it wrote has left its disk; what it writes now lies beside that, and the trail is whole."""
    with ExitStack() as hold:
        web = web_of(hold, tmp_path, 80, seed=83, hosts=8)
        fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, DELAY_S))
        fleet.seed()
        worker = fleet.start("again", "--set", "limits.max_pages=10")
        worker.end(60, code=3)
        worker.more = ()
        for _ in range(2):
            assert list((tmp_path / "fleet" / "again" / "events").iterdir()) == []
            worker.begin()
            worker.end(90)
        found = json.loads(fleet.say("audit", "--json"))
        assert found["clean"], (found["trail"]["breaches"], found["findings"][:3])
        assert (found["trail"]["ended"], found["trail"]["under_way"]) == (True, 0)
        assert max(fleet.stored().values()) == 1
