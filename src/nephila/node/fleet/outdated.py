"""What a worker knows of contents, thrown away where a retention has taken some of them out of the archive (W5).

A revisit record must never point at nothing. A retention goes on where nobody works, and raises a number in the
database before it looks whether that is so; a worker that starts is on the register before it reads the number. So
either the retention sees the worker, and ends, or the worker sees the number.
"""

from __future__ import annotations

import shutil

from nephila.interfaces.catalogue import Catalogue
from nephila.model.errors import CrawlDirectoryError, remedy
from nephila.store.postgres import PostgresCatalogue
from nephila.store.publishing import PublishingCatalogue

from .identity import WorkerDirectory

NOTE = "retentions"


def forget_outdated(directory: WorkerDirectory, catalogue: Catalogue) -> None:
    """Throw it away, where a retention was begun since this worker last looked; it is on the register. Blocks."""
    if isinstance(catalogue, PublishingCatalogue):
        catalogue = catalogue.itself
    if not isinstance(catalogue, PostgresCatalogue):
        return
    number, note = str(catalogue.retentions()), directory.root / NOTE
    try:
        known = note.read_text(encoding="utf-8") if note.exists() else "0"
        if known == number:
            return
        if directory.duplicates.exists():
            shutil.rmtree(directory.duplicates)
        draft = note.with_suffix(".new")
        draft.write_text(number, encoding="utf-8")
        draft.replace(note)
    except OSError as error:
        raise CrawlDirectoryError(f"{note} cannot be written: {error.strerror or error}", remedy(error)) from error
