"""The log of changes: who changed what, when, what held before and what holds since.

One JSON object a line in `changes.jsonl` of the crawl directory, appended under a lock (a crawl and a separate server
may both write), synced before the change is answered. It is never shortened.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec

from nephila.interfaces.clock import Clock
from nephila.model.errors import StorageError
from nephila.urls import mask_secrets

from .access import Caller
from .given import ChangeGiven

TAIL_BYTES = 1 << 20
"""How far back the last changes are looked for."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ChangeGiven).decode


class Changes:
    """Appends, and reads the last ones back."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def note(self, caller: Caller, what: str, target: str, before: object = None, after: object = None) -> None:
        """Write a change down; durable when it returns."""
        change = ChangeGiven(
            at=self._clock.wall_ms(),
            who=caller.name,
            what=what,
            target=mask_secrets(target),
            before=before,
            after=after,
        )
        try:
            with self._path.open("ab", buffering=0) as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                stream.write(_encode(change) + b"\n")
                os.fsync(stream.fileno())
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror}", "make room") from error

    def last(self, limit: int) -> list[ChangeGiven]:
        """The last changes, the newest first; a line that a full disk has torn is passed over."""
        try:
            with self._path.open("rb") as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - TAIL_BYTES))
                lines = stream.read().splitlines()
        except FileNotFoundError:
            return []
        found: list[ChangeGiven] = []
        for line in reversed(lines):
            if len(found) == limit:
                break
            try:
                found.append(_decode(line))
            except msgspec.MsgspecError:
                continue
        return found
