"""The server's own witness: was the crawler polite, judged by what really arrived (P5).

It stands behind the servers of a simulated web and is told of every request when it arrives and of every answer when
its last byte leaves. It shares no code with the crawler; what it knows of the web it asks the model. It lives as long
as the web does: a crawler that is killed and started again is judged by its whole life. Times are milliseconds of one
steady clock, the server's.

The rules:

- *overlap*: a host is asked while it still answers another request.
- *hurry*: less than the required delay between the end of an answer and the arrival of the next request. Required is
  the larger one of base delay and Crawl-delay. On the way both spans only grow longer, so no tolerance is needed; one
  can be given where clocks differ.
- *no_rules*: a page is asked for before its origin's robots.txt was answered for good: not 5xx, not 429, redirects
  followed to their end.
- *forbidden*: robots.txt keeps this crawler from the URL.
- *repeat*: a page is asked for again in the same cycle. Excepted: conditional requests; another spelling of it after a
  redirect to itself; another try after 429, 5xx or an answer that broke off, `max_tries` in all. The robots.txt of a
  host may be answered for good once for each origin whose rules it holds, and again after a day.
- *agent*: the User-Agent does not begin with our product token (or with the one that a policy has us use for that
  host), or has no address to write to.
- *retry_after*: the host is asked before the time has passed that a 429 or 503 asked for.
- *crowd*: more requests at once to one address, or more within any one second, than it allows (only where limits are
  given). The second is counted between arrivals, with `SETUP_MS` of tolerance.
- *visit*: what only a page in a browser asks for (the web knows what that is) is asked for outside a visit, or the
  visit has more than its 30 requests. A visit begins with a page and lasts until something else of the host is asked
  for; within it there is no delay, and two requests may be under way at once. Afterwards the host must have been left
  alone for as many delays as the visit had requests. (A visit of one request is an ordinary one.) What comes after such
  a rest begins a visit of its own: a page that had waited for other hosts is shown again, and is not asked for again.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NewType, Protocol

from .audit_report import AuditReport, HostFigures, Violation, ViolationKind

ROBOTS_FRESH_MS = 24 * 3600 * 1000
"""RFC 9309, 2.4: rules should not be used for longer than a day."""
_ROUNDING_MS = 0.001
"""Sums of floating-point seconds differ in their last bits."""
_SECOND_MS = 1000.0
SETUP_MS = 15.0
"""By so much may requests come closer together on their way. A crawler counts them when it lets them go; one that has
to open its connection first arrives a round trip later (10 ms on the simulated cable) than one on a kept connection,
and its clock has whole milliseconds."""

Ticket = NewType("Ticket", int)
"""Names one request, from its arrival to the end of its answer."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request as the server saw it."""

    host: str
    address: str
    target: str
    at_ms: float
    connection: int
    headers: Mapping[str, str]
    """Names in lower case."""


class HouseRules(Protocol):
    """What the auditor has to know of a web."""

    def required_delay_ms(self, host: str) -> float:
        """The Crawl-delay of a host, 0 when there is none."""

    def allowed(self, host_name: str, target: str, agent: str) -> bool:
        """Whether robots.txt lets the agent ask for the target."""

    def canonical_target(self, host: str, target: str) -> str:
        """One name for all spellings of a target; an unknown target names itself."""

    def robots_source(self, host: str) -> str:
        """The host whose robots.txt counts for this one, redirects followed."""

    def robots_borrowers(self, host: str) -> int:
        """How many other hosts' robots.txt redirect to this one's."""

    def is_part(self, host: str, target: str) -> bool:
        """Whether a target is something that only pages in browsers ask for."""


@dataclass(slots=True)
class _PageLedger:
    """What is remembered of one page in this cycle."""

    tries: int = 0
    spellings: set[str] = field(default_factory=set)
    open_to_retry: bool = False
    respelled: bool = False
    last_ms: float = 0.0
    ended_ms: float = math.inf


@dataclass(slots=True)
class _HostLedger:
    """What is remembered of one host, for good."""

    requests: int = 0
    first_ms: float = 0.0
    last_ms: float = 0.0
    ended_ms: float | None = None
    shortest_gap_ms: float | None = None
    not_before_ms: float = 0.0
    known_not_before_ms: float = 0.0
    """As it was before the last answer."""
    in_flight: int = 0
    visit: int = 0
    """Requests of the visit that is open, 0 where the last request was none that could begin one."""
    robots_answered: bool = False
    rules_ended_ms: list[float] = field(default_factory=list)


class Auditor:
    """Judges requests one after the other; `report` may be asked for at any time."""

    def __init__(  # noqa: PLR0913 - each has a default, and is a rule of its own
        self,
        rules: HouseRules,
        *,
        agent: str = "Nephila",
        base_delay_ms: float = 1000.0,
        tolerance_ms: float = 0.0,
        max_tries: int = 4,
        per_address: int = 0,
        address_rate: int = 0,
        agents: Mapping[str, str] | None = None,
        robots_fresh_ms: float = ROBOTS_FRESH_MS,
        visit_requests: int = 30,
        visit_at_once: int = 2,
    ) -> None:
        """`per_address` requests at once and `address_rate` a second are allowed to one address, 0 means any number.

        `agents` names the product token for hosts to which another one than `agent` is said. `robots_fresh_ms`: so long
        is a robots.txt that was answered for good not to be asked for again. `visit_requests`, `visit_at_once`: of one
        visit (J3).
        """
        self._visit_requests = visit_requests
        self._visit_at_once = visit_at_once
        self._rules = rules
        self._agent = agent
        self._base_delay_ms = base_delay_ms
        self._tolerance_ms = tolerance_ms + _ROUNDING_MS
        self._max_tries = max_tries
        self._per_address = per_address
        self._address_rate = address_rate
        self._agents = agents or {}
        self._robots_fresh_ms = robots_fresh_ms
        self._hosts: defaultdict[str, _HostLedger] = defaultdict(_HostLedger)
        self._cycle: defaultdict[str, _PageLedger] = defaultdict(_PageLedger)
        self._asked: Counter[str] = Counter()
        self._statuses: Counter[int] = Counter()
        self._at_address: Counter[str] = Counter()
        self._lately: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=max(1, address_rate)))
        """Of each address the last arrivals, as many as are allowed within a second."""
        self._in_flight: dict[Ticket, Arrival] = {}
        self._violations: list[Violation] = []
        self._requests = 0

    def arrived(self, arrival: Arrival) -> Ticket:
        """A request came in: judge it."""
        self._requests += 1
        ledger = self._hosts[arrival.host]
        self._judge_agent(arrival)
        part = self._rules.is_part(arrival.host, arrival.target)
        if part:
            self._judge_visit(arrival, ledger)
        else:
            self._judge_pace(arrival, ledger)
            ledger.visit = 1
        self._judge_crowd(arrival)
        if arrival.target == "/robots.txt":
            self._judge_robots_repeat(arrival, ledger)
        else:
            self._judge_rules(arrival)
            self._judge_repeat(arrival)
        ledger.first_ms = ledger.first_ms if ledger.requests else arrival.at_ms
        ledger.last_ms = arrival.at_ms
        ledger.requests += 1
        ledger.in_flight += 1
        self._at_address[arrival.address] += 1
        ticket = Ticket(self._requests)
        self._in_flight[ticket] = arrival
        return ticket

    def answered(
        self,
        ticket: Ticket,
        at_ms: float,
        status: int,
        *,
        complete: bool = True,
        retry_after_ms: float = 0.0,
        respells: bool = False,
    ) -> None:
        """Its answer ended: with the last byte, or broken off (`complete` is False; status 0 when nothing was sent).

        `respells`: it was a redirect to another spelling of the same page.
        """
        arrival = self._in_flight.pop(ticket)
        ledger = self._hosts[arrival.host]
        ledger.in_flight -= 1
        ledger.ended_ms = at_ms
        self._at_address[arrival.address] -= 1
        self._statuses[status] += 1
        passing = not complete or status == 429 or status >= 500
        ledger.known_not_before_ms = ledger.not_before_ms
        if retry_after_ms and status in (429, 503):
            ledger.not_before_ms = max(ledger.not_before_ms, at_ms + retry_after_ms)
        if arrival.target == "/robots.txt":
            ledger.robots_answered |= not passing
            if not passing:
                ledger.rules_ended_ms.append(at_ms)
        else:
            page = self._cycle[self._name(arrival)]
            page.open_to_retry = passing
            page.respelled = respells
            page.ended_ms = at_ms

    def new_cycle(self) -> None:
        """From now on every page may be asked for once more (F2)."""
        self._cycle.clear()

    def forgive(self, kept_until_ms: float, known_until_ms: float) -> None:
        """The crawler died, or its disk did: what it cannot know may be asked for once more, and no earlier.

        It has lost the answers that ended after `kept_until_ms`, and never understood those that ended after
        `known_until_ms`: of these it knows neither rules nor for how long it was asked to wait.
        """
        for page in self._cycle.values():
            if page.tries and page.ended_ms > kept_until_ms:
                # What was lost with its bytes begins anew; what was only on its way has used up its tries.
                page.tries = page.tries - 1 if kept_until_ms == known_until_ms else 0
                page.open_to_retry = True
        for ledger in self._hosts.values():
            ledger.rules_ended_ms = [ended for ended in ledger.rules_ended_ms if ended <= known_until_ms]
            if ledger.ended_ms is not None and ledger.ended_ms > known_until_ms:
                ledger.not_before_ms = ledger.known_not_before_ms

    def forget_rules(self) -> None:
        """Time has passed for the crawler in which it could not be sure of its clock: rules may be asked for again."""
        for ledger in self._hosts.values():
            ledger.rules_ended_ms.clear()

    def report(self) -> AuditReport:
        """What was seen so far."""
        hosts = {
            name: HostFigures(
                ledger.requests, ledger.first_ms, ledger.last_ms, ledger.shortest_gap_ms, self._required_ms(name)
            )
            for name, ledger in self._hosts.items()
        }
        return AuditReport(self._requests, hosts, tuple(self._violations), dict(self._asked), dict(self._statuses))

    def dump(self, path: Path) -> None:
        """Write the report as JSON; a reader sees the old file or the new one, never half of it."""
        draft = path.with_name(path.name + ".draft")
        draft.write_text(self.report().to_json(), encoding="utf-8")
        draft.replace(path)

    def _required_ms(self, host: str) -> float:
        return max(self._base_delay_ms, self._rules.required_delay_ms(host))

    def _name(self, arrival: Arrival) -> str:
        return arrival.host + self._rules.canonical_target(arrival.host, arrival.target)

    def _blame(self, kind: ViolationKind, arrival: Arrival, detail: str, previous_ms: float | None = None) -> None:
        self._violations.append(Violation(kind, arrival.host, arrival.target, arrival.at_ms, detail, previous_ms))

    def _judge_agent(self, arrival: Arrival) -> None:
        given = arrival.headers.get("user-agent", "")
        if given.partition("/")[0].strip().lower() != self._agent_for(arrival.host).lower() or "://" not in given:
            self._blame(ViolationKind.AGENT, arrival, f"User-Agent: {given!r}")

    def _agent_for(self, host: str) -> str:
        return self._agents.get(host, self._agent)

    def _judge_pace(self, arrival: Arrival, ledger: _HostLedger) -> None:
        if ledger.in_flight:
            detail = f"{ledger.in_flight} answer(s) of this host have not ended"
            self._blame(ViolationKind.OVERLAP, arrival, detail, ledger.last_ms)
        elif ledger.ended_ms is not None:
            gap = arrival.at_ms - ledger.ended_ms
            required = self._required_ms(arrival.host) * max(1, ledger.visit)
            shortest = ledger.shortest_gap_ms
            ledger.shortest_gap_ms = gap if shortest is None else min(gap, shortest)
            if gap + self._tolerance_ms < required:
                detail = f"after {gap:.3f} ms, {required:.0f} ms are required"
                self._blame(ViolationKind.HURRY, arrival, detail, ledger.ended_ms)
        if arrival.at_ms + self._tolerance_ms < ledger.not_before_ms:
            detail = f"{ledger.not_before_ms - arrival.at_ms:.3f} ms too early"
            self._blame(ViolationKind.RETRY_AFTER, arrival, detail, ledger.ended_ms)

    def _judge_visit(self, arrival: Arrival, ledger: _HostLedger) -> None:
        rest_ms = self._required_ms(arrival.host) * max(1, ledger.visit)
        ended_ms = ledger.ended_ms
        rested = ended_ms is not None and arrival.at_ms - ended_ms + self._tolerance_ms >= rest_ms
        if ledger.visit and rested and not ledger.in_flight:
            ledger.visit = 1  # a page that had waited is shown again: this is the first request of its visit
            return
        ledger.visit += 1
        if ledger.visit == 1:
            self._blame(ViolationKind.VISIT, arrival, "no page of this host was asked for before")
        elif ledger.visit > self._visit_requests:
            self._blame(ViolationKind.VISIT, arrival, f"request {ledger.visit} of one visit")
        if ledger.in_flight >= self._visit_at_once:
            detail = f"{ledger.in_flight} answer(s) of this host have not ended"
            self._blame(ViolationKind.OVERLAP, arrival, detail, ledger.last_ms)
        if arrival.at_ms + self._tolerance_ms < ledger.not_before_ms:
            detail = f"{ledger.not_before_ms - arrival.at_ms:.3f} ms too early"
            self._blame(ViolationKind.RETRY_AFTER, arrival, detail, ledger.ended_ms)

    def _judge_crowd(self, arrival: Arrival) -> None:
        others = self._at_address[arrival.address]
        if self._per_address and others >= self._per_address:
            self._blame(ViolationKind.CROWD, arrival, f"{others} other requests at {arrival.address}")
        if not self._address_rate:
            return
        lately = self._lately[arrival.address]
        if len(lately) == self._address_rate:
            took_ms = arrival.at_ms - lately[0]
            if took_ms + SETUP_MS + self._tolerance_ms < _SECOND_MS:
                detail = f"{self._address_rate + 1} requests at {arrival.address} within {took_ms:.3f} ms"
                self._blame(ViolationKind.CROWD, arrival, detail, lately[0])
        lately.append(arrival.at_ms)

    def _judge_rules(self, arrival: Arrival) -> None:
        source = self._rules.robots_source(arrival.host)
        if not (self._hosts[arrival.host].robots_answered and self._hosts[source].robots_answered):
            self._blame(ViolationKind.NO_RULES, arrival, f"robots.txt of {source} was not answered yet")
        agent = self._agent_for(arrival.host)
        if not self._rules.allowed(arrival.host, arrival.target, agent):
            self._blame(ViolationKind.FORBIDDEN, arrival, f"robots.txt of {source} forbids it to {agent}")

    def _judge_robots_repeat(self, arrival: Arrival, ledger: _HostLedger) -> None:
        allowed = 1 + self._rules.robots_borrowers(arrival.host)
        recent = [ended for ended in ledger.rules_ended_ms if arrival.at_ms - ended < self._robots_fresh_ms]
        ledger.rules_ended_ms = recent
        if len(recent) >= allowed:
            self._blame(ViolationKind.REPEAT, arrival, f"answered {len(recent)} time(s) within a day", recent[-1])

    def _judge_repeat(self, arrival: Arrival) -> None:
        name = self._name(arrival)
        page = self._cycle[name]
        conditional = "if-none-match" in arrival.headers or "if-modified-since" in arrival.headers
        respelled = page.respelled and arrival.target not in page.spellings
        retried = page.open_to_retry and page.tries < self._max_tries
        if page.tries and not (conditional or respelled or retried):
            detail = f"asked {page.tries} time(s) before"
            self._blame(ViolationKind.REPEAT, arrival, detail, page.last_ms)
        page.tries += not respelled
        page.spellings.add(arrival.target)
        page.last_ms = arrival.at_ms
        page.ended_ms = math.inf
        self._asked[name] += 1
