"""The archive files of a crawl directory that lie in a store of objects, rewritten under receipts in its own chain.

Nothing waits in the spool by then, and nobody else writes: whoever retains holds the directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from nephila.engines.disk import DiskFile
from nephila.interfaces.catalogue import CaptureRow
from nephila.interfaces.objects import RewritingStore
from nephila.model.record import SegmentId
from nephila.node.audit.case import case_of_directory
from nephila.node.takedown.premises import Cause
from nephila.node.takedown.stored import StoredFiles
from nephila.store import ArchivePlace, Trail
from nephila.store.receipt import check_sealed
from nephila.store.rewriting import Mentions, Rewriting
from nephila.store.trail import ARCHIVES


class StoredPremises:
    """Implements `node.takedown.premises.ArchiveFiles`, for whoever holds the directory."""

    def __init__(self, root: Path, objects: RewritingStore, place: ArchivePlace, trail: Trail, scratch: Path) -> None:
        """`scratch` is an empty folder."""
        self._root = root
        self._objects = objects
        self._files = StoredFiles(objects, place, scratch, trail.receipt, packs=True)

    def open(self, segment: SegmentId) -> DiskFile:
        """As the protocol."""
        return self._files.open(segment)

    def rewrite(self, works: Sequence[Rewriting], cause: Cause, mentions: Mentions) -> None:
        """As the protocol."""
        with case_of_directory(self._root, objects=self._objects) as case:
            check_sealed(case.disk, case.event_disk, self._root, {f"{ARCHIVES}/{work.segment}" for work in works})
        self._files.rewrite(works, cause, mentions)

    def write_index(self, segment: SegmentId, rows: Iterable[CaptureRow]) -> None:
        """As the protocol."""
        self._files.write_index(segment, rows)
