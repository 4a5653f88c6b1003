"""The store of objects as a fleet uses it: no segment is uploaded that the others have given up (W2, N3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nephila.interfaces.objects import ObjectBody, ObjectInfo, ObjectStore
from nephila.model.errors import EngineAwayError, StorageError, StoreAwayError
from nephila.model.record import SegmentId
from nephila.store import ArchivePlace, writer_of
from nephila.store.rotation import WARC_SUFFIXES


class GatedObjects:
    """An `ObjectStore` over another one. `may_upload` is asked for every segment, by the number of its writer."""

    def __init__(self, inner: ObjectStore, place: ArchivePlace, may_upload: Callable[[int], Awaitable[bool]]) -> None:
        """`place` is where the segments go."""
        self._inner = inner
        self._prefix = place.key("")
        self._may_upload = may_upload

    async def create(self, key: str, body: ObjectBody) -> None:
        """As the interface. That nobody can be asked is as if the store were away: it is waited for."""
        name = key.removeprefix(self._prefix)
        if name.endswith(WARC_SUFFIXES):
            try:
                allowed = await self._may_upload(writer_of(SegmentId(name)))
            except EngineAwayError as error:
                raise StoreAwayError(f"whether {name} still counts is not known: {error}", error.hint) from error
            if not allowed:
                raise StorageError(
                    f"this worker was taken for lost, and what {name} holds is fetched again by others",
                    "start it again: it sets such files aside and goes on",
                )
        await self._inner.create(key, body)

    async def look(self, key: str) -> ObjectInfo | None:
        """As the interface."""
        return await self._inner.look(key)

    def read(self, key: str, start: int, size: int) -> bytes:
        """As the interface."""
        return self._inner.read(key, start, size)

    async def keys(self, prefix: str) -> list[str]:
        """As the interface."""
        return await self._inner.keys(prefix)

    async def abort_unfinished(self, prefix: str) -> int:
        """Nothing: an upload in parts that is under way may be another worker's. A rule of the bucket ends old ones."""
        del prefix
        return 0

    async def close(self) -> None:
        """As the interface."""
        await self._inner.close()
