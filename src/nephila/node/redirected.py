"""Where redirects lead, read from the archive: the catalogue has their status, the answer itself has the target."""

from __future__ import annotations

import os
from pathlib import Path

from nephila.engines.disk import LocalFile
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.exchange import REDIRECTS
from nephila.store.readback import parse_head
from nephila.store.reader import DamagedArchiveError, WarcReader
from nephila.urls import resolve_location


class RedirectTargets:
    """Of captures whose archive lies in folders of this machine; of others nothing is known."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders

    def of(self, row: CaptureRow) -> str:
        """The URL that a capture redirects to; empty where it does not, or its record cannot be read here."""
        if row.status not in REDIRECTS:
            return ""
        for folder in self._folders:
            location = _location(folder / row.segment, row.offset)
            if location:
                return resolve_location(row.url, location) or ""
        return ""


def _location(path: Path, offset: int) -> str:
    try:
        file = LocalFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:  # in a store of objects, or on another machine
        return ""
    try:
        answer = next(WarcReader(file, path.name, offset).at(offset), None)
    except (OSError, DamagedArchiveError):  # it is told elsewhere: `audit`
        return ""
    finally:
        file.close()
    _, headers = parse_head(answer.block.partition(b"\r\n\r\n")[0] if answer is not None else b"")
    return next((value for name, value in headers if name == "location"), "")
