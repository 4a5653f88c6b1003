"""A simulated web in a process of its own, crawled over real sockets of this machine, and judged by its auditor.

The web is served by `python -m nephila.testing.serve`, which knows the truth about every request that reached it. It
stands in a session of its own, so that Ctrl-C reaches the crawl only and the auditor can still speak; it is ended by
its process id, whatever happens.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephila.config import load, read_stored
from nephila.engines.interpreter import running
from nephila.model.errors import NephilaError, UsageError
from nephila.model.summary import CrawlSummary
from nephila.seeds import ArgumentSeeds
from nephila.testing.web import AuditReport

if TYPE_CHECKING:
    from nephila.interfaces.events import EventSink

    from .needs import RunCrawl, View

DELAY_S = 0.5
"""What the demonstration web is sized for: short enough to watch, long enough that breaking it would show."""
MAX_WAIT_S = 5.0
SCALED = ("frontier.retry_waits_s=1,3,9", "politeness.heavy_s=0.2")
"""Waits for what fails in passing, and for a host with an enormous robots.txt, at the scale of the demonstration: with
those of a real crawl a single host would hold up the end."""
READY_WITHIN_S = 30.0
ENDED_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What a demonstration came to."""

    summary: CrawlSummary
    audit: AuditReport
    example: str
    """A URL to ask about."""

    @property
    def passed(self) -> bool:
        """Whether the auditor found nothing wrong."""
        return not self.audit.violations

    @property
    def verdict(self) -> Sequence[tuple[str, str]]:
        """What the auditor says, as labels and texts."""
        gaps = [one.shortest_gap_ms for one in self.audit.hosts.values() if one.shortest_gap_ms is not None]
        broken = ", ".join(f"{kind} {number}" for kind, number in sorted(self.audit.by_kind.items()))
        return (
            ("requests seen", f"{self.audit.requests:,} by {len(self.audit.hosts):,} hosts"),
            ("shortest gap", f"{min(gaps):,.0f} ms; {DELAY_S * 1000:,.0f} ms were due at least" if gaps else "none"),
            ("violations", f"{len(self.audit.violations):,}" + (f" ({broken})" if broken else "")),
        )


def demonstrate(
    out: Path, run_crawl: RunCrawl, *, pages: int, listeners: Sequence[EventSink] = (), view: View | None = None
) -> Demonstration:
    """Serve the web, crawl it into `out` (0 pages: all of it), end it and read what its auditor saw."""
    if read_stored(out) is not None:
        raise UsageError(f"{out} holds a crawl already.", "Name another directory; the simulated web is new each time.")
    with tempfile.TemporaryDirectory(prefix="nephila-demo-web-") as name:
        audit = Path(name) / "audit.json"
        with served_web(Path(name), audit) as web:
            settings = [
                "scope.mode=all",
                f"fetch.allow_addresses={web['allow_address']}",
                f"dns.resolvers={web['resolver']}",
                f"politeness.delay_s={DELAY_S}",
                f"limits.max_wait_s={MAX_WAIT_S}",
                f"limits.max_pages={pages}",
                *SCALED,
            ]
            sources = [ArgumentSeeds(web["seeds"], "demonstration")]
            summary = run_crawl(out, load(assignments=settings), sources, listeners=listeners, view=view)
        return Demonstration(summary, AuditReport.from_json(audit.read_text(encoding="utf-8")), web["seeds"][0])


@contextmanager
def served_web(folder: Path, audit: Path) -> Iterator[dict[str, Any]]:
    """The web while it is served: where it is and where to begin. Its audit is written when it ends."""
    ready, log = folder / "ready.json", folder / "web.log"
    command = [*running("nephila.testing.serve"), "--kind", "demo"]
    command += ["--base-delay-ms", str(DELAY_S * 1000), "--json-ready", str(ready), "--audit", str(audit)]
    with log.open("wb") as output:
        # To a file: a pipe that nobody reads would stop the web when it is full.
        server = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)  # noqa: S603 - our own
    try:
        yield _when_ready(server, ready, log)
    finally:
        server.terminate()
        try:
            server.wait(ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _when_ready(server: subprocess.Popen[bytes], ready: Path, log: Path) -> dict[str, Any]:
    """What the web tells of itself once it listens."""
    deadline = time.monotonic() + READY_WITHIN_S
    while not ready.exists():
        if server.poll() is not None or time.monotonic() > deadline:
            last = log.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
            raise NephilaError(f"The simulated web did not start: {last or 'it gave no reason'}.")
        time.sleep(0.02)
    told: dict[str, Any] = json.loads(ready.read_text(encoding="utf-8"))
    return told
