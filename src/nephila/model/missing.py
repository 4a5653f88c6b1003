"""How a host answers for pages that it does not have (T4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

OTHERS = 3
"""Pages of a host that must have said something else, where its home page was never seen, or forgotten in a crash."""


class Absence(StrEnum):
    """What came back when a host was asked for a page that cannot exist."""

    UNKNOWN = "unknown"
    """It was not asked yet."""
    HONEST = "honest"
    """An error: there is nothing to find out."""
    SOFT = "soft"
    """A page, as if there were one."""
    MOVED = "moved"
    """A redirect, to the same place for whatever is missing."""


@dataclass(frozen=True, slots=True)
class HostAbsence:
    """What is known of one host."""

    absence: Absence = Absence.UNKNOWN
    probed_at: int = 0
    """UTC milliseconds."""
    text: bytes = b""
    shape: bytes = b""
    """Of the page that stood for the missing one (`Page.text_hash`, `Page.shape_hash`)."""
    location: str = ""
    """Where it was redirected to."""
    home: bytes = b""
    home_shape: bytes = b""
    """The same two of the host's home page; empty until that was fetched."""
    others: int = 0
    """Pages that said something else, counted up to `OTHERS` since the probe."""

    @property
    def tells(self) -> bool:
        """Whether likeness proves anything: not where the home page says the same, or where nobody knows."""
        if not self.home:
            return self.others >= OTHERS
        return not self.text or (self.text != self.home and self.shape != self.home_shape)
