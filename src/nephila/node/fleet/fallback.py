"""Seeds that named no scheme, whose https origin does not answer: whoever finds that tries them over http (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from nephila.interfaces.frontier import Frontier
from nephila.model.errors import NephilaError
from nephila.model.exchange import FailureKind
from nephila.model.task import Candidate
from nephila.seeds import CONNECTION_LEVEL, http_twin
from nephila.seeds.seed import SEED_LEVEL
from nephila.urls import Address, Identifier

from .registry import Registry


class Fallback:
    """Called with an origin that cannot be reached; what is known of it is asked for and admitted beside the work."""

    def __init__(self, registry: Registry, frontier: Frontier) -> None:
        self._registry = registry
        self._frontier = frontier
        self._tasks: set[asyncio.Task[None]] = set()
        self.identifier: Identifier | None = None

    def __call__(self, origin: str, kind: FailureKind) -> Sequence[Candidate]:
        """Nothing at once."""
        if kind in CONNECTION_LEVEL and origin.startswith("https:"):
            task = asyncio.create_task(self._try(origin), name=f"http twin of {origin}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return ()

    async def _try(self, origin: str) -> None:
        try:
            paths = await self._registry.take_twin(origin)
        except NephilaError:
            return  # whoever meets the origin next asks again
        candidates: list[Candidate] = []
        for path in paths.split():
            twin = self.identifier.identify(http_twin(origin + path) or "") if self.identifier is not None else None
            if isinstance(twin, Address):
                candidates.append(Candidate(twin, 0, SEED_LEVEL))
        if candidates:
            await self._frontier.admit(candidates)
