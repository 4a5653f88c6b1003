"""Content seen before: bodies that are the same (digests), and pages that say nearly the same (near)."""

from .digests import LmdbDigestIndex, MemoryDigestIndex
from .near import LmdbNearIndex
from .near_memory import MemoryNearIndex
from .near_rule import NearRule

__all__ = ["LmdbDigestIndex", "LmdbNearIndex", "MemoryDigestIndex", "MemoryNearIndex", "NearRule"]
