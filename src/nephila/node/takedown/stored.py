"""Archive files in a store of objects, rewritten: by takedowns of a fleet (K2), and by retention (W5).

An object is brought here, rewritten, and takes the place of the one it was made of, under the condition that nobody has
changed that meanwhile. Its receipt is in a chain first; whose chain that is, is the affair of whoever calls.

Retention frees room so: what it takes out is packed (`store.holes`). Receipts speak of the file that the object stands
for, which an audit reads. A takedown packs nothing, so that whoever reads the bucket by offsets finds all else where it
was; in an object that has holes they stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from nephila.engines.disk import DiskFile
from nephila.interfaces.catalogue import CaptureRow
from nephila.interfaces.objects import ObjectBody, ObjectInfo, RewritingStore
from nephila.model.errors import StorageError
from nephila.model.record import SegmentId
from nephila.store import ArchivePlace, LocalDisk
from nephila.store.cdxj import write_index
from nephila.store.holes import HoledFile, write_holed
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

    def __init__(
        self, objects: RewritingStore, place: ArchivePlace, scratch: Path, announce: Announce, *, packs: bool = False
    ) -> None:
        """`scratch` is an empty folder; `packs`: what is taken out takes no room."""
        self._packs = packs
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
            info = asyncio.run(_look(self._objects, key))
            holes = self._bring(key, copy)
            was = weight_of(copy)
            draft = write_draft(LocalDisk(), self._scratch, work, takedown=cause.id, at=cause.at, mentions=mentions)
            copy.unlink()
            if draft is None:
                continue
            made = self._scratch / draft
            receipt = Receipt(
                *(f"{ARCHIVES}/{work.segment}", was, weight_of(made)),
                [one.digest for one in work.removed],
                cause.why,
                work.emptied,
            )
            packed = {*holes, *(work.gone if self._packs else ())}
            told_at = self._pack(made, work.segment, packed, cause.at) if packed else 0
            self.replace(key, receipt, made, info.digest if info is not None else "", told_at)

    def _pack(self, draft: Path, segment: SegmentId, offsets: Collection[int], at: int) -> int:
        """Pack what was taken out at those offsets of a file, in its place; where its holes are told."""
        disk, whole = LocalDisk(), draft.with_name(f"{draft.name}.whole")
        try:
            disk.rename(draft, whole)
            with closing(disk.open(whole)) as source, closing(disk.create(draft)) as out:
                told_at = write_holed(source, out, segment, offsets, at)
            disk.remove(whole)
        except OSError as error:
            raise StorageError(f"{draft} could not be written: {error.strerror or error}", "make room") from error
        return told_at

    def replace(self, key: str, receipt: Receipt, draft: Path, was: str = "", holes: int = 0) -> None:
        """Put a file in the place of an object: first the receipt, then the object.

        `was` is the digest of that object, where it is not the file that the receipt speaks of.
        """
        self._announce(receipt)
        asyncio.run(self._objects.replace(key, was or receipt.was[1], body_of(draft, holes)))
        draft.unlink()

    def write_index(self, segment: SegmentId, rows: Iterable[CaptureRow]) -> None:
        """The index of a file anew. It is made of what the catalogue knows, and no chain seals it."""
        made = self._scratch / index_name(segment)
        made.parent.mkdir(parents=True, exist_ok=True)
        with closing(self.open(segment)) as file:
            place = file.place if isinstance(file, HoledFile) else None
        write_index(_Scratch(self._objects, self._place, self._scratch), self._scratch, segment, rows, place)
        asyncio.run(self._put_index(self._place.key(index_name(segment)), body_of(made)))
        made.unlink()

    async def _put_index(self, key: str, body: ObjectBody) -> None:
        found = await self._objects.look(key)
        if found is None:
            await self._objects.create(key, body)
        elif found.digest != body.digest:
            await self._objects.replace(key, found.digest, body)

    def _bring(self, key: str, path: Path) -> list[int]:
        """Copy the file that an object stands for here; where what was packed begins in it."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with closing(opened(self._objects, key)) as file, path.open("wb") as out:
                size = 0
                while piece := file.read_at(size, PIECE_BYTES):
                    out.write(piece)
                    size += len(piece)
                return file.tombstones if isinstance(file, HoledFile) else []
        except OSError as error:
            raise StorageError(f"{key} could not be read: {error.strerror or error}") from error


async def _look(objects: RewritingStore, key: str) -> ObjectInfo | None:
    return await objects.look(key)
