"""A web in which one host goes through a bad time, and an auditor that keeps every gap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from nephila.testing.clock import VirtualClock
from nephila.testing.web import Auditor, SimulatedWeb, WebSpec
from nephila.testing.web.auditor import Arrival, Ticket
from nephila.testing.web.wire import Fault, ServedAnswer, write_answer

KINDS = ("403", "429", "503", "500", "hang", "reset")


@dataclass
class Wave:
    """What one host answers for a while, whatever page is asked for; its robots.txt is well."""

    kind: str
    host: str
    begins_ms: float
    ends_ms: float

    def covers(self, host: str, target: str, wall_ms: float) -> bool:
        return host == self.host and target != "/robots.txt" and self.begins_ms <= wall_ms < self.ends_ms

    def answer(self) -> ServedAnswer:
        if self.kind.isdigit():
            return write_answer(int(self.kind), [("Content-Type", "text/plain")], b"not now\n")
        fault = Fault.HANG if self.kind == "hang" else Fault.RESET
        return ServedAnswer(200, b"HTTP/1.1 200 OK\r\n", b"", fault=fault)


class WavingWeb(SimulatedWeb):
    """A web with a wave in it."""

    def __init__(self, spec: WebSpec) -> None:
        super().__init__(spec)
        self.wave: Wave | None = None

    def answer(self, host_name: str, target: str, headers: Mapping[str, str], now: int, tries: int = 0) -> ServedAnswer:
        """As the wave has it, else as ever."""
        if self.wave is not None and self.wave.covers(host_name, target, now):
            return self.wave.answer()
        return super().answer(host_name, target, headers, now, tries)


@dataclass(frozen=True)
class Gap:
    """The time between the end of an answer and the next request of the same host."""

    wall_ms: int
    """When it ended."""
    gap_ms: float


class GapAuditor(Auditor):
    """Judges as its like, and keeps the gaps of each host."""

    def __init__(self, web: SimulatedWeb, clock: VirtualClock, base_delay_ms: float, max_tries: int = 4) -> None:
        super().__init__(web, base_delay_ms=base_delay_ms, max_tries=max_tries)
        self._clock = clock
        self.gaps: defaultdict[str, list[Gap]] = defaultdict(list)
        self._ended: dict[str, float] = {}
        self._asking: dict[Ticket, str] = {}

    def arrived(self, arrival: Arrival) -> Ticket:
        if arrival.host in self._ended:
            self.gaps[arrival.host].append(Gap(self._clock.wall_ms(), arrival.at_ms - self._ended[arrival.host]))
        ticket = super().arrived(arrival)
        self._asking[ticket] = arrival.host
        return ticket

    def answered(self, ticket: Ticket, at_ms: float, status: int, **more: object) -> None:
        super().answered(ticket, at_ms, status, **more)  # type: ignore[arg-type]  # handed on as they are
        self._ended[self._asking.pop(ticket)] = at_ms
