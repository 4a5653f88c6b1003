"""A polite broad crawl under virtual time: ten thousand hosts with delays of many lengths, all of them used."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from simulation import PATIENT, simulate

from nephila.testing.web import Auditor, SimulatedWeb, WebSpec
from nephila.testing.web.auditor import Arrival, Ticket
from nephila.testing.web.spec import RobotsKind

LEAST_SHARE = 0.99
BASE_S = 20.0
"""Hosts without a Crawl-delay rest so long, others up to three times that: what costs real time is a page."""


@dataclass
class _Seen:
    """What one host saw of the crawl."""

    rules_ms: float
    pages: int = 0
    answers: int = 0
    answering_ms: float = 0.0


class Witness(Auditor):
    """Judges as its like, and counts the requests up to a moment."""

    def __init__(self, web: SimulatedWeb, seconds: float) -> None:
        super().__init__(web, base_delay_ms=BASE_S * 1000)
        self._ends_ms = seconds * 1000
        self._began_ms: float | None = None
        self._asking: dict[Ticket, Arrival] = {}
        self._last: dict[str, float] = {}
        self.seen: dict[str, _Seen] = {}
        self.late: defaultdict[int, int] = defaultdict(int)
        """How many requests came so many milliseconds after their host's delay."""

    def arrived(self, arrival: Arrival) -> Ticket:
        if self._began_ms is None:
            self._began_ms = arrival.at_ms
        at_ms = arrival.at_ms - self._began_ms
        seen = self.seen.setdefault(arrival.host, _Seen(at_ms))
        if at_ms <= self._ends_ms:
            seen.pages += arrival.target != "/robots.txt"
            if arrival.host in self._last:
                gap = arrival.at_ms - self._last[arrival.host] - self._required_ms(arrival.host)
                self.late[round(gap)] += 1
        ticket = super().arrived(arrival)
        self._asking[ticket] = arrival
        return ticket

    def answered(self, ticket: Ticket, at_ms: float, status: int, **more: object) -> None:
        super().answered(ticket, at_ms, status, **more)  # type: ignore[arg-type]  # handed on as they are
        arrival = self._asking.pop(ticket)
        self._last[arrival.host] = at_ms
        seen = self.seen[arrival.host]
        seen.answers += 1
        seen.answering_ms += at_ms - arrival.at_ms

    def allowed(self) -> int:
        """What the delays allow (DESIGN section 9)."""
        return sum(
            math.floor(
                (self._ends_ms - seen.rules_ms) / (self._required_ms(host) + seen.answering_ms / max(1, seen.answers))
            )
            for host, seen in self.seen.items()
        )


@pytest.mark.parametrize(("hosts", "seconds"), [(2_500, 32.0), pytest.param(10_000, 605.0, marks=pytest.mark.long)])
def test_hosts_are_asked_as_often_as_their_delays_allow(
    tmp_path: Path, hosts: int, seconds: float, say: Callable[[str], None]
) -> None:
    """Q2, P2, F8: at least 99 % of it, whatever their number, and none is hurried."""
    pages = hosts * (int(seconds / BASE_S * 4 / 3) + 12)
    spec = WebSpec.plain(95, hosts=hosts, pages=pages, page_bytes=400, links_per_page=16)
    mix = replace(spec.host_mix, robots=(RobotsKind.OPEN, RobotsKind.DELAY, RobotsKind.MISSING))
    timing = replace(spec.timing, latency_ms=40, crawl_delay_s=3 * BASE_S)
    web = SimulatedWeb(replace(spec, host_mix=mix, timing=timing))
    witness = Witness(web, seconds)
    settings = replace(
        PATIENT,
        politeness=replace(PATIENT.politeness, delay_s=BASE_S),
        limits=replace(PATIENT.limits, max_time_s=seconds + 2),
        fetch=replace(PATIENT.fetch, concurrency=1000, allow_addresses=("127.0.0.0/8",)),
    )
    began = time.process_time()
    crawled = simulate(web, tmp_path / "crawl", settings, seeds=web.seeds(hosts), auditor=witness)
    asked, allowed = sum(seen.pages for seen in witness.seen.values()), witness.allowed()
    late = sorted(witness.late.items())
    share = asked / allowed
    say(
        f"{hosts} hosts, {seconds:.0f} s: {asked} of {allowed} allowed pages, {share:.2%}; late by at most "
        f"{late[-1][0]} ms; {time.process_time() - began:.0f} s of CPU"
    )
    assert len(witness.seen) == hosts
    assert not crawled.audit.violations
    assert share >= LEAST_SHARE
