"""Where a fleet keeps the far ends of long queues (F8): chunks of some hundred URLs, as bytes under a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ChunkStore(Protocol):
    """Keeps chunks. Safe for threads; calls block.

    Raises `StorageError` where it cannot be reached: what was asked may have been done all the same, so every call may
    be repeated.
    """

    def put(self, number: int, shard: int, urls: int, body: bytes) -> None:
        """Keep a chunk; it is durable when this returns. A number that is kept already stays as it is."""

    def get(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """Those of the chunks that are kept."""

    def delete(self, numbers: Sequence[int]) -> None:
        """Forget chunks; those that are not there do no harm."""

    def older(self, shard: int, seconds: float, after: int, limit: int) -> list[int]:
        """Numbers of a shard's chunks that were put longer ago than that, in their order, from after one on."""

    def close(self) -> None:
        """Close the connections."""
