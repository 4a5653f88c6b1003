"""What an audit finds: broken promises, one by one, and the figures that tell how much was looked at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from nephila.store.trail_check import TrailVerdict


class FindingKind(StrEnum):
    """Which promise was broken. The first five are named as the auditor on the servers' side names them."""

    OVERLAP = "overlap"
    """A host was asked while an answer of it had not ended (P2)."""
    HURRY = "hurry"
    """Less than the delay between the end of an answer and the next request (P2)."""
    FORBIDDEN = "forbidden"
    """The robots.txt in force keeps this agent from the URL (P1)."""
    NO_RULES = "no_rules"
    """A page was asked for although no robots.txt of its origin was in force (P1)."""
    RETRY_AFTER = "retry_after"
    """A host was asked before the time that its 429 or 503 named (P3)."""
    STALE_RULES = "stale_rules"
    """The rules in force were older than a day, and nobody had asked for newer ones (P1)."""
    ROBOTS_OFF = "robots_off"
    """A page was asked for by a run that was told to ignore robots.txt."""
    WRONG_RULES = "wrong_rules"
    """The rules on record are not what the server sent."""
    CROWD = "crowd"
    """More requests to one address than its limits allow (P2)."""
    ADDRESS = "address"
    """An address that is not public, and that no setting opened (H6)."""
    VISIT = "visit"
    """A page in a browser asked for more than a visit may (J3)."""
    UNDATED = "undated"
    """A request on record without the times that would let it be judged."""
    MISSING = "missing"
    """The event log tells of an answer that the archive should hold and does not."""
    DAMAGED = "damaged"
    """A finished archive file cannot be read to its end."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken promise."""

    kind: FindingKind
    host: str
    url: str
    at: int
    """UTC milliseconds by the wall clock of the time; 0 where it is not known."""
    detail: str
    """One sentence: what was required, what was done."""


SHOWN = 1000
"""Findings that are kept word for word; all are counted."""


@dataclass(slots=True)
class Audit:
    """The verdict on a crawl."""

    requests: int = 0
    hosts: int = 0
    pages: int = 0
    robots: int = 0
    """Requests for a robots.txt."""
    resources: int = 0
    """Requests for what pages of other hosts need."""
    parts: int = 0
    """Requests of pages in browsers."""
    visits: int = 0
    """Pages that were shown to a browser and asked for something."""
    cut_visits: int = 0
    """Visits whose page is not on record: a process died over it."""
    unanswered: int = 0
    """Requests that brought nothing for the archive; the event log tells of them."""
    first_at: int = 0
    last_at: int = 0
    rules: int = 0
    """Different texts of robots.txt that came into force."""
    judged: int = 0
    """Pages that were held against rules."""
    unjudged: int = 0
    """Pages whose rules were answered, but whose text was lost with the power."""
    gaps: int = 0
    """Pairs of requests whose distance was measured."""
    unmeasured: int = 0
    """Pairs across a restart of the machine whose distance no clock can tell."""
    shortest_gap_ms: int | None = None
    """Of those under a delay over 0."""
    shortest_host: str = ""
    policies: dict[str, int] = field(default_factory=dict)
    """Hosts for which a policy set the delay, in milliseconds."""
    delays_ms: list[int] = field(default_factory=list)
    """Base delays of the runs."""
    proxied: int = 0
    """Requests through a proxy, whose addresses tell nothing of the servers."""
    untold: int = 0
    """Answers in the archive that the event log does not tell of: a process died before it wrote them."""
    taken_out: int = 0
    """Captures that a takedown took out of the archive: there is a receipt for each file."""
    waiting: int = 0
    """Answers that the event log tells of, and whose archive file has not arrived in the store yet."""
    lost: int = 0
    """Answers that the event log tells of and that went with the power."""
    wall_only: int = 0
    """Requests that are dated by the wall clock alone: archives of an earlier version."""
    counts: Counter[FindingKind] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    trail: TrailVerdict = field(default_factory=TrailVerdict)

    def blame(self, finding: Finding) -> None:
        """Count a finding, and keep the first thousand."""
        self.counts[finding.kind] += 1
        if len(self.findings) < SHOWN:
            self.findings.append(finding)

    @property
    def violations(self) -> int:
        """Broken promises in all."""
        return self.counts.total()

    @property
    def is_clean(self) -> bool:
        """Nothing was broken, nothing was tampered with, and what was expected is there."""
        return not (self.violations or self.trail.breaches or self.trail.missing)
