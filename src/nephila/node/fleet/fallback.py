"""Seeds that named no scheme, whose https origin does not answer: whoever finds that tries them over http (S1).

What was kept of them is let go when it is in the frontier, and not before: wherever that is cut off, whoever meets the
origin next finds it again, and what is admitted twice is admitted once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from nephila.interfaces.frontier import Admission
from nephila.model.errors import NephilaError
from nephila.model.exchange import FailureKind
from nephila.model.task import Candidate
from nephila.seeds import CONNECTION_LEVEL, http_twin
from nephila.seeds.seed import SEED_LEVEL
from nephila.urls import Address, Identifier


class Twins(Protocol):
    """Who keeps them, as `Registry` does."""

    async def twins_of(self, origin: str) -> str:
        """The paths of seeds under an origin."""

    async def drop_twins(self, origin: str, paths: str) -> None:
        """These were admitted."""


class Admitting(Protocol):
    """The frontier, as far as it is asked for here."""

    async def admit(self, candidates: Sequence[Candidate]) -> Admission:
        """Add what is new."""


class Fallback:
    """Called with an origin that cannot be reached; what is known of it is asked for and admitted beside the work."""

    def __init__(self, registry: Twins, frontier: Admitting) -> None:
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

    async def settled(self) -> None:
        """Return when nothing is on its way into the frontier."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Leave what is on its way to others."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _try(self, origin: str) -> None:
        try:
            if paths := await self._registry.twins_of(origin):
                if candidates := self._candidates(origin, paths):
                    await self._frontier.admit(candidates)
                await self._registry.drop_twins(origin, paths)
        except NephilaError:
            return  # whoever meets the origin next asks again

    def _candidates(self, origin: str, paths: str) -> list[Candidate]:
        found: list[Candidate] = []
        for path in paths.split():
            twin = self.identifier.identify(http_twin(origin + path) or "") if self.identifier is not None else None
            if isinstance(twin, Address):
                found.append(Candidate(twin, 0, SEED_LEVEL))
        return found
