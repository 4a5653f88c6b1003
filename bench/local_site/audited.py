"""Serves a simulated web of many hosts, each at an address of its own, and keeps the times of every request.

A program of its own, as `server.py` is: it says where it is, and then answers each line on standard input with what it
has seen. The auditor of `nephila.testing` judges; beside it, when each request arrived and when its answer ended is
kept, so that a gap can be compared with the one that was required.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections import defaultdict
from dataclasses import replace

import uvloop

from nephila.testing.web import Auditor, SimulatedWeb, WebServer, WebSpec
from nephila.testing.web.auditor import Arrival, Ticket

ROBOTS = "/robots.txt"


class Witness(Auditor):
    """An auditor that remembers when."""

    def __init__(self, web: SimulatedWeb, delay_ms: float) -> None:
        super().__init__(web, base_delay_ms=delay_ms)
        self._open: dict[Ticket, Arrival] = {}
        self.seen: defaultdict[str, list[tuple[float, float, bool]]] = defaultdict(list)
        """Of each host: when a request arrived, when its answer ended, whether it was for a page."""

    def arrived(self, arrival: Arrival) -> Ticket:
        """As the auditor has it."""
        ticket = super().arrived(arrival)
        self._open[ticket] = arrival
        return ticket

    def answered(self, ticket: Ticket, at_ms: float, status: int, **more: object) -> None:
        """As the auditor has it."""
        super().answered(ticket, at_ms, status, **more)  # type: ignore[arg-type]  # handed on as they are
        arrival = self._open.pop(ticket)
        self.seen[arrival.host].append((arrival.at_ms, at_ms, arrival.target != ROBOTS))

    def document(self) -> dict[str, object]:
        """All that was seen; `busy_s` is the time that serving has taken."""
        report = self.report()
        broken = [f"{one.kind} at {one.host}{one.target}: {one.detail}" for one in report.violations]
        return {"requests": report.requests, "violations": broken, "seen": self.seen, "cpu_s": time.process_time()}


async def serve(spec: WebSpec, delay_ms: float) -> None:
    """Say where, then answer until standard input ends."""
    loop = asyncio.get_running_loop()
    web = SimulatedWeb(spec)
    witness = Witness(web, delay_ms)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with WebServer(web, witness) as server:
        _tell({"resolver": server.resolver, "seeds": server.web.seeds(spec.hosts)})
        while await reader.readline():
            _tell(witness.document())


def _tell(document: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(prog="audited.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--pages", type=int, required=True, help="of all hosts")
    parser.add_argument("--delay-ms", type=float, required=True, help="what the auditor asks for")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="middle of the time to an answer")
    parser.add_argument("--core", type=int, default=-1)
    given = parser.parse_args()
    if given.core >= 0:
        os.sched_setaffinity(0, {given.core})
    spec = WebSpec.plain(1, hosts=given.hosts, pages=given.pages)
    uvloop.run(serve(replace(spec, timing=replace(spec.timing, latency_ms=given.latency_ms)), given.delay_ms))


if __name__ == "__main__":
    main()
