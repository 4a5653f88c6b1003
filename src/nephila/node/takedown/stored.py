"""Archive files in a store of objects, rewritten: by takedowns of a fleet (K2), and by retention (W5).

An object is brought here, rewritten, and takes the place of the one it was made of, under the condition that nobody has
changed that meanwhile. Its receipt is in a chain first; whose chain that is, is the affair of whoever calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from nephila.engines.disk import DiskFile
from nephila.interfaces.catalogue import CaptureRow
from nephila.interfaces.objects import ObjectBody, RewritingStore
from nephila.model.errors import StorageError
from nephila.model.record import SegmentId
from nephila.store import ArchivePlace, LocalDisk
from nephila.store.cdxj import write_index
from nephila.store.remote_disk import opened
from nephila.store.rewriting import Mentions, Rewriting, write_draft
from nephila.store.rotation import WARC_SUFFIXES, index_name
from nephila.store.trail import ARCHIVES
from nephila.store.trail_line import Receipt
from nephila.store.uploading import body_of, weight_of

from .premises import Cause

PIECE_BYTES = 8 << 20

Announce = Callable[[Receipt], None]
"""Puts a receipt into the chain; durable when it returns."""


class _Scratch(LocalDisk):
    """A folder in which files are made; archive files that are not there are read from the store."""

    def __init__(self, objects: RewritingStore, place: ArchivePlace, folder: Path) -> None:
        self._objects = objects
        self._place = place
        self._folder = folder

    def open(self, path: Path) -> DiskFile:
        if path.name.endswith(WARC_SUFFIXES) and not path.exists():
            return opened(self._objects, self._place.key(path.relative_to(self._folder).as_posix()))
        return super().open(path)


class StoredFiles:
    """Those of one place. Every call blocks; not for a loop that runs."""

    def __init__(self, objects: RewritingStore, place: ArchivePlace, scratch: Path, announce: Announce) -> None:
        """`scratch` is an empty folder."""
        self._objects = objects
        self._place = place
        self._scratch = scratch
        self._announce = announce

    def open(self, segment: SegmentId) -> DiskFile:
        """An archive file, to be read. Raises FileNotFoundError."""
        return opened(self._objects, self._place.key(segment))

    def rewrite(self, works: Sequence[Rewriting], cause: Cause, mentions: Mentions) -> None:
        """Take captures out of files, each under a receipt, whole or not at all. They were looked at before."""
        for work in works:
            key, copy = self._place.key(work.segment), self._scratch / work.segment
            was = self._bring(key, copy)
            draft = write_draft(LocalDisk(), self._scratch, work, takedown=cause.id, at=cause.at, mentions=mentions)
            copy.unlink()
            if draft is not None:
                receipt = Receipt(
                    *(f"{ARCHIVES}/{work.segment}", was, weight_of(self._scratch / draft)),
                    [one.digest for one in work.removed],
                    cause.why,
                    work.emptied,
                )
                self.replace(key, receipt, self._scratch / draft)

    def replace(self, key: str, receipt: Receipt, draft: Path) -> None:
        """Put a file in the place of an object: first the receipt, then the object."""
        self._announce(receipt)
        asyncio.run(self._objects.replace(key, receipt.was[1], body_of(draft)))
        draft.unlink()

    def write_index(self, segment: SegmentId, rows: Iterable[CaptureRow]) -> None:
        """The index of a file anew. It is made of what the catalogue knows, and no chain seals it."""
        made = self._scratch / index_name(segment)
        made.parent.mkdir(parents=True, exist_ok=True)
        write_index(_Scratch(self._objects, self._place, self._scratch), self._scratch, segment, rows)
        asyncio.run(self._put_index(self._place.key(index_name(segment)), body_of(made)))
        made.unlink()

    async def _put_index(self, key: str, body: ObjectBody) -> None:
        found = await self._objects.look(key)
        if found is None:
            await self._objects.create(key, body)
        elif found.digest != body.digest:
            await self._objects.replace(key, found.digest, body)

    def _bring(self, key: str, path: Path) -> tuple[int, str]:
        """Copy an object here: its length and digest."""
        digest, size = sha256(), 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as out:
                while piece := self._objects.read(key, size, PIECE_BYTES):
                    digest.update(piece)
                    out.write(piece)
                    size += len(piece)
        except OSError as error:
            raise StorageError(f"{key} could not be read: {error.strerror or error}") from error
        return size, digest.hexdigest()
