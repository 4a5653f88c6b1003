"""An object of a store, read as a file is: in stretches, a few of them asked for at once."""

from __future__ import annotations

import errno
import os

from nephila.interfaces.objects import ObjectStore

AHEAD_BYTES = 8 << 20
"""Asked for at a time. A request costs as much as some megabytes do; a reader goes forwards."""


class RemoteFile:
    """Implements `store.disk.DiskFile` for reading. What is asked of it beyond that is refused."""

    def __init__(self, objects: ObjectStore, key: str, size: int | None = None) -> None:
        """`size`, where it is known."""
        self._objects = objects
        self._key = key
        self._size = size
        self._start = 0
        self._data = b""

    def read_at(self, offset: int, size: int) -> bytes:
        """As the protocol."""
        index = offset - self._start
        if index < 0 or index + size > len(self._data):
            self._data = self._objects.read(self._key, offset, max(size, AHEAD_BYTES))
            self._start, index = offset, 0
        return self._data[index : index + size]

    def size(self) -> int:
        """Not known without asking, where it was not told: readers go to the end."""
        if self._size is None:
            raise self._refused()
        return self._size

    def append(self, data: bytes) -> None:
        """Objects do not grow."""
        del data
        raise self._refused()

    def append_zeros(self, count: int) -> None:
        """Objects do not grow."""
        del count
        raise self._refused()

    def truncate(self, size: int) -> None:
        """Objects are not cut."""
        del size
        raise self._refused()

    def rewrite(self, offset: int, size: int) -> None:
        """Objects are not written again; there is no need to, either."""
        del offset, size
        raise self._refused()

    def sync(self) -> None:
        """An object is durable."""

    def close(self) -> None:
        """Nothing is held."""
        self._data = b""

    def _refused(self) -> OSError:
        return OSError(errno.EROFS, os.strerror(errno.EROFS), self._key)
