"""A disk that fills up in the middle of a crawl: it stops cleanly, and goes on when there is room."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from mounts import on_a_small_disk
from served import nephila, plain_web, served, stored_pages
from warc_checks import captures_in_archives, check_archives, index_lines

from nephila.frontier.embedded import LmdbFrontierView
from nephila.model.record import SegmentId
from nephila.model.settings import FrontierSettings
from nephila.node.clock import SystemClock
from nephila.testing.web.audit_report import ViolationKind

PAGES, HOSTS = 150, 6

SOME = ("120k", "800k")
"""Too small to begin; full in the midst."""

MORE = tuple(f"{size}k" for size in (4, 64, 90, 150, 180, 220, 260, 300, 350, 400, 450, 500, 600, 700, 900, 1000, 1100))


def orphans(out: Path) -> int:
    """How many captures the frontier knows to belong to nobody."""
    view = LmdbFrontierView.open(out / "frontier", SystemClock(), FrontierSettings().map_bytes)
    return sum(len(view.orphans(SegmentId(path.name))) for path in (out / "warc").glob("*.warc.gz"))


CASES = [*((1, size) for size in SOME), (2, SOME[1])]
LONG = [pytest.param(processes, size, marks=pytest.mark.long) for processes in (1, 2) for size in MORE]


@pytest.mark.parametrize(("processes", "size"), [*CASES, *LONG])
def test_a_full_disk_stops_the_crawl_and_costs_nothing(
    tmp_path: Path, processes: int, size: str, say: Callable[[str], None]
) -> None:
    """W2, F10, C4: WARC, LMDB, SQLite and event files alike; nothing is lost, nothing is stored twice."""
    spec, arguments = plain_web(51, hosts=HOSTS, pages=PAGES)
    out = tmp_path / "disk" / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "0") as web:
        options = ("--delay", "0", "--scope", "all", "--max-wait", "1", "--json", "--quiet")
        options += ("--processes", str(processes))
        command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *options)
        full, again, roomy = on_a_small_disk(tmp_path, size, [command, command], roomy=[command])
        audit = web.audit()
    for ended in (full, again):
        assert ended.code == 1, f"exit code {ended.code}\n{ended.err}"
        assert "Traceback" not in ended.err
        assert "unexpected" not in ended.err
        assert "space left" in ended.err or "disk" in ended.err, ended.err
        assert "ake room" in ended.err, ended.err
    if full.out:
        assert json.loads(full.out)["stopped_by"] == "storage"
    assert roomy.code == 0, roomy.err
    assert json.loads(roomy.out)["total_pages"] == PAGES
    stored = Counter(stored_pages(out))
    assert len(stored) == PAGES
    assert max(stored.values()) == 1
    # What was on the wire when the disk refused could not be kept, and is asked for once more.
    assert set(audit.by_kind) <= {ViolationKind.REPEAT}
    assert sum(audit.by_kind.values()) <= 2 * HOSTS
    check_archives(out)
    connection = sqlite3.connect(f"file:{out}/catalogue.sqlite?mode=ro", uri=True)
    (listed,) = connection.execute("SELECT count(*) FROM captures").fetchone()
    connection.close()
    answers, resources = captures_in_archives(out)
    # A settle that found no room may be followed by one that does: the capture is nobody's then, and listed nowhere.
    nobodys = orphans(out)
    assert nobodys <= sum(audit.by_kind.values())
    assert listed == answers - nobodys
    assert len(index_lines(out)) == answers + resources - nobodys
    pages = json.loads(full.out)["pages"] if full.out else 0
    say(f"{size}: {pages} pages before it was full, {audit.requests - PAGES - HOSTS} asked for again")


FILLING = """
import subprocess, sys, time
from pathlib import Path
from served import nephila, stored_pages
out, seed, filled, *command = sys.argv[1:]
crawl = subprocess.Popen(command)
while crawl.poll() is None and subprocess.run(nephila("why", out, seed), capture_output=True).returncode:
    time.sleep(0.02)
while crawl.poll() is None and len(stored_pages(Path(out))) < 20:
    time.sleep(0.02)
subprocess.run(["sh", "-c", 'cat /dev/zero > "$1"', "sh", filled], check=False)
sys.exit(crawl.wait())
"""
"""Crawls, and fills the disk as soon as the frontier tells of the seed and the catalogue of some pages."""


def test_a_crawl_on_a_full_disk_can_be_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C4, W2: that is when somebody looks; the catalogue is read without a log beside it.

    Readers see what the frontier's store has, which follows its journal by a quarter of a second.
    """
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1] / "support"))
    spec, arguments = plain_web(51, hosts=HOSTS, pages=4 * PAGES)
    disk = tmp_path / "disk"
    out = disk / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "0") as web:
        # A crawl of most of a minute: it cannot be over before its disk is filled, however busy the machine is.
        options = ("--delay", "0.5", "--scope", "all", "--quiet")
        crawl = nephila("crawl", *web.seeds, "--out", out, *web.flags, *options)
        filling = [sys.executable, "-c", FILLING, str(out), web.seeds[0], str(disk / "filled"), *crawl]
        asked = [("status", out), ("report", out), ("pages", out), ("why", out, web.seeds[0]), ("sql", out, "SELECT 1")]
        full, *answers = on_a_small_disk(tmp_path, "16m", [filling, *(nephila(*one) for one in asked)], roomy=[])
    assert full.code == 1
    assert "ake room" in full.err, full.err
    for one, answer in zip(asked, answers, strict=True):
        assert answer.code == 0, f"{one[0]}: {answer.err}"
        assert answer.out
        assert not answer.err
