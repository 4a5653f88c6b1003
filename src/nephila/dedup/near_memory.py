"""Near-duplicates in memory, by looking at every page: for simulations, and to compare the index on disk with."""

from __future__ import annotations

from nephila.model.likeness import Likeness
from nephila.model.near import NearOriginal, NearSnapshot

from .near_rule import STANDARD, NearRule


class MemoryNearIndex:
    """Implements `interfaces.near_duplicates.NearIndex`."""

    def __init__(self, rule: NearRule = STANDARD) -> None:
        self._rule = rule
        self._originals: dict[tuple[int, str], Likeness] = {}

    def find(self, likeness: Likeness) -> NearOriginal | None:
        """As the interface."""
        for (simhash, original_url), known in self._originals.items():
            distance = (simhash ^ likeness.simhash).bit_count()
            if distance <= self._rule.max_distance:
                original = self._rule.confirm(likeness.sketch, known.sketch, original_url, distance)
                if original is not None:
                    return original
        return None

    def remember(self, likeness: Likeness, url: str) -> bool:
        """As the interface."""
        key = (likeness.simhash, url)
        if key in self._originals:
            return False
        self._originals[key] = likeness
        return True

    def forget(self, likeness: Likeness, url: str) -> None:
        """As the interface."""
        self._originals.pop((likeness.simhash, url), None)

    def flush(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""

    def snapshot(self) -> NearSnapshot:
        """As the interface."""
        return NearSnapshot(len(self._originals), 0)
