"""Takedowns while a crawl runs: found in the crawl directory, wherever they were ordered, and carried out beside it.

What is finished is taken out at once. Then whatever was asked for before the block held is waited for, files that are
open are closed, and what they hold is taken out in a last pass. In other processes of the crawl files are closed by
`roll_when_asked`. A crawl that ends before that carries out what is left when its books are closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from nephila.frontier.embedded import LmdbFrontierView
from nephila.store import LocalArchive

from .carrying_out import Parts, Takedowns
from .premises import LocalPremises
from .record import Takedown, TakedownFolder

LOOK_S = 5.0
"""How long a takedown that another process has filed may lie there; in this one it is taken up at once."""
POLL_S = 0.25
ROLL = "roll"
"""The file in `takedowns/` that is touched to have every process of a crawl close its files."""


class TakedownKeeper:
    """Carries out takedowns in a crawl that runs."""

    def __init__(
        self,
        takedowns: Takedowns,
        records: TakedownFolder,
        premises: LocalPremises,
        view: LmdbFrontierView,
        archive: LocalArchive,
        nudge_books: Callable[[], None],
    ) -> None:
        self._takedowns = takedowns
        self._records = records
        self._premises = premises
        self._view = view
        self._archive = archive
        self._nudge_books = nudge_books
        self._woken = asyncio.Event()

    @property
    def folder(self) -> Path:
        """Where the records are."""
        return self._records.path

    @property
    def parts(self) -> Parts:
        """What it works on."""
        return self._takedowns.parts

    def wake(self) -> None:
        """One was filed in this process."""
        self._woken.set()

    async def block_pending(self) -> None:
        """Before anything is fetched: a kill may have come between the record and its block."""
        for takedown in self._records.pending():
            await self._takedowns.block(takedown)

    async def run(self) -> None:
        """Look for takedowns and carry them out, until cancelled."""
        while True:
            for takedown in self._records.pending():
                await self._carry_out(takedown)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._woken.wait()
            self._woken.clear()

    async def finish(self) -> None:
        """The crawl is over and its books are closed: carry out what is left."""
        for takedown in self._records.pending():
            await self._takedowns.block(takedown)
            await self._takedowns.finish(takedown)

    async def _carry_out(self, takedown: Takedown) -> None:
        await self._takedowns.block(takedown)
        await self._takedowns.take_out(takedown)
        await self._quiet()
        await self._takedowns.finish(takedown)

    async def _quiet(self) -> None:
        """Wait until nothing that was asked for before the block can come any more, and lies in finished files."""
        first = self._view.totals().next_token
        while self._is_out_before(first):  # noqa: ASYNC110 - leases end in other processes, too
            await asyncio.sleep(POLL_S)
        opened, told = set(self._archive.unfinished()), self._premises.event_files_in_use()
        (self.folder / ROLL).touch()
        self._archive.roll()
        self._premises.roll_events()
        while opened & set(self._archive.unfinished()) or told & self._premises.event_files_in_use():
            self._nudge_books()
            await asyncio.sleep(POLL_S)

    def _is_out_before(self, token: int) -> bool:
        oldest = self._view.oldest_lease()
        return oldest is not None and oldest < token


def roll_when_asked(folder: Path, roll: Callable[[], None]) -> Callable[[], None]:
    """A look whether this process is to close its files; for workers, who are told nothing else of takedowns."""

    def asked_at() -> int:
        try:
            return (folder / ROLL).stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    known = asked_at()

    def look() -> None:
        nonlocal known
        if (now := asked_at()) != known:
            known = now
            roll()

    return look
