"""The log of changes: who changes what, over HTTP or by a command, when, what held before and what holds since.

JSON lines in `changes.jsonl` of the crawl directory, appended under a lock (a crawl and a separate server may both
write). A change has two: one before it takes effect, synced, which says what is to be done, and one after it, which
says what came of it and points back to the first by its place in the file. So nothing takes effect that is not on
record; a first line without a second is a change that was cut off, or may have been. The log is never shortened.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from nephila.interfaces.clock import Clock
from nephila.model.errors import StorageError, remedy
from nephila.urls import mask_secrets

from .given import ChangeGiven

STEP_BYTES = 1 << 20
"""So much is read at once, from the end on."""
MOST_STEPS = 64
"""How far back the last changes are looked for: a takedown of a thousand long URLs has two lines of a megabyte each."""


class ChangeLine(msgspec.Struct, omit_defaults=True):
    """One line. What was written before there were two for a change says nothing of `state`, and was done."""

    at: int
    who: str
    what: str
    target: str
    before: Any = None
    after: Any = None
    state: Literal["begun", "done", "failed"] = "done"
    of: int | None = None
    """Where the line stands that said it would be done."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ChangeLine).decode


class Changes:
    """Appends, and reads the last ones back."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def begin(self, who: str, what: str, target: str, before: object, wanted: object) -> tuple[int, ChangeLine]:
        """Say what is about to be done, durable when it returns; where the line stands, and the line."""
        line = ChangeLine(self._clock.wall_ms(), who, what, mask_secrets(target), before, wanted, state="begun")
        return self._append(line), line

    def end(self, begun: tuple[int, ChangeLine], after: object, *, failed: bool = False) -> None:
        """Say what came of it."""
        place, line = begun
        state: Literal["done", "failed"] = "failed" if failed else "done"
        self._append(  # not waited for: what it tells of is durable, and so is that it was to be done
            ChangeLine(self._clock.wall_ms(), line.who, line.what, line.target, None, after, state=state, of=place),
            sync=False,
        )

    def last(self, limit: int) -> list[ChangeGiven]:
        """The last changes, the newest first; a line that a full disk has torn is passed over."""
        ends: dict[int, ChangeLine] = {}
        found: list[ChangeGiven] = []
        for place, line in self._backwards():
            if len(found) == limit:
                break
            if line.of is not None:
                ends[line.of] = line
                continue
            end = ends.pop(place, None)
            found.append(
                ChangeGiven(
                    at=line.at,
                    who=line.who,
                    what=line.what,
                    target=line.target,
                    before=line.before,
                    after=line.after if end is None else end.after,
                    state=line.state if end is None else end.state,
                )
            )
        return found

    def _append(self, line: ChangeLine, *, sync: bool = True) -> int:
        try:
            with self._path.open("ab", buffering=0) as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                place = stream.seek(0, os.SEEK_END)
                stream.write(_encode(line) + b"\n")
                if sync:
                    os.fsync(stream.fileno())
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror}", remedy(error)) from error
        return place

    def _backwards(self) -> Iterator[tuple[int, ChangeLine]]:
        """The lines at the end of the file, the last first, with where each stands."""
        try:
            stream = self._path.open("rb")
        except FileNotFoundError:
            return
        with stream:
            begin, torn = stream.seek(0, os.SEEK_END), b""
            for _ in range(MOST_STEPS):
                end, begin = begin, stream.seek(max(0, begin - STEP_BYTES))
                read = stream.read(end - begin) + torn
                place = begin + len(read)
                torn, *whole = read.splitlines(keepends=True) or [b""]
                for line in reversed(whole):
                    place -= len(line)
                    yield from _read(place, line)
                if not begin:
                    yield from _read(0, torn)
                    return


def _read(place: int, line: bytes) -> Iterator[tuple[int, ChangeLine]]:
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        yield place, _decode(line)
