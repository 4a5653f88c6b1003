"""When two pages are near-duplicates (D3): few bits of their hashes differ, and their sketches agree.

The hash alone is quick to search by, and takes short texts in the same frame of words for the same; the sketch alone
cannot be searched. So candidates come from the hash and are confirmed by the sketch. The *plain* rule, distance 3 on
the hash and no sketch, is what other crawlers do; it finds fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

from nephila.model.likeness import MAX_DISTANCE, resemblance
from nephila.model.near import NearOriginal

PLAIN_DISTANCE = 3
"""Manku, Jain and Das Sarma (2007): the distance at which precision and recall meet on 8 billion pages."""


@dataclass(frozen=True, slots=True)
class NearRule:
    """The thresholds."""

    max_distance: int = MAX_DISTANCE
    """Bits that may differ; at most 7, which is what four tables can answer for."""
    min_resemblance: float = 0.6
    """Of the sketches; 0 where the hash alone decides. In labelled pairs of real pages near-duplicates have 0.70 and
    more, others at most 0.41; at 0.5 pages of some sixty words in one frame were taken for each other."""

    @classmethod
    def plain(cls) -> NearRule:
        """The hash alone."""
        return cls(PLAIN_DISTANCE, 0.0)

    def confirm(self, sketch: bytes, original_sketch: bytes, url: str, distance: int) -> NearOriginal | None:
        """The original, if the sketches say so too."""
        if not self.min_resemblance:
            return NearOriginal(url, distance, 1.0)
        alike = resemblance(sketch, original_sketch)
        return NearOriginal(url, distance, alike) if alike >= self.min_resemblance else None


STANDARD = NearRule()
