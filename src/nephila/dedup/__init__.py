"""Content seen before: digests of bodies and the captures that hold them."""

from .digests import LmdbDigestIndex, MemoryDigestIndex

__all__ = ["LmdbDigestIndex", "MemoryDigestIndex"]
