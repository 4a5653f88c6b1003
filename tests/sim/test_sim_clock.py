"""Crawls that die while somebody sets the wall clock back and forth: no host notices.

Every run but the last is killed without any clean-up. Before the next one the wall clock jumps by days, and sometimes
the machine starts anew, which makes its steady clock begin at 0.
"""

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

from nephila.model.settings import RecrawlSettings
from nephila.testing.web import SimulatedWeb, WebSpec
from nephila.testing.web.audit_report import ViolationKind

DAY_S = 86_400.0
JUMPS_S = (-400 * DAY_S, -3 * DAY_S, -3600.0, -1.0, 1.0, 3600.0, 3 * DAY_S, 400 * DAY_S)
SMALL = replace(WebSpec.standard(6), hosts=8, pages=60, page_bytes=1500, links_per_page=10)
WEB = replace(
    SMALL,
    page_mix=replace(SMALL.page_mix, failing=0.3),
    timing=replace(SMALL.timing, retry_after_s=20.0),
)
"""Many pages fail in passing, and servers say when to come back: much longer than the delay."""
CRASHES = 6
ONCE = replace(PATIENT, recrawl=RecrawlSettings(enabled=False))
"""A page that is due again after a jump of weeks is rightly fetched again; here it is to be fetched once."""


def pages_of(world: World) -> Counter[str]:
    """Pages stored whole, by identity, as the catalogue lists them."""
    connection = sqlite3.connect(f"file:{world.out}/catalogue.sqlite?mode=ro", uri=True)
    rows = connection.execute(
        "SELECT url FROM captures WHERE robots = 0 AND status BETWEEN 200 AND 299 AND truncated = ''"
    ).fetchall()
    connection.close()
    return Counter(world.web.identify(url) or url for (url,) in rows)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The pages of a crawl that nobody disturbed."""
    world = World(SimulatedWeb(WEB), tmp_path_factory.mktemp("calm"), ONCE)
    assert world.crawl() is not None
    return set(pages_of(world))


@pytest.mark.parametrize("reboots", [False, True], ids=["same boot", "reboots"])
@pytest.mark.parametrize("seed", range(4))
def test_a_wall_clock_that_jumps_between_restarts_neither_hurries_nor_freezes_a_host(
    tmp_path: Path, seed: int, reboots: bool, wanted: set[str], say: Callable[[str], None]
) -> None:
    """P2, P3, F10, Q4: same pages, none twice, no delay violated, and it takes no longer than the delays do."""
    draw = random.Random(f"{seed}{reboots}")
    world = World(SimulatedWeb(WEB), tmp_path, ONCE)
    jumps = []
    for _ in range(CRASHES):
        if world.crawl(draw.randint(10, 150)) is not None:
            break
        jumps.append(draw.choice(JUMPS_S))
        world.clock.jump_wall(jumps[-1])
        if reboots:
            world.clock.reboot()
    begun_s = world.clock.elapsed_s()
    summary = world.crawl()
    took_s = world.clock.elapsed_s() - begun_s
    assert summary is not None
    stored = pages_of(world)
    assert set(stored) == wanted
    assert max(stored.values()) == 1
    audit = world.auditor.report()
    assert set(audit.by_kind) <= {ViolationKind.REPEAT}, audit.violations
    pages = [violation for violation in audit.violations if violation.target != "/robots.txt"]
    assert len(pages) <= world.runs * len(audit.hosts), "only what was on the wire may be asked for again"
    if not reboots:
        assert len(pages) == len(audit.violations), "robots.txt is a day old when a day has passed, not when it says so"
    assert took_s < 2 * 3600, "nobody waits for the wall clock to come back"
    hours = [round(jump / 3600, 1) for jump in jumps]
    say(f"{world.runs} crashes, wall clock set by {hours} h, {len(audit.violations)} asked for again, {took_s:.0f} s")


@pytest.mark.parametrize("jump_s", JUMPS_S)
@pytest.mark.parametrize("cooldown_s", [0.0, 600.0])
def test_a_new_cycle_comes_whatever_the_wall_clock_says(tmp_path: Path, jump_s: float, cooldown_s: float) -> None:
    """F2, S5: pages that seem to have been fetched in the future cool for their time and no longer."""
    web = SimulatedWeb(WebSpec.plain(7, hosts=2, pages=8, page_bytes=300, links_per_page=4))
    world = World(web, tmp_path, replace(ONCE, frontier=replace(PATIENT.frontier, cooldown_s=cooldown_s)))
    world.crawl()
    world.clock.jump_wall(jump_s)
    world.auditor.new_cycle()
    begun_s = world.clock.elapsed_s()
    summary = world.crawl(new_cycle=True)
    assert summary is not None
    assert summary.pages == 8
    assert world.clock.elapsed_s() - begun_s < cooldown_s + 60
    assert not world.auditor.report().violations
