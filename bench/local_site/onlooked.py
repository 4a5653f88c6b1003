"""C1: what the control API costs a crawl that is busy, as CPU a page with and without somebody who looks.

The command `nephila crawl --serve` is sent to the site, as fast as it goes. In every other window of some seconds a
dashboard is open on it in two tabs, each asking as often as the page does (`dashboard/main.js`), and Prometheus scrapes
it every five seconds; in the windows between nobody asks. CPU is the kernel's account of the process, pages are
counted by the server. The machine has other work to do, which comes and goes in minutes: so each window is held against
the mean of its two neighbours, and the median of these ratios is what is told, with all of them beside it.
"""

from __future__ import annotations

import http.client
import os
import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from .crawling import Order, crawl
from .measured import Memory
from .pages import Plan
from .running import RunningSite, Service, served

PAGES, QUICK_PAGES = 100_000, 8_000
WINDOW_S, QUICK_WINDOW_S = 6.0, 1.5
WARM_S = 3.0
"""Not counted: a crawl begins with its seeds."""
KILOBYTES = 30
EVERY_S = {
    "/api/v1/status": 2.0,
    "/api/v1/series": 2.0,
    "/api/v1/domains?limit=50": 3.0,
    "/metrics": 5.0,
}
"""What the overview, the list of domains and Prometheus ask for, and how often."""
ANSWER = re.compile(rb"API: http://([\d.]+):(\d+)/")
TICKS = os.sysconf("SC_CLK_TCK")


class Onlooker:
    """A dashboard and a Prometheus that look in every other window, called by whoever watches the crawl."""

    def __init__(self, folder: Path, site: RunningSite, window_s: float) -> None:
        self._folder = folder
        self._site = site
        self._window_s = window_s
        self._connection: http.client.HTTPConnection | None = None
        self._pid = 0
        self._looks = False
        self._ends = 0.0
        self._due = dict.fromkeys(EVERY_S, 0.0)
        self._mark = (0.0, 0)
        self.asked = 0
        self._seen: list[tuple[bool, float, int]] = []

    def __call__(self, _memory: Memory) -> bool:
        """Ask for what it is time for; begin another window when this one is over."""
        now = time.monotonic()
        try:
            if self._connection is None:
                if self._connect():
                    self._ends = now + WARM_S
            elif now >= self._ends:
                self._turn(now)
            elif self._looks:
                self._look(now)
        except (OSError, http.client.HTTPException):
            self._ends = float("inf")  # the crawl has ended
            self._looks = False
        return False

    @property
    def windows(self) -> list[tuple[bool, float]]:
        """Whether somebody looked, and CPU a page, of each window but the last, in which the crawl came to its end."""
        return [(looks, cpu_s / pages) for looks, cpu_s, pages in self._seen[:-1]]

    def _turn(self, now: float) -> None:
        cpu_s, pages = self._spent_s(), int(self._site.counts()["pages"])
        before_s, before = self._mark
        if before and pages > before:
            self._seen.append((self._looks, cpu_s - before_s, pages - before))
            self._looks = not self._looks
        self._mark = (cpu_s, pages)
        self._ends = now + self._window_s

    def _look(self, now: float) -> None:
        for path, at in self._due.items():
            if at <= now:
                self._due[path] = now + EVERY_S[path]
                self._ask(path)
                self.asked += 1

    def _ask(self, path: str) -> None:
        if self._connection is None:
            raise http.client.NotConnected
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path} was answered with {answer.status}")

    def _connect(self) -> bool:
        for log in self._folder.glob("crawl-*/log"):
            found = ANSWER.search(log.read_bytes())
            self._pid = _pid_of(str(log.parent))
            if found is not None and self._pid:
                self._connection = http.client.HTTPConnection(found[1].decode(), int(found[2]), timeout=30)
                return True
        return False

    def _spent_s(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def _pid_of(folder: str) -> int:
    """The process that was given that folder."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if folder.encode() in words and b"--serve" in words:
            return int(path.parent.name)
    return 0


def measure(folder: Path, say: Callable[[str], None], *, pages: int, window_s: float) -> dict[str, Any]:
    """One crawl, looked at in every other window."""
    with served(Service(Plan(2 * pages, KILOBYTES)), folder) as site:
        onlooker = Onlooker(folder, site, window_s)
        crawl(site, Order(pages, ("--serve", "0")), folder, watch=onlooker)
    ratios = [
        one / ((before + after) / 2)
        for ((_, before), (looks, one)), (_, (_, after)) in pairwise(pairwise(onlooker.windows))
        if looks
    ]
    for looks, cpu_s in onlooker.windows:
        say(f"{'looked at' if looks else 'alone    '}: {cpu_s * 1000:.3f} ms a page")
    return {
        "pages": pages,
        "asked": onlooker.asked,
        "windows": len(onlooker.windows),
        "ratios": ratios,
        "ratio": median(ratios) if ratios else 0.0,
    }
