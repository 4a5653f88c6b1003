"""What the auditor has to say: broken rules, figures of each host, and all of it as JSON for another process."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum


class ViolationKind(StrEnum):
    """Which rule was broken."""

    OVERLAP = "overlap"
    HURRY = "hurry"
    NO_RULES = "no_rules"
    FORBIDDEN = "forbidden"
    REPEAT = "repeat"
    AGENT = "agent"
    RETRY_AFTER = "retry_after"
    CROWD = "crowd"
    VISIT = "visit"


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule."""

    kind: ViolationKind
    host: str
    target: str
    at_ms: float
    detail: str
    previous_ms: float | None = None
    """When the earlier request of the pair arrived or ended, for rules about pairs."""


@dataclass(frozen=True, slots=True)
class HostFigures:
    """What one host saw."""

    requests: int
    first_ms: float
    last_ms: float
    shortest_gap_ms: float | None
    required_gap_ms: float


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The verdict."""

    requests: int
    hosts: Mapping[str, HostFigures]
    violations: tuple[Violation, ...]
    asked: Mapping[str, int]
    """How often each page was asked for in all cycles, by host and canonical target (``site1.test/a.html``)."""
    statuses: Mapping[int, int]
    """Answers by status; 0 stands for none."""

    @property
    def by_kind(self) -> dict[ViolationKind, int]:
        """Violations counted."""
        return dict(Counter(violation.kind for violation in self.violations))

    def to_json(self) -> str:
        """The whole report, for readers in another process."""
        return json.dumps({**asdict(self), "by_kind": self.by_kind})

    @classmethod
    def from_json(cls, text: str) -> AuditReport:
        """Read `to_json` back."""
        data = json.loads(text)
        violations = (Violation(**{**found, "kind": ViolationKind(found["kind"])}) for found in data["violations"])
        return cls(
            requests=data["requests"],
            hosts={name: HostFigures(**figures) for name, figures in data["hosts"].items()},
            violations=tuple(violations),
            asked=data["asked"],
            statuses={int(status): count for status, count in data["statuses"].items()},
        )
