"""A store of objects: S3, or whatever speaks like it. Where archives go that shall not lie in the crawl directory (W2).

An object is written once, whole, under a key of its own, and never changed: that is all an archive needs, and it is
what makes an upload whose answer was lost harmless. Doing it again finds the same object there, and the digest that was
sent with it tells that it is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from nephila.model.noun import noun

ReadAt = Callable[[int, int], bytes]
"""Offset and size to bytes; fewer only at the end."""


@noun
class ObjectBody:
    """What is to be stored. It may be read several times, in pieces, from any thread."""

    size: int
    digest: str
    """SHA-256 of the whole in hexadecimal: checked by the store on arrival where it can, and kept with the object."""
    read_at: ReadAt
    holes: int = 0
    """Where in it is told what it lacks (`store.holes`), kept with the object; 0 where it lacks nothing."""


@noun
class ObjectInfo:
    """What the store says of an object."""

    size: int
    digest: str
    """As it was sent; empty where the object came from somebody else."""
    holes: int = 0
    """As it was sent."""


class ObjectStore(Protocol):
    """Objects under keys, in one bucket.

    Promises: an object is there whole or not at all; what `create` returned for is durable; nothing is overwritten.
    Every call may raise `StoreAwayError` (no answer, or not now: it may have been done all the same) and
    `StoreRefusedError` (it will not be done until somebody changes something).
    """

    async def create(self, key: str, body: ObjectBody) -> None:
        """Store a new object; raises `ObjectExistsError` where there is one under this key, and leaves that alone."""

    async def look(self, key: str) -> ObjectInfo | None:
        """What is known of an object; None where there is none."""

    def read(self, key: str, start: int, size: int) -> bytes:
        """A stretch of an object, fewer bytes at its end. Blocks; for readers and recovery. No object: OSError."""

    async def keys(self, prefix: str) -> list[str]:
        """All keys that begin so, in order."""

    async def abort_unfinished(self, prefix: str) -> int:
        """Give up uploads in parts that were begun under this prefix and never completed; how many."""

    async def close(self) -> None:
        """Break off what is under way and let go of connections."""


class RewritingStore(ObjectStore, Protocol):
    """A store for whoever may take something out of it (K2), or publishes (R3): crawls and workers never do."""

    async def replace(self, key: str, was: str, body: ObjectBody) -> None:
        """Put an object in the place of one with the digest `was`, whole or not at all; it may be done twice.

        Raises `ObjectChangedError` where there is none, or one that is neither that nor this; it is left alone then.
        """
