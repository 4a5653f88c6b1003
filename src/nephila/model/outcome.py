"""How a task ended: the values that `Frontier.settle` takes (F2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from nephila.urls import Address

from .noun import noun
from .record import RecordRef
from .task import Candidate, Pace, Refusal, Task, Validators


class DeferReason(StrEnum):
    """Why a URL or a whole host waits without having failed."""

    ROBOTS = "robots_unavailable"
    CRAWL_DELAY = "crawl_delay"
    RETRY_AFTER = "retry_after"
    """The server itself said when to come back."""
    DNS = "dns"
    ADDRESS = "address_busy"
    COOLING = "cooling"
    STOPPED = "stopped"
    RETRY = "retry"
    HOST_LIMIT = "host_limit"
    PAUSED = "paused"
    """By a person, for its domain (R4)."""
    BLOCKED = "blocked"
    """By a person, with a reason (T7)."""
    HOURS = "hours"
    """Its domain may be asked at other hours of the day only (R4)."""
    ERRORS = "domain_errors"
    """Too many errors of its domain: paused for an hour (P4)."""
    BUDGET = "over_budget"
    """More than its host, or than its domain's number of hosts, has earned (F5)."""
    TRAP = "trap"
    """URLs of its shape stopped bringing anything new (T2)."""
    COVERAGE = "coverage"
    """Its domain is known, and others are looked for first (S4)."""
    RENDER = "render"
    """No browser has a place for it (J2)."""
    DUE = "due"
    """Fetched; its next visit is planned (R2)."""
    SPILLED = "spilled"
    """All that is left of its host's queue is kept outside the engine, and on its way back (F8)."""


@noun
class Done:
    """Answered and stored: pending on its segment, completed when that is confirmed."""

    ref: RecordRef
    status: int
    digest: bytes = b""
    validators: Validators = Validators()
    changed: bool = True
    """Whether the body differs from that of the last capture, in a single byte at least."""
    page: bool = True
    """Counts as a page: a 2xx answer of a wanted type, or a 304."""
    lied: bool = False
    """The content differs under the validators of the last capture: a 304 from that host would prove nothing (H3)."""
    duplicate: bool = False
    """The same content was stored from another URL (D2)."""
    near: bool = False
    """Another URL of the same host said nearly the same before (D3)."""
    text: bytes = b""
    """Eight bytes that stand for the text of the page without its links; empty when it has none."""
    shape: bytes = b""
    """The same with every word left out that holds a digit: equal for pages that differ in numbers only (T2)."""
    outlinks: int = 0
    """All links of the page, followed or not: its rank is shared among so many (R1)."""
    listing: str = ""
    """What kind of list it is (`ListKind`), if it is one: it comes round at a rhythm of its own (X3)."""
    expected_s: int = 0
    """How often it changes as its site says, where that is believed (X3): its interval until it has a history."""
    said: bytes = b""
    """Eight bytes that stand for what it says (`Page.said_hash`, or of headers where it is no page): where they are the
    same, it has not changed (R2)."""


@dataclass(frozen=True, slots=True)
class Retry:
    """A passing failure: back into the queue after `wait_ms`, costing one retry."""

    wait_ms: int
    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Deferred:
    """Not now, and nobody's fault: back after `wait_ms`, costing nothing."""

    wait_ms: int
    reason: DeferReason


@dataclass(frozen=True, slots=True)
class Dropped:
    """Decided against, for good (within this cycle): robots.txt forbids it, the address is not public, a loop."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Dead:
    """Given up: listed by `dead`, can be put back (F9)."""

    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Respelled:
    """A redirect to the same key: the URL goes back at once under its new spelling, one hop further."""

    address: Address


class RulesKind(StrEnum):
    """What an origin's robots.txt came to (P1)."""

    RULES = "rules"
    ALLOW_ALL = "allow_all"
    """4xx, or unreachable for 30 days: no restrictions."""
    UNAVAILABLE = "unavailable"
    """5xx, 429, network failure and no last good rules: nothing may be fetched until it answers."""
    NO_HOST = "no_host"
    """The name does not exist, or leads to an address that we may not ask: its pages end without a request."""


@noun
class OriginRules:
    """The robots.txt of one origin as it is in force."""

    origin: str
    kind: RulesKind
    body: bytes
    """The text, decoded of its content coding and cut at the cap; empty unless `kind` is RULES."""
    stored_at: int
    """UTC milliseconds; with the origin it names this version."""
    fresh_until: int
    """On the frontier's timeline: afterwards it is asked for again before the next page."""
    status: int = 0
    failing_since: int = 0
    """On the frontier's timeline: since when it fails, as far as anybody asked; 0 when the last fetch was good."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RulesLearned:
    """A robots task ended with rules (or with the knowledge that there are none)."""

    rules: OriginRules
    crawl_delay_ms: int = 0
    """What they ask of the origin's host, where they were found on another one: it must bind before the first page."""


@dataclass(frozen=True, slots=True)
class RulesMoved:
    """A robots task was redirected: the next hop waits in the queue of its own host."""

    origin: str
    address: Address
    hops: int


Outcome = Done | Retry | Deferred | Dropped | Dead | Respelled | RulesLearned | RulesMoved


@noun
class Settlement:
    """One task's end, with the links it brought: durable in one act."""

    task: Task
    outcome: Outcome
    links: Sequence[Candidate] = ()
    refused: Sequence[Refusal] = ()


@noun
class Release:
    """Frees the host: nobody may ask it again before `wait_ms` from now."""

    wait_ms: int
    pace: Pace
    elapsed_ms: int = 0
    """Of the last exchange, for the host's average."""
    reason: DeferReason | None = None
    """Set where the host as a whole is put off (robots unavailable, a very long Crawl-delay)."""
