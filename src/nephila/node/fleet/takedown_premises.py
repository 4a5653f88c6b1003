"""The files of a fleet that a takedown rewrites: archives, indexes and event files in the store of objects (K2, W2).

How an object is rewritten is told in `node.takedown.stored`. The receipt is in the chain of takedowns first
(`store.stored_chain`). What lies in the spool of a worker, or may lie there, is left alone: `holding` are the writers
whose files that may be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from nephila.engines.disk import DiskFile
from nephila.interfaces.catalogue import CaptureRow
from nephila.interfaces.objects import RewritingStore
from nephila.model.errors import StorageError, remedy
from nephila.model.record import SegmentId
from nephila.model.settings import Settings
from nephila.node.audit.case import case_of_fleet
from nephila.node.takedown import Takedown, Target
from nephila.node.takedown.premises import Cause
from nephila.node.takedown.stored import StoredFiles
from nephila.observe.redaction import masked_line
from nephila.store import ArchivePlace, writer_of
from nephila.store.rewriting import DRAFT_SUFFIX, Mentions, Rewriting
from nephila.store.rotation import WARC_SUFFIXES, index_name
from nephila.store.stored_chain import StoredChain
from nephila.store.trail import ARCHIVES, EVENTS, raw_lines
from nephila.store.trail_line import Receipt
from nephila.store.trail_place import TrailListing, events_key
from nephila.store.trails_check import WorkerTrail, check_unchanged
from nephila.store.uploading import weight_of


@dataclass(frozen=True, slots=True)
class _OfWriters(Container[SegmentId]):
    """Archive files of some writers, whatever they are called and whenever they arrive."""

    writers: frozenset[int]

    def __contains__(self, segment: object) -> bool:
        return isinstance(segment, str) and writer_of(segment) in self.writers


class FleetPremises:
    """Implements `node.takedown.premises.Premises`, for whoever holds the lock."""

    def __init__(
        self,
        settings: Settings,
        objects: RewritingStore,
        chain: StoredChain,
        scratch: Path,
        check_lock: Callable[[], None],
        *,
        packs: bool = False,
    ) -> None:
        """`check_lock` raises where somebody else may be at it; `scratch` is an empty folder.

        `packs`: what is taken out takes no room (`node.takedown.stored`).
        """
        self._settings = settings
        self._objects = objects
        self._place = ArchivePlace.parse(settings.archive.url)
        self._chain = chain
        self._scratch = scratch
        self._check_lock = check_lock
        self._files = StoredFiles(objects, self._place, scratch, self._announce, packs=packs)
        self.holding: frozenset[int] = frozenset()
        """Writers whose files may lie in a spool, or are not all listed yet."""

    def finished(self) -> set[SegmentId]:
        """As the protocol: those that have their index."""
        names = self._listing().archives
        held = self.unfinished()
        return {
            SegmentId(name)
            for name in names
            if name.endswith(WARC_SUFFIXES) and index_name(name) in names and name not in held
        }

    def unfinished(self) -> Container[SegmentId]:
        """As the protocol."""
        return _OfWriters(self.holding)

    def open(self, segment: SegmentId) -> DiskFile:
        """As the protocol."""
        return self._files.open(segment)

    def rewrite(self, works: Sequence[Rewriting], cause: Cause, mentions: Mentions) -> None:
        """As the protocol."""
        self._check_unchanged({f"{ARCHIVES}/{work.segment}" for work in works})
        self._files.rewrite(works, cause, mentions)

    def write_index(self, segment: SegmentId, rows: Iterable[CaptureRow]) -> None:
        """As the protocol."""
        self._check_lock()
        self._files.write_index(segment, rows)

    def roll_events(self) -> None:
        """As the protocol: workers have done so."""

    def mask_events(self, target: Target, takedown: Takedown) -> None:
        """As the protocol."""
        with case_of_fleet(self._settings, self._objects) as case:
            found = [
                (trail, name)
                for trail in case.trails
                for name in trail.disk.names(trail.root / EVENTS)
                if any(anew != line for line, anew in _masked(trail, name, target))
            ]
            self._check_unchanged({f"{trail.owner}/{EVENTS}/{name}" for trail, name in found}, case.trails)
            for trail, name in found:
                self._mask(trail, name, target, takedown)

    def _mask(self, trail: WorkerTrail, name: str, target: Target, takedown: Takedown) -> None:
        was, removed, size = sha256(), sha256(), 0
        draft = self._scratch / f"{name}{DRAFT_SUFFIX}"
        try:
            with draft.open("wb") as out:
                for line, anew in _masked(trail, name, target):
                    was.update(line)
                    size += len(line)
                    if anew != line:
                        removed.update(line)
                    out.write(anew)
        except OSError as error:
            raise StorageError(f"{draft} could not be written: {error.strerror or error}", remedy(error)) from error
        key = events_key(self._place, trail.owner, name)
        file = f"{trail.owner}/{EVENTS}/{name}"
        weights = (size, was.hexdigest()), weight_of(draft)
        self._files.replace(key, Receipt(file, *weights, [removed.hexdigest()], takedown.why), draft)

    def proof(self) -> tuple[list[tuple[str, Receipt]], str]:
        """As the protocol: nothing is under way any more, which the chain says."""
        self._check_lock()
        self._chain.append(end=True)
        return self._chain.receipts()

    # -- parts

    def _listing(self) -> TrailListing:
        return TrailListing(self._place, asyncio.run(self._objects.keys(self._place.key(""))))

    def _check_unchanged(self, files: Collection[str], trails: Sequence[WorkerTrail] | None = None) -> None:
        if not files:
            return
        if trails is not None:
            check_unchanged(trails, files)
            return
        with case_of_fleet(self._settings, self._objects) as case:
            check_unchanged(case.trails, files)

    def _announce(self, receipt: Receipt) -> None:
        self._check_lock()
        self._chain.append([receipt])


def _masked(trail: WorkerTrail, name: str, target: Target) -> Iterable[tuple[bytes, bytes]]:
    """Every line of an event file, and how it is to be."""
    for _, line in raw_lines(trail.disk, trail.root / EVENTS / name):
        yield line, masked_line(line, target.names, target.is_page) if target.may_be_in(line) else line
