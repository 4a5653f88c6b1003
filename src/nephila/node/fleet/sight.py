"""What whoever serves a fleet's crawl sees of its workers: read from the server they share, every moment or so."""

from __future__ import annotations

import asyncio

from nephila.interfaces.shared import SharedState
from nephila.model.errors import NephilaError
from nephila.node.desk import WorkerSeen
from nephila.node.logbook import Figures

from .publishing import Latest, SharedFigures
from .registry import Registry, Roll

LOOK_S = 1.0
ROLL_EVERY = 2
"""Looks after which the register is read again."""


class FleetSight:
    """Keeps figures and the register at hand. While the server is away, or refuses, they are those of before."""

    def __init__(self, state: SharedState, crawl: str, silent_s: float) -> None:
        self._shared = SharedFigures(state, crawl)
        self._registry = Registry(state, crawl)
        self._silent_s = silent_s
        self._figures = Figures()
        self._roll = Roll((), ())

    async def run(self) -> None:
        """Look, until cancelled."""
        looks = 0
        while True:
            await asyncio.sleep(LOOK_S)
            looks += 1
            try:
                await self.look(roll=looks % ROLL_EVERY == 0)
            except NephilaError:
                continue  # whoever asks for anything else is told of it meanwhile

    async def look(self, *, roll: bool = True) -> None:
        """Read what may have changed."""
        self._figures = await self._shared.figures(self._silent_s)
        if roll:
            self._roll = await self._registry.roll()

    def figures(self) -> Figures:
        """As they were read last."""
        return self._figures

    def is_running(self) -> bool:
        """Whether somebody is at work."""
        return any(one.silent_ms < self._silent_s * 1000 for one in self._roll.workers)

    def workers(self) -> list[WorkerSeen]:
        """All that are on the register."""
        found: list[WorkerSeen] = []
        for one in self._roll.workers:
            _, latest = self._shared.workers.get(one.member.id, (0, Latest(one.member.name)))
            silent = one.silent_ms >= self._silent_s * 1000
            at_work = "working" if one.figures.in_flight else "idle"
            state = "silent" if silent else "leaving" if one.draining else at_work
            found.append(
                WorkerSeen(
                    id=one.member.id,
                    name=one.member.name,
                    group=one.member.group,
                    state=state,
                    version=one.member.version,
                    started_at=one.member.since_ms,
                    silent_s=one.silent_ms / 1000,
                    pages=one.figures.pages,
                    errors=one.figures.errors,
                    pages_per_s=0.0 if silent else one.figures.pages_per_s,
                    in_flight=0 if silent else one.figures.in_flight,
                    cpu_s=latest.process.cpu_s,
                    memory_bytes=latest.process.memory_bytes,
                    open_files=latest.process.open_files,
                    disk_free_bytes=latest.process.disk_free_bytes,
                    spool_segments=one.figures.spool_segments,
                    spool_bytes=one.figures.spool_bytes,
                    waits_for=one.figures.waits_for,
                )
            )
        return found
