"""Q1, Q2: this checkout beside another one of Nephila, both at the same time: what a page costs in each.

On a machine that others use, too, the same program takes a half more CPU in one minute than in the next. Two programs
that run at the same time on the same core have the same minute: the ratio of what they take is steady to one part in a
hundred. So both crawl the same site, each from its own server, with the benches of their own checkouts (`pages`,
without delays, or `polite`), in rounds; the middle of the ratios is what a change has brought. Where the checkouts lie
makes a difference of one or two parts in a hundred by itself: compare with a copy of this one to see it.

    nephila bench versions OTHER [--json] [--quick] [--polite] [--sizes KB,KB] [--pages N] [--hosts N] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local_site.arguments import numbers, one_sentence

HERE = Path(__file__).parent.parent
SECONDS = 12
"""That are counted of a polite crawl, in each round."""

Figures = dict[str, float]
"""CPU microseconds a page, by what was crawled."""


def begun(checkout: Path, words: Sequence[str]) -> subprocess.Popen[str]:
    """A bench of a checkout, on its way."""
    command = [str(checkout / "nephila"), "bench", *words, "--json"]
    return subprocess.Popen(command, cwd=checkout, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(bench: subprocess.Popen[str], checkout: Path) -> Figures:
    """What a bench has measured."""
    said, complaint = bench.communicate()
    try:
        return figures(json.loads(said.splitlines()[-1]))
    except (ValueError, LookupError):
        last = (complaint.strip() or said.strip() or "no word").splitlines()[-1]
        raise SystemExit(f"The bench in {checkout} ended with exit code {bench.returncode}: {last}") from None


def figures(report: dict[str, Any]) -> Figures:
    """The figures of a report of `pages` or `polite`."""
    if report["bench"] == "polite":
        return {f"{report['hosts']} hosts, polite": report["cpu_us_per_page"]}
    return {f"{case['kilobytes']} KB": case["net_cpu_ms_per_page"] * 1000 for case in report["cases"]}


def measured(other: Path, words: Sequence[str], rounds: int) -> list[dict[str, Any]]:
    """Both, at the same time, so many times; the figures of each and their ratios."""
    seen: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds):
        running = [(begun(place, words), place) for place in (HERE, other)[:: 1 if number % 2 else -1]]
        try:
            found = [told(*bench) for bench in running][:: 1 if number % 2 else -1]
        finally:
            for bench, _ in running:
                bench.kill()
                bench.wait()
        for name, ours in found[0].items():
            theirs = found[1][name]
            seen.setdefault(name, []).append((ours, theirs))
            print(f"round {number + 1}: {name}: {ours:.0f} us here, {theirs:.0f} there", file=sys.stderr)
    return [
        {
            "what": name,
            "here_us": [round(ours, 1) for ours, _ in pairs],
            "there_us": [round(theirs, 1) for _, theirs in pairs],
            "ratios": [round(ours / theirs, 4) for ours, theirs in pairs],
            "ratio": round(statistics.median(ours / theirs for ours, theirs in pairs), 4),
        }
        for name, pairs in seen.items()
    ]


def show(report: dict[str, Any]) -> None:
    """The report for people."""
    for row in report["rows"]:
        spread = f"{min(row['ratios']):.3f} to {max(row['ratios']):.3f}"
        print(f"{row['what']}: {row['ratio']:.3f} times the CPU of {report['other']} ({spread})")


def main() -> None:
    """Parse the arguments, run, report."""
    parser = argparse.ArgumentParser(prog="nephila bench versions", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("other", type=Path, metavar="OTHER", help="another checkout, or this one once more")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="one round of few pages of 3 KB; ends within 45 s")
    parser.add_argument("--polite", action="store_true", help="polite crawls, not ones without delays")
    parser.add_argument("--sizes", type=numbers, default=[3, 30], metavar="KB,KB", help="of the pages [3,30]")
    parser.add_argument("--pages", type=int, default=5000, metavar="N", help="in each round [5000]")
    parser.add_argument("--hosts", type=int, default=350, metavar="N", help="of each polite crawl [350]")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="[3]")
    one_sentence(parser)
    given = parser.parse_args()
    other = given.other.resolve()
    if not (other / "nephila").is_file() or not (other / "bench" / "pages.py").is_file():
        parser.error(f"{given.other} is no checkout of Nephila: give the directory that its ./nephila lies in")
    if given.pages < 1 or given.hosts < 1 or given.rounds < 1:
        parser.error("--pages, --hosts and --rounds are above 0")
    if given.quick:
        given.rounds, given.pages, given.sizes = 1, 1000, [3]
    if given.polite:  # a browser would be measured with it, where the other checkout's bench does not know better
        words = ["polite", "--hosts", str(given.hosts), "--seconds", str(SECONDS), "--set", "render.enabled=never"]
    else:
        sizes = ",".join(map(str, given.sizes))
        words = ["pages", "--sizes", sizes, "--connections", "keep", "--tls", "off", "--pages", str(given.pages)]
    report = {"bench": "versions", "other": str(other), "rows": measured(other, words, given.rounds)}
    if given.json:
        print(json.dumps(report))
    else:
        show(report)


if __name__ == "__main__":
    main()
