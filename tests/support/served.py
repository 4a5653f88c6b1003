"""A simulated web in a process of its own, and the crawler's command line beside it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forked import can_fork, run_one
from leashed import leashed
from warcio.archiveiterator import ArchiveIterator

from nephila.testing.web import AuditReport, SimulatedWeb, WebSpec

QUICK = (
    *("--set", "frontier.retry_waits_s=0.2,0.3,0.4"),
    *("--set", "robots.retry_s=1"),
    *("--set", "politeness.slow_max_s=0.2"),
    *("--set", "politeness.heavy_s=0"),
    *("--timeout", "1"),
    *("--max-wait", "3"),
    *("--scope", "all"),
)
"""Settings under which failing pages are given up within seconds."""


@dataclass
class ServedWeb:
    """Where the web is, and what its auditor has seen."""

    told: dict[str, Any]
    server: subprocess.Popen[bytes]
    audit_file: Path
    spec: WebSpec

    @property
    def web(self) -> SimulatedWeb:
        """The same web as the server's, to ask it for the truth."""
        return SimulatedWeb(self.spec.at_port(self.told["port"]))

    @property
    def flags(self) -> list[str]:
        """What the crawler must be told to reach this web."""
        return ["--resolver", self.told["resolver"], "--allow-address", self.told["allow_address"]]

    @property
    def seeds(self) -> list[str]:
        return list(self.told["seeds"])

    def new_cycle(self) -> None:
        """Tell the auditor that everything may be asked for once more."""
        self.server.send_signal(signal.SIGUSR2)

    def audit(self) -> AuditReport:
        """What the auditor has seen up to now."""
        self.audit_file.unlink(missing_ok=True)
        self.server.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                return AuditReport.from_json(self.audit_file.read_text())
            except (FileNotFoundError, ValueError):
                time.sleep(0.02)
        raise AssertionError("the auditor does not answer")


@contextmanager
def served(folder: Path, spec: WebSpec, *arguments: str) -> Iterator[ServedWeb]:
    """Serve a web; `arguments` are those of nephila.testing.serve that make `spec`."""
    folder.mkdir(parents=True, exist_ok=True)
    ready, audit = folder / "ready.json", folder / "audit.json"
    command = [sys.executable, "-m", "nephila.testing.serve", *arguments]
    command += ["--json-ready", str(ready), "--audit", str(audit)]
    with (folder / "web.log").open("wb") as log:
        server = subprocess.Popen(leashed(command), stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 120
        while not ready.exists():
            assert server.poll() is None, (folder / "web.log").read_text()
            assert time.monotonic() < deadline, "the web does not start"
            time.sleep(0.02)
        yield ServedWeb(json.loads(ready.read_text()), server, audit, spec)
    finally:
        server.terminate()
        server.wait(10)


@contextmanager
def served_articles(
    folder: Path, seed: int, *, hosts: int, pages: int, delay_s: float, latency_ms: int = 0
) -> Iterator[ServedWeb]:
    """Serve a web of articles only, whose hosts want a delay and take their time."""
    spec, arguments = plain_web(seed, hosts=hosts, pages=pages)
    timing = ("--base-delay-ms", str(delay_s * 1000), "--latency-ms", str(latency_ms))
    with served(folder, spec, *arguments, *timing) as web:
        yield web


def nephila(*arguments: str | Path) -> list[str]:
    """The command line of the crawler."""
    return [sys.executable, "-m", "nephila", *map(str, arguments)]


def run(
    *arguments: str | Path, code: int | None = 0, timeout: float = 120, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run the crawler to its end."""
    environment = {**os.environ, "COLUMNS": "80", **more.pop("env", {})}
    if can_fork(arguments, environment) and more.keys() <= {"cwd"}:
        result = run_one(arguments, environ=environment, timeout=timeout, **more)
    else:
        result = subprocess.run(
            nephila(*arguments), capture_output=True, text=True, timeout=timeout, env=environment, check=False, **more
        )
    assert code is None or result.returncode == code, f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


def crawl_json(web: ServedWeb, out: Path, *arguments: str, code: int | None = 0) -> dict[str, Any]:
    """Crawl the web and read what --json prints."""
    result = run("crawl", *web.seeds, "--out", out, "--json", *web.flags, *arguments, code=code)
    summary: dict[str, Any] = json.loads(result.stdout)
    return summary


def records(out: Path) -> Iterator[Any]:
    """Every record of every WARC of a crawl, as warcio reads them: (file, record, block)."""
    for path in sorted((out / "warc").rglob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, no_record_parse=True):
                yield path, record, record.raw_stream.read()


def stored_pages(out: Path) -> list[str]:
    """The URL of every page in the catalogue that is done with: each once, however often it was captured."""
    with sqlite3.connect(f"file:{out}/catalogue.sqlite?mode=ro", uri=True) as connection:
        rows = connection.execute(
            "SELECT url FROM captures WHERE robots = 0 AND status BETWEEN 200 AND 299 AND truncated = ''"
        ).fetchall()
    connection.close()
    return [url for (url,) in rows]


def plain_web(seed: int, hosts: int, pages: int) -> tuple[WebSpec, Sequence[str]]:
    """A web of articles only, and the arguments that serve it."""
    spec = WebSpec.plain(seed, hosts=hosts, pages=pages)
    return spec, ("--kind", "plain", "--seed", str(seed), "--hosts", str(hosts), "--pages", str(pages))
