"""Q1: CPU, speed and memory of nephila beside other crawlers on the same pages, and beside the libraries alone.

Every crawler is sent to the same site on loopback (`local_site`), on one core, the server on another; nobody is polite,
robots.txt is obeyed by those that can. Pages are counted by the server, CPU is the kernel's account of the process and
its children, start included (`net`: without, as a crawl is longer than a bench). Runs are interleaved, and the least of
the rounds counts; how fast the machine was is told by what a plain Python call took (`call ns`). nephila runs as its
command with all its defaults: WARC with request and metadata, durable frontier, catalogue, near-duplicate signatures,
events. What the others do is in the notes.

The floor is what the libraries that nephila builds on take for the same pages when they are called in a loop: one pass
after each of nephila's own runs, of which the least counts, too.

    nephila bench compare [--json] [--quick] [--sizes 3,30,100] [--peers nephila,scrapy,...] [--pages N] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_site.arguments import numbers, one_sentence
from local_site.crawling import Order, Visit, crawl
from local_site.measured import Ground, Memory, run
from local_site.pages import Plan
from local_site.running import RunningSite, Service, cores, served
from peers.calls import PEERS, Errand, Peer, install, is_ready

PAGES = {3: 4000, 30: 2000, 100: 1000}
SITE_PAGES = 20_000
LIMIT_S = 300.0
QUICK_S = 38.0
"""When --quick begins nothing new any more."""
FLOOR = Path(__file__).parent / "local_site" / "floor.py"
OURS = "nephila"
TLS_PEERS = (OURS, "script")
TITLES = {OURS: "nephila", **{name: peer.title for name, peer in PEERS.items()}}


@dataclass(frozen=True, slots=True)
class Case:
    """A site that all are sent to."""

    kilobytes: int
    tls: bool = False
    per_connection: int = 0

    def name(self) -> str:
        """As in the table."""
        kind = {0: "", 1: ", new connection each", 10: ", 10 a connection"}[self.per_connection]
        return f"{self.kilobytes} KB{', TLS' if self.tls else ''}{kind}"


class Comparison:
    """All runs; the best of each crawler and case are kept."""

    def __init__(self, given: argparse.Namespace, folder: Path, say: Callable[[str], None]) -> None:
        self._given = given
        self._folder = folder
        self._say = say
        self._began = time.monotonic()
        self.best: dict[tuple[Case, str], Visit] = {}
        self.starts: dict[str, float] = {}
        self.left_out: dict[str, str] = {}
        self.floor: dict[int, dict[str, Any]] = {}
        """By size."""

    def run(self) -> None:
        """Rounds over cases over crawlers."""
        given = self._given
        cases = [Case(kilobytes) for kilobytes in given.sizes]
        if given.tls:
            cases += [Case(30, tls=True, per_connection=10), Case(30, tls=True, per_connection=1)]
        for round_number in range(given.rounds):
            for case in cases:
                plan = Plan(SITE_PAGES, case.kilobytes)
                with served(Service(plan, case.tls, case.per_connection), self._folder) as site:
                    self._round(round_number, case, site)

    def _round(self, number: int, case: Case, site: RunningSite) -> None:
        for name in self._given.peers:
            if name in self.left_out or (case.tls and name not in TLS_PEERS):
                continue
            if self._given.quick and time.monotonic() - self._began > QUICK_S:
                self.left_out.setdefault(f"{name}, {case.name()}", "no time is left within --quick")
                continue
            if name not in self.starts:
                self.starts[name] = self._visit(name, site, 1).spent.cpu_s
            pages = self._given.pages or PAGES.get(case.kilobytes, 2000) // (4 if self._given.quick else 1)
            visit = self._visit(name, site, pages)
            key = (case, name)
            if key not in self.best or visit.spent.cpu_s / visit.pages < self._cpu(key):
                self.best[key] = visit
            self._say(f"round {number + 1}: {case.name()}: {TITLES[name]}: {visit.figures()['cpu_ms_per_page']:.3f} ms")
            if name == OURS and self._given.floor and not case.tls:
                self._pass_over(case.kilobytes, site)

    def _pass_over(self, kilobytes: int, site: RunningSite) -> None:
        """What the libraries alone take, in a process of its own on the crawler's core."""
        port = site.site.seeds[0].rsplit(":", 1)[1].strip("/")
        words = [str(kilobytes), port, "1", str(cores()[0])]
        done = subprocess.run([sys.executable, str(FLOOR), *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"The floor cannot be measured:\n{done.stderr[-1500:]}")
        found = json.loads(done.stdout)
        if kilobytes not in self.floor or found["sum_us"] < self.floor[kilobytes]["sum_us"]:
            self.floor[kilobytes] = found

    def _cpu(self, key: tuple[Case, str]) -> float:
        known = self.best[key]
        return known.spent.cpu_s / known.pages

    def _visit(self, name: str, site: RunningSite, pages: int) -> Visit:
        if name == OURS:
            return crawl(site, Order(pages), self._folder)
        peer = PEERS[name]
        return send(peer, site, max(1, round(pages * peer.share)), self._folder)

    def rows(self) -> list[dict[str, Any]]:
        """The figures, each beside nephila's in the same case."""
        found = []
        for (case, name), visit in self.best.items():
            net = self._net(case, name)
            row: dict[str, Any] = {
                "case": case.name(),
                "kilobytes": case.kilobytes,
                "tls": case.tls,
                "per_connection": case.per_connection,
                "crawler": name,
                "title": TITLES[name],
                **visit.figures(),
                "net_cpu_ms_per_page": round(net, 4),
                "start_cpu_s": round(self.starts[name], 3),
            }
            if (case, OURS) in self.best:
                ours = self._cpu((case, OURS)) * 1000
                row["times_nephila"] = round(row["cpu_ms_per_page"] / ours, 2)
                net_of_ours = self._net(case, OURS)  # a few pages may cost nothing beside the start
                row["net_times_nephila"] = round(net / net_of_ours, 2) if net_of_ours else None
            found.append(row)
        return found

    def _net(self, case: Case, name: str) -> float:
        visit = self.best[case, name]
        return max(0.0, visit.spent.cpu_s - self.starts[name]) / visit.pages * 1000


def send(peer: Peer, site: RunningSite, pages: int, folder: Path) -> Visit:
    """One crawl by somebody else; a single page starts from a single seed, to tell what starting takes."""
    place = Path(tempfile.mkdtemp(prefix="peer-", dir=folder))
    try:
        seeds = place / "seeds.txt"
        seeds.write_text("\n".join(site.site.seeds if pages > 1 else site.site.seeds[:1]) + "\n")
        command = peer.command(Errand(seeds, pages, place / "out", site.authority))

        def enough(_: Memory) -> bool:
            return peer.endless and int(site.counts()["pages"]) >= pages

        (place / "out").mkdir()
        site.reset()
        spent = run(command, Ground(place, place / "log", cores()[0], limit_s=LIMIT_S), watch=enough, look_s=0.05)
        counted = site.counts()
        if not counted["pages"] or (spent.exit_code and not peer.endless):
            said = (place / "log").read_text(errors="replace")
            raise SystemExit(f"{peer.title} ended with exit code {spent.exit_code}:\n{said[-1500:]}")
        return Visit(spent, counted, {})
    finally:
        shutil.rmtree(place, ignore_errors=True)


def with_ratio(floor: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each floor beside what nephila took for the same pages."""
    for one in floor:
        for row in rows:
            if row["crawler"] == OURS and row["case"] == f"{one['kilobytes']} KB":
                one["nephila_us"] = round(row["net_cpu_ms_per_page"] * 1000, 1)
                one["floor_share"] = round(one["sum_us"] / one["nephila_us"], 2)
                if one["sum_with_extension_us"]:
                    one["floor_share_with_extension"] = round(one["sum_with_extension_us"] / one["nephila_us"], 2)
    return floor


def show(report: dict[str, Any]) -> None:
    """The report for people, which is also the documentation's table."""
    case = ""
    for row in sorted(report["rows"], key=lambda row: (row["tls"], row["kilobytes"], -row["per_connection"])):
        if row["case"] != case:
            case = row["case"]
            print(f"\n{case}")
            print("| crawler | pages | CPU ms a page | times nephila | net | times | pages/s | peak MB | call ns |")
            print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        print(
            f"| {row['title']} | {row['pages']:,} | {row['cpu_ms_per_page']:.3f} | {row.get('times_nephila', '')}"
            f" | {row['net_cpu_ms_per_page']:.3f} | {row.get('net_times_nephila', '')}"
            f" | {row['pages_per_s']:.0f} | {row['peak_rss_mb']:.0f} | {row['call_ns']:.0f} |"
        )
    if floor := report["floor"]:
        print("\nThe libraries alone, us a page, and what share of nephila's CPU that is")
        names = list(floor[0]["stages_us"])
        print("| KB | " + " | ".join(names) + " | sum | nephila | share | extension | sum with it | share |")
        print("|---:|" + "---:|" * (len(names) + 6))
        for one in floor:
            parts = [f"{one['stages_us'][name]:.0f}" for name in names]
            parts += [f"{one['sum_us']:.0f}", f"{one.get('nephila_us', '')}", f"{one.get('floor_share', '')}"]
            parts += [str(one[name] or "") for name in ("extension_us", "sum_with_extension_us")]
            print(f"| {one['kilobytes']} | {' | '.join(parts)} | {one.get('floor_share_with_extension', '')} |")
    if report["left_out"]:
        print("\nleft out: " + "; ".join(f"{name} ({why})" for name, why in report["left_out"].items()))
    print("\nnotes: " + "; ".join(f"{TITLES[name]}: {PEERS[name].does}" for name in report["peers"] if name != OURS))


def parse(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="nephila bench compare", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="few pages, installed peers only; ends within 45 s")
    parser.add_argument("--sizes", type=numbers, default=None, metavar="KB,...", help="page sizes [3,30,100]")
    parser.add_argument("--peers", default="", metavar="NAME,...", help=f"of {OURS},{','.join(PEERS)} [all]")
    parser.add_argument("--pages", type=int, default=0, metavar="N", help="pages of each crawl")
    parser.add_argument("--rounds", type=int, default=0, metavar="N", help="rounds of which the least counts [2]")
    parser.add_argument("--tls", action=argparse.BooleanOptionalAction, default=None, help="the rows over TLS")
    parser.add_argument("--floor", action=argparse.BooleanOptionalAction, default=True, help="the libraries alone")
    one_sentence(parser)
    given = parser.parse_args(words)
    given.peers = [name for name in given.peers.split(",") if name] or [OURS, *PEERS]
    if strange := [name for name in given.peers if name not in TITLES]:
        parser.error(f"there is no crawler {strange[0]!r}; there are: {', '.join(TITLES)}")
    given.sizes = given.sizes or ([30] if given.quick else [3, 30, 100])
    given.rounds = given.rounds or (1 if given.quick else 2)
    given.tls = not given.quick if given.tls is None else given.tls
    return given


def main() -> None:
    """Parse the arguments and run."""
    given = parse(sys.argv[1:])

    def say(sentence: str) -> None:
        if not given.json:
            print(sentence, file=sys.stderr, flush=True)

    problem = ""
    wanted = [PEERS[name] for name in given.peers if name != OURS and not PEERS[name].program]
    if wanted and not given.quick and not is_ready():
        say("making .venv-bench for the other crawlers, once ...")
        problem = install()
    with tempfile.TemporaryDirectory(prefix="nephila-bench-") as directory:
        folder = Path(directory)
        comparison = Comparison(given, folder, say)
        for name in given.peers:
            if name != OURS and (why := PEERS[name].missing()):
                comparison.left_out[name] = problem or why
        comparison.run()
        rows = comparison.rows()
    report = {
        "bench": "compare",
        "peers": [name for name in given.peers if name not in comparison.left_out],
        "left_out": comparison.left_out,
        "cores": cores(),
        "rows": rows,
        "floor": with_ratio([*comparison.floor.values()], rows),
    }
    if given.json:
        print(json.dumps(report))
    else:
        show(report)


if __name__ == "__main__":
    main()
