"""What a computation over the whole link graph says of domains (R3), for a frontier that scores their URLs."""

from __future__ import annotations

from typing import Protocol


class Repute(Protocol):
    """Grades of registrable domains: derived, and newer ones from time to time. Asked for every host that is new."""

    def look(self) -> bool:
        """Whether there are grades; takes up newer ones, if there are, at most every few seconds."""

    def grade_of(self, host: str) -> int | None:
        """The grade of a host's domain, 0 to 64; None where the computation did not know it."""
