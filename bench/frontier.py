"""F8, Q3: what a page costs in the frontier, whatever the number of URLs that wait.

For each size a store is filled as a crawl would fill it (page after page, in random order of hosts, 20,000 new URLs a
second), closed, and opened again by another process, which then settles pages and claims the next ones in groups, every
group synced to disk, and all of them in the store, not in its journal alone, when the clock stops. A page brings 60
links: 52 to its own host, half of them known, and 8 to hosts drawn by a power law, half of them known.
Sizes are measured in turns, several times, and the least of the turns counts: the machine has other work to do.

CPU is that of the whole process, kernel included. As machines differ, and this one is shared, a figure without a
measure says little: beside it stands what the same number of look-ups and writes costs LMDB alone, in the same process
and minute (`store_us`), and what a plain Python call costs there (`call_ns`; about 50 on an idle machine of today).
Memory is anonymous memory; what is mapped of the store is page cache, and reported apart. Bytes on disk are blocks of
the whole directory, free pages of the store included.

With `--calls` nothing is timed: the Python functions are counted that a page calls in the frontier, which is the same
on every machine, however busy.

    nephila bench frontier [--json] [--quick] [--sizes URLS:HOSTS,...]
    nephila bench frontier --calls
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import lmdb
import uvloop
from xxhash import xxh3_128_digest

from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.policy import Policy
from nephila.frontier.schedule import SimpleRecrawl
from nephila.model.outcome import Done, Release, Settlement
from nephila.model.record import RecordRef, SegmentId
from nephila.model.settings import BudgetSettings, FrontierSettings, RecrawlSettings
from nephila.model.task import Candidate, Lease, Pace, PageTask
from nephila.node.collector import calm_collector
from nephila.testing.clock import VirtualClock
from nephila.urls import Address

SIZES = ((10_000, 1_000), (1_000_000, 100_000), (10_000_000, 1_000_000), (1_000_000, 1_000))
QUICK = ((10_000, 1_000), (200_000, 20_000))
BUDGETS = {"ratio": 1.3, "us_per_page": 200.0, "anonymous_bytes": 1_000_000_000, "bytes_per_url": 220, "restart_s": 5.0}
GROUP = 256
"""Pages that are settled in one commit: those that wait for company while the last group is synced."""
PAGES_PER_S = 950
"""How fast pages are settled by the frontier's clock: a thousand hosts with a delay of a second allow no more."""
PER_PAGE = 30
"""New URLs of a page while the store is filled, as when it is measured."""
FOUND_PER_S = 20_000
"""New URLs a second while the store is filled: hosts are not all met in the same millisecond."""
OWN_NEW, OWN_MENU, OWN_KNOWN, OTHER_NEW, OTHER_KNOWN = 26, 18, 8, 4, 4
SECTIONS = ("news", "products", "about", "archive/2024", "archive/2025", "people", "blog", "support", "docs")


def address(host: int, number: int) -> Address:
    """A URL of an ordinary length (about 60 characters)."""
    name = f"www.site-{host}.com"
    url = f"https://{name}/{SECTIONS[number % 9]}/an-article-on-something-{number}.html"
    return Address(url, name, url, xxh3_128_digest(url.encode(), 7))


class World:
    """A frontier on disk, and how many URLs of each host have been met."""

    def __init__(self, path: Path, hosts: int, *, sync: bool, threaded: bool = True) -> None:
        self.hosts = hosts
        self.path = path
        self.clock = VirtualClock()
        self.met = self._resume()
        settings = FrontierSettings(sync=sync, linger_ms=0, look_ahead_ms=0, lease_s=3600)
        policy = Policy(
            settings,
            base_delay_ms=1000,
            robots=False,
            recrawl=SimpleRecrawl(RecrawlSettings()),
            budget=replace(BudgetSettings(), first_urls=100_000),
        )
        self.frontier = LmdbFrontier(path / "frontier", self.clock, policy, threaded=threaded, alone=True)
        self.random = random.Random(hosts)
        self.offset = int(time.time() * 1e6)

    def _resume(self) -> list[int]:
        """Go on when and where the process before this one stopped."""
        saved = self.path / "world.json"
        if not saved.exists():
            return [0] * self.hosts
        world = json.loads(saved.read_text())
        self.clock.advance(world["elapsed_s"])
        return world["met"]

    def save(self) -> None:
        """Let another process go on from here."""
        world = {"met": self.met, "elapsed_s": self.clock.elapsed_s()}
        (self.path / "world.json").write_text(json.dumps(world))

    async def fill(self, urls: int) -> int:
        """Admit pages of links until so many URLs wait; how many there are."""
        each = max(1, urls // self.hosts)
        order = [host for host in range(self.hosts) for _ in range(-(-each // PER_PAGE))]
        self.random.shuffle(order)
        batch: list[Candidate] = []
        added = 0
        for host in order:
            first = self.met[host]
            last = min(each, first + PER_PAGE)
            batch += [Candidate(address(host, number), 1) for number in range(first, last)]
            self.met[host] = last
            if len(batch) >= 20_000:
                added += (await self.frontier.admit(batch)).added
                self.clock.advance(len(batch) / FOUND_PER_S)
                batch = []
        return added + (await self.frontier.admit(batch)).added

    def page(self, lease: Lease) -> tuple[Settlement, Release]:
        """What a page of a host brings."""
        task = lease.tasks[0]
        assert isinstance(task, PageTask)
        host, draw, met = int(lease.host[9:-4]), self.random, self.met
        links = [address(host, number) for number in range(min(OWN_MENU, met[host]))]
        links += [address(host, draw.randrange(met[host])) for _ in range(OWN_KNOWN)]
        links += [address(host, number) for number in range(met[host], met[host] + OWN_NEW)]
        met[host] += OWN_NEW
        for known in range(OTHER_NEW + OTHER_KNOWN):
            other = int(self.hosts ** draw.random()) - 1
            links.append(
                address(other, draw.randrange(met[other]) if known < OTHER_KNOWN and met[other] else met[other])
            )
            met[other] += known >= OTHER_KNOWN
        self.offset += 100
        ref = RecordRef(SegmentId("segment-1"), self.offset, 100, self.offset + 100)
        digest = xxh3_128_digest(task.url.encode()) * 2
        done = Done(ref, 200, digest, text=digest[:8], shape=digest[8:16], outlinks=60)
        candidates = [Candidate(link, min(task.depth + 1, 15)) for link in dict.fromkeys(links)]
        return Settlement(task, done, candidates), Release(1000, Pace(1000), 200)


async def measure(path: Path, hosts: int, groups: int) -> dict[str, Any]:
    """Open a filled store, claim, settle groups of pages, and tell what it cost."""
    calm_collector()
    opened = time.monotonic()
    world = World(path, hosts, sync=True)
    frontier, clock = world.frontier, world.clock
    leases = await frontier.claim(GROUP, 3600)
    restart_s = time.monotonic() - opened
    cpu = wall = counters_s = 0.0
    pages = links = new = 0
    began_cpu = began = 0.0
    for group in range(groups + 1):
        prepared_cpu, prepared = time.thread_time(), time.monotonic()
        work = [(lease, *world.page(lease)) for lease in leases]
        clock.advance(GROUP / PAGES_PER_S)
        # What making up pages takes is left out; what the frontier's thread does meanwhile, a commit perhaps, is not.
        cpu -= time.thread_time() - prepared_cpu
        wall -= time.monotonic() - prepared
        *settled, leases = await asyncio.gather(
            *(frontier.settle(lease.token, [settlement], release) for lease, settlement, release in work),
            frontier.claim(GROUP, 3600),
        )
        if group:
            pages += len(work)
            links += sum(len(settlement.links) for _, settlement, _ in work)
            new += sum(answer.admission.added for answer in settled)
        else:  # the first one warms the caches
            frontier.view.ages()  # who looks lets the store follow: what came before is none of the figures
            cpu = wall = 0.0
            began_cpu, began = time.process_time(), time.monotonic()
    looked = time.monotonic()
    snapshot = frontier.snapshot()
    frontier.view.ages()  # and here all that was measured is in it
    counters_s = time.monotonic() - looked
    cpu, wall = cpu + time.process_time() - began_cpu, wall + time.monotonic() - began
    memory = _memory()
    await frontier.close()
    with tempfile.TemporaryDirectory() as directory:
        store = store_us(Path(directory))
    return {
        "store_us": store,
        "call_ns": call_ns(),
        "urls_queued": sum(snapshot.queued.values()),
        "hosts": hosts,
        "pages": pages,
        "cpu_us_per_page": cpu / pages * 1e6,
        "pages_per_s": pages / wall,
        "admitted_per_s": new / wall,
        "links_per_page": links / pages,
        "new_per_page": new / pages,
        "restart_s": restart_s,
        "counters_ms": counters_s * 1000,
        "anonymous_bytes": memory["RssAnon"],
        "mapped_bytes": memory["RssFile"],
    }


async def count_calls(path: Path, hosts: int, groups: int) -> dict[str, float]:
    """The calls of the frontier's own functions a page, by name; those of its thread among them, as it has none."""
    world = World(path, hosts, sync=False, threaded=False)
    frontier, calls, pages = world.frontier, Counter[str](), 0

    def notice(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "/nephila/frontier/" in frame.f_code.co_filename:
            calls[f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"] += 1

    await world.fill(hosts * 10)
    leases = await frontier.claim(GROUP, 3600)
    for _ in range(groups):
        work = [(lease, *world.page(lease)) for lease in leases]
        pages += len(work)
        world.clock.advance(1.1)
        sys.setprofile(notice)
        *_, leases = await asyncio.gather(
            *(frontier.settle(lease.token, [settlement], release) for lease, settlement, release in work),
            frontier.claim(GROUP, 3600),
        )
        sys.setprofile(None)
    await frontier.close()
    return {name: count / pages for name, count in calls.most_common()}


def show_calls(most: int = 30) -> None:
    """Count in a small store, and tell."""
    with tempfile.TemporaryDirectory(prefix="nephila-bench-") as directory:
        calls = asyncio.run(count_calls(Path(directory), 1_000, 3))
    print(f"{sum(calls.values()):.1f} calls of Python functions of the frontier a page with 60 links, half of them new")
    for name, count in list(calls.items())[:most]:
        print(f"{count:8.2f} {name}")


def store_us(directory: Path) -> float:
    """What LMDB alone takes for the look-ups and writes of a page in a small store, in groups that are synced."""
    with lmdb.open(str(directory), map_size=1 << 30) as environment:
        draw = random.Random(1)
        cpu = 0.0
        for group in range(3):
            pages = [[draw.randbytes(21) for _ in range(60)] for _ in range(GROUP)]
            began = time.process_time()
            with environment.begin(write=True) as transaction:
                cursor = transaction.cursor()
                for keys in pages:
                    cursor.getmulti(keys)
                    cursor.putmulti([(key, b"0123456789a") for key in keys[:30]])
                    cursor.putmulti([(key + b"queue", bytes(60)) for key in keys[:10]])
            cpu += (time.process_time() - began) if group else 0.0
    return cpu / (2 * GROUP) * 1e6


def call_ns() -> float:
    """What calling a Python function takes."""

    def nothing(one: int) -> int:
        return one

    began = time.process_time()
    for number in range(200_000):
        nothing(number)
    return (time.process_time() - began) / 200_000 * 1e9


def _memory() -> dict[str, int]:
    status = Path("/proc/self/status").read_text()
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return {name: int(lines[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile")}


async def fill(path: Path, urls: int, hosts: int) -> dict[str, Any]:
    """Fill a store; what an URL costs in time and room."""
    world = World(path, hosts, sync=False)
    began = time.process_time()
    added = await world.fill(urls)
    cpu = time.process_time() - began
    await world.frontier.close()
    world.save()
    size = sum(part.stat().st_blocks * 512 for part in (path / "frontier").iterdir())
    return {"urls": added, "admit_us_per_url": cpu / added * 1e6, "bytes_per_url": size / added}


def in_a_process(*arguments: str) -> dict[str, Any]:
    """Run this file with other arguments; what it printed."""
    found = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
    return json.loads(found.stdout)


def run(sizes: tuple[tuple[int, int], ...], turns: int, groups: int, say: Callable[[str], None]) -> dict[str, Any]:
    """All sizes, in turns."""
    with tempfile.TemporaryDirectory(prefix="nephila-bench-") as directory:
        cases: dict[tuple[int, int], dict[str, Any]] = {}
        for urls, hosts in sizes:
            place = Path(directory) / f"{urls}-{hosts}"
            place.mkdir()
            say(f"filling {urls:,} URLs on {hosts:,} hosts ...")
            cases[urls, hosts] = in_a_process("--fill", str(place), str(urls), str(hosts))
            cases[urls, hosts]["turns"] = []
        for turn in range(turns):
            for urls, hosts in sizes:
                place = Path(directory) / f"{urls}-{hosts}"
                if urls <= 1_000_000:  # a small store would not stay small
                    shutil.copytree(place, copy := Path(directory) / "copy")
                    place = copy
                # As many pages as leave the number of waiting URLs about what it was.
                fitting = max(1, min(groups, urls // (2 * PER_PAGE * GROUP)))
                found = in_a_process("--measure", str(place), str(hosts), str(fitting))
                cases[urls, hosts]["turns"].append(found)
                say(
                    f"turn {turn + 1}: {urls:>10,} URLs on {hosts:>9,} hosts: {found['cpu_us_per_page']:6.0f} us a page"
                )
                shutil.rmtree(Path(directory) / "copy", ignore_errors=True)
        return _report(cases)


def _report(cases: dict[tuple[int, int], dict[str, Any]]) -> dict[str, Any]:
    rows = []
    for (urls, hosts), case in cases.items():
        turns = case.pop("turns")
        best = min(turns, key=lambda turn: turn["cpu_us_per_page"])
        rows.append(
            {"urls": urls, "hosts": hosts, **case, **best, "all_us": [round(t["cpu_us_per_page"]) for t in turns]}
        )
    base = rows[0]["cpu_us_per_page"]
    for row in rows:
        row["ratio_to_smallest"] = row["cpu_us_per_page"] / base
    return {"bench": "frontier", "links_per_page": 60, "group": GROUP, "budgets": BUDGETS, "cases": rows}


def show(report: dict[str, Any]) -> None:
    """The report for people."""
    print("      URLs     hosts us/page ratio LMDB us call ns pages/s B/URL restart s counters ms anon MB mapped MB")
    for row in report["cases"]:
        print(
            f"{row['urls']:>10,} {row['hosts']:>9,} {row['cpu_us_per_page']:>7.0f} {row['ratio_to_smallest']:>5.2f}"
            f" {row['store_us']:>7.0f} {row['call_ns']:>7.0f}"
            f" {row['pages_per_s']:>7.0f} {row['bytes_per_url']:>5.0f} {row['restart_s']:>9.2f}"
            f" {row['counters_ms']:>11.2f} {row['anonymous_bytes'] / 1e6:>7.0f} {row['mapped_bytes'] / 1e6:>9.0f}"
        )


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="nephila bench frontier", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="small sizes only; ends within 45 s")
    parser.add_argument("--sizes", default="", metavar="URLS:HOSTS,...", help="other sizes than the usual ones")
    parser.add_argument("--calls", action="store_true", help="count the calls of Python functions a page instead")
    parser.add_argument("--fill", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.calls:
        show_calls()
        return
    if given.fill:
        print(json.dumps(asyncio.run(fill(Path(given.fill[0]), int(given.fill[1]), int(given.fill[2])))))
        return
    if given.measure:
        print(json.dumps(uvloop.run(measure(Path(given.measure[0]), int(given.measure[1]), int(given.measure[2])))))
        return
    sizes = tuple((int(urls), int(hosts)) for urls, hosts in (one.split(":") for one in given.sizes.split(",") if one))
    quiet = given.json
    report = run(
        sizes or (QUICK if given.quick else SIZES),
        turns=2 if given.quick else 3,
        groups=4 if given.quick else 12,
        say=lambda sentence: None if quiet else print(sentence, file=sys.stderr, flush=True),
    )
    if given.json:
        print(json.dumps(report))
    else:
        show(report)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
