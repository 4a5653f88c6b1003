"""A store of chunks in memory, for contract suites and simulations: the fake of `interfaces.chunks.ChunkStore`."""

from __future__ import annotations

import time
from collections.abc import Sequence


class MemoryChunks:
    """Forgets nothing until it is told to."""

    def __init__(self) -> None:
        self.kept: dict[int, tuple[int, int, bytes, float]] = {}

    def put(self, number: int, shard: int, urls: int, body: bytes) -> None:
        """As the interface."""
        self.kept.setdefault(number, (shard, urls, body, time.monotonic()))

    def get(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """As the interface."""
        return {number: self.kept[number][2] for number in numbers if number in self.kept}

    def delete(self, numbers: Sequence[int]) -> None:
        """As the interface."""
        for number in numbers:
            self.kept.pop(number, None)

    def older(self, shard: int, seconds: float, after: int, limit: int) -> list[int]:
        """As the interface."""
        old = time.monotonic() - seconds
        found = [number for number, one in self.kept.items() if one[0] == shard and number > after and one[3] < old]
        return sorted(found)[:limit]

    def close(self) -> None:
        """Nothing is open."""
