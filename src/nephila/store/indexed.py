"""What downstream has indexed (W5): marks on captures, in a small database beside the catalogue.

Not in the catalogue, because that can be built anew from the archive, and these cannot. Whoever reads the messages of a
crawl (`docs/streams.md`) hands back their ids, or the storage keys in them. Adding is one transaction; a mark that is
there already changes nothing. It may be done while a crawl runs: the crawl has nothing to do with this file.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from nephila.model.errors import StorageError, UsageError
from nephila.model.record import SegmentId

_SCHEMA = """
CREATE TABLE IF NOT EXISTS indexed (segment TEXT NOT NULL, "offset" INTEGER NOT NULL, PRIMARY KEY (segment, "offset"))
STRICT, WITHOUT ROWID
"""
_KEY = re.compile(r"(?P<segment>[^#\s]+\.warc\.(?:gz|zst))#(?P<offset>[0-9]{1,15})")
_BUSY_S = 30.0
_SHOWN = 80


class _Message(msgspec.Struct):
    """As much of a message as is needed."""

    id: str


_decode = msgspec.json.Decoder(_Message).decode


def capture_named(line: str, identity: str) -> tuple[SegmentId, int]:
    """The capture that a line names: the id of a message, a storage key, or a whole message.

    `identity` is the crawl's, with which its ids begin. Raises ValueError with what is wrong.
    """
    text = line.strip()
    if text.startswith("{"):
        try:
            text = _decode(text.encode()).id
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise ValueError("it is no message of a stream") from error
    owner, slash, key = text.partition("/")
    if slash and re.fullmatch(r"[0-9a-f]{32}", owner):
        if owner != identity:
            raise ValueError("it is of another crawl")
        text = key
    found = _KEY.fullmatch(text)
    if found is None:
        raise ValueError("it names no capture")
    return SegmentId(found["segment"]), int(found["offset"])


def captures_named(lines: Iterable[str], identity: str) -> Iterator[tuple[SegmentId, int]]:
    """Those of all lines that are not empty; raises `UsageError` with the number of the first that is wrong."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield capture_named(line, identity)
        except ValueError as error:
            shown = line.strip()[:_SHOWN]
            raise UsageError(
                f"line {number} cannot be used, and nothing was marked: {error}: {shown!r}",
                "give ids of messages, storage keys, or whole messages, one a line",
            ) from error


class IndexedMarks:
    """The marks of a crawl directory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, captures: Iterable[tuple[SegmentId, int]]) -> tuple[int, int]:
        """Mark these, all or none of them: how many were new, and how many there are. Raises `StorageError`."""
        with self._told(), closing(self._connect()) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_SCHEMA)
            before = _count(connection)
            connection.executemany("INSERT OR IGNORE INTO indexed VALUES (?, ?)", captures)
            after = _count(connection)
        return after - before, after

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error:  # no database, or a disk that does not read
            connection.close()
            raise
        return connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(f"{self._path} refused: {error}.", "Make room, or mend its permissions.") from error


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM indexed").fetchone()[0])
