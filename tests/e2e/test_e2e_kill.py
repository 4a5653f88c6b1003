"""kill -9 at random moments: nothing is lost, nothing is stored twice, no delay is violated."""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from served import crawl_json, nephila, plain_web, run, served, stored_pages
from warc_checks import check_books

HOSTS = 12


def portless(urls: list[str]) -> list[str]:
    """URLs without their port: each server gets another one."""
    return [re.sub(r":\d+/", "/", url, count=1) for url in urls]


@pytest.mark.parametrize(("kills", "pages"), [(5, 400), pytest.param(20, 2000, marks=pytest.mark.long)])
def test_killed_and_restarted_it_ends_with_the_same_pages(
    tmp_path: Path, kills: int, pages: int, say: Callable[[str], None]
) -> None:
    """F10, F3, P2, Q4, W3: killed at random moments, from its first import on, and restarted each time."""
    spec, arguments = plain_web(20 + kills, hosts=HOSTS, pages=pages)
    draw = random.Random(kills)
    options = ("--delay", "0.03", "--scope", "all", "--max-wait", "2")
    with served(tmp_path / "calm", spec, *arguments, "--base-delay-ms", "30") as web:
        crawl_json(web, tmp_path / "undisturbed", *options)
        wanted = set(portless(stored_pages(tmp_path / "undisturbed")))
    out = tmp_path / "killed"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "30") as web:
        command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *options)
        moments = []
        for _ in range(kills):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            moments.append(draw.uniform(0.3, 1.8))
            time.sleep(moments[-1])
            process.kill()
            process.wait()
        summary = json.loads(run(*command[3:], "--json").stdout)
        stored = Counter(portless(stored_pages(out)))
        audit = web.audit()
    again = audit.requests - len(stored) - HOSTS
    say(f"killed after {[round(moment, 1) for moment in moments]} s; {len(stored)} pages, {again} asked for again")
    assert summary["stopped_by"] == "done"
    assert set(stored) == wanted
    assert {url: count for url, count in stored.items() if count > 1} == {}
    # A request that was on the wire when the process died is asked again; what was stored is not.
    assert set(audit.by_kind) <= {"repeat"}
    assert sum(audit.by_kind.values()) <= kills * HOSTS
    check_books(out)
