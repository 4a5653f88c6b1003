"""What comes of comparing a page with those before it (D3)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NearOriginal:
    """An earlier page that says nearly the same."""

    url: str
    distance: int
    """Bits of the two hashes that differ."""
    resemblance: float
    """What the sketches say, 0 to 1; 1 where only hashes are compared."""


@dataclass(frozen=True, slots=True)
class NearSnapshot:
    """An index of near-duplicates in figures."""

    originals: int
    """Pages that others may be found near to, those not yet written included."""
    unwritten: int
    """Known to this process only, until the next flush."""
    runs: int = 0
    """Sorted tables that a look-up asks."""
    bytes: int = 0
    """On disk."""
