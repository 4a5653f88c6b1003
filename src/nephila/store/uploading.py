"""A disk whose files are made in a folder here, and go to a store of objects when they get their names.

For whoever writes whole files under another name, and renames them: what was written so to a directory can be written
so to a store, by the same code. A name that is given once is never given to something else.
"""

from __future__ import annotations

import asyncio
import errno
import os
from hashlib import sha256
from pathlib import Path

from nephila.engines.disk import DiskFile, LocalDisk
from nephila.interfaces.objects import ObjectBody, ObjectStore
from nephila.model.errors import ObjectExistsError

from .place import ArchivePlace
from .remote_disk import opened


def weight_of(path: Path) -> tuple[int, str]:
    """Length and SHA-256 of a file."""
    digest = sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return path.stat().st_size, digest.hexdigest()


def body_of(path: Path, holes: int = 0) -> ObjectBody:
    """A file as an object; `holes` says where in it is told what it lacks."""

    def read_at(offset: int, size: int) -> bytes:
        with path.open("rb") as stream:
            stream.seek(offset)
            return stream.read(size)

    return ObjectBody(*weight_of(path), read_at, holes)


class UploadingDisk(LocalDisk):
    """Implements `engines.disk.Disk` below one folder. Blocks; not for a loop that runs."""

    def __init__(self, objects: ObjectStore, place: ArchivePlace, folder: Path) -> None:
        """`folder` stands for the place, and is empty."""
        self._objects = objects
        self._place = place
        self._folder = folder

    def open(self, path: Path) -> DiskFile:
        """As the protocol: what is not here is in the store."""
        return super().open(path) if path.exists() else opened(self._objects, self._key(path))

    def rename(self, source: Path, target: Path) -> None:
        """As the protocol, but that it replaces nothing: the object is durable when it returns."""
        body, key = body_of(source), self._key(target)
        try:
            asyncio.run(self._objects.create(key, body))
        except ObjectExistsError as error:
            found = asyncio.run(_digest(self._objects, key))
            if found != body.digest:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), key) from error
        source.unlink()

    def _key(self, path: Path) -> str:
        return self._place.key(path.relative_to(self._folder).as_posix())


async def _digest(objects: ObjectStore, key: str) -> str:
    found = await objects.look(key)
    return "" if found is None else found.digest
