"""The files that are being written: a bounded number of descriptors over any number of open segments.

In layouts other than rolling thousands of segments are open at once, each growing now and then. A segment stays open
(it may grow) while its descriptor comes and goes: the least recently used one that has nothing unsynced gives way.

Where names have folders in them, those are made as they are needed. What was made is synced with the name itself, from
the archive's own directory down: a file is not there after a power loss if its folder is not.

What must stay true: bytes are only ever added after the last whole capture. A write that fails is cut off again; where
even that fails the segment is never written to again, so that a torn capture can only be the last of its file.

Closing may fail as syncing may: the system tells then what became of bytes that were written before. After a sync there
are none, and it says nothing; before it, it is a sync that failed (`UnsyncedError`), after which nothing of the archive
may be called durable any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nephila.engines.disk import Disk, DiskFile
from nephila.model.errors import StorageError
from nephila.model.record import SegmentId

from .layout import SegmentKey

MAX_DESCRIPTORS = 64
"""Enough that rolling needs one and other layouts reopen seldom; small beside the sockets of a crawl."""
_TRIES = 10
"""To make a file in a folder that somebody may be removing, because it was empty."""


@dataclass(slots=True, eq=False)
class Segment:
    """One file that may grow, or one that only waits for its last sync."""

    name: SegmentId
    key: SegmentKey
    opened_at: int
    """On the clock that does not jump."""
    file: DiskFile | None = None
    end: int = 0
    """After the last whole capture."""
    synced: int = 0
    syncing: bool = False
    """A sync is using the descriptor right now."""


class SegmentFiles:
    """Creates, appends to and closes the files of segments. Not safe for threads: its owner holds a lock."""

    def __init__(self, directory: Path, disk: Disk, max_descriptors: int = MAX_DESCRIPTORS) -> None:
        self._directory = directory
        self._disk = disk
        self._max = max_descriptors
        self._held: dict[SegmentId, Segment] = {}
        """Segments with a descriptor, least recently used first."""
        self._unsynced: set[Path] = set()
        """Directories in which names were made since they were last synced."""

    def create(self, segment: Segment) -> bool:
        """Make the file, and its folders; False where the name is taken."""
        path = self._directory / segment.name
        try:
            segment.file = self._made(path)
        except (FileExistsError, IsADirectoryError):
            return False
        except OSError as error:
            raise refused(segment.name, error) from error
        self._unsynced |= directories_of(path, self._directory)
        self._hold(segment)
        return True

    def _made(self, path: Path) -> DiskFile:
        if path.parent == self._directory:
            return self._disk.create(path)
        for _ in range(_TRIES - 1):
            self._disk.make_folder(path.parent, self._directory)
            try:
                return self._disk.create(path)
            except FileNotFoundError:
                continue
        self._disk.make_folder(path.parent, self._directory)
        return self._disk.create(path)

    def take_unsynced_names(self) -> list[Path]:
        """Directories whose names are to be synced, those above first; whoever takes them syncs them."""
        taken, self._unsynced = self._unsynced, set()
        return sorted(taken)

    def give_back_names(self, directories: Iterable[Path]) -> None:
        """They were taken, and could not be synced."""
        self._unsynced.update(directories)

    def append(self, segment: Segment, data: bytes) -> None:
        """Add a capture, all or nothing. Raises `StorageError`."""
        file = segment.file
        if file is None or len(self._held) > 1:  # where there is one, it is the one that was used last
            file = self.opened(segment)
        try:
            file.append(data)
        except OSError as error:
            self._undo(segment, file)
            raise refused(segment.name, error) from error
        segment.end += len(data)

    def opened(self, segment: Segment) -> DiskFile:
        """The segment's descriptor, opened again where it had given way."""
        file = segment.file
        if file is None:
            try:
                file = segment.file = self._disk.open(self._directory / segment.name)
            except OSError as error:
                raise refused(segment.name, error) from error
        self._hold(segment)
        return file

    def release(self, segment: Segment) -> None:
        """Close the descriptor. Raises `UnsyncedError` where that fails and something was not synced."""
        self._close(segment, durable=segment.synced == segment.end)

    def _close(self, segment: Segment, *, durable: bool) -> None:
        self._held.pop(segment.name, None)
        file, segment.file = segment.file, None
        if file is None:
            return
        try:
            file.close()
        except OSError as error:
            if not durable:
                raise unsynced(segment.name, error) from error

    def _undo(self, segment: Segment, file: DiskFile) -> None:
        try:
            file.truncate(segment.end)
        except OSError as error:
            raise TornSegmentError(
                f"{segment.name} could not be written, nor cut back to its last whole capture: {_reason(error)}.",
                hint="Check the disk; starting the crawl again repairs the file.",
            ) from error

    def _hold(self, segment: Segment) -> None:
        self._held.pop(segment.name, None)
        self._held[segment.name] = segment
        if len(self._held) <= self._max:
            return
        for held in list(self._held.values())[:-1]:
            if held.synced == held.end and not held.syncing:
                self.release(held)
                if len(self._held) <= self._max:
                    return
        oldest = next((held for held in self._held.values() if not held.syncing and held is not segment), None)
        if oldest is not None and oldest.file is not None:
            try:
                oldest.file.sync()
            except OSError as error:
                raise unsynced(oldest.name, error) from error
            self._close(oldest, durable=True)


def directories_of(path: Path, root: Path) -> set[Path]:
    """`root` and the folders on the way from there to a file: a name is as durable as the names above it."""
    return {root, *(parent for parent in path.parents if root in parent.parents)}


class TornSegmentError(StorageError):
    """A write failed and could not be undone: the segment must not grow any more."""


class UnsyncedError(StorageError):
    """The disk failed to make bytes durable that were written: nobody can tell any more which of them it has."""


def unsynced(name: str, error: OSError) -> UnsyncedError:
    """A sync that failed, or a closing in its place."""
    told = refused(name, error)
    return UnsyncedError(str(told), hint=told.hint)


def refused(name: str, error: OSError) -> StorageError:
    """The disk's refusal, told in one sentence."""
    return StorageError(
        f"The archive file {name} could not be written: {_reason(error)}.",
        hint="Make room (or repair the disk) and start the same command again: it goes on where it was.",
    )


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
