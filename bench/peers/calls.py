"""How each crawler is called, and whether it can be.

Those written in Python live in an environment of their own, `.venv-bench` in the checkout, made from the hashed
`requirements/bench.txt` when it is missing or out of date. The others are taken when they are installed.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENT = ROOT / ".venv-bench"
REQUIREMENTS = ROOT / "requirements" / "bench.txt"
PYTHON = ENVIRONMENT / "bin" / "python"
INSTALL_LIMIT_S = 900.0


@dataclass(frozen=True, slots=True)
class Errand:
    """What a crawler is sent to do."""

    seeds: Path
    pages: int
    out: Path
    authority: Path | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """A crawler of somebody else."""

    title: str
    does: str
    """What it does with a page, for the table's notes."""
    command: Callable[[Errand], list[str]]
    program: str = ""
    """What must be installed; empty for those of the environment."""
    share: float = 1.0
    """Of the pages that the others crawl: slow ones are steady after fewer."""
    endless: bool = False
    """It knows no number of pages: it is stopped when the server has counted them."""

    def missing(self) -> str:
        """Why it cannot be called; empty if it can."""
        if self.program:
            return "" if shutil.which(self.program) else f"{self.program} is not installed"
        return "" if is_ready() else ".venv-bench has not been made"


def _python(name: str, *more: str) -> Callable[[Errand], list[str]]:
    def command(errand: Errand) -> list[str]:
        authority = [str(errand.authority)] if errand.authority is not None else []
        words = [str(PYTHON), str(HERE / name), str(errand.seeds), str(errand.pages), str(errand.out)]
        return [*words, *authority, *more]

    return command


def _wget(*more: str) -> Callable[[Errand], list[str]]:
    def command(errand: Errand) -> list[str]:
        # -H is safe: no link of the site leads off the machine. Style sheets and images are no pages.
        words = ["wget", "-nv", "-r", "-l", "inf", "-H", "--follow-tags=a,area", "-P", str(errand.out)]
        authority = [f"--ca-certificate={errand.authority}"] if errand.authority is not None else []
        filled = [word.format(out=errand.out) for word in more]
        return [*words, *authority, *filled, "-i", str(errand.seeds)]

    return command


def _httrack(errand: Errand) -> list[str]:
    # -%c0 -c8 -A0 lift its limits of speed; -e goes to other hosts, all of them on this machine; -p1 keeps pages only.
    words = ["httrack", *errand.seeds.read_text().split(), "-O", str(errand.out), "-q", "-e", "-p1", "-c8", "-A0"]
    return [*words, "-%c0", "--disable-security-limits", "-s2", "-I0"]


PEERS: dict[str, Peer] = {
    "script": Peer("aiohttp + selectolax", "files; no robots.txt, nothing durable", _python("script.py")),
    "scrapy": Peer("Scrapy", "files, robots.txt; queue in memory", _python("scrapy_broad.py"), share=0.5),
    "scrapy-warc": Peer(
        "Scrapy, WARC", "warcio, robots.txt; queue in memory", _python("scrapy_broad.py", "--warc"), share=0.5
    ),
    "crawlee": Peer("Crawlee", "files, robots.txt; queue in memory", _python("crawlee_parsel.py"), share=0.5),
    "wget": Peer("wget -r", "files, robots.txt; one connection at a time", _wget(), "wget", endless=True),
    "wget-warc": Peer(
        "wget -r --warc-file",
        "files and WARC, robots.txt; one connection at a time",
        _wget("--warc-file={out}/pages"),
        "wget",
        endless=True,
    ),
    "httrack": Peer("HTTrack", "files, robots.txt", _httrack, "httrack", endless=True),
}


def is_ready() -> bool:
    """Whether the environment is there and of today's requirements."""
    marker = ENVIRONMENT / "requirements.sha256"
    return marker.is_file() and marker.read_text() == _wanted()


def _wanted() -> str:
    return hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()


def install() -> str:
    """Make the environment; why it cannot be made, or nothing."""
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    pip = [str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes"]
    for command in ([sys.executable, "-m", "venv", str(ENVIRONMENT)], [*pip, "-r", str(REQUIREMENTS)]):
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"making {ENVIRONMENT.name} took longer than {INSTALL_LIMIT_S:.0f} s"
        if done.returncode:
            return f"{ENVIRONMENT.name} cannot be made: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"
    (ENVIRONMENT / "requirements.sha256").write_text(_wanted())
    return ""
