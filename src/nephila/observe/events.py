"""The crawl's own account of itself: every event as a line of JSON in the crawl directory (O1).

Lines are gathered in memory and handed to the operating system in blocks: when enough have come, or when the crawl
calls `flush` (each second). A power cut may cost the last block; nothing of the crawl's state stands on these files.

A full disk must not stop a crawl that could go on otherwise, nor fill its log: it is told once, then the events that
found no room are counted in `lost`. When there is room again, the first line says how many are missing.

Nearly all events come from the loop. A server that goes away is told of by whatever thread has noticed it, in the
middle of a line or a block of the loop's: so there is a lock, which nobody waits at otherwise.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from nephila.model.errors import StorageError
from nephila.model.events import Event, EventKind
from nephila.model.settings import ObserveSettings

from .eventfile import EventFile
from .line import LineEncoder

_BLOCK_BYTES = 64 * 1024
"""Some two hundred lines: one system call for dozens of pages."""


class JsonlEventSink:
    """An `EventSink` that keeps events in numbered files of `directory`."""

    def __init__(
        self,
        directory: Path,
        settings: ObserveSettings,
        started_at: int,
        worker: str,
        tell: Callable[[str], None],
        opening: Callable[[], Event] | None = None,
        *,
        after: int | None = None,
    ) -> None:
        """`started_at` is in UTC milliseconds. `tell` is given one sentence, once, should the disk refuse later.

        `opening` makes the line that stands before the first line of this process in every file. `after`: no file of
        an earlier process is gone on with, nor is a number up to this one used again; None: the last file is.
        StorageError when there cannot be events in that directory at all.
        """
        self.lost = 0
        """Events that found no room."""
        self._directory = directory
        self._tell = tell
        self._encoder = LineEncoder(started_at, worker)
        self._lock = threading.RLock()
        self._buffer = bytearray()
        self._block_bytes = min(_BLOCK_BYTES, settings.event_max_bytes)
        self._waiting = 0
        self._unmentioned = 0
        self._last_at = started_at
        self._closed = False
        self._opening = opening
        try:
            self._file = EventFile(directory, settings.event_max_bytes, self._first_line, after=after)
            if opening is not None:
                # At once: since when a process runs is known even if it dies in its first second.
                self._file.append(b"")
        except OSError as error:
            raise StorageError(
                f"events cannot be written in {directory}: {error.strerror or error}",
                "make room, or check who may write there, and start the same command again: it goes on where it was",
            ) from error

    def emit(self, event: Event) -> None:
        """Take one event, in any thread; a block is written when it is full."""
        with self._lock:
            if self._closed:
                self.lost += 1
                return
            self._encoder.append(event, self._buffer)
            self._waiting += 1
            self._last_at = event.at
            if len(self._buffer) >= self._block_bytes:
                self._write()

    def flush(self) -> None:
        """Hand everything taken so far to the operating system."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        if not self._waiting:
            return
        if self._unmentioned:
            self._buffer[:0] = self._gap_line()
        try:
            self._file.append(self._buffer)
        except OSError as error:
            self._lose(error)
        else:
            self._unmentioned = 0
        # Dropped either way: what a full disk refuses must not pile up in memory.
        self._buffer.clear()
        self._waiting = 0

    def roll(self) -> None:
        """Go on in another file, so that those before it are nobody's. StorageError where the disk refuses."""
        with self._lock:
            self._write()
            try:
                self._file.roll()
            except OSError as error:
                raise StorageError(
                    f"no event file can be begun in {self._directory}: {error.strerror or error}"
                ) from error

    @property
    def writing(self) -> tuple[str, int]:
        """The file that is being written, and how many bytes it has."""
        return self._file.name, self._file.size

    def close(self) -> None:
        """Flush and close; later events are only counted."""
        with self._lock:
            self._write()
            self._closed = True
            try:
                self._file.close()
            except OSError as error:
                self._lose(error)

    def _lose(self, error: OSError) -> None:
        if not self.lost:
            self._tell(
                f"events cannot be written in {self._directory} ({error.strerror or error}); "
                "the crawl goes on, and counts the events that are missing"
            )
        self.lost += self._waiting
        self._unmentioned += self._waiting

    def marks(self) -> list[tuple[str, int]]:
        """Files that have grown since this was last asked, each with its length as the operating system has it."""
        return self._file.marks()

    def _first_line(self) -> bytes:
        line = bytearray()
        if self._opening is not None:
            self._encoder.append(self._opening(), line)
        return bytes(line)

    def _gap_line(self) -> bytearray:
        line = bytearray()
        gap = Event(
            EventKind.WARNING,
            self._last_at,
            reason="events_lost",
            detail="the disk refused them",
            counts=(("lost", self._unmentioned),),
        )
        self._encoder.append(gap, line)
        return line
