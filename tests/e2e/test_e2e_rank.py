"""Ranks computed beside a crawl over real sockets: while it runs, in one process or several, and not beyond its end."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import pytest
from killing import children_of, is_alive
from served import nephila, plain_web, run, served
from waiting import wait_until
from warc_checks import check_books

from nephila.ranking import DOMAINS, PAGES
from nephila.testing.web.auditor import ViolationKind

OFTEN = ("--set", "rank.every_s=1", "--set", "rank.least_pages=1")


@pytest.mark.parametrize("processes", [1, 2])
def test_ranks_are_computed_while_the_crawl_runs(tmp_path: Path, processes: int) -> None:
    """R3: recomputed while crawling, without stopping; Ctrl-C ends all of it, and `rank` tells what was found."""
    spec, arguments = plain_web(31, hosts=6, pages=4000)  # it is ended long before it has them
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        options = ("--delay", "0.1", "--scope", "all", "--processes", str(processes), "--quiet", *OFTEN)
        command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *options)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            found = out / "rank" / DOMAINS
            wait_until(lambda: found.exists() or process.poll() is not None, "there are no ranks")
            first = found.stat().st_mtime_ns
            again = lambda: found.stat().st_mtime_ns != first or process.poll() is not None  # noqa: E731 - a look
            wait_until(again, "they are not computed again")
            assert process.poll() is None, "it was computed while the crawl ran"
            beside = children_of(process.pid)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
            process.communicate()
        assert process.returncode == 130, said
        assert "rank" not in said
        assert not [pid for pid in beside if is_alive(pid)]
    check_books(out)
    told = json.loads(run("rank", out, "--json", "--top", "3").stdout)
    assert told["count"] == 3
    assert (out / "rank" / PAGES).exists()


@pytest.mark.parametrize("processes", [1, 2])
def test_the_most_important_pages_are_kept_fresh(tmp_path: Path, processes: int) -> None:
    """R2: those of highest rank are visited again and again while the crawl waits; nothing else is."""
    spec, arguments = plain_web(32, hosts=3, pages=30)
    out, top = tmp_path / "crawl", 3
    target = ("--set", f"recrawl.target_pages={top}", "--set", "recrawl.target_age_s=4")
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        options = ("--delay", "0.1", "--scope", "all", "--processes", str(processes), "--quiet", *OFTEN, *target)
        command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *options, "--forever")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            visited = lambda: [url for url, times in visits(out).items() if times > 2]  # noqa: E731 - a look
            wait_until(lambda: len(visited()) >= top or process.poll() is not None, "they are not visited again")
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
            process.communicate()
        assert process.returncode == 130, said
        assert {one.kind for one in web.audit().violations} == {ViolationKind.REPEAT}, "asked again, and never too soon"
    again = {url for url, times in visits(out).items() if times > 1}
    told = json.loads(run("rank", out, "--json", "--top", str(top)).stdout)
    assert {page["url"] for page in told["pages"]} <= again
    assert len(again) < len(visits(out)) / 2, "and not all others with them"


def visits(out: Path) -> dict[str, int]:
    """How often each page was captured, as far as the catalogue has it."""
    if not (out / "catalogue.sqlite").exists():
        return {}
    with closing(sqlite3.connect(out / "catalogue.sqlite")) as catalogue, suppress(sqlite3.OperationalError):
        return dict(catalogue.execute("SELECT url, count(*) FROM captures WHERE NOT robots GROUP BY url"))
    return {}
