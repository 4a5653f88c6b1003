"""Pages that say nearly what another one said before (D3)."""

from __future__ import annotations

from typing import Protocol

from nephila.model.likeness import Likeness
from nephila.model.near import NearOriginal, NearSnapshot


class NearIndex(Protocol):
    """Likenesses of pages to the URLs they were first seen under. A lost entry costs a mark, never a wrong one.

    Every original within the index's distance is found, not most of them. Several processes may work on one index; what
    one has flushed the others find.
    """

    def find(self, likeness: Likeness) -> NearOriginal | None:
        """The earliest page that is near enough, or None.

        It may be an earlier version of the page that is asked for, by its URL: then no other page was there before it,
        it is nobody's near-duplicate, and it need not be remembered again. Raises `StorageError`.
        """

    def remember(self, likeness: Likeness, url: str) -> bool:
        """Keep it as an original, visible to `find` at once; False when the very same is known, and nothing changes."""

    def forget(self, likeness: Likeness, url: str) -> None:
        """That page was refused after all: nothing may be found near to it. Harmless where it is not known."""

    def flush(self) -> None:
        """Write what was remembered, for other processes and beyond a kill. May run in a thread.

        Raises `StorageError`; what could not be written stays in memory, and is tried again by the next flush.
        """

    def close(self) -> None:
        """Flush and close."""

    def snapshot(self) -> NearSnapshot:
        """The index in figures."""
