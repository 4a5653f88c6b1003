"""Starts the server of the site in its own process and asks it what it served."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .authority import made
from .pages import Plan, Site

SERVER = Path(__file__).with_name("server.py")


def cores() -> tuple[int, int]:
    """One core for the crawler and another for the server; -1 where there is but one, and both must share it."""
    available = sorted(os.sched_getaffinity(0))
    return (available[0], available[-1]) if len(available) > 1 else (-1, -1)


@dataclass(frozen=True, slots=True)
class Service:
    """A site and how it is served."""

    plan: Plan
    tls: bool = False
    per_connection: int = 0
    latency_ms: float = 0.0
    rough: bool = False
    core: int = field(default_factory=lambda: cores()[1])


class RunningSite:
    """A site that is being served."""

    def __init__(self, process: subprocess.Popen[str], site: Site, authority: Path | None) -> None:
        self._process = process
        self.site = site
        self.authority = authority
        """PEM file of the certificate that is to be trusted, when it is served over TLS."""

    def reset(self) -> None:
        """Count from here on."""
        self._ask("reset")

    def counts(self) -> dict[str, Any]:
        """What was served since."""
        return self._ask("counts")

    def _ask(self, word: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return _line(self._process)


def _line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit("The site's server has ended; what it said stands above.")
    found: dict[str, Any] = json.loads(line)
    return found


@contextmanager
def served(service: Service, folder: Path) -> Iterator[RunningSite]:
    """Serve while the block runs; the folder takes the certificate."""
    plan = service.plan
    pem = certificate(plan.addresses, folder) if service.tls else None
    words = ["--pages", plan.pages, "--kilobytes", plan.kilobytes, "--hosts", plan.hosts, "--seed", plan.seed]
    words += ["--base", plan.base, "--latency-ms", service.latency_ms, "--per-connection", service.per_connection]
    words += ["--core", service.core, *(("--tls", pem) if pem else ()), *(("--rough",) if service.rough else ())]
    process = subprocess.Popen(
        [sys.executable, str(SERVER), *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        told = _line(process)
        site = Site(plan, "https" if pem else "http", told["port"])
        yield RunningSite(process, site, pem and pem.with_name("root.pem"))
    finally:
        if process.stdin is not None:
            process.stdin.close()  # which ends it
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def certificate(addresses: list[str], folder: Path) -> Path:
    """Key, leaf and intermediate for the addresses in one PEM file, as servers have them; the root lies beside it."""
    path = folder / "site.pem"
    if not path.is_file():
        chain = made("P-256", "site.test", folder, addresses)
        path.write_text(chain.key.read_text() + chain.shown.read_text())
        path.with_name("root.pem").write_text(chain.root.read_text())
    return path
