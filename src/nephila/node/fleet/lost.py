"""When a worker is lost for good, with its disk: the pages that waited in its spool go back into their queues.

Each worker looks from time to time, so no one is in charge; what is done twice does no harm. A writer is given up first
(`Registry.give_up`), which is never taken back, and only then is looked what became of its segments: one that had
arrived in the store of objects is gone through as after a crash, also when no page waits for it and only the catalogue
or its index lack it; the pages of one that had not are queued again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nephila.model.record import SegmentId
from nephila.node.frontiers import NodeFrontier
from nephila.node.recovery import Recovery
from nephila.store import writer_of

from .registry import Registry


@dataclass(frozen=True, slots=True)
class Looked:
    """What became of the segments of workers that are lost."""

    arrived: int = 0
    """So many were in the store, and are gone through."""
    queued: int = 0
    """So many pages of those that were not go back into their queues."""
    is_whole: bool = True
    """Nothing is left for the next look."""


class LostWorkers:
    """Looks for workers that will not come back."""

    def __init__(
        self,
        registry: Registry,
        frontier: NodeFrontier,
        recovery: Recovery,
        is_full: Callable[[], bool],
        lost_s: float,
        silent_s: float,
    ) -> None:
        """`is_full`: whether the spool has no room for what would be brought back from the store."""
        self._registry = registry
        self._frontier = frontier
        self._recovery = recovery
        self._is_full = is_full
        self._lost_s = lost_s
        self._silent_s = silent_s

    @property
    def every_s(self) -> float:
        """How often to look: often enough that it does not matter beside the time after which one is lost."""
        return min(60.0, self._lost_s / 4)

    async def look(self, pending: set[SegmentId]) -> Looked:
        """Put in order what the lost have left. `pending` are the segments on which pages wait."""
        writers = {writer_of(segment) for segment in pending}
        given_up = await self._registry.give_up(self._lost_s, writers, self._silent_s)
        if not given_up:
            return Looked()
        unlisted = await self._recovery.cut_short()
        arrived = queued = 0
        for writer in given_up:
            for segment in sorted(one for one in pending | unlisted if writer_of(one) == writer):
                if self._recovery.is_under_way(segment):
                    continue  # since an earlier look, which the store or the database has not let come to its end
                if self._is_full():
                    return Looked(arrived, queued, is_whole=False)  # the next look goes on, here or elsewhere
                if await self._recovery.of_store(segment):
                    arrived += 1
                else:
                    queued += await self._frontier.lose(segment, 0)
            await self._registry.in_order(writer)
        return Looked(arrived, queued)
