"""Seeds into the frontier: read in a stream, judged, admitted in batches, reported (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from nephila.frontier.scope import Scope
from nephila.interfaces.frontier import Frontier
from nephila.model.task import Candidate
from nephila.seeds import SeedAccepted, SeedRefused, SeedReport, SeedSource, SeedTally, http_twin, read_seeds
from nephila.urls import Address, Identifier, origin_of

BATCH = 1000


class Sower:
    """Admits seeds, and remembers which of them may be tried over http when https is not answered."""

    def __init__(
        self, frontier: Frontier, identifier: Identifier, scope: Scope, save_scope: Callable[[], None]
    ) -> None:
        self._frontier = frontier
        self._identifier = identifier
        self._scope = scope
        self._save_scope = save_scope
        self._bare: dict[str, list[Candidate]] = {}

    async def sow(self, sources: Sequence[SeedSource], wake: Callable[[], object]) -> SeedReport:
        """Read all sources to their end; `wake` is called after each batch."""
        tally = SeedTally()
        batch: list[Candidate] = []
        for verdict in read_seeds(sources, self._identifier.identify):
            if isinstance(verdict, SeedRefused):
                tally.refuse(verdict)
                continue
            refusal = self._scope.judge_seed(verdict.address)
            if refusal is not None:
                tally.refuse(SeedRefused(verdict.address.url, *refusal, verdict.origin))
                continue
            self._scope.add_seed(verdict.address)
            self._remember_twin(verdict)
            batch.append(Candidate(verdict.address, 0, verdict.level))
            if len(batch) >= BATCH:
                await self._admit(batch, tally)
                batch = []
                wake()
                await asyncio.sleep(0)
        await self._admit(batch, tally)
        wake()
        return tally.report()

    def twins(self, origin: str) -> Sequence[Candidate]:
        """The http seeds to try because this https origin cannot be reached: each once."""
        return self._bare.pop(origin, ())

    def _remember_twin(self, seed: SeedAccepted) -> None:
        if not seed.bare or (url := http_twin(seed.address.url)) is None:
            return
        twin = self._identifier.identify(url)
        if isinstance(twin, Address):
            self._bare.setdefault(origin_of(seed.address.url), []).append(Candidate(twin, 0, seed.level))

    async def _admit(self, batch: Sequence[Candidate], tally: SeedTally) -> None:
        """The scope is saved before the seeds are admitted: a crash must not leave a seed outside of it."""
        self._save_scope()
        tally.admit(await self._frontier.admit(batch))
