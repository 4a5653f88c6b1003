"""Events as they happen, for browsers and scripts (server-sent events).

They are read from the files that the crawl writes anyway: the same lines, masked as they are there, from whichever
process wrote them, within a second or two; a crawl that nobody listens to pays nothing. The id of each names its file
and the place in it, so that whoever was cut off goes on where he was (Last-Event-ID).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LOOK_S = 0.5
READ_BYTES = 256 * 1024
TAIL_BYTES = 1 << 20
ALIVE_S = 15.0
"""A comment is sent when nothing else was, so that proxies keep the connection and a reader who left is noticed."""

_NAME = re.compile(r"events-([0-9]{6,})\.jsonl")
_KIND = re.compile(rb'"event":"([a-z_0-9]+)"')
_ID = re.compile(r"(\d{1,12})-(\d{1,15})")


class Line(NamedTuple):
    """An event as it was written, and where it ends."""

    file: int
    end: int
    text: bytes

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
        before: list[Line] = []
        for number, path in files.items():
            size = path.stat().st_size
            if backlog:
                start = max(0, size - TAIL_BYTES)
                lines = list(self._lines(number, path, start, size))
                before += lines[1:] if start else lines
            self._places[number] = before[-1].end if before and before[-1].file == number else size
        return before[-backlog:] if backlog else []

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


async def stream_events(
    tail: Tail,
    *,
    kinds: frozenset[str],
    backlog: int,
    max_per_s: int,
    follow: bool,
    after: str,
    stream_s: float,
    stopping: asyncio.Event,
) -> AsyncIterator[bytes]:
    """The stream, piece by piece, until `stopping`."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + stream_s
    spoken_at = loop.time()
    lines = await asyncio.to_thread(tail.begin, after, backlog)
    yield b"retry: 3000\n\n"
    while True:
        wanted = [line for line in lines if not kinds or line.kind in kinds]
        most = max(1, int(max_per_s * LOOK_S)) if follow else len(wanted)
        skipped = max(0, len(wanted) - most)
        if skipped and not backlog:
            yield b"event: skipped\ndata: %d\n\n" % skipped
            wanted = wanted[-most:]
        backlog = 0
        for line in wanted:
            yield b"id: %d-%d\nevent: %s\ndata: %s\n\n" % (line.file, line.end, line.kind.encode(), line.text)
        if wanted:
            spoken_at = loop.time()
        elif loop.time() - spoken_at > ALIVE_S:
            yield b": alive\n\n"
            spoken_at = loop.time()
        if not follow or loop.time() >= ends_at:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(min(LOOK_S, max(0.0, ends_at - loop.time()))):
                await stopping.wait()
                return
        lines = await asyncio.to_thread(tail.look)
