"""Reading event files back: for `why`, reports and tests. Works beside a running crawl.

Tolerant, because these files survive kill -9 and full disks: a line that is torn, or that another version wrote, is
passed over. A large crawl has millions of lines, so a reader after one URL looks for its fingerprint in the bytes and
decodes only the lines that hold it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nephila.model.events import Event

from .eventfile import event_files
from .line import decode_line


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event as it was kept. Its URLs are masked; `event.fingerprint` names the exact one."""

    event: Event
    worker: str
    t_ms_from_start: int
    """Since the run that it belongs to began."""


def read_events(directory: Path, fingerprint: bytes = b"") -> Iterator[LoggedEvent]:
    """All events of a directory in file order, oldest file first; with `fingerprint`, those of that URL only."""
    wanted = fingerprint.hex().encode()
    for path in event_files(directory):
        with path.open("rb") as stream:
            for line in stream:
                if wanted in line and (found := decode_line(line)) is not None and _is_of(found[0], fingerprint):
                    yield LoggedEvent(*found)


def _is_of(event: Event, fingerprint: bytes) -> bool:
    return not fingerprint or event.fingerprint == fingerprint
