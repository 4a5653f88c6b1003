"""Taking captures out of the catalogue (K2): the rows, and what was counted of them.

Whoever takes down reads all rows once (`rows`), decides, and removes a batch in one transaction. What is removed a
second time is not there any more and changes nothing. What is removed is overwritten in the file, too: by default
SQLite only forgets where it was, unless the system's build of it says otherwise.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from nephila.interfaces.removal import ListedCapture

BATCH = 5_000

_SELECT = """
SELECT c.segment, c."offset", s.name, c.url_hash, c.url, c.host, c.domain, c.kind, c.robots, c.content_hash, c.simhash,
       c.duplicate_of, c.near_duplicate_of, c.status,
       CASE WHEN c.url_hash = x'' AND c.robots = 0 THEN c.via ELSE '' END
FROM captures c JOIN segments s ON s.id = c.segment
WHERE (c.segment, c."offset") > (?, ?) ORDER BY c.segment, c."offset" LIMIT ?
"""
_FIGURES = """
SELECT domain, 1, robots = 0 AND (status = 304 OR (status BETWEEN 200 AND 299 AND content_hash != x'')), elapsed_ms,
       wire_bytes
FROM captures WHERE segment = ? AND "offset" = ?
"""
_SUBTRACT = """
UPDATE domains SET total_requests = max(0, total_requests - ?), total_pages = max(0, total_pages - ?),
       total_response_ms = max(0, total_response_ms - ?) WHERE domain = ?
"""


def subtract(connection: sqlite3.Connection, place: tuple[int, int]) -> bool:
    """Take what was counted of a capture out of the figures; False where there is no such capture."""
    found = connection.execute(_FIGURES, place).fetchone()
    if found is None:
        return False
    domain, requests, pages, elapsed_ms, wire_bytes = found
    connection.execute(_SUBTRACT, (requests, pages, elapsed_ms, domain))
    connection.execute("UPDATE totals SET captures = captures - 1, wire_bytes = wire_bytes - ?", (wire_bytes,))
    return True


class Removal:
    """Implements `interfaces.removal.CatalogueRemoval`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        writing: Callable[[], AbstractContextManager[None]],
        read: Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]],
    ) -> None:
        self._connection = connection
        self._writing = writing
        self._read = read

    def rows(self) -> Iterator[ListedCapture]:
        """Every capture, read a batch at a time."""
        after: tuple[int, int] = (-1, -1)
        while batch := self._read(_SELECT, (*after, BATCH)):
            for row in batch:
                yield ListedCapture(*row)
            after = batch[-1][:2]

    def remove(self, captures: Sequence[ListedCapture]) -> None:
        """Take out captures, and the standing of their pages: all captures of a page go, or none."""
        with self._erasing():
            for row in captures:
                place = (row.number, row.offset)
                if not subtract(self._connection, place):
                    continue
                self._connection.execute('DELETE FROM captures WHERE segment = ? AND "offset" = ?', place)
                if not row.robots:
                    self._connection.execute("DELETE FROM page_states WHERE url_hash = ?", (row.fingerprint,))

    def unname(self, captures: Sequence[tuple[ListedCapture, bool, bool]]) -> None:
        """Let captures not name their original any more, nor what they are nearly the same as."""
        with self._erasing():
            for row, same, near in captures:
                place = (row.number, row.offset)
                for column, wanted in (("duplicate_of", same), ("near_duplicate_of", near)):
                    if wanted:
                        self._connection.execute(
                            f"UPDATE captures SET {column} = '' WHERE segment = ? AND \"offset\" = ?",  # noqa: S608 - our own names
                            place,
                        )

    def make_durable(self) -> None:
        """Let what was removed be gone for good: a power loss takes other batches back, and may not take these."""
        self._read("PRAGMA synchronous = FULL", ())
        try:
            with self._writing():
                self._connection.execute("UPDATE totals SET captures = captures")
        finally:
            self._read("PRAGMA synchronous = NORMAL", ())
        self._read("PRAGMA wal_checkpoint(TRUNCATE)", ())  # as far as readers allow; the log was synced above

    def forget_failures(self, fingerprints: Sequence[bytes], name: str = "") -> None:
        """Take out errors and dead letters of URLs, and those of a host with all below it; with it its figures."""
        with self._erasing():
            for table in ("errors", "dead_letters"):
                self._connection.executemany(
                    f"DELETE FROM {table} WHERE url_hash = ?",  # noqa: S608 - our own names
                    [(one,) for one in fingerprints if one],
                )
                if name:
                    self._connection.execute(
                        f"DELETE FROM {table} WHERE host = ? OR substr(host, -length(?)) = ?",  # noqa: S608 - our own names
                        (name, f".{name}", f".{name}"),
                    )
            if name:
                self._connection.execute(
                    "DELETE FROM domains WHERE domain = ? OR substr(domain, -length(?)) = ?",
                    (name, f".{name}", f".{name}"),
                )

    @contextmanager
    def _erasing(self) -> Iterator[None]:
        """A transaction after which nothing of what it deletes can be read from the file."""
        self._read("PRAGMA secure_delete = ON", ())
        with self._writing():
            yield
