"""Pages that are made by their scripts, crawled by a fleet on real engines in which one worker has a real Chromium."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from browser import chromium
from fleet_engines import Engines, Fleet
from served import served

from nephila.testing.serve import bundle_spec

Say = Callable[[str], None]
PAGES = 6
DELAY_S = 0.2


def events_of(folder: Path, kind: str) -> list[dict[str, object]]:
    lines = [line for path in (folder / "events").glob("*.jsonl") for line in path.read_text().splitlines()]
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def test_pages_are_shown_by_whoever_has_a_browser(tmp_path: Path, engines: Engines, say: Say) -> None:
    """J1, J2, J3, N2, P5: one worker of two has a browser; scripts of other hosts are fetched once for both of them."""
    arguments = ("--kind", "fleet-bundles", "--pages", str(PAGES), "--base-delay-ms", str(DELAY_S * 1000))
    spec = bundle_spec(1, PAGES, baited=False)
    with ExitStack() as hold:
        web = hold.enter_context(served(tmp_path / "web", spec, *arguments))
        fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, DELAY_S))
        fleet.seed()
        patient = ("--max-wait", "20", "--set", "render.time_s=20")
        few = ("--set", "fetch.concurrency=1")  # so that most hosts are left to the other one
        sees = fleet.start("sees", *patient, *few, "--set", f"render.executable={chromium()}")
        blind = fleet.start("blind", *patient, "--set", f"render.executable={tmp_path}/none")
        told = [sees.end(), blind.end()]
        audit = web.audit()
        stored = fleet.stored()
    shown = [one["rendered"] for one in told]
    say(f"{shown[0]} pages shown by the worker that has a browser for itself, {shown[1]} for the other one")
    assert shown[1] > 0, "it has borrowed"
    hosts = Counter(urlsplit(url).hostname for url in stored if "/data/" not in url and "/v1/" not in url)
    assert (hosts["spa-0.test"], hosts["shop-2.test"], hosts["closed-4.test"]) == (PAGES + 1, 4, 1)
    assert sum(one["render_gained"] for one in told) == PAGES + 1 + 4
    assert set(audit.by_kind) <= {"repeat"}, audit.violations
    assert audit.by_kind.get("repeat", 0) <= 2, audit.violations
    assert sum(one["render_resources"] for one in told) <= 2 + 4 + 1
    assert not [
        event for event in events_of(tmp_path / "fleet" / "blind", "render_missed") if event["reason"] != "busy"
    ]
    assert "Traceback" not in sees.told() + blind.told()


def test_a_fleet_without_a_browser_counts_the_pages_that_need_one(tmp_path: Path, engines: Engines) -> None:
    """J2: everything else is crawled; the summary says how many were read as they came."""
    arguments = ("--kind", "fleet-bundles", "--pages", "2", "--base-delay-ms", str(DELAY_S * 1000))
    with ExitStack() as hold:
        web = hold.enter_context(served(tmp_path / "web", bundle_spec(1, 2, baited=False), *arguments))
        fleet = hold.enter_context(Fleet(tmp_path / "fleet", engines, web, DELAY_S))
        fleet.seed()
        told = fleet.start("blind", "--max-wait", "5", "--set", f"render.executable={tmp_path}/none").end()
        assert web.audit().violations == ()
    assert told["render_missed"] == {"no_browser": 3}
    assert told["rendered"] == told["render_resources"] == 0
