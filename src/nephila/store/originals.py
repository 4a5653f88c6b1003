"""Where the bytes of copies lie: found once for a whole export, whatever the size of the crawl.

A revisit has no payload of its own; the record that has the same one is known by the digest of it. There is no index
by that, and none is worth its room for the sake of exports. So whoever exports says first which digests are wanted,
then shows every record, and asks afterwards. What is wanted is laid down in a small database of its own in a scratch
folder: memory stays bounded, and nothing of the crawl is touched.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from nephila.interfaces.catalogue import CaptureRow
from nephila.model.errors import StorageError
from nephila.model.record import Original, SegmentId

CACHE_KB = 8192


class Place(NamedTuple):
    """Where a capture lies that has its payload."""

    segment: SegmentId
    offset: int


class Originals:
    """Digests that are wanted, and where their bytes are. A context manager; `folder` is the caller's to remove."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "originals.sqlite"

    def __enter__(self) -> Self:
        with _told():
            self._connection = sqlite3.connect(self._path)
            try:
                self._connection.executescript(
                    f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{CACHE_KB};"
                    "CREATE TABLE wanted (digest TEXT PRIMARY KEY, segment TEXT, offset INTEGER,"
                    " url TEXT, record_id TEXT, at INTEGER, coding TEXT) WITHOUT ROWID"
                )
            except sqlite3.Error:
                self._connection.close()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the file."""
        self._connection.close()

    def want(self, rows: Iterable[CaptureRow]) -> None:
        """These are copies whose bytes will be asked for."""
        with _told(), self._connection:
            self._connection.executemany(
                "INSERT OR IGNORE INTO wanted (digest) VALUES (?)", ((row.payload_digest,) for row in rows)
            )

    @property
    def is_empty(self) -> bool:
        """Whether nothing is wanted."""
        with _told():
            return self._connection.execute("SELECT 1 FROM wanted LIMIT 1").fetchone() is None

    def offer(self, rows: Iterable[CaptureRow]) -> None:
        """These have their bytes; the first to come is taken."""
        with _told(), self._connection:
            self._connection.executemany(
                "UPDATE wanted SET segment = ?, offset = ? WHERE digest = ? AND segment IS NULL",
                ((row.segment, row.offset, row.payload_digest) for row in rows),
            )

    def find(self, digest: str) -> Place | None:
        """Where the bytes of a copy are; None where nobody has them any more."""
        with _told():
            query = "SELECT segment, offset FROM wanted WHERE digest = ? AND segment IS NOT NULL"
            found = self._connection.execute(query, (digest,)).fetchone()
        return None if found is None else Place(SegmentId(found[0]), int(found[1]))

    def note(self, written: Original) -> None:
        """A record with this payload was written somewhere: copies may refer to it. The first to come is kept."""
        with _told(), self._connection:
            self._connection.execute(
                "UPDATE wanted SET url = ?, record_id = ?, at = ?, coding = ? WHERE digest = ? AND url IS NULL",
                (written.url, written.record_id, written.at, written.coding, written.payload_digest),
            )

    def noted(self, digest: str) -> Original | None:
        """The record that copies may refer to."""
        with _told():
            query = "SELECT url, record_id, at, coding FROM wanted WHERE digest = ? AND url IS NOT NULL"
            found = self._connection.execute(query, (digest,)).fetchone()
        return None if found is None else Original(found[0], found[1], int(found[2]), digest, found[3])


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(
            f"what is needed meanwhile cannot be kept: {error}", "make room where TMPDIR points to, or set it"
        ) from error
