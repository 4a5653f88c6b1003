"""One crawl in several processes, through the command line: the same pages, the same promises."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hangups import hearing_hangups
from served import QUICK, ServedWeb, crawl_json, nephila, plain_web, run, served, stored_pages
from warc_checks import check_books

from nephila.testing.web import WebSpec
from nephila.testing.web.truth import Expect

POLITE = ("--delay", "0.03", "--scope", "all", "--max-wait", "2")
"""For webs that are served with --base-delay-ms 30."""


def workers_of(process: subprocess.Popen[Any]) -> list[int]:
    """The process ids of a crawl's workers, in the order in which they were started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
    return [int(pid) for pid in children.split()]


def fetches(out: Path) -> Counter[str]:
    """How many answers each process tells of in its event files."""
    counts: Counter[str] = Counter()
    for path in (out / "events").glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            if b'"fetch_ok"' in line:
                counts[json.loads(line)["worker"]] += 1
    return counts


def listed(out: Path) -> dict[str, int]:
    """How many answers the catalogue lists under each process; every one lies in a file of that process."""
    connection = sqlite3.connect(f"file:{out}/catalogue.sqlite?mode=ro", uri=True)
    query = "SELECT c.worker, s.name FROM captures c JOIN segments s ON s.id = c.segment WHERE c.robots = 0"
    found = connection.execute(query).fetchall()
    connection.close()
    assert all(f"-w{worker}." in name for worker, name in found)
    return Counter(worker for worker, _ in found)


@contextmanager
def crawling(web: ServedWeb, out: Path, *options: str, pages: int = 1) -> Iterator[subprocess.Popen[bytes]]:
    """A crawl that has fetched so many pages in each of its workers; killed in the end if it still runs."""
    command = nephila("crawl", *web.seeds, "--out", out, *web.flags, "--json", *options)
    before = fetches(out)
    with (out.parent / "output.json").open("wb") as output, hearing_hangups():
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: len(told := fetches(out) - before) > 1 and min(told.values()) >= pages, process)
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, f"it has ended: {process.communicate()[1]!r}"
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.02)


def check_pages(web: ServedWeb, out: Path) -> None:
    """Every page that can be had is stored, exactly once."""
    stored = Counter(web.web.identify(url) for url in stored_pages(out))
    assert {url: count for url, count in stored.items() if count != 1} == {}
    assert set(stored) == web.web.truth("Nephila").urls(Expect.PAGE, Expect.RECOVERS)


def test_three_processes_store_what_one_would(tmp_path: Path, say: Callable[[str], None]) -> None:
    """F2, P1, P2, D2, O1, W3, C4: robots, redirects, duplicates, failures; one summary over all; nothing twice."""
    spec = WebSpec(3, 10, 150)
    spec = replace(spec, timing=replace(spec.timing, slow_ms=60, crawl_delay_s=0.1))
    served_with = ("--seed", "3", "--hosts", "10", "--pages", "150", "--slow-ms", "60", "--crawl-delay", "0.1")
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *served_with, "--base-delay-ms", "30") as web:
        summary = crawl_json(web, out, "--delay", "0.03", *QUICK, "--processes", "3")
        audit = web.audit()
        check_pages(web, out)
    told = fetches(out)
    say(f"{summary['pages']} pages, {summary['seconds']:.1f} s, by worker {dict(told)}, {audit.requests} requests")
    assert not audit.violations
    assert set(told) == {"1", "2", "3"}
    assert listed(out) == told
    assert summary["stopped_by"] == "done"
    assert summary["pages"] == summary["total_pages"]
    assert summary["responses"] == sum(summary["statuses"].values())
    assert (summary["hosts"], summary["domains"]) == counted_in_events(out)
    check_books(out)
    status = json.loads(run("status", out, "--json").stdout)
    assert (status["pages"], status["running"]) == (summary["pages"], False)
    assert status["hosts_by_place"]["leased"] == 0


def counted_in_events(out: Path) -> tuple[int, int]:
    """Hosts that answered or were asked in vain, and domains with pages, as the event files of all workers tell."""
    from nephila.urls import registrable_domain  # noqa: PLC0415 - beside its only use

    lines = [json.loads(line) for path in (out / "events").glob("*.jsonl") for line in path.read_bytes().splitlines()]
    hosts = {
        line["host"]
        for line in lines
        if (line["event"] in {"fetch_ok", "robots_fetched"} and "status" in line)
        or (line["event"] == "error" and line.get("host") and line["reason"] not in {"dns", "no_such_name", "address"})
    }
    pages = {
        line["host"]
        for line in lines
        if line["event"] == "fetch_ok"
        and (200 <= line["status"] < 300 or line["status"] == 304)
        and not line.get("reason")
    }
    return len(hosts), len({registrable_domain(host) for host in pages})


def test_a_worker_that_is_killed_costs_nothing_but_time(tmp_path: Path, say: Callable[[str], None]) -> None:
    """F3, F10, Q4: kill -9 of workers, again and again; others go on, another takes its place, nothing is lost.

    One that is stopped lets its leases expire; it is ended before they are returned, so that it can never wake up and
    send.
    """
    spec, arguments = plain_web(31, hosts=12, pages=700)
    out, draw = tmp_path / "crawl", random.Random(31)
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "30") as web:
        short = ("--set", "frontier.lease_s=4", "--timeout", "1")
        with crawling(web, out, *POLITE, *short, "--processes", "2") as process:
            killed = []
            for blow in (signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP):
                time.sleep(draw.uniform(0.1, 0.6))
                killed.append(draw.choice(workers_of(process)))
                os.kill(killed[-1], blow)
                wait_until(lambda: len(workers_of(process)) == 2 and killed[-1] not in workers_of(process), process)
            why = json.loads(run("why", out, web.seeds[0], "--json").stdout)
            assert why["state"] == "completed"
            _, errors = process.communicate(timeout=60)
        summary = json.loads((tmp_path / "output.json").read_text(encoding="utf-8"))
        audit = web.audit()
        check_pages(web, out)
    say(f"{len(killed)} workers killed, {summary['pages']} pages, {audit.by_kind} asked for again")
    assert errors.count(b"was ended by SIGKILL") == 3
    assert (process.returncode, summary["stopped_by"]) == (0, "done")
    assert summary["pages"] == summary["total_pages"] == 700
    # A request that was on the wire when its worker died is asked again; what was stored is not.
    assert set(audit.by_kind) <= {"repeat"}
    assert sum(audit.by_kind.values()) <= 3 * 12
    check_books(out)
    assert set(listed(out)) == {"1", "2"}, "whoever has settled them"


def test_when_the_supervisor_is_killed_its_workers_die_and_the_next_run_goes_on(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    """F10, Q4, P2: kill -9 of the supervisor at random moments, started again at once, also with fewer processes."""
    spec, arguments = plain_web(32, hosts=12, pages=480)
    out, draw = tmp_path / "crawl", random.Random(32)
    options = ("--delay", "0.1", "--scope", "all", "--max-wait", "2")
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "100") as web:
        for _ in range(2):
            with crawling(web, out, *options, "--processes", "3") as process:
                time.sleep(draw.uniform(0.1, 0.5))
                workers = workers_of(process)
                process.kill()
                process.wait()
                assert len(workers) == 3
                deadline = time.monotonic() + 5
                while any(is_alive(pid) for pid in workers):
                    assert time.monotonic() < deadline, "a worker outlives its supervisor"
                    time.sleep(0.01)
        summary = crawl_json(web, out, *options, "--processes", "2")
        audit = web.audit()
        check_pages(web, out)
    say(f"{summary['total_pages']} pages, {audit.by_kind} asked for again")
    assert summary["stopped_by"] == "done"
    assert set(audit.by_kind) <= {"repeat"}
    assert sum(audit.by_kind.values()) <= 2 * 12
    check_books(out)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_ctrl_c_ends_all_within_seconds_and_a_second_one_at_once(tmp_path: Path, say: Callable[[str], None]) -> None:
    """F10, C4: the signal reaches every process of the terminal, as from a keyboard; no lease is left behind."""
    spec, arguments = plain_web(33, hosts=20, pages=2000)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "300") as web:
        options = ("--delay", "0.3", "--scope", "all", "--processes", "2")
        with crawling(web, out, *options) as process:
            started = time.monotonic()
            for pid in (process.pid, *workers_of(process)):
                os.kill(pid, signal.SIGINT)
            assert process.wait(10) == 130
            say(f"Ctrl-C: ended after {time.monotonic() - started:.2f} s")
            assert time.monotonic() - started < 5
        assert json.loads((tmp_path / "output.json").read_text(encoding="utf-8"))["stopped_by"] == "interrupt"
        status = json.loads(run("status", out, "--json").stdout)
        assert status["hosts_by_place"]["leased"] == 0
        check_books(out)
        with crawling(web, out, *options) as process:
            workers = workers_of(process)
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
            started = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(10) in {130, -signal.SIGINT}
            assert time.monotonic() - started < 1
            wait = time.monotonic() + 2
            while any(is_alive(pid) for pid in workers):
                assert time.monotonic() < wait
                time.sleep(0.01)
        assert not web.audit().violations


def test_a_terminal_that_is_closed_ends_a_crawl_as_ctrl_c_does(tmp_path: Path) -> None:
    """F10, C4: every process is told, and the one that was started twice; the crawl is closed, and goes on later."""
    spec, arguments = plain_web(35, hosts=20, pages=2000)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "300") as web:
        with crawling(web, out, "--delay", "0.3", "--scope", "all", "--processes", "2") as process:
            for pid in (process.pid, process.pid, *workers_of(process)):
                os.kill(pid, signal.SIGHUP)
            assert process.wait(10) == 130
        assert json.loads((tmp_path / "output.json").read_text(encoding="utf-8"))["stopped_by"] == "interrupt"
        assert json.loads(run("status", out, "--json").stdout)["hosts_by_place"]["leased"] == 0
        check_books(out)


def test_limits_hold_over_all_processes_together(tmp_path: Path, say: Callable[[str], None]) -> None:
    """S3, C4: --max-pages to the page, whatever is in flight where; the next run goes on; bytes end it too."""
    spec, arguments = plain_web(34, hosts=10, pages=300)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "0") as web:
        options = ("--delay", "0", "--scope", "all", "--max-wait", "1", "--processes", "2")
        first = crawl_json(web, out, *options, "--max-pages", "77", code=3)
        assert (first["pages"], first["stopped_by"]) == (77, "max_pages")
        second = crawl_json(web, out, *options, "--max-pages", "0")
        assert (second["total_pages"], second["stopped_by"]) == (300, "done")
        some = crawl_json(web, tmp_path / "bytes", *options, "--max-total-bytes", "100000", code=3)
        say(f"--max-total-bytes 100000: {some['bytes']} bytes")
        assert some["stopped_by"] == "max_total_bytes"
        assert not web.audit().violations or set(web.audit().by_kind) == {"repeat"}
    assert max(Counter(stored_pages(out)).values()) == 1


def test_memory_and_files_are_those_of_the_workers_too(tmp_path: Path) -> None:
    """O2, C1: what is told of a crawl's processes, and what alerts judge, is of all of them."""
    spec, arguments = plain_web(36, hosts=20, pages=2000)
    with (
        served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "300") as web,
        crawling(web, tmp_path / "out", "--delay", "0.3", "--scope", "all", "--processes", "2") as process,
    ):
        figures, both = tmp_path / "out" / "figures.json", workers_of(process)
        assert len(both) == 2

        def memory_of(pid: int) -> int:
            return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()

        def is_told() -> bool:
            least = sum(map(memory_of, (process.pid, *both))) * 0.7
            return figures.exists() and json.loads(figures.read_bytes())["present"]["process"]["memory_bytes"] > least

        wait_until(is_told, process)


@pytest.mark.parametrize("value", ["two", "-1", "65", "1.5", ""])
def test_a_number_of_processes_that_makes_no_sense_is_one_sentence(tmp_path: Path, value: str) -> None:
    """C4: no traceback, no directory."""
    result = run("crawl", "http://127.0.0.1:9/", "--out", tmp_path / "crawl", "--processes", value, code=2)
    assert "--processes" in result.stderr
    assert len(result.stderr.strip().splitlines()) <= 2
    assert not (tmp_path / "crawl").exists()


def test_a_crawl_without_a_usable_seed_leaves_nothing_behind(tmp_path: Path) -> None:
    """S1, C4: the workers that were started for it are gone, and so is the directory."""
    result = run("crawl", "http://", "--out", tmp_path / "crawl", "--processes", "2", code=2)
    assert "no seed can be crawled" in result.stderr
    assert not (tmp_path / "crawl").exists()
