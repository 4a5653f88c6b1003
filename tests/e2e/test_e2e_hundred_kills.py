"""A hundred times kill -9, at random, of any process of a crawl: nothing lost, nothing stored twice, nobody hurried."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from killing import Killer
from served import nephila, plain_web, run, served, stored_pages
from warc_checks import check_books

from nephila.testing.web.truth import Expect

HOSTS, DELAY_S, LATENCY_MS = 12, 0.3, 80
KILLS = 100


@pytest.mark.parametrize(
    ("seed", "kills", "pages"),
    [(1, KILLS, 600), *(pytest.param(seed, 2 * KILLS, 3600, marks=pytest.mark.long) for seed in (2, 3, 4))],
)
def test_a_hundred_kills_cost_nothing_but_time(
    tmp_path: Path, seed: int, kills: int, pages: int, say: Callable[[str], None]
) -> None:
    """Q4, F10, F3, P2, P5, W1, W3: workers, supervisors, all at once, in their first moments and in recovery."""
    spec, arguments = plain_web(60 + seed, hosts=HOSTS, pages=pages)
    out, log = tmp_path / "crawl", tmp_path / "errors"
    options = ("--delay", str(DELAY_S), "--scope", "all", "--max-wait", "3", "--quiet")
    timing = ("--base-delay-ms", str(DELAY_S * 1000), "--latency-ms", str(LATENCY_MS))
    with served(tmp_path / "web", spec, *arguments, *timing) as web:
        command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *options)
        killer = Killer(command, out / "warc", log, seed)
        began = time.monotonic()
        killer.deal(kills)
        killing_s = time.monotonic() - began
        summary = json.loads(run(*command[3:], "--json", "--processes", "2", timeout=300).stdout)
        audit = web.audit()
        stored = Counter(web.web.identify(url) for url in stored_pages(out))
        wanted = web.web.truth("Nephila").urls(Expect.PAGE, Expect.RECOVERS)
    again = sum(audit.by_kind.values())
    say(
        f"seed {seed}: {killer.killed} kills in {killing_s:.0f} s, {killer.starts} starts, {len(stored)} pages, "
        f"{again} asked for again, {time.monotonic() - began:.0f} s in all: {' '.join(killer.blows)}"
    )
    assert killer.killed == kills
    assert summary["stopped_by"] == "done"
    assert set(stored) == wanted
    assert {url: count for url, count in stored.items() if count > 1} == {}
    # What was on the wire when a process died is asked for again; what was stored is not. Nothing else may be wrong.
    assert set(audit.by_kind) <= {"repeat"}
    assert again <= kills
    assert "Traceback" not in log.read_text(errors="replace")
    check_books(out)
