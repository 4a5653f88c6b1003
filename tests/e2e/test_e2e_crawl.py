"""The command line against the standard web over real sockets: what is fetched, how politely, what the screen says."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from served import QUICK, ServedWeb, crawl_json, nephila, plain_web, run, served, stored_pages
from webs import Crawled

from nephila.node.inspect import open_view
from nephila.testing.web.truth import Expect


def test_every_reachable_page_is_stored_exactly_once(crawled: Crawled, say: Callable[[str], None]) -> None:
    """F2, S1, U2, X1: 50 hosts, 2,000 pages, mixed robots, redirects, duplicates, failing URLs."""
    web = crawled.web.web
    truth = web.truth("Nephila")
    stored = Counter(web.identify(url) for url in stored_pages(crawled.out))
    wanted = truth.urls(Expect.PAGE, Expect.RECOVERS)
    say(f"{len(wanted)} pages can be had, {sum(stored.values())} stored, {crawled.summary['pages_per_s']:.0f} pages/s")
    assert {url: count for url, count in stored.items() if count != 1} == {}
    assert set(stored) == wanted


def test_the_auditor_on_the_servers_side_finds_nothing(crawled: Crawled, say: Callable[[str], None]) -> None:
    """P1, P2, P6: no two requests at once or closer than the delay, nothing forbidden, nothing twice."""
    say(f"{crawled.audit.requests} requests audited, {len(crawled.audit.violations)} violations")
    assert crawled.audit.requests > 1500
    assert not crawled.audit.violations


def test_the_summary_says_what_happened(crawled: Crawled, say: Callable[[str], None]) -> None:
    """C4, S3: one JSON object with the figures of the crawl."""
    summary = crawled.summary
    for key in ("pages", "bytes", "errors", "hosts", "domains", "duplicates", "refused", "seconds", "pages_per_s"):
        assert summary[key], key
    for key in ("cpu_s", "peak_rss_bytes"):
        assert summary[key] > 0
    assert summary["stopped_by"] == "done"
    assert summary["pages"] == summary["total_pages"]
    assert {"no_such_name", "http_5xx", "http_4xx"} <= summary["errors"].keys()
    say(str({key: summary[key] for key in ("pages", "pages_per_s", "cpu_s", "peak_rss_bytes")}))


def test_status_pages_and_dead_read_the_finished_crawl(crawled: Crawled) -> None:
    """F9, C4, W3: what the tables say agrees with the summary."""
    status = json.loads(run("status", crawled.out, "--json").stdout)
    assert status["pages"] == crawled.summary["total_pages"]
    assert not status["running"]
    pages = json.loads(run("pages", crawled.out, "--json", "--limit", "5").stdout)
    rows = pages["pages"] if isinstance(pages, dict) else pages
    assert len(rows) == 5
    dead = json.loads(run("dead", crawled.out, "--json", "--limit", "1000").stdout)
    letters = dead["dead"] if isinstance(dead, dict) else dead
    assert len(letters) == crawled.summary["dead"] > 0


def test_why_tells_each_kind_of_story(crawled: Crawled) -> None:
    """T8, C4: found where, refused by which rule, robots line, duplicate of what, when it is due."""
    web = crawled.web.web
    truth = web.truth("Nephila")

    def why(url: str, code: int = 0) -> dict[str, object]:
        answer: dict[str, object] = json.loads(run("why", crawled.out, url, "--json", code=code).stdout)
        return answer

    page = why(sorted(truth.urls(Expect.PAGE))[5])
    assert page["state"] == "completed"
    assert page["via"]
    assert page["captures"]
    forbidden = next(url for url, reason in sorted(truth.refused.items()) if reason == "robots")
    robots = why(forbidden)
    assert (robots["state"], robots["reason"]) == ("dropped", "robots")
    assert "line" in str(robots["detail"])
    assert robots["robots"]["line"] > 0  # type: ignore[index]
    excluded = next(url for url, reason in sorted(truth.refused.items()) if reason == "excluded")
    assert (why(excluded)["state"], why(excluded)["reason"]) == ("refused", "excluded_builtin")
    letter = why(min(truth.urls(Expect.SERVER_ERROR)))
    assert (letter["state"], letter["reason"]) == ("dead_letter", "http_5xx")
    assert why("http://nobody-links-here.test/", code=1)["state"] == "unknown"
    view = open_view(crawled.out)
    told = [view.why(url).data for group in truth.duplicates() for url in group]
    assert any(capture["duplicate_of"] for one in told for capture in one["captures"])  # type: ignore[attr-defined]


def test_the_crawl_ends_at_a_limit_and_goes_on(tmp_path: Path) -> None:
    """S3, F10, C4: --max-pages stores exactly so many, says so, and the next run goes on from there."""
    spec, arguments = plain_web(5, hosts=10, pages=200)
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "0") as web:
        options = ("--delay", "0", "--scope", "all", "--max-wait", "1")
        first = crawl_json(web, tmp_path / "crawl", *options, "--max-pages", "70", code=3)
        assert (first["pages"], first["stopped_by"]) == (70, "max_pages")
        second = crawl_json(web, tmp_path / "crawl", *options, "--max-pages", "150", code=3)
        assert (second["pages"], second["total_pages"]) == (80, 150)
        third = crawl_json(web, tmp_path / "crawl", *options, "--max-pages", "0")
        assert (third["total_pages"], third["stopped_by"]) == (200, "done")
        assert not web.audit().violations
    assert max(Counter(stored_pages(tmp_path / "crawl")).values()) == 1


def test_one_exchange_at_a_time_gives_the_same_order_twice(tmp_path: Path) -> None:
    """F6: over real sockets too, with --concurrency 1."""
    orders = []
    for name in ("first", "second"):
        spec, arguments = plain_web(6, hosts=8, pages=120)
        with served(tmp_path / name / "web", spec, *arguments, "--port", "18973", "--base-delay-ms", "10") as web:
            options = ("--delay", "0.01", "--concurrency", "1", "--scope", "all", "--max-wait", "1")
            crawl_json(web, tmp_path / name / "crawl", *options)
        events = (tmp_path / name / "crawl" / "events").glob("*.jsonl")
        lines = [json.loads(line) for path in sorted(events) for line in path.read_text().splitlines()]
        orders.append([line["url"] for line in lines if line["event"] == "fetch_ok"])
    assert len([url for url in orders[0] if not url.endswith("/sitemap.xml")]) == 120
    assert orders[0] == orders[1]


# Stopping


def fetches(out: Path) -> int:
    """How many answers the event files tell of."""
    return sum(path.read_bytes().count(b'"fetch_ok"') for path in (out / "events").glob("*.jsonl"))


def start_slow_crawl(web: ServedWeb, out: Path) -> subprocess.Popen[bytes]:
    """A crawl that would take a good while, once it has fetched something."""
    before = fetches(out)
    command = nephila("crawl", *web.seeds, "--out", out, *web.flags, "--delay", "0.5", "--scope", "all")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while fetches(out) == before:
        assert time.monotonic() < deadline, "the crawl does not begin"
        time.sleep(0.05)
    return process


def test_ctrl_c_ends_within_five_seconds_and_a_second_one_at_once(tmp_path: Path, say: Callable[[str], None]) -> None:
    """F10: a clean stop leaves no lease behind; an abrupt one loses nothing either."""
    spec, arguments = plain_web(7, hosts=20, pages=2000)
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "500") as web:
        process = start_slow_crawl(web, tmp_path / "crawl")
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        assert process.wait(10) == 130
        say(f"Ctrl-C: ended after {time.monotonic() - started:.2f} s")
        assert time.monotonic() - started < 5
        status = json.loads(run("status", tmp_path / "crawl", "--json").stdout)
        assert status["hosts_by_place"]["leased"] == 0
        process = start_slow_crawl(web, tmp_path / "crawl")
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        # 130 by our own hand, or by the signal itself when the interpreter was already shutting down.
        assert process.wait(10) in {130, -signal.SIGINT}
        assert time.monotonic() - started < 1
        assert not web.audit().violations


# The screen


def on_a_terminal(command: list[str], columns: int, cwd: Path, **environment: str) -> bytes:
    """What a command writes to a terminal of so many columns."""
    main, child = pty.openpty()
    os.set_inheritable(child, True)
    sizes = {"COLUMNS": str(columns), "LINES": "30", "TERM": "xterm-256color"}
    process = subprocess.Popen(
        command, stdin=child, stdout=child, stderr=child, cwd=cwd, env={**os.environ, **sizes, **environment}
    )
    os.close(child)
    seen = bytearray()
    while process.poll() is None or select.select([main], [], [], 0)[0]:
        if select.select([main], [], [], 0.1)[0]:
            try:
                seen += os.read(main, 65536)
            except OSError:
                break
    os.close(main)
    assert process.wait(10) == 0, seen.decode(errors="replace")
    return bytes(seen)


@pytest.mark.parametrize("columns", [80, 40])
def test_the_live_view_fits_the_terminal(tmp_path: Path, columns: int) -> None:
    """C4: pages/s, in flight, queued, hosts, bytes; sensible at 80 columns and less."""
    spec, arguments = plain_web(8, hosts=10, pages=150)
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "80") as web:
        options = ("--delay", "0.1", "--scope", "all", "--max-wait", "1")
        seen = on_a_terminal(nephila("crawl", *web.seeds, "--out", "c", *web.flags, *options), columns, tmp_path)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", seen.decode())
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", text)]
    # A command that is to be copied is not broken, however narrow the terminal.
    assert max(len(line) for line in lines if columns >= 80 or "nephila " not in line) <= columns
    for word in ("pages", "in flight", "queued", "hosts"):
        assert any(word in line for line in lines), word
    assert seen.rfind(b"\x1b[?25h") >= seen.rfind(b"\x1b[?25l"), "the cursor is shown in the end"


def test_no_color_is_respected(tmp_path: Path) -> None:
    """C4: NO_COLOR means no colours."""
    spec, arguments = plain_web(9, hosts=5, pages=30)
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "0") as web:
        options = ("--delay", "0.05", "--scope", "all", "--max-wait", "1")
        command = nephila("crawl", *web.seeds, "--out", "c", *web.flags, *options)
        seen = on_a_terminal(command, 80, tmp_path, NO_COLOR="1").decode()
    assert not re.search(r"\x1b\[(?:3[0-7]|4[0-7]|9[0-7]|38|48)", seen)


def test_in_a_pipe_there_are_plain_lines_only(tmp_path: Path) -> None:
    """C4: no control characters where nobody looks."""
    spec, arguments = plain_web(10, hosts=5, pages=30)
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "0") as web:
        options = ("--delay", "0", "--scope", "all", "--max-wait", "1")
        result = run("crawl", *web.seeds, "--out", "c", *web.flags, *options, cwd=tmp_path)
    assert "\x1b" not in result.stdout + result.stderr
    assert "30" in result.stdout
    assert "Done" in result.stdout


def test_events_are_json_lines_with_heartbeats_and_masked_secrets(crawled: Crawled, say: Callable[[str], None]) -> None:
    """O1, K4: structured events with ts, url, fingerprint, host, depth, status, bytes; a heartbeat every 50 pages."""
    lines = [
        json.loads(line)
        for path in sorted((crawled.out / "events").glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    kinds = Counter(line["event"] for line in lines)
    say(str(dict(kinds)))
    assert {"fetch_ok", "error", "robots_disallow", "excluded_by_rule", "duplicate", "retry", "dead_letter"} <= set(
        kinds
    )
    assert kinds["heartbeat"] == crawled.summary["pages"] // 50
    fetched = next(line for line in lines if line["event"] == "fetch_ok" and line["status"] == 200)
    assert {"ts", "t_ms_from_start", "url", "fingerprint", "host", "depth", "bytes", "content_type", "worker"} <= set(
        fetched
    )
    beat = next(line for line in lines if line["event"] == "heartbeat")
    assert {"fetched", "enqueued", "errors", "unique_domains", "frontier_size"} <= set(beat)


def test_quick_settings_are_what_the_tests_think(crawled: Crawled) -> None:
    """C4: what was asked for is kept in the crawl directory and shown with its source."""
    shown = json.loads(run("config", "show", crawled.out, "--json").stdout)
    assert QUICK
    text = json.dumps(shown)
    assert "crawl directory" in text
    assert "retry_waits_s" in text
