"""C1, O2: how long the control API takes to answer, and what it costs, whatever the size of the crawl.

A crawl directory is made: a frontier filled as a crawl would fill it (see `bench frontier`), a catalogue, policies and
blocks. `nephila serve` is started on it, and every endpoint is asked several times, one after the other, over a kept
connection, the first time included. The budget is 300 ms for each, by the median of its times; the machine has other
work to do, so the largest is told beside it.

What it costs a crawl in the same process is told as the share of one core that a dashboard takes which asks for all
that it shows every five seconds while Prometheus scrapes as often: the processor time of the server for many such
rounds, and of the look that every crawl takes at itself every five seconds (`node/watching.py`). What it costs a crawl
that is busy is measured as well (`local_site/onlooked.py`): CPU a page with all that against CPU a page without.

    nephila bench api [--json] [--quick] [--size URLS:HOSTS:CAPTURES] [--times N] [--busy|--no-busy]
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

from xxhash import xxh3_128_digest

from frontier import World, address
from local_site import onlooked
from nephila.config import write_stored
from nephila.interfaces.catalogue import CaptureRow, ErrorRow
from nephila.interfaces.frontier import FrontierSnapshot
from nephila.model.policy import Block, DomainPolicy
from nephila.model.record import SegmentId
from nephila.model.settings import Settings
from nephila.model.summary import LATENCY_BOUNDS_S, CrawlSnapshot
from nephila.node.directory import CrawlDirectory
from nephila.node.logbook import Logbook
from nephila.store import SqliteCatalogue

SIZE, QUICK = (10_000_000, 100_000, 500_000), (200_000, 20_000, 20_000)
BUDGETS = {"answer_ms": 300.0, "core_share": 0.02, "busy_share": 0.02}
ORDERS = 500
"""Policies and blocks."""
TIMES, QUICK_TIMES = 15, 5
ROUNDS_FOR_EACH = 7
"""Rounds of the dashboard for each time that an endpoint is asked."""
EVERY_S = 5.0
TICKS = os.sysconf("SC_CLK_TCK")
LISTS = (
    "/api/v1/domains?sort=queued&limit=50",
    "/api/v1/domains?sort=pages&order=asc&limit=50&offset=10000",
    "/api/v1/domains?search=77&sort=domain&order=asc",
)
"""Asked twice: while the list is still being put together, and when it is complete."""
DASHBOARD = ("/api/v1/status", "/api/v1/series", "/api/v1/alerts", "/api/v1/domains?limit=50", "/metrics")


async def fill(out: Path, urls: int, hosts: int, captures: int) -> None:
    """Make the directory."""
    directory = CrawlDirectory(out)
    with directory.held():
        write_stored(out, Settings())
        world = World(out, hosts, sync=False)
        await world.fill(urls)
        for number in range(ORDERS):
            await world.frontier.set_policy(f"site-{number}.com", DomainPolicy(delay_s=2.0))
            await world.frontier.block(Block(f"https://www.site-{number}.com/private/", "a bench", 1))
        await world.frontier.close()
        catalogue = SqliteCatalogue(directory.catalogue)
        for first in range(0, captures, 5_000):
            catalogue.record([row(number, hosts) for number in range(first, min(captures, first + 5_000))], ())
        catalogue.record((), [error(number, hosts) for number in range(captures // 20)])
        catalogue.close()
        directory.events.mkdir()


def row(number: int, hosts: int) -> CaptureRow:
    """A capture of an ordinary page."""
    host = number % hosts
    found = address(host, number // hosts)
    return CaptureRow(
        url=found.url,
        fingerprint=found.fingerprint,
        host=found.host,
        domain=f"site-{host}.com",
        depth=1,
        via="",
        level=2,
        retries=0,
        at=1_790_000_000_000 + number * 2,
        status=200,
        content_type="text/html",
        content_hash=xxh3_128_digest(found.url.encode()) * 2,
        length=30_000,
        wire_bytes=9_000,
        elapsed_ms=120,
        kind="response",
        segment=SegmentId("nephila-00000.warc.gz"),
        offset=number * 10_000,
        record_length=9_500,
        end=number * 10_000 + 9_999,
        payload_digest="sha256:" + "0" * 64,
        title="An article on something",
        robots_txt="User-agent: *\nDisallow: /private/\n" * 40 if number < hosts else "",
        robots=number < hosts and number % 2 == 0,
    )


def error(number: int, hosts: int) -> ErrorRow:
    """A failure of the last hour."""
    found = address(number % hosts, number)
    at = int(time.time() * 1000) - number
    return ErrorRow(found.url, found.fingerprint, found.host, "timeout", "no answer", at, 0, dead=False)


def paths() -> list[tuple[str, str, object]]:
    """Every endpoint that is asked, with ordinary arguments."""
    url = quote(address(3, 1).url, safe="")
    return [
        ("GET", "/healthz", None),
        ("GET", "/readyz", None),
        ("GET", "/metrics", None),
        ("GET", "/api/v1/openapi.json", None),
        ("GET", "/api/v1/status", None),
        ("GET", "/api/v1/series", None),
        ("GET", "/api/v1/alerts", None),
        *(("GET", path, None) for path in LISTS),
        ("GET", "/api/v1/domains/site-3.com", None),
        ("GET", "/api/v1/policies?limit=1000", None),
        ("GET", "/api/v1/policies/site-3.com", None),
        ("GET", "/api/v1/blocklist?limit=1000", None),
        ("GET", "/api/v1/dead-letters?limit=1000", None),
        ("GET", "/api/v1/pages?limit=1000", None),
        ("GET", "/api/v1/pages?host=www.site-3.com", None),
        ("GET", f"/api/v1/pages?url={url}", None),
        ("GET", f"/api/v1/why?url={url}", None),
        ("GET", "/api/v1/traps", None),
        ("GET", "/api/v1/changes", None),
        ("GET", "/api/v1/events?follow=false&backlog=100", None),
        ("PUT", "/api/v1/policies/site-3.com", {"delay_s": 3}),
        ("POST", "/api/v1/domains/site-4.com/pause", {}),
        ("POST", "/api/v1/domains/site-4.com/resume", {}),
        ("POST", "/api/v1/feedback", {"domain": "site-5.com", "quality": 2}),
        ("POST", "/api/v1/blocklist", {"pattern": "blocked.example", "reason": "a bench"}),
        ("DELETE", "/api/v1/blocklist?pattern=blocked.example", None),
        ("POST", "/api/v1/seeds", {"urls": [f"https://www.site-{number}.com/new" for number in range(100)]}),
        ("POST", "/api/v1/recrawl", {"urls": [address(3, 1).url]}),
        ("POST", "/api/v1/dead-letters/retry", {"all": True}),
        ("POST", "/api/v1/tasks/lease", {"worker_id": "bench", "batch_size": 50, "lease_duration_sec": 10}),
    ]


class Served:
    """`nephila serve` in a process of its own."""

    def __init__(self, out: Path) -> None:
        command = [sys.executable, "-m", "nephila", "serve", "--out", str(out), "--port", "0"]
        self.began = time.monotonic()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = (self.process.stderr.readline() if self.process.stderr else "") or "nothing"
        found = re.search(r"http://([\d.]+):(\d+)/", line)
        if found is None:
            raise SystemExit(f"it does not answer: {line}")
        self.connection = http.client.HTTPConnection(found[1], int(found[2]), timeout=60)

    def ask(self, method: str, path: str, body: object = None) -> tuple[float, int]:
        """Ask once: milliseconds and status. Who is told to ask less often waits."""
        raw = None if body is None else json.dumps(body)
        while True:
            began = time.perf_counter()
            headers = {} if raw is None else {"Content-Type": "application/json"}
            self.connection.request(method, path, raw, headers)
            answer = self.connection.getresponse()
            answer.read()
            if answer.status != 429:
                return (time.perf_counter() - began) * 1000, answer.status
            time.sleep(0.2)

    def wait_for_roster(self) -> float:
        """Wait until the list of domains is complete; how long since the server was started."""
        while True:
            self.connection.request("GET", "/api/v1/domains?limit=1")
            if json.loads(self.connection.getresponse().read())["complete"]:
                return time.monotonic() - self.began
            time.sleep(0.2)

    def cpu_s(self) -> float:
        """Processor time of the server."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def close(self) -> None:
        """End it."""
        self.connection.close()
        self.process.terminate()
        self.process.wait(20)


def look_cpu_s(out: Path) -> float:
    """Processor time of one look of a crawl at its own figures: recorded and written."""
    book = Logbook(out / "figures.json", 1)
    frontier = FrontierSnapshot(1, 1, {"high": 1}, {"retry": 1}, {}, 1, 1, 1, 1, 1, 1, 1, 0)
    errors = {f"kind_{number}": number for number in range(12)}
    began = time.process_time()
    for number in range(1000):
        latencies = (number,) * (len(LATENCY_BOUNDS_S) + 1)
        now = CrawlSnapshot(1, number, number, number, 1, 1, 1, 1, 1, errors, {}, {200: number}, latencies=latencies)
        book.record(1_790_000_000_000 + number * 10_000, now, frontier)
        book.save()
    return (time.process_time() - began) / 1000


def run(size: tuple[int, int, int], times: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Fill, serve, ask."""
    urls, hosts, captures = size
    rounds = ROUNDS_FOR_EACH * times
    with tempfile.TemporaryDirectory(prefix="nephila-bench-") as place:
        out = Path(place) / "crawl"
        say(f"filling {urls:,} URLs on {hosts:,} hosts, {captures:,} captures ...")
        asyncio.run(fill(out, urls, hosts, captures))
        look_s = look_cpu_s(out)
        served = Served(out)
        try:
            rows = []
            for method, path, body in paths():
                asked = [served.ask(method, path, body) for _ in range(times)]
                statuses = sorted({status for _, status in asked})
                rows.append(_row(method, path, statuses, [took for took, _ in asked]))
            waited_s = served.wait_for_roster()
            for path in LISTS:
                took = [served.ask("GET", path)[0] for _ in range(times)]
                rows.append(_row("GET", path, [200], took, "complete"))
            before = served.cpu_s()
            for _ in range(rounds):
                for path in DASHBOARD:
                    served.ask("GET", path)
            round_s = (served.cpu_s() - before) / rounds
        finally:
            served.close()
    return {
        "urls": urls,
        "hosts": hosts,
        "captures": captures,
        "endpoints": rows,
        "slowest_median_ms": max(one["median_ms"] for one in rows),
        "roster_s": waited_s,
        "dashboard_round_cpu_ms": round_s * 1000,
        "look_cpu_ms": look_s * 1000,
        "core_share": (round_s + look_s) / EVERY_S,
    }


def _row(method: str, target: str, statuses: list[int], times: list[float], note: str = "") -> dict[str, Any]:
    return {
        "endpoint": f"{method} {target.partition('?')[0]}",
        "target": target,
        "note": note,
        "statuses": statuses,
        "first_ms": times[0],
        "median_ms": median(times),
        "max_ms": max(times),
    }


def show(report: dict[str, Any]) -> None:
    """The report for people."""
    if "endpoints" in report:
        _show_endpoints(report)
    if "busy" in report:
        busy = report["busy"]
        ratios = ", ".join(f"{ratio:.3f}" for ratio in busy["ratios"])
        print(f"a busy crawl of {busy['pages']:,} pages, asked {busy['asked']} times in every other window:")
        print(f"{busy['ratio']:.3f} times the CPU a page of the windows beside it ({ratios})")


def _show_endpoints(report: dict[str, Any]) -> None:
    print(f"{report['urls']:,} URLs on {report['hosts']:,} hosts, {report['captures']:,} captures")
    print("first ms  median ms   max ms  endpoint")
    for one in report["endpoints"]:
        told = "" if one["statuses"][0] < 300 else f"  {one['statuses']}"
        told += f" ({one['note']})" if one["note"] else ""
        print(f"{one['first_ms']:8.1f} {one['median_ms']:10.1f} {one['max_ms']:8.1f}  {one['target'][:70]}{told}")
    print(
        f"a round of the dashboard and a scrape: {report['dashboard_round_cpu_ms']:.1f} ms of CPU; a look: "
        f"{report['look_cpu_ms']:.1f} ms; every 5 s that is {report['core_share']:.2%} of a core"
    )


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="nephila bench api", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="a small crawl; ends within 45 s")
    parser.add_argument("--size", default="", metavar="URLS:HOSTS:CAPTURES", help="another size than the usual one")
    parser.add_argument("--times", type=int, default=0, metavar="N", help="ask each endpoint so often")
    parser.add_argument(
        "--busy", action=argparse.BooleanOptionalAction, help="only, or not, what it costs a crawl that is busy"
    )
    given = parser.parse_args()
    size = tuple(int(number) for number in given.size.split(":")) if given.size else QUICK if given.quick else SIZE
    times = given.times or (QUICK_TIMES if given.quick else TIMES)

    def say(sentence: str) -> None:
        if not given.json:
            print(sentence, file=sys.stderr, flush=True)

    report: dict[str, Any] = {"bench": "api", "budgets": BUDGETS}
    if given.busy is not True:
        report |= run(size, times, say)
    if given.busy is not False:
        pages, window_s = (
            (onlooked.QUICK_PAGES, onlooked.QUICK_WINDOW_S) if given.quick else (onlooked.PAGES, onlooked.WINDOW_S)
        )
        with tempfile.TemporaryDirectory(prefix="nephila-bench-") as place:
            report["busy"] = onlooked.measure(Path(place), say, pages=pages, window_s=window_s)
    if given.json:
        print(json.dumps(report))
    else:
        show(report)
    sys.exit(1 if _is_missed(report) else 0)


def _is_missed(report: dict[str, Any]) -> bool:
    if "busy" in report and report["busy"]["ratio"] > 1 + BUDGETS["busy_share"]:
        return True
    if "endpoints" not in report:
        return False
    return bool(report["slowest_median_ms"] > BUDGETS["answer_ms"] or report["core_share"] > BUDGETS["core_share"])


if __name__ == "__main__":
    main()
