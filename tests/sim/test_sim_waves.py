"""Errors only ever slow us down: a host with a bad time, seen from its side, through a stop and a kill too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from crashes import World
from simulation import PATIENT
from waves import KINDS, Gap, GapAuditor, Wave, WavingWeb

from nephila.testing.web import SimulatedNetwork, WebSpec

BASE_MS = 1000.0
BEGINS_S, LASTS_S = 20, 90
PAGES_A_HOST = 100
NOTICE_MS = 250
"""Is added to the delay where we break an exchange off; a kernel that does it for a killed process needs none."""
FACTORS = {"403": 1.25, "429": 2.0, "503": 2.0, "500": 1.5, "hang": 1.5, "reset": 1.5}


def world_with_a_wave(folder: Path, kind: str) -> tuple[World, GapAuditor, Wave]:
    """Two hosts of the same size; the first one's bad time begins after a while."""
    web = WavingWeb(WebSpec.plain(91, hosts=2, pages=2 * PAGES_A_HOST))
    settings = replace(PATIENT, fetch=replace(PATIENT.fetch, timeout_s=5.0))
    world = World(web, folder, settings)
    auditor = GapAuditor(web, world.clock, BASE_MS, max_tries=10)
    world.auditor = auditor
    world.network = SimulatedNetwork(web, world.clock, auditor)
    begins = world.clock.wall_ms() + BEGINS_S * 1000
    web.wave = Wave(kind, "site0.test", begins, begins + LASTS_S * 1000)
    return world, auditor, web.wave


def in_wave(wave: Wave, gaps: list[Gap]) -> list[float]:
    """The gaps before requests that came in the wave, but for the first: nobody could know."""
    return [gap.gap_ms for gap in gaps if wave.begins_ms <= gap.wall_ms < wave.ends_ms][1:]


def after_wave(wave: Wave, gaps: list[Gap]) -> list[float]:
    return [gap.gap_ms for gap in gaps if gap.wall_ms >= wave.ends_ms]


def check_slowing(gaps: list[float], kind: str) -> None:
    """With each error the gap grows, at once and by its factor, and never shrinks."""
    assert len(gaps) >= 4
    assert all(later >= earlier - 2 for earlier, later in pairwise(gaps))
    assert gaps[0] >= BASE_MS * FACTORS[kind] - 2
    assert gaps[3] >= BASE_MS * FACTORS[kind] ** 4 - 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_wave_slows_us_at_once_and_the_way_back_is_gradual(
    tmp_path: Path, kind: str, say: Callable[[str], None]
) -> None:
    """P3, P4, P2: judged by the gaps that the server sees; the other host's are as ever, and every page comes."""
    world, auditor, wave = world_with_a_wave(tmp_path, kind)
    summary = world.crawl()
    gaps = auditor.gaps["site0.test"]
    during, after = in_wave(wave, gaps), after_wave(wave, gaps)
    say(
        f"{kind}: {len(during) + 1} requests in {LASTS_S} s of it, gaps up to {max(during) / 1000:.1f} s; "
        f"{len(after)} after it"
    )
    check_slowing(during, kind)
    # The way back: never by more than the factor of a fast answer, until the base is reached again.
    back = next(place for place, gap in enumerate(after) if gap < BASE_MS + 20)
    assert back >= 5
    assert all(later >= 0.8 * earlier - NOTICE_MS - 2 for earlier, later in pairwise(after[: back + 1]))
    assert max(gap.gap_ms for gap in auditor.gaps["site1.test"]) < BASE_MS + 50
    assert summary is not None
    assert summary.stopped_by == "done"
    assert not auditor.report().violations


@pytest.mark.parametrize("kind", ["403", "503", "hang"])
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_what_a_wave_has_taught_us_survives_a_restart(
    tmp_path: Path, kind: str, how: str, say: Callable[[str], None]
) -> None:
    """P3, P4, F10: killed or stopped in the midst of it, the next run goes on as slowly as the last."""
    world, auditor, wave = world_with_a_wave(tmp_path, kind)
    if how == "stop":
        calm = world.settings
        world.settings = replace(calm, limits=replace(calm.limits, max_time_s=BEGINS_S + LASTS_S / 3))
        assert world.crawl() is not None
        world.settings = calm
    else:
        assert world.crawl(crash_at=CRASH_AT) is None
    before = in_wave(wave, auditor.gaps["site0.test"])
    stopped_ms = world.clock.wall_ms()
    assert wave.begins_ms < stopped_ms < wave.ends_ms, f"it ended {(stopped_ms - wave.begins_ms) / 1000} s into it"
    world.crawl()
    during = in_wave(wave, auditor.gaps["site0.test"])
    first = during[len(before)]
    say(f"{kind}, {how}: gap of {before[-1] / 1000:.2f} s before, {first / 1000:.2f} s across, {len(during)} in it")
    assert first >= before[-1] - NOTICE_MS - 2
    assert {str(found) for found in auditor.report().by_kind} <= {"repeat"}
    assert all(later >= earlier - NOTICE_MS - 2 for earlier, later in pairwise(during))
    assert during[-1] > before[-1]


CRASH_AT = 420
"""A step in the first part of the wave, whatever it is made of."""
