"""What is known of how hosts answer for pages that they do not have (T4)."""

from __future__ import annotations

from typing import Protocol

from nephila.model.missing import HostAbsence


class Absences(Protocol):
    """Remembers. What was kept is seen by `of` at once, and is there after `flush`, whatever dies."""

    def of(self, host: str) -> HostAbsence | None:
        """What is known of a host, None when it is nothing."""

    def keep(self, host: str, known: HostAbsence) -> None:
        """From now on this is known."""

    def flush(self) -> None:
        """Make durable what was kept."""

    def close(self) -> None:
        """Flush and close."""
