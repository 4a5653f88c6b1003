"""Audits of crawls whose archive is in a store of objects: finished, cut off, and changed in the store afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from crashes import World
from simulation import PATIENT

from nephila.engines.disk import Disk
from nephila.node.audit import Audit, audit
from nephila.store.rotation import WARC_SUFFIX
from nephila.testing.objects import SimulatedObjectStore, Weather
from nephila.testing.web import SimulatedWeb, WebSpec

SMALL = replace(WebSpec.standard(5), hosts=8, pages=60, page_bytes=1500, links_per_page=10)
CALM = Weather(latency_s=0.0)
SPOOLED = replace(
    PATIENT,
    archive=replace(PATIENT.archive, url="s3://crawls/spiders"),
    spool=replace(PATIENT.spool, segment_bytes=30_000, segment_age_s=20.0),
)


def checked(out: Path, objects: SimulatedObjectStore, disk: Disk | None = None) -> Audit:
    """The audit of a crawl that says where its archive is."""
    (out / "config.toml").write_text('[archive]\nurl = "s3://crawls/spiders"\n')
    calm = SimulatedObjectStore(weather=CALM, objects=objects.objects)
    return audit(out, objects=calm, disk=disk)


def archives(objects: SimulatedObjectStore) -> list[str]:
    return sorted(key for key in objects.objects if key.endswith(WARC_SUFFIX))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(SimulatedWeb(SMALL), tmp_path_factory.mktemp("crawl"), SPOOLED, objects=SimulatedObjectStore())
    world.crawl()
    return world


def test_a_crawl_into_a_store_is_audited_from_there(finished: World, say: Callable[[str], None]) -> None:
    """K1, P5, W2: every request that the servers saw is on record, and every byte of the store is sealed."""
    assert finished.objects is not None
    found = checked(finished.out, finished.objects)
    assert found.is_clean, (found.trail.breaches, found.findings)
    assert found.trail.ended
    assert (found.trail.unsealed_bytes, found.trail.under_way, found.trail.older_files) == (0, 0, 0)
    sizes = {key: len(data) for key, (data, _) in finished.objects.objects.items() if key.endswith(WARC_SUFFIX)}
    assert len(sizes) > 3
    events = sum(path.stat().st_size for path in (finished.out / "events").iterdir())
    assert found.trail.sealed_bytes == sum(sizes.values()) + events
    assert found.judged > 40
    say(f"{found.requests} requests, {len(sizes)} objects, {found.trail.sealed_bytes:,} bytes sealed")


def a_byte_is_changed(objects: dict[str, tuple[bytes, str]], key: str) -> None:
    data, digest = objects[key]
    middle = len(data) // 2
    objects[key] = (data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :], digest)


def the_end_is_cut_off(objects: dict[str, tuple[bytes, str]], key: str) -> None:
    objects[key] = (objects[key][0][:-100], objects[key][1])


def something_is_put_in(objects: dict[str, tuple[bytes, str]], key: str) -> None:
    objects[key] = (objects[key][0] * 2, objects[key][1])


def an_object_is_removed(objects: dict[str, tuple[bytes, str]], key: str) -> None:
    del objects[key]


def an_object_is_added(objects: dict[str, tuple[bytes, str]], key: str) -> None:
    objects[key.replace("-w0", "-w7")] = objects[key]


@pytest.mark.parametrize(
    "tamper",
    [a_byte_is_changed, the_end_is_cut_off, something_is_put_in, an_object_is_removed, an_object_is_added],
    ids=lambda tamper: tamper.__name__,
)
def test_what_is_changed_in_the_store_is_noticed(finished: World, tamper: Callable[..., None]) -> None:
    """K1, W2: the chain in the crawl directory knows every byte that left it."""
    assert finished.objects is not None
    changed = SimulatedObjectStore(objects=deepcopy(finished.objects.objects))
    key = archives(changed)[1]
    tamper(changed.objects, key)
    found = checked(finished.out, changed)
    assert not found.is_clean
    named = {breach.file for breach in found.trail.breaches}
    assert any(key.rpartition("/")[2][:30] in file for file in named), named


@pytest.mark.parametrize("power", [False, True], ids=["kill", "power"])
@pytest.mark.parametrize("seed", range(3))
def test_after_any_crash_the_trail_of_the_store_is_whole(
    tmp_path: Path, seed: int, power: bool, say: Callable[[str], None]
) -> None:
    """K1, H1, W2: what waits in the spool counts as what has arrived does, and nothing looks like tampering."""
    draw = random.Random(seed)
    objects = SimulatedObjectStore(seed=seed, weather=Weather(lost_after=0.1, lost_before=0.1))
    lost = random.Random(seed) if power else None
    world = World(SimulatedWeb(SMALL), tmp_path, SPOOLED, power=lost, objects=objects)
    for _ in range(4):
        if world.crawl(draw.randint(1, 300)) is not None:
            break
        found = checked(world.out, objects, world.disk)
        assert found.is_clean, (world.runs, found.trail.breaches, found.findings[:3])
    world.crawl()
    found = checked(world.out, objects, world.disk)
    assert found.is_clean, (found.trail.breaches, found.findings[:3])
    assert found.trail.ended
    assert found.trail.unsealed_bytes == 0
    say(f"{world.runs} crashes: {found.requests} requests, {found.untold} untold, {found.lost} lost")
