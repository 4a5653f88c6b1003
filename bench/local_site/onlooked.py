"""C1: what the control API costs a crawl that is busy, as CPU with and without it.

The command `nephila crawl` is sent to a site on loopback (`local_site`), as fast as it goes, in turns: plain, and with
`--serve` while a dashboard is open on it in two tabs, each asking as often as the page does (`dashboard/main.js`), and
Prometheus scrapes it every five seconds. CPU
is the kernel's account of the whole process, pages are counted by the server; what is told is CPU a page of the second
against the first, turn by turn, and the median of the turns. The machine has other work to do, and that goes into both.
"""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from .crawling import Order, Visit, crawl
from .measured import Memory
from .pages import Plan
from .running import RunningSite, Service, served

PAGES, QUICK_PAGES = 24_000, 4_000
TURNS, QUICK_TURNS = 3, 1
KILOBYTES = 30
EVERY_S = {
    "/api/v1/status": 2.0,
    "/api/v1/series": 2.0,
    "/api/v1/domains?limit=50": 3.0,
    "/metrics": 5.0,
}
"""What the overview, the list of domains and Prometheus ask for, and how often."""
ANSWER = re.compile(rb"API: http://([\d.]+):(\d+)/")


class Onlooker:
    """A dashboard and a Prometheus, asked for by whoever watches the crawl."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._connection: http.client.HTTPConnection | None = None
        self._due = dict.fromkeys(EVERY_S, 0.0)
        self.asked = 0

    def __call__(self, _memory: Memory) -> bool:
        """Ask for what it is time for."""
        now = time.monotonic()
        due = [path for path, at in self._due.items() if at <= now]
        if not due or (self._connection is None and not self._connect()):
            return False
        try:
            for path in due:
                self._due[path] = now + EVERY_S[path]
                self._ask(path)
                self.asked += 1
        except (OSError, http.client.HTTPException):
            self._connection = None  # the crawl has ended
        return False

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
            if found is not None:
                self._connection = http.client.HTTPConnection(found[1].decode(), int(found[2]), timeout=30)
                return True
        return False


def measure(folder: Path, say: Callable[[str], None], *, pages: int, turns: int) -> dict[str, Any]:
    """Both in turns, each turn in another order."""
    ratios: list[float] = []
    asked = 0
    told: dict[str, list[float]] = {"plain": [], "served": []}
    plan = Plan(2 * pages, KILOBYTES)
    for turn in range(turns):
        with served(Service(plan), folder) as site:
            visits: dict[str, Visit] = {}
            for kind in ("plain", "served") if turn % 2 == 0 else ("served", "plain"):
                onlooker = Onlooker(folder) if kind == "served" else None
                visits[kind] = _crawl(site, pages, folder, onlooker)
                asked += onlooker.asked if onlooker is not None else 0
        per_page = {kind: visit.figures()["cpu_ms_per_page"] for kind, visit in visits.items()}
        for kind, spent in per_page.items():
            told[kind].append(spent)
        ratios.append(per_page["served"] / per_page["plain"])
        say(f"turn {turn + 1}: {per_page['plain']:.3f} ms a page, served {per_page['served']:.3f} ({ratios[-1]:.3f})")
    return {
        "pages": pages,
        "turns": turns,
        "asked": asked,
        "cpu_ms_per_page": told,
        "ratios": ratios,
        "ratio": median(ratios),
    }


def _crawl(site: RunningSite, pages: int, folder: Path, onlooker: Onlooker | None) -> Visit:
    flags = () if onlooker is None else ("--serve", "0")
    return crawl(site, Order(pages, flags), folder, watch=onlooker)
