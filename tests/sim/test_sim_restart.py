"""Crawls that die at any step and go on, held against one that nobody disturbed."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from crashes import World
from simulation import PATIENT
from three_books import check_books, check_whole, contents

from nephila.model.events import EventKind
from nephila.testing.web import SimulatedWeb, WebSpec
from nephila.testing.web.truth import Expect

SMALL = replace(WebSpec.standard(5), hosts=8, pages=60, page_bytes=1500, links_per_page=10)
"""Everything that a standard web has, in small."""
ROLLING = replace(PATIENT, archive=replace(PATIENT.archive, max_bytes=30_000))
"""Many small archive files, so that crashes meet some that are finished and some that are not."""
STEPS = 450
"""An undisturbed crawl takes somewhat more."""


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The pages of an undisturbed crawl, which are those that can be had."""
    world = World(SimulatedWeb(SMALL), tmp_path_factory.mktemp("calm"), ROLLING)
    summary = world.crawl()
    assert summary is not None
    check_whole(world, set(contents(world).pages))
    pages = set(contents(world).pages)
    assert world.web.truth("Nephila").urls(Expect.PAGE, Expect.RECOVERS) <= pages
    return pages


@pytest.mark.parametrize("seed", range(8))
def test_killed_at_random_steps_it_ends_with_the_same_pages(
    tmp_path: Path, seed: int, wanted: set[str], say: Callable[[str], None]
) -> None:
    """F10, F3, Q4, W3, P2: after any event, write, sync or commit, once or several times."""
    draw = random.Random(seed)
    world = World(SimulatedWeb(SMALL), tmp_path, ROLLING)
    moments = [draw.randint(1, STEPS // 2) for _ in range(4)]
    for moment in moments:
        world.crawl(moment)
    summary = world.crawl()
    assert summary is not None
    check_whole(world, wanted)
    settled = sum(recovered.settled for recovered in world.recovered)
    say(f"killed {world.runs} times after {moments} steps, {settled} settled from the archive")


@pytest.mark.parametrize("seed", range(8))
def test_after_power_losses_it_ends_with_the_same_pages(
    tmp_path: Path, seed: int, wanted: set[str], say: Callable[[str], None]
) -> None:
    """F10, Q4, W2, W3: the archive loses what was not synced, the catalogue what was not checkpointed."""
    draw = random.Random(seed)
    lazy = replace(ROLLING, archive=replace(ROLLING.archive, sync_ms=draw.choice([100.0, 3000.0, 10_000.0])))
    world = World(SimulatedWeb(SMALL), tmp_path, lazy, power=draw)
    moments = [draw.randint(1, STEPS // 2) for _ in range(4)]
    for moment in moments:
        world.crawl(moment)
    summary = world.crawl()
    assert summary is not None
    check_whole(world, wanted)
    say(f"{world.runs} power losses after {moments} steps; at last {world.recovered[-1]}")


@pytest.mark.parametrize("power", [False, True], ids=["kill", "power"])
def test_whatever_step_it_dies_at(tmp_path: Path, power: bool) -> None:
    """F10, Q4: a tiny crawl that dies once, at every third of its steps in turn."""
    web = SimulatedWeb(WebSpec.plain(9, hosts=2, pages=6, page_bytes=300, links_per_page=4))
    calm = World(web, tmp_path / "calm")
    calm.crawl()
    wanted = set(contents(calm).pages)
    assert len(wanted) == 6
    step = 1 + power
    while True:
        world = World(web, tmp_path / f"at-{step}", power=random.Random(step) if power else None)
        if world.crawl(step) is not None:
            break
        assert world.crawl() is not None
        check_whole(world, wanted)
        step += 3
    assert step > 60


# Cycles

CHANGING = replace(
    SMALL,
    wire=replace(SMALL.wire, validators=1.0, lying=0.0, changing=0.4),
    timing=replace(SMALL.timing, change_s=3600.0),
)


@pytest.mark.parametrize("crash_at", [0, 120], ids=["calm", "killed"])
def test_a_second_cycle_asks_again_and_keeps_what_has_not_changed(tmp_path: Path, crash_at: int) -> None:
    """F2, H3, D2, W1: 304 is a revisit, a changed page is a new response, no page is lost."""
    world = World(SimulatedWeb(CHANGING), tmp_path, ROLLING)
    world.crawl()
    first = contents(world)
    world.clock.advance(3 * 3600)
    world.auditor.new_cycle()
    known = len(world.recorder.events)
    if crash_at:
        assert world.crawl(crash_at, new_cycle=True) is None
    summary = world.crawl(new_cycle=not crash_at)
    assert summary is not None
    second = contents(world)
    check_books(second)
    assert set(second.pages) == set(first.pages)
    told = Counter(event.status for event in world.recorder.events[known:] if event.kind is EventKind.FETCH_OK)
    changed = {url for url, count in second.pages.items() if count > 1}
    assert told[304] > 10
    assert changed
    connection = sqlite3.connect(f"file:{world.out}/catalogue.sqlite?mode=ro", uri=True)
    kinds = dict(connection.execute("SELECT kind, count(*) FROM captures WHERE status = 304 GROUP BY kind"))
    twice = connection.execute("SELECT count(*) FROM pages WHERE crawl_count >= 2 AND status IN (200, 304)").fetchone()[
        0
    ]
    connection.close()
    assert kinds == {"revisit": told[304]} if not crash_at else set(kinds) == {"revisit"}
    assert twice >= len(first.pages)
    assert {violation.kind for violation in world.auditor.report().violations} <= ({"repeat"} if crash_at else set())
