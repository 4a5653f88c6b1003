"""What is kept for pages in browsers, as files in the crawl directory: shared by its processes, there after a restart.

One file each, written beside and moved into place, with its time and a check sum before it: what is torn, or over its
time, is as if it were not there. The whole is bounded: when a share of what may be there was written, the folder is
looked through, and what is over its time goes, then what is oldest. Nothing of it is missed by anybody but for a
request that is made again, so a disk that does not take it is no failure of the crawl.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import ParamSpec, TypeVar

from nephila.interfaces.clock import Clock

SUFFIX = ".kept"
_TIME_BYTES = 8
_SUM_BYTES = 16
SWEEP_SHARE = 8
"""After an eighth of what may be there was written, it is looked what there is."""

P = ParamSpec("P")
T = TypeVar("T")


class FolderShelf:
    """Implements `interfaces.renderer.Shelf`."""

    def __init__(self, folder: Path, max_bytes: int, clock: Clock, *, threaded: bool = True) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._clock = clock
        self._threaded = threaded
        self._written = max_bytes  # the first time it is not known what lies there

    async def find(self, name: str) -> bytes | None:
        """As the interface."""
        return await self._do(self._read, name)

    async def keep(self, name: str, data: bytes, lasts_ms: int) -> bool:
        """As the interface."""
        if lasts_ms <= 0 or len(data) > self._max_bytes // SWEEP_SHARE:
            return False
        return await self._do(self._write, name, data, self._clock.wall_ms() + lasts_ms)

    async def drop(self, name: str) -> None:
        """As the interface."""
        with suppress(OSError):
            self._path(name).unlink(missing_ok=True)

    async def _do(self, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if not self._threaded:
            return act(*args, **kwargs)
        return await asyncio.to_thread(act, *args, **kwargs)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{SUFFIX}"

    def _read(self, name: str) -> bytes | None:
        try:
            raw = self._path(name).read_bytes()
        except OSError:
            return None
        until, data = int.from_bytes(raw[:_TIME_BYTES], "big"), raw[_TIME_BYTES + _SUM_BYTES :]
        if until <= self._clock.wall_ms() or raw[_TIME_BYTES : _TIME_BYTES + _SUM_BYTES] != _sum(data):
            return None
        return data

    def _write(self, name: str, data: bytes, until: int) -> bool:
        path = self._path(name)
        draft = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.draft")
        try:
            self._folder.mkdir(exist_ok=True)
            draft.write_bytes(until.to_bytes(_TIME_BYTES, "big") + _sum(data) + data)
            draft.replace(path)
        except OSError:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            return False
        self._written += len(data)
        if self._written > self._max_bytes // SWEEP_SHARE:
            self._written = 0
            self._sweep()
        return True

    def _sweep(self) -> None:
        """Let go of what is over its time, then of what is oldest, down to what may be there."""
        found: list[tuple[int, int, os.DirEntry[str]]] = []
        now = self._clock.wall_ms()
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.name.endswith(SUFFIX) and _until(entry.path) <= now:
                        Path(entry.path).unlink(missing_ok=True)
                        continue
                    stat = entry.stat()
                    found.append((stat.st_mtime_ns, stat.st_size, entry))
        left = sum(size for _, size, _ in found)
        for _, size, entry in sorted(found, key=lambda one: one[0]):
            if left <= self._max_bytes - self._max_bytes // SWEEP_SHARE:
                return
            with suppress(OSError):
                Path(entry.path).unlink(missing_ok=True)
            left -= size


def _sum(data: bytes) -> bytes:
    return blake2b(data, digest_size=_SUM_BYTES).digest()


def _until(path: str) -> int:
    with Path(path).open("rb") as file:
        return int.from_bytes(file.read(_TIME_BYTES), "big")
