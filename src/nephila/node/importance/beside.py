"""Ranks computed again and again while a crawl runs (R3): when, by whom, and what becomes of failures.

After `rank.every_s`, if `rank.least_pages` more pages were stored, a process is started for it (`birth`); the crawl
goes on meanwhile, and uses the new ranks when they are there (`grades`). One at a time: this task waits for its
process, and a process that finds the folder held by another one, such as `nephila rank`, leaves it to that.

A computation that fails harms nothing. It is told once, until one succeeds again.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from nephila.model.settings import RankSettings
from nephila.node.processes.child import death_of

from .birth import bear

LOOK_S = 10.0
"""How often it is looked whether it is time: a snapshot's cost."""
MOST_TOLD = 500
"""Characters of what a process says."""


class Recomputing:
    """A task beside a crawl."""

    def __init__(
        self,
        out: Path,
        settings: RankSettings,
        pages: Callable[[], int],
        warn: Callable[[str, str], None],
        start: Callable[[Path], Awaitable[Process]] = bear,
    ) -> None:
        """`pages` tells how many were stored in this run, `warn` tells the crawl's listeners."""
        self._out = out
        self._settings = settings
        self._pages = pages
        self._warn = warn
        self._start = start
        self._has_failed = False

    async def run(self) -> None:
        """Until it is cancelled; what is being computed then is cut off."""
        if not self._settings.every_s:
            return
        loop = asyncio.get_running_loop()
        begun, counted = loop.time(), 0
        while True:
            await asyncio.sleep(min(LOOK_S, self._settings.every_s))
            pages = self._pages()
            if loop.time() - begun >= self._settings.every_s and pages - counted >= self._settings.least_pages:
                begun, counted = loop.time(), pages
                self._tell(await self._compute())

    async def _compute(self) -> str:
        """Have it done; why it failed, in a sentence, or nothing."""
        try:
            process = await self._start(self._out)
        except OSError as error:
            return f"no process could be started for it: {error.strerror or error}"
        try:
            _, said = await process.communicate()
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if not process.returncode:
            return ""
        return said.decode("utf-8", "replace").strip()[:MOST_TOLD] or f"its process {death_of(process.returncode)}"

    def _tell(self, trouble: str) -> None:
        if trouble and not self._has_failed:
            self._warn("rank", f"ranks could not be computed anew, and the crawl goes on with those it has: {trouble}")
        self._has_failed = bool(trouble)
