"""Sends nephila to the site, as its command, with everything on that is on by default, and no delay."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .measured import Ground, Memory, Spent, run
from .running import RunningSite, cores

STOPPED_BY_A_LIMIT = 3
LIMIT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Order:
    """How nephila is called."""

    pages: int
    flags: tuple[str, ...] = ()
    program: tuple[str, ...] = ("-P", "-m", "nephila")
    """What the interpreter is given to run."""
    one_core: bool = True


@dataclass(frozen=True, slots=True)
class Visit:
    """What a crawl took by the kernel's account, and what it did by the server's."""

    spent: Spent
    served: dict[str, Any]
    summary: dict[str, Any]
    """What the crawl says of itself; empty for other crawlers."""

    @property
    def pages(self) -> int:
        """Different pages that were served."""
        return int(self.served["pages"])

    def figures(self) -> dict[str, float]:
        """What is compared."""
        pages = max(1, self.pages)
        return {
            "pages": self.pages,
            "cpu_ms_per_page": round(self.spent.cpu_s / pages * 1000, 4),
            "pages_per_s": round(self.pages / max(1e-9, self.served["busy_s"]), 1),
            "peak_rss_mb": round(self.spent.peak_bytes / 1e6, 1),
            "wall_s": round(self.spent.wall_s, 2),
            "connections": self.served["connections"],
            "call_ns": round(self.spent.call_ns, 1),
        }


def arguments(site: RunningSite, order: Order, out: Path, seeds: Path) -> list[str]:
    """The command line after `nephila`."""
    words = ["crawl", "--seeds", str(seeds), "--out", str(out), "--delay", "0", "--scope", "all", "--json", "--quiet"]
    words += ["--allow-address", "127.0.0.0/8", "--max-pages", str(order.pages)]
    words += ["--user-agent", "nephila-bench/1 (+http://127.0.0.1/)"]
    if site.authority is not None:
        words += ["--ca-file", str(site.authority)]
    return [*words, *order.flags]


def crawl(
    site: RunningSite,
    order: Order,
    folder: Path,
    *,
    watch: Callable[[Memory], bool] | None = None,
    read: Callable[[Path], None] | None = None,
) -> Visit:
    """One crawl in a new directory, which can be read before it is removed.

    A crawl of one page starts from one seed, to tell what starting takes.
    """
    place = Path(tempfile.mkdtemp(prefix="crawl-", dir=folder))
    try:
        seeds = place / "seeds.txt"
        seeds.write_text("\n".join(site.site.seeds if order.pages > 1 else site.site.seeds[:1]))
        command = [sys.executable, *order.program, *arguments(site, order, place / "out", seeds)]
        core = cores()[0] if order.one_core else -1
        site.reset()
        spent = run(command, Ground(place, place / "log", core, limit_s=LIMIT_S), watch=watch)
        served = site.counts()
        said = (place / "log").read_text(errors="replace")
        if spent.exit_code not in {0, STOPPED_BY_A_LIMIT}:
            raise SystemExit(f"nephila ended with exit code {spent.exit_code}:\n{said[-2000:]}")
        if read is not None:
            read(place / "out")
        return Visit(spent, served, _summary(said.splitlines()))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _summary(lines: Sequence[str]) -> dict[str, Any]:
    for line in reversed(lines):
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
    return {}


def has_flag(flag: str) -> bool:
    """Whether `nephila crawl` knows a flag."""
    shown = subprocess.run(
        [sys.executable, "-P", "-m", "nephila", "crawl", "--help"], capture_output=True, text=True, check=False
    )
    return flag in shown.stdout
