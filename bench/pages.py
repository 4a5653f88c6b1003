"""Q1, Q3: what a page costs nephila in all, by size and kind of connection, and where the time goes.

The command `nephila crawl` is sent to a site on loopback (real pages of the test material, made different from one
another; see `local_site`), with everything on that is on by default and no delay. It runs on one core, the server on
another; several processes share that one core, so that their cost is compared and not how the machine's cores hinder
each other (`--spread` lets them use all). Pages are counted by the server; CPU is the kernel's account of the process
and its children, their start included, and is given without the start too (`net`), as a crawl is longer than a bench.
Cases are measured in turns and the least of the turns counts: the machine has other work to do.

    nephila bench pages [--json] [--quick] [--sizes 3,30,100] [--connections keep,10,1] [--tls both|off|on]
                        [--pages N] [--turns N] [--profile] [--processes 1,2 [--spread]] [--latency MS]
                        [--concurrency N]
    nephila bench pages --count 200000     one long crawl: anonymous memory and cost, tenth by tenth
    nephila bench pages --far              a web that is 200 ms away: what a second process brings when all is waiting
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from local_site.arguments import numbers, one_sentence
from local_site.crawling import Order, Visit, crawl, has_flag
from local_site.measured import Memory
from local_site.pages import Plan
from local_site.running import Service, cores, served

PAGES = {3: 6000, 30: 3000, 100: 1500}
"""How many pages of each size are crawled: some seconds each."""
SITE_PAGES = 20_000
"""Of the site: more than are crawled, as on the web."""
KINDS = {"keep": 0, "10": 10, "1": 1}
"""Answers that a connection lives for; 0 is without end."""
FAR_MS, FAR_CONCURRENCY, FAR_PAGES = 200.0, 32, 4000
"""A web that is far away: a process waits for 32 answers at once, out of 250 hosts, so that waiting is the bound."""
MEMORY_GROWTH = 1.1
"""Q3: anonymous memory at the end of a long crawl against that at its first tenth, at most."""
PROFILED = Path(__file__).parent / "local_site" / "profiled.py"


@dataclass(frozen=True, slots=True)
class Case:
    """One row."""

    kilobytes: int
    connection: str
    tls: bool
    processes: int
    pages: int
    concurrency: int = 0
    """Exchanges in flight of each process; 0 leaves it to nephila."""
    spread: bool = False
    """Whether several processes may use every core."""

    def order(self, *, flag: bool) -> Order:
        """How nephila is called for it."""
        flags: tuple[str, ...] = ("--processes", str(self.processes)) if flag else ()
        if self.concurrency:
            flags += ("--concurrency", str(self.concurrency))
        return Order(self.pages, flags, one_core=self.processes == 1 or not self.spread)

    def starting(self, *, flag: bool) -> Order:
        """The same for one page, which tells what starting takes."""
        return replace(self.order(flag=flag), pages=1)

    def head(self) -> dict[str, Any]:
        """What it is."""
        return {
            "kilobytes": self.kilobytes,
            "connection": self.connection,
            "tls": self.tls,
            "processes": self.processes,
        }


def cases(given: argparse.Namespace) -> Iterator[Case]:
    """All rows that were asked for."""
    for tls in {"both": (False, True), "off": (False,), "on": (True,)}[given.tls]:
        for kilobytes in given.sizes:
            for connection in given.connections:
                for processes in given.processes:
                    pages = given.pages or PAGES.get(kilobytes, 3000) // (3 if given.quick else 1)
                    yield Case(kilobytes, connection, tls, processes, pages, given.concurrency, given.spread)


def measure(given: argparse.Namespace, folder: Path, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Every case in turns; the least CPU of each counts."""
    rows = list(cases(given))
    flag = has_flag("--processes")
    best: dict[Case, Visit] = {}
    starts: dict[tuple[bool, int], float] = {}
    for turn in range(given.turns):
        for case in rows:
            plan = Plan(max(SITE_PAGES, 3 * case.pages), case.kilobytes, hosts=given.hosts)
            service = Service(plan, case.tls, KINDS[case.connection], given.latency)
            with served(service, folder) as site:
                started_s = crawl(site, case.starting(flag=flag), folder).spent.cpu_s
                kind = case.tls, case.processes
                starts[kind] = min(started_s, starts.get(kind, started_s))
                visit = crawl(site, case.order(flag=flag), folder)
            if case not in best or visit.spent.cpu_s < best[case].spent.cpu_s:
                best[case] = visit
            figures = visit.figures()
            say(
                f"turn {turn + 1}: {case.kilobytes:>3} KB {'TLS  ' if case.tls else 'plain'} {case.connection:>4}:"
                f" {figures['cpu_ms_per_page']:.3f} ms a page, {figures['pages_per_s']:.0f} pages/s"
            )
    return [_row(case, visit, starts[case.tls, case.processes]) for case, visit in best.items()]


def _row(case: Case, visit: Visit, start_s: float) -> dict[str, Any]:
    net = (visit.spent.cpu_s - start_s) / max(1, visit.pages) * 1000
    errors = sum(visit.summary.get("errors", {}).values())
    return {
        **case.head(),
        **visit.figures(),
        "net_cpu_ms_per_page": round(net, 4),
        "start_cpu_s": round(start_s, 3),
        "errors": errors,
    }


def gains(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What more processes bring against one, row by row."""
    alone = {_kind(row): row for row in rows if row["processes"] == 1}
    return [
        {
            **dict(zip(_KIND, _kind(row), strict=True)),
            "processes": row["processes"],
            "speed": round(row["pages_per_s"] / one["pages_per_s"], 3),
            "cpu": round(row["cpu_ms_per_page"] / one["cpu_ms_per_page"], 3),
            "net_cpu": round(row["net_cpu_ms_per_page"] / max(1e-9, one["net_cpu_ms_per_page"]), 3),
        }
        for row in rows
        if row["processes"] > 1 and (one := alone.get(_kind(row)))
    ]


_KIND = ("kilobytes", "connection", "tls")


def _kind(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _KIND)


def profile(given: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Where the time goes, for each size, over connections that are kept."""
    found = []
    for kilobytes in given.sizes:
        pages = given.pages or PAGES.get(kilobytes, 3000) // (3 if given.quick else 1)
        result = folder / "profile.json"
        with served(Service(Plan(SITE_PAGES, kilobytes), latency_ms=given.latency), folder) as site:
            visit = crawl(site, Order(pages, program=("-P", str(PROFILED), str(result))), folder)
        seen = json.loads(result.read_text())

        def per_page(spent: float, pages: int = visit.pages) -> float:
            return round(spent / pages * 1e6, 1)

        stages = sorted(seen["stages"].items(), key=lambda pair: -pair[1])
        found.append(
            {
                "kilobytes": kilobytes,
                "pages": visit.pages,
                "cpu_us_per_page": per_page(seen["cpu_s"]),
                "stages_us": {stage: per_page(spent) for stage, spent in stages},
                "threads_us": {name: per_page(spent) for name, spent in seen["threads"].items()},
                "functions_us": {name: per_page(spent) for name, spent in seen["functions"][: given.functions]},
            }
        )
    return found


def long_run(given: argparse.Namespace, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """One crawl of many pages, looked at in tenths."""
    kilobytes = given.sizes[0]
    tenths: list[dict[str, Any]] = []
    plan = Plan(given.count * 5 // 4, kilobytes, hosts=given.hosts)
    with ExitStack() as stack:
        site = stack.enter_context(served(Service(plan, latency_ms=given.latency), folder))
        began = time.monotonic()
        most = 0
        last = Memory(0, 0)

        def look(memory: Memory) -> bool:
            nonlocal last, most
            if not memory.anonymous:
                memory = last  # it has ended, and its memory went before itself
            last = memory
            most = max(most, memory.anonymous)
            done = int(site.counts()["pages"])
            if done * 10 < given.count * (len(tenths) + 1) or len(tenths) == 10:
                return False
            tenths.append(
                {
                    "pages": done,
                    "anonymous_mb": round(memory.anonymous / 1e6, 1),
                    "peak_rss_mb": round(memory.peak / 1e6, 1),
                    "wall_s": round(time.monotonic() - began, 1),
                }
            )
            say(f"{done:>9,} pages: {tenths[-1]['anonymous_mb']:.0f} MB anonymous, {tenths[-1]['wall_s']:.0f} s")
            return False

        visit = crawl(site, Order(given.count), folder, watch=look)
    growth = tenths[-1]["anonymous_mb"] / tenths[0]["anonymous_mb"] if tenths else 0.0
    return {
        "kilobytes": kilobytes,
        **visit.figures(),
        "tenths": tenths,
        "memory_growth": round(growth, 3),
        "memory_growth_budget": MEMORY_GROWTH,
        "anonymous_most_mb": round(most / 1e6, 1),
        "within_budget": bool(tenths) and growth <= MEMORY_GROWTH,
        "stopped_by": visit.summary.get("stopped_by", ""),
    }


def show(report: dict[str, Any]) -> None:
    """The report for people."""
    if report["cases"]:
        print("  KB       connection procs   pages  ms/page  net ms  pages/s  peak MB  connections  errors  call ns")
    for row in report["cases"]:
        kind = f"{'TLS' if row['tls'] else 'plain'} {row['connection']}"
        print(
            f"{row['kilobytes']:>4} {kind:>16} {row['processes']:>5} {row['pages']:>7,} {row['cpu_ms_per_page']:>8.3f}"
            f" {row['net_cpu_ms_per_page']:>7.3f} {row['pages_per_s']:>8.0f} {row['peak_rss_mb']:>8.0f}"
            f" {row['connections']:>12,} {row['errors']:>7,} {row['call_ns']:>8.0f}"
        )
    for gain in report["gains"]:
        speed, net, cpu = gain["speed"], gain["net_cpu"], gain["cpu"]
        print(f"{gain['processes']} processes: {speed:.2f} times the pages/s of one,", end=" ")
        print(f"{net:.2f} times its net CPU a page ({cpu:.2f} with what starting takes)")
    for seen in report["profile"]:
        print(f"\n{seen['kilobytes']} KB: {seen['cpu_us_per_page']:.0f} us a page, start included; by stage:")
        for stage, spent in seen["stages_us"].items():
            print(f"  {spent:>8.1f}  {spent / seen['cpu_us_per_page']:>5.1%}  {stage}")
        print("by thread: " + ", ".join(f"{name} {spent:.0f}" for name, spent in seen["threads_us"].items()))
        print("by function, with the libraries it calls:")
        for name, spent in seen["functions_us"].items():
            print(f"  {spent:>8.1f}  {name}")
    if found := report["long"]:
        print(f"\n{found['pages']:,} pages of {found['kilobytes']} KB: {found['cpu_ms_per_page']:.3f} ms a page")
        for tenth in found["tenths"]:
            print(f"  {tenth['pages']:>9,}  {tenth['anonymous_mb']:>7.1f} MB anonymous  {tenth['wall_s']:>7.1f} s")
        print(f"  memory grew {found['memory_growth']:.2f} times since the first tenth (at most {MEMORY_GROWTH});")
        print(f"  the most at any time, ending included, was {found['anonymous_most_mb']:.1f} MB")


def parse(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="nephila bench pages", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="few pages and few rows; ends within 45 s")
    parser.add_argument("--sizes", type=numbers, default=None, metavar="KB,...", help="page sizes [3,30,100]")
    parser.add_argument("--connections", default=None, metavar="KIND,...", help="keep, 10, 1: answers a connection")
    parser.add_argument("--tls", choices=("both", "off", "on"), default=None, help="[both]")
    parser.add_argument("--pages", type=int, default=0, metavar="N", help="pages of each crawl")
    parser.add_argument("--turns", type=int, default=0, metavar="N", help="turns of which the least counts [2]")
    parser.add_argument("--processes", type=numbers, default=[1], metavar="N,...", help="nephila's --processes")
    parser.add_argument("--spread", action="store_true", help="several processes on every core, not all on one")
    parser.add_argument("--latency", type=float, default=0.0, metavar="MS", help="before each answer of the server")
    parser.add_argument("--profile", action="store_true", help="where the time goes, instead of the table")
    parser.add_argument("--functions", type=int, default=25, metavar="N", help="functions that --profile lists [25]")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="one long crawl, instead of the table")
    parser.add_argument(
        "--hosts", type=int, default=0, metavar="N", help="of the site [100; 250 with --count or --far]"
    )
    parser.add_argument("--concurrency", type=int, default=0, metavar="N", help="nephila's --concurrency")
    parser.add_argument(
        "--far", action="store_true", help="--latency 200 --concurrency 32 --processes 1,2 --spread and 250 hosts"
    )
    one_sentence(parser)
    given = parser.parse_args(words)
    if given.far:
        given.latency, given.concurrency = given.latency or FAR_MS, given.concurrency or FAR_CONCURRENCY
        given.processes, given.spread, given.pages = [1, 2], True, given.pages or FAR_PAGES
        given.sizes, given.connections, given.tls = given.sizes or [30], given.connections or "keep", given.tls or "off"
    given.hosts = given.hosts or (250 if given.count or given.far else 100)
    given.sizes = given.sizes or ([30] if given.count else [3, 30] if given.quick else [3, 30, 100])
    given.connections = (given.connections or ("keep,1" if given.quick else "keep,10,1")).split(",")
    given.tls = given.tls or ("off" if given.quick else "both")
    given.turns = given.turns or (1 if given.quick else 2)
    if strange := [kind for kind in given.connections if kind not in KINDS]:
        parser.error(f"there is no kind of connection {strange[0]!r}; there are: {', '.join(KINDS)}")
    if any(number > 1 for number in given.processes) and not has_flag("--processes"):
        parser.error("this nephila has no --processes, so that only 1 can be measured")
    if given.hosts > 250 or given.hosts < 1:
        parser.error("--hosts is from 1 to 250")
    return given


def main() -> None:
    """Parse the arguments and run."""
    given = parse(sys.argv[1:])

    def say(sentence: str) -> None:
        if not given.json:
            print(sentence, file=sys.stderr, flush=True)

    report: dict[str, Any] = {"bench": "pages", "cores": cores(), "latency_ms": given.latency}
    report |= {"cases": [], "gains": [], "profile": [], "long": {}}
    with tempfile.TemporaryDirectory(prefix="nephila-bench-") as directory:
        folder = Path(directory)
        if given.count:
            report["long"] = long_run(given, folder, say)
        elif given.profile:
            report["profile"] = profile(given, folder)
        else:
            report["cases"] = measure(given, folder, say)
            report["gains"] = gains(report["cases"])
    if given.json:
        print(json.dumps(report))
    else:
        show(report)


if __name__ == "__main__":
    main()
