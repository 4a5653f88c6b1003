"""Q2: a polite broad crawl: how much of what the delays allow is asked, and whether any delay is broken.

`nephila crawl` with its defaults (one request at a time and a second of rest for each host) is sent to a thousand
hosts, each at an address of its own on loopback, on one core; the server runs on another, and its auditor judges what
arrives. *What the delays allow* in T seconds is the sum over hosts of floor((T - time to its robots.txt) / (delay +
time of an answer)); T begins with the first request. How late a request is, is the gap before it less the delay: what
the crawler adds to a cycle of one second. Exit code 0 when at least 99 % of what is allowed was asked and nothing was
broken, else 1.

    nephila bench polite [--json] [--quick] [--hosts N] [--seconds N] [--delay S] [--latency MS] [--processes N]
                         [--set NAME=VALUE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from local_site.arguments import one_sentence
from local_site.measured import Ground, Spent, run
from local_site.running import cores

SERVER = Path(__file__).parent / "local_site" / "audited.py"
HOSTS, QUICK_HOSTS = 1000, 300
SECONDS, QUICK_SECONDS = 60, 12
LEAST_SHARE = 0.99
MARGIN_S = 3
"""The crawl goes on for so long after what is counted, so that its end changes nothing."""
FINE_CODES = frozenset({0, 3})
"""Done, or stopped by the limit of time."""

Times = Sequence[Sequence[float]]
"""Of one host, each request: arrived at, answer ended at (ms), whether it was for a page."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is crawled, for how long."""

    hosts: int
    seconds: float
    delay_s: float
    latency_ms: float
    processes: int
    settings: tuple[str, ...] = ()


@contextmanager
def audited(plan: Plan) -> Iterator[subprocess.Popen[str]]:
    """The server, while the block runs; it ends when its input does."""
    pages = plan.hosts * (int((plan.seconds + MARGIN_S) / plan.delay_s) + 20)
    words = ["--hosts", plan.hosts, "--pages", pages, "--delay-ms", plan.delay_s * 1000]
    words += ["--latency-ms", plan.latency_ms, "--core", cores()[1]]
    process = subprocess.Popen(
        [sys.executable, str(SERVER), *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def heard(server: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line that the server says."""
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line:
        raise SystemExit("The server of the site has ended; what it said stands above.")
    found: dict[str, Any] = json.loads(line)
    return found


def crawl(plan: Plan, server: subprocess.Popen[str], folder: Path) -> tuple[Spent, dict[str, Any], dict[str, Any]]:
    """One crawl: what it took, what it says of itself, what the server has seen."""
    told = heard(server)
    seeds = folder / "seeds.txt"
    seeds.write_text("\n".join(told["seeds"]))
    words = ["crawl", "--seeds", str(seeds), "--out", str(folder / "out"), "--scope", "all", "--json", "--quiet"]
    words += ["--resolver", told["resolver"], "--allow-address", "127.0.0.0/8", "--delay", str(plan.delay_s)]
    words += ["--max-time", str(plan.seconds + MARGIN_S), "--processes", str(plan.processes)]
    words += ["--render", "never"]  # what a browser asks for on top has a rule of its own, which this auditor has not
    words += [word for setting in plan.settings for word in ("--set", setting)]
    log = folder / "log"
    core = cores()[0] if plan.processes == 1 else -1
    spent = run([sys.executable, "-P", "-m", "nephila", *words], Ground(folder, log, core), look_s=1.0)
    said = log.read_text(errors="replace")
    if spent.exit_code not in FINE_CODES:
        raise SystemExit(f"nephila ended with exit code {spent.exit_code}:\n{said[-2000:]}")
    assert server.stdin is not None
    server.stdin.write("seen\n")
    server.stdin.flush()
    return spent, json.loads(said.splitlines()[-1]), heard(server)


def allowed(times: Times, began_ms: float, plan: Plan) -> int:
    """How many pages the delay lets be asked of one host, from its robots.txt to the end."""
    answer_ms = sum(one[1] - one[0] for one in times) / len(times)
    left_ms = began_ms + plan.seconds * 1000 - times[0][0]
    return max(0, int(left_ms / (plan.delay_s * 1000 + answer_ms)))


def judge(plan: Plan, spent: Spent, summary: Mapping[str, Any], served: Mapping[str, Any]) -> dict[str, Any]:
    """The figures and whether they hold."""
    seen: Mapping[str, Times] = served["seen"]
    began = min(times[0][0] for times in seen.values())
    end = began + plan.seconds * 1000
    asked = sum(sum(1 for one in times if one[2] and one[0] <= end) for times in seen.values())
    possible = sum(allowed(times, began, plan) for times in seen.values())
    late = sorted(
        later[0] - earlier[1] - plan.delay_s * 1000
        for times in seen.values()
        for earlier, later in pairwise(times)
        if later[0] <= end
    )
    rules = sorted(times[0][0] - began for times in seen.values())
    pages = max(1, summary["pages"])
    held = {
        "share": len(seen) == plan.hosts and asked >= LEAST_SHARE * possible,
        "violations": not served["violations"],
    }
    return {
        "bench": "polite",
        "hosts": plan.hosts,
        "hosts_asked": len(seen),
        "seconds": plan.seconds,
        "delay_s": plan.delay_s,
        "processes": plan.processes,
        "pages_asked": asked,
        "pages_allowed": possible,
        "share": round(asked / max(1, possible), 5),
        "violations": len(served["violations"]),
        "broken": list(served["violations"])[:5],
        "cpu_us_per_page": round(spent.cpu_s / pages * 1e6, 1),
        "late_ms": {name: round(_at(late, share), 2) for name, share in _SHARES.items()},
        "robots_after_ms": {name: round(_at(rules, share), 1) for name, share in _SHARES.items()},
        "errors": summary["errors"],
        "server_cpu_s": round(served["cpu_s"], 2),
        "call_ns": round(spent.call_ns, 1),
        "targets": {"share": LEAST_SHARE, "violations": 0},
        "held": held,
        "ok": all(held.values()),
    }


_SHARES = {"median": 0.5, "p90": 0.9, "p99": 0.99, "most": 1.0}


def _at(values: Sequence[float], share: float) -> float:
    """The value that a share of all stay under; they are sorted."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def show(report: dict[str, Any]) -> None:
    """The report for people."""

    def line(name: str, words: str) -> None:
        print(f"{'held  ' if report['held'][name] else 'MISSED'}  {words}")

    asked, possible = report["pages_asked"], report["pages_allowed"]
    line(
        "share",
        f"{report['share']:.2%} of what the delays allow: {asked:,} of {possible:,} (at least {LEAST_SHARE:.0%})",
    )
    line("violations", f"{report['violations']} violations")
    for broken in report["broken"]:
        print(f"          {broken}")
    for name, what in (("late_ms", "later than the delay"), ("robots_after_ms", "robots.txt asked after")):
        print(f"        {what}, ms: " + ", ".join(f"{key} {value:,}" for key, value in report[name].items()))
    print(f"        {report['cpu_us_per_page']:,.0f} us of CPU a page, start included")


def main() -> None:
    """Parse the arguments, run, and end with the exit code."""
    parser = argparse.ArgumentParser(prog="nephila bench polite", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_HOSTS} hosts, {QUICK_SECONDS} s; ends within 45 s"
    )
    parser.add_argument("--hosts", type=int, default=0, metavar="N", help=f"[{HOSTS}]")
    parser.add_argument("--seconds", type=float, default=0, metavar="N", help=f"that are counted [{SECONDS}]")
    parser.add_argument("--delay", type=float, default=1.0, metavar="S", help="seconds of rest of a host [1]")
    parser.add_argument("--latency", type=float, default=0.0, metavar="MS", help="before each answer of the server [0]")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="nephila's --processes [1]")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="nephila's --set")
    one_sentence(parser)
    given = parser.parse_args()
    plan = Plan(
        given.hosts or (QUICK_HOSTS if given.quick else HOSTS),
        given.seconds or (QUICK_SECONDS if given.quick else SECONDS),
        given.delay,
        given.latency,
        given.processes,
        tuple(given.set),
    )
    if plan.hosts < 1 or plan.seconds <= 0 or plan.delay_s <= 0 or plan.latency_ms < 0 or plan.processes < 1:
        parser.error("--hosts, --seconds, --delay and --processes are above 0, --latency is not under it")
    with tempfile.TemporaryDirectory(prefix="nephila-bench-") as directory, audited(plan) as server:
        report = judge(plan, *crawl(plan, server, Path(directory)))
    if given.json:
        print(json.dumps(report))
    else:
        show(report)
    sys.exit(0 if report["ok"] else 1)


if __name__ == "__main__":
    main()
