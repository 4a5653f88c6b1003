"""Where the files lie that a takedown rewrites: archives, their indexes, event files, under the receipts of a chain.

A crawl directory has all of them on its own disk. `Premises` is what a takedown asks of whoever has them; the order of
the steps is elsewhere (`carrying_out`).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from nephila.engines.disk import DiskFile
from nephila.interfaces.catalogue import CaptureRow
from nephila.model.errors import StorageError, remedy
from nephila.model.record import SegmentId
from nephila.node.directory import CrawlDirectory
from nephila.observe.eventfile import event_files
from nephila.observe.redaction import masked_line
from nephila.store import Disk, LocalArchive, LocalDisk, Trail
from nephila.store.receipt import check_sealed, replace_sealed
from nephila.store.rewriting import DRAFT_SUFFIX, Mentions, Rewriting, write_draft
from nephila.store.trail import ARCHIVES, EVENTS, FIRST
from nephila.store.trail_check import TrailCheck
from nephila.store.trail_line import Receipt

from .record import Takedown
from .target import Target


class Cause(Protocol):
    """Why files are rewritten: a takedown, or what need not be kept any longer."""

    @property
    def id(self) -> str:
        """What tombstones name."""

    @property
    def at(self) -> int:
        """UTC milliseconds."""

    @property
    def why(self) -> str:
        """What receipts say."""


class ArchiveFiles(Protocol):
    """Archive files of a crawl, to be rewritten. Every call blocks, and may raise `StorageError`."""

    def open(self, segment: SegmentId) -> DiskFile:
        """One of them, to be read."""

    def rewrite(self, works: Sequence[Rewriting], cause: Cause, mentions: Mentions) -> None:
        """Take captures out of files, each under a receipt, whole or not at all."""

    def write_index(self, segment: SegmentId, rows: Iterable[CaptureRow]) -> None:
        """The index of a file anew."""


class Premises(ArchiveFiles, Protocol):
    """Files of a crawl, to be rewritten. Every call but one blocks, and may raise `StorageError`."""

    def finished(self) -> set[SegmentId]:
        """Archive files that nobody writes to any more."""

    def unfinished(self) -> Container[SegmentId]:
        """Those that somebody may still write to."""

    def roll_events(self) -> None:
        """Have this process go on in another event file. On the loop, where events are written; does not block."""

    def mask_events(self, target: Target, takedown: Takedown) -> None:
        """Mask what event files tell of it, but for those that somebody writes to, under receipts."""

    def proof(self) -> tuple[list[tuple[str, Receipt]], str]:
        """All receipts that are in the chain, each with its time, and the head of it; durable."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A file that is ready to take the place of another."""

    file: str
    draft: str
    removed: list[str]
    emptied: int = 0


class LocalPremises:
    """Those of a crawl directory, for whoever holds it."""

    def __init__(
        self,
        directory: CrawlDirectory,
        disk: Disk,
        archive: LocalArchive,
        trail: Trail,
        roll_events: Callable[[], None],
    ) -> None:
        """`roll_events` has this process go on in another event file."""
        self._directory = directory
        self._disk = disk
        self._archive = archive
        self._trail = trail
        self._roll_events = roll_events

    def event_files_in_use(self) -> set[str]:
        """Event files that a process writes to: they cannot be rewritten."""
        return {path.name for path in event_files(self._directory.events) if not _is_nobodys(path)}

    def finished(self) -> set[SegmentId]:
        """As the protocol: those that have their index."""
        return set(self._archive.segments()) - self.unfinished()

    def unfinished(self) -> set[SegmentId]:
        """As the protocol."""
        return set(self._archive.unfinished())

    def open(self, segment: SegmentId) -> DiskFile:
        """As the protocol."""
        return self._disk.open(self._directory.warc / segment)

    def rewrite(self, works: Sequence[Rewriting], cause: Cause, mentions: Mentions) -> None:
        """As the protocol."""
        drafts: list[_Draft] = []
        for work in works:
            draft = write_draft(
                self._disk, self._directory.warc, work, takedown=cause.id, at=cause.at, mentions=mentions
            )
            if draft is not None:
                removed = [one.digest for one in work.removed]
                drafts.append(_Draft(f"{ARCHIVES}/{work.segment}", f"{ARCHIVES}/{draft}", removed, work.emptied))
        self._replace(drafts, self._disk, cause)

    def _replace(self, drafts: Sequence[_Draft], disk: Disk, cause: Cause) -> None:
        if not drafts:
            return
        root = self._directory.root
        check_sealed(self._disk, LocalDisk(), root, {one.file for one in drafts})
        for one in drafts:
            replace_sealed(
                *(self._trail, disk, root, one.file, one.draft),
                removed=one.removed,
                why=cause.why,
                emptied=one.emptied,
            )

    def write_index(self, segment: SegmentId, rows: Iterable[CaptureRow]) -> None:
        """As the protocol."""
        self._archive.write_index(segment, rows)

    def roll_events(self) -> None:
        """As the protocol."""
        self._roll_events()

    def mask_events(self, target: Target, takedown: Takedown) -> None:
        """As the protocol."""
        drafts: list[_Draft] = []
        for path in event_files(self._directory.events):
            if not _is_nobodys(path):
                continue
            name = f"{path.name}{DRAFT_SUFFIX}"
            if (removed := _mask(path, path.with_name(name), target)) is not None:
                drafts.append(_Draft(f"{EVENTS}/{path.name}", f"{EVENTS}/{name}", [removed]))
        self._replace(drafts, LocalDisk(), takedown)

    def proof(self) -> tuple[list[tuple[str, Receipt]], str]:
        """As the protocol."""
        self._trail.seal(now=True)
        found = TrailCheck(self._directory.root, self._disk, LocalDisk()).run(only=("",))
        return found.receipts, found.heads.get(FIRST, "")


def _is_nobodys(path: Path) -> bool:
    """Whether no process writes to an event file: each holds a lock on its own."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _mask(path: Path, draft: Path, target: Target) -> str | None:
    """Write an event file anew with lines masked: the digest of those lines, None where there is none to mask."""
    masked = sha256()
    changed = False
    try:
        with path.open("rb") as source, draft.open("wb") as out:
            for line in source:
                anew = masked_line(line, target.names, target.is_page) if target.may_be_in(line) else line
                if anew != line:
                    masked.update(line)
                    changed = True
                out.write(anew)
            out.flush()
            os.fsync(out.fileno())
        if not changed:
            draft.unlink()
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise StorageError(f"{path.name} could not be rewritten: {error.strerror or error}", remedy(error)) from error
    return masked.hexdigest() if changed else None
