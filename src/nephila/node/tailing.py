"""Events of a crawl as they happen, for whoever reads along (C1, O1): from the files that it writes.

The same lines, masked as they are there, from whichever process wrote them, within a second or two; a crawl that nobody
listens to pays nothing. The id of each names its file and the place in it, so that whoever was cut off goes on where he
was.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

READ_BYTES = 256 * 1024
TAIL_BYTES = 1 << 20

_NAME = re.compile(r"events-([0-9]{6,})\.jsonl")
_KIND = re.compile(rb'"event":"([a-z_0-9]+)"')
_ID = re.compile(r"(\d{1,12})-(\d{1,15})")


class ToldEvent(Protocol):
    """An event as it was written."""

    @property
    def id(self) -> str:
        """Where it stands: a reader goes on after it."""

    @property
    def kind(self) -> str:
        """Its name."""

    @property
    def text(self) -> bytes:
        """Its line."""

    @property
    def skipped(self) -> int:
        """Events before it that nobody told of."""


class EventTail(Protocol):
    """Follows the events of a crawl, for one reader."""

    async def begin(self, after: str, backlog: int) -> Sequence[ToldEvent]:
        """Go on after an id, or from now on; the last events before that, as many as wanted."""

    async def look(self) -> Sequence[ToldEvent]:
        """What has come since the last look; a bounded number."""


class Line(NamedTuple):
    """An event as it was written, and where it ends."""

    file: int
    end: int
    text: bytes
    skipped: int = 0

    @property
    def id(self) -> str:
        """Its file, and where it ends there."""
        return f"{self.file}-{self.end}"

    @property
    def kind(self) -> str:
        """Its name."""
        found = _KIND.search(self.text[:200])
        return found[1].decode() if found else ""


class Tail:
    """Follows all event files of a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._places: dict[int, int] = {}

    def begin(self, after: str, backlog: int) -> list[Line]:
        """Take the end of every file for read, or go on after an id; the last lines before that, as many as wanted."""
        files = self._files()
        found = _ID.fullmatch(after)
        if found is not None:
            number, end = int(found[1]), int(found[2])
            for other, path in files.items():
                size = path.stat().st_size
                self._places[other] = min(end, size) if other == number else size if other < number else 0
            return []
        before: list[list[Line]] = []
        missing = backlog
        for number, path in reversed(files.items()):  # the newest first: a long crawl has hundreds
            size = path.stat().st_size
            lines: list[Line] = []
            if missing:
                start = max(0, size - TAIL_BYTES)
                lines = list(self._lines(number, path, start, size))[1 if start else 0 :]
                before.append(lines[-missing:])
                missing -= len(before[-1])
            self._places[number] = lines[-1].end if lines else size
        return [line for lines in reversed(before) for line in lines]

    def look(self) -> list[Line]:
        """Whole lines that were written since the last look, a bounded number of bytes of each file."""
        found: list[Line] = []
        for number, path in self._files().items():
            start = self._places.get(number, 0)
            size = path.stat().st_size
            if size > start:
                lines = list(self._lines(number, path, start, min(size, start + READ_BYTES)))
                if lines:
                    self._places[number] = lines[-1].end
                    found += lines
                elif size - start >= READ_BYTES:
                    self._places[number] = size  # no line of ours is that long
        return found

    def _files(self) -> dict[int, Path]:
        try:
            names = sorted(entry.name for entry in os.scandir(self._directory))
        except FileNotFoundError:
            return {}
        return {int(match[1]): self._directory / name for name in names if (match := _NAME.fullmatch(name))}

    def _lines(self, number: int, path: Path, start: int, stop: int) -> Iterator[Line]:
        with path.open("rb") as stream:
            stream.seek(start)
            block = stream.read(stop - start)
        at = start
        for text in block[: block.rfind(b"\n") + 1].splitlines(keepends=True):
            at += len(text)
            yield Line(number, at, text.rstrip(b"\n"))


class FileTail:
    """An `EventTail` of a crawl directory: disks may be slow, so a thread reads."""

    def __init__(self, directory: Path) -> None:
        self._tail = Tail(directory)

    async def begin(self, after: str, backlog: int) -> list[Line]:
        """As the interface."""
        return await asyncio.to_thread(self._tail.begin, after, backlog)

    async def look(self) -> list[Line]:
        """As the interface."""
        return await asyncio.to_thread(self._tail.look)
