"""Processes that are stopped for longer than their lease, as a debugger or a sleeping machine does, and then go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from killing import children_of
from served import ServedWeb, nephila, plain_web, served, stored_pages
from warc_checks import check_books

from nephila.frontier.embedded.turnstile import Turnstile
from nephila.testing.web.audit_report import ViolationKind
from nephila.testing.web.truth import Expect

HOSTS, DELAY_S = 8, 0.2
LEASE_S = 2.5
SHORT = (
    *("--set", f"frontier.lease_s={LEASE_S}", "--set", "robots.retry_s=2"),
    *("--timeout", "1", "--delay", str(DELAY_S), "--scope", "all"),
)
"""A lease must outlast a whole fetch before a request may leave. A robots.txt that was lost is asked for again."""
SERVED = ("--base-delay-ms", str(DELAY_S * 1000), "--latency-ms", "60")


@contextmanager
def crawling(web: ServedWeb, out: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A crawl that has begun to store pages; killed in the end if it still runs."""
    command = nephila("crawl", *web.seeds, "--out", out, *web.flags, "--json", "--quiet", "--max-wait", "4", *options)
    with (out.parent / "summary").open("wb") as summary, (out.parent / "errors").open("wb") as errors:
        process = subprocess.Popen(command, stdout=summary, stderr=errors)
    try:
        deadline = time.monotonic() + 120
        while sum(path.stat().st_size for path in (out / "warc").glob("*.warc.gz")) < 20_000:
            assert process.poll() is None, (out.parent / "errors").read_text()
            assert time.monotonic() < deadline, "it does not begin to crawl"
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()


def stop_and_go(pids: list[int], seconds: float) -> None:
    """Stop processes together, and let those that still are there go on."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in pids:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            continue  # it was ended, as it must be


def check_end(web: ServedWeb, out: Path, process: subprocess.Popen[bytes], stops: int) -> Counter[str]:
    """It ends by itself with every page stored once; what was on the wire may have been asked for again."""
    assert process.wait(60) == 0, (out.parent / "errors").read_text()
    summary = json.loads((out.parent / "summary").read_text(encoding="utf-8"))
    assert summary["stopped_by"] == "done"
    assert "Traceback" not in (out.parent / "errors").read_text()
    stored = Counter(web.web.identify(url) for url in stored_pages(out))
    assert {url: count for url, count in stored.items() if count != 1} == {}
    assert set(stored) == web.web.truth("Nephila").urls(Expect.PAGE, Expect.RECOVERS)
    check_books(out)
    found = Counter({str(kind): count for kind, count in web.audit().by_kind.items()})
    assert found["repeat"] <= stops * HOSTS
    return found


@pytest.mark.parametrize(
    "whom",
    [
        *("the only process", "one worker", "everyone"),
        *(pytest.param(whom, marks=pytest.mark.long) for whom in ("all workers", "supervisor")),
    ],
)
def test_a_process_that_was_stopped_for_longer_than_its_lease_does_not_send_on_it(
    tmp_path: Path, whom: str, say: Callable[[str], None]
) -> None:
    """F3, P2, Q4: it finds its leases expired, or was ended before they were returned; nothing is lost by it."""
    spec, arguments = plain_web(71, hosts=HOSTS, pages=104)
    out = tmp_path / "crawl"
    processes = "1" if whom == "the only process" else "2"
    with (
        served(tmp_path / "web", spec, *arguments, *SERVED) as web,
        crawling(web, out, *SHORT, "--processes", processes) as process,
    ):
        workers = children_of(process.pid)
        pids = {
            "the only process": [process.pid],
            "one worker": workers[:1],
            "all workers": workers,
            "supervisor": [process.pid],
            "everyone": [process.pid, *workers],
        }[whom]
        assert pids
        stop_and_go(pids, LEASE_S + 1.5)
        found = check_end(web, out, process, len(pids))
        ended = (tmp_path / "errors").read_text().count("was ended by SIGKILL")
    say(f"{whom} stopped for {LEASE_S + 1.5} s: {dict(found)}, {ended} workers ended for it")
    assert set(found) <= {"repeat"}
    if whom in {"one worker", "all workers"}:
        assert ended  # who held a lease: its supervisor was awake


def test_a_worker_that_hangs_without_a_lease_is_missed_and_replaced(tmp_path: Path, say: Callable[[str], None]) -> None:
    """F3, N3: nothing of it expires, but it says nothing; the crawl could never be over with it."""
    spec, arguments = plain_web(72, hosts=1, pages=6)
    out = tmp_path / "crawl"
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "200") as web:
        command = nephila("crawl", *web.seeds, "--out", out, *web.flags, *SHORT, "--max-wait", "2", "--json")
        process = subprocess.Popen([*command, "--processes", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            deadline = time.monotonic() + 120
            while len(workers := children_of(process.pid)) < 2:
                assert time.monotonic() < deadline, "its workers do not start"
                time.sleep(0.005)
            began = time.monotonic()
            os.kill(workers[0], signal.SIGSTOP)  # while it imports: it has no lease yet
            output, errors = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
        assert not web.audit().violations
    say(f"ended after {time.monotonic() - began:.1f} s")
    assert process.returncode == 0, errors
    assert errors.count(b"was ended by SIGKILL") == 1
    assert json.loads(output)["total_pages"] == 6


def test_a_worker_that_was_stopped_in_its_turn_at_the_store_is_not_waited_for_as_long_as_its_leases_last(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    """N3, Q4: the others cannot write until it is ended, and leases last five minutes where nothing else is said."""
    spec, arguments = plain_web(74, hosts=HOSTS, pages=3000)
    out, delay = tmp_path / "crawl", ("--delay", "0", "--scope", "all")
    with (
        served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "0") as web,
        crawling(web, out, *delay, "--processes", "2") as process,
    ):
        worker, line = children_of(process.pid)[0], Turnstile(out / "frontier")
        time.sleep(1)  # until each has spoken, as it does five times a second
        tries = 0
        while True:
            assert process.poll() is None, "it was never caught in its turn"
            tries += 1
            os.kill(worker, signal.SIGSTOP)
            if stays(line.is_waited_at, 0.5):
                break
            os.kill(worker, signal.SIGCONT)
            time.sleep(0.01)
        began = time.monotonic()
        line.close()
        assert process.wait(60) == 0, (tmp_path / "errors").read_text()
    say(f"caught at try {tries}, ended {time.monotonic() - began:.1f} s after it was stopped")
    assert (tmp_path / "errors").read_text().count("was ended by SIGKILL") == 1
    stored = Counter(web.web.identify(url) for url in stored_pages(out))
    assert set(stored.values()) == {1}
    assert set(stored) == web.web.truth("Nephila").urls(Expect.PAGE, Expect.RECOVERS)
    check_books(out)


def stays(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether it holds, from a moment after this one on."""
    time.sleep(0.1)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not holds():
            return False
        time.sleep(0.01)
    return True


def test_a_web_that_falls_silent_and_comes_back_is_crawled_to_the_end(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    """H5, P2, F10: all servers stopped for several time-outs; what was on the wire is tried again."""
    spec, arguments = plain_web(73, hosts=HOSTS, pages=120)
    out, patient = tmp_path / "crawl", ("--set", "frontier.retry_waits_s=2,3,4", "--max-wait", "10")
    with (
        served(tmp_path / "web", spec, *arguments, *SERVED) as web,
        crawling(web, out, *SHORT, *patient, "--processes", "2") as process,
    ):
        stop_and_go([web.server.pid], 3.0)
        woken = time.monotonic() * 1000
        assert process.wait(90) == 0, (tmp_path / "errors").read_text()
        stored = Counter(web.web.identify(url) for url in stored_pages(out))
        audit = web.audit()
    assert {url: count for url, count in stored.items() if count != 1} == {}
    assert set(stored) == web.web.truth("Nephila").urls(Expect.PAGE, Expect.RECOVERS)
    # What was asked while the servers slept lies in their sockets, and seems to arrive all at once when they wake. What
    # they had no time to answer before is asked again, some three or four seconds after it was.
    later = [
        one
        for one in audit.violations
        if not is_of_sleep(one.at_ms - woken)
        and not (one.kind is ViolationKind.REPEAT and is_of_sleep((one.previous_ms or 0) - woken))
    ]
    say(f"{len(audit.violations)} requests found by waking servers, {len(later)} violations at other times")
    assert not later
    check_books(out)


def is_of_sleep(after_waking_ms: float) -> bool:
    """Whether servers that slept for three seconds met a request then, or when they woke."""
    return -3100 < after_waking_ms < 500
