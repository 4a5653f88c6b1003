"""Which captures an archive need not keep any longer (W5), found in the catalogue in SQLite, in bounded memory.

What goes and what stays is told in `interfaces.retention`. What is chosen is kept in a temporary table of the
connection, and given out a file at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from nephila.interfaces.retention import Choice, Outdated, RetentionRule
from nephila.model.record import SegmentId

from .removal import subtract

_CHOOSE = """
INSERT INTO temp.going
SELECT segment, "offset", url_hash, payload_digest, kind, record_bytes, 0 FROM (
  SELECT c.segment, c."offset", c.url_hash, c.payload_digest, c.kind, c."end" - c."offset" AS record_bytes,
         p.url_hash IS NOT NULL AS stands, max(c.at, coalesce(p.crawled_at, 0)) AS newest, {indexed} AS indexed,
         row_number() OVER (
           PARTITION BY iif(c.url_hash = x'', CAST(c.url AS BLOB), c.url_hash), c.status = 304 OR c.status / 100 = 2
           ORDER BY c.at DESC, c.segment DESC, c."offset" DESC
         ) AS place
  FROM main.captures c
  LEFT JOIN main.page_states p ON p.url_hash = c.url_hash AND p.segment = c.segment AND p."offset" = c."offset"
  WHERE c.robots = 0 AND c.kind IN ('response', 'revisit')
)
WHERE (?1 > 0 AND place > ?1 AND NOT stands) OR (newest < ?2 AND NOT indexed)
"""
_INDEXED = """
EXISTS (
  SELECT 1 FROM main.captures o JOIN main.segments s ON s.id = o.segment
  JOIN marks.indexed m ON m.segment = s.name AND m."offset" = o."offset"
  WHERE o.url_hash = c.url_hash AND (p.url_hash IS NOT NULL OR (o.segment, o."offset") = (c.segment, c."offset"))
    AND c.url_hash != x''
)
"""
"""Of what a page stands on, whether any capture of it is marked; of others, whether they are."""
_KEEP_ORIGINALS = """
DELETE FROM temp.going WHERE kind = 'response' AND payload_digest IN (
  SELECT c.payload_digest FROM main.captures c WHERE c.kind = 'revisit'
  AND NOT EXISTS (SELECT 1 FROM temp.going g WHERE g.segment = c.segment AND g."offset" = c."offset")
)
"""
_TAKE_TURNS = """
UPDATE temp.going SET turn = 1 WHERE kind = 'response' AND payload_digest IN (
  SELECT payload_digest FROM temp.going WHERE kind = 'revisit'
)
"""
"""Originals go after what refers to them: whoever breaks off in between leaves nothing that refers to what is gone."""
_OF_A_FILE = """
SELECT c.segment, c."offset", c.url_hash, c.url, c.host, c.at, c.status, c.content_hash, c.simhash
FROM temp.going g JOIN main.captures c ON c.segment = g.segment AND c."offset" = g."offset"
WHERE g.segment = ? AND g.turn = ? ORDER BY c."offset"
"""
_STANDS_ON = 'SELECT 1 FROM page_states WHERE url_hash = ? AND segment = ? AND "offset" = ?'
_NEWEST = """
SELECT segment, "offset" FROM captures WHERE url_hash = ? AND status != 304
ORDER BY at DESC, segment DESC, "offset" DESC LIMIT 1
"""


class SqliteRetention:
    """Implements `interfaces.retention.CatalogueRetention`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        writing: Callable[[], AbstractContextManager[None]],
        read: Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]],
        marks: Path,
    ) -> None:
        """`marks` is the file of what was indexed (`indexed`), if there is one."""
        self._marks = marks
        self._connection = connection
        self._writing = writing
        self._read = read

    def foresee(self, rule: RetentionRule) -> Choice:
        """As the interface: what is chosen is in a table of this connection alone."""
        return self.choose(rule)

    def choose(self, rule: RetentionRule) -> Choice:
        """As the interface."""
        indexed, marks = "0", self._marks
        self._read("DROP TABLE IF EXISTS temp.going", ())
        self._read(
            'CREATE TEMP TABLE going (segment INTEGER, "offset" INTEGER, url_hash BLOB, payload_digest TEXT, kind TEXT,'
            ' record_bytes INTEGER, turn INTEGER, PRIMARY KEY (segment, "offset")) WITHOUT ROWID',
            (),
        )
        if rule.before and marks.exists():
            self._read("ATTACH DATABASE ? AS marks", (f"{marks.absolute().as_uri()}?mode=ro",))
            indexed = _INDEXED
        try:
            self._read(_CHOOSE.format(indexed=indexed), (rule.captures, rule.before))
            self._read(_KEEP_ORIGINALS, ())
            self._read(_TAKE_TURNS, ())
        finally:
            if indexed is _INDEXED:
                self._read("DETACH DATABASE marks", ())
        return self._figures()

    def _figures(self) -> Choice:
        captures, urls, files, size = self._read(
            "SELECT count(*), count(DISTINCT url_hash), count(DISTINCT segment), coalesce(sum(record_bytes), 0)"
            " FROM temp.going",
            (),
        )[0]
        gone = self._read(
            "SELECT count(*) FROM (SELECT DISTINCT url_hash FROM temp.going WHERE url_hash != x'') g WHERE NOT EXISTS ("
            'SELECT 1 FROM main.captures c LEFT JOIN temp.going o ON o.segment = c.segment AND o."offset" = c."offset"'
            " WHERE c.url_hash = g.url_hash AND o.segment IS NULL)",
            (),
        )[0][0]
        return Choice(captures, urls, files, size, gone)

    def files(self, turn: int) -> list[tuple[int, SegmentId]]:
        """As the interface."""
        query = "SELECT id, name FROM segments WHERE id IN (SELECT segment FROM temp.going WHERE turn = ?) ORDER BY id"
        return [(number, SegmentId(name)) for number, name in self._read(query, (turn,))]

    def of_file(self, number: int, turn: int) -> list[Outdated]:
        """As the interface."""
        return [Outdated(*row) for row in self._read(_OF_A_FILE, (number, turn))]

    def remove(self, captures: Sequence[Outdated]) -> None:
        """As the interface."""
        self._read("PRAGMA secure_delete = ON", ())
        with self._writing():
            for row in captures:
                place = (row.number, row.offset)
                if not subtract(self._connection, place):
                    continue
                self._connection.execute('DELETE FROM captures WHERE segment = ? AND "offset" = ?', place)
                if self._connection.execute(_STANDS_ON, (row.fingerprint, *place)).fetchone():
                    self._stand_on_another(row.fingerprint)

    def _stand_on_another(self, fingerprint: bytes) -> None:
        newest = self._connection.execute(_NEWEST, (fingerprint,)).fetchone()
        if newest is None:
            self._connection.execute("DELETE FROM page_states WHERE url_hash = ?", (fingerprint,))
        else:
            self._connection.execute(
                'UPDATE page_states SET segment = ?, "offset" = ? WHERE url_hash = ?', (*newest, fingerprint)
            )


def in_batches(
    files: Sequence[tuple[int, SegmentId]], size_of: Callable[[SegmentId], int], most_bytes: int, most_files: int
) -> Iterator[list[tuple[int, SegmentId]]]:
    """Files in batches of so many bytes at most, or one that is larger: each is written anew beside itself."""
    batch: list[tuple[int, SegmentId]] = []
    total = 0
    for file in files:
        size = size_of(file[1])
        if batch and (total + size > most_bytes or len(batch) >= most_files):
            yield batch
            batch, total = [], 0
        batch.append(file)
        total += size
    if batch:
        yield batch
