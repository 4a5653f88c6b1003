"""The catalogue in SQLite: what was captured, for people and for SQL (W3).

Written in batches after the archive is durable, one transaction a batch. Only captures and errors are inserted, by
their keys; pages, domains and counts follow by triggers in `schema.sql`, natively and exactly once a capture, so that
recording a batch again after a crash changes nothing. The write-ahead log lets others read while a crawl writes.

`synchronous=NORMAL`: a power loss may take the last batches, never the file; they are recorded again from the archive,
because `upto` went back with them.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from importlib import resources
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from nephila.interfaces.catalogue import CaptureRow, ErrorRow, PageRow
from nephila.model.errors import StorageError
from nephila.model.record import SegmentId

SCHEMA_VERSION = 1
APPLICATION_ID = 0x4E455048
"""`NEPH` in the file's header: tells a catalogue from any other SQLite file."""

BUSY_S = 30.0
"""How long a writer waits for another process of the same crawl."""

REBUILD_BATCH = 5_000
READ_BATCH = 5_000
"""Rows in one transaction: reading longer than that would hold the write-ahead log open."""

_RENAMED = {"fingerprint": "url_hash", "level": "priority"}
"""Fields of `CaptureRow` whose column has the name that SPEC W3 gives it."""

_CAPTURE_FIELDS = tuple(field.name for field in fields(CaptureRow))
_COLUMNS = tuple(_RENAMED.get(name, name) for name in _CAPTURE_FIELDS)
_SEGMENT_INDEX = _CAPTURE_FIELDS.index("segment")
_BOOLEAN_INDEXES = tuple(_CAPTURE_FIELDS.index(name) for name in ("robots", "noindex", "noarchive", "changed"))
_values_of = attrgetter(*_CAPTURE_FIELDS)

_QUOTED = ", ".join(f'"{column}"' for column in _COLUMNS)
_INSERT_CAPTURE = f"INSERT INTO captures ({_QUOTED}) VALUES ({', '.join('?' * len(_COLUMNS))}) ON CONFLICT DO NOTHING"  # noqa: S608
_SELECT_CAPTURE = "SELECT {} FROM captures c JOIN segments s ON s.id = c.segment".format(  # noqa: S608 - our own names
    ", ".join("s.name" if column == "segment" else f'c."{column}"' for column in _COLUMNS)
)
_INSERT_ERROR = (
    "INSERT INTO errors (url_hash, at, kind, url, host, detail, retries) VALUES (?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT DO NOTHING"
)
_INSERT_DEAD = (
    "INSERT INTO dead_letters (url_hash, url, host, kind, detail, at, retries) VALUES (?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (url_hash) DO UPDATE SET url = excluded.url, kind = excluded.kind, detail = excluded.detail,"
    " at = excluded.at, retries = excluded.retries WHERE excluded.at > dead_letters.at"
)
_SELECT_PAGE = (
    "SELECT url, status, content_type, length, title, depth, crawled_at, crawl_count, duplicate_of, storage_key"
    " FROM pages"
)


class SqliteCatalogue:
    """Implements `interfaces.catalogue.Catalogue`. Safe for threads: one statement at a time."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._segments: dict[SegmentId, int] = {}
        with self._told():
            mode = "ro" if read_only else "rwc"
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}",
                uri=True,
                timeout=BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._prepare(read_only=read_only)
            except (sqlite3.Error, StorageError):
                self._connection.close()
                raise

    def record(self, captures: Sequence[CaptureRow], errors: Sequence[ErrorRow]) -> None:
        """As the interface."""
        with self._writing():
            self._insert(captures)
            if errors:
                self._connection.executemany(_INSERT_ERROR, map(_error_values, errors))
                self._connection.executemany(_INSERT_DEAD, [_dead_values(error) for error in errors if error.dead])

    def rebuild(self, rows: Iterable[CaptureRow]) -> int:
        """Forget all captures and what follows from them, and record these; how many. Errors and dead letters stay."""
        with self._writing():
            for table in ("captures", "pages", "domains", "segments"):
                self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
            self._segments.clear()
        count = 0
        source = iter(rows)
        while batch := list(islice(source, REBUILD_BATCH)):
            self.record(batch, ())
            count += len(batch)
        return count

    def upto(self, segment: SegmentId) -> int:
        """As the interface; 0 for a segment that was never recorded."""
        found = self._rows("SELECT upto FROM segments WHERE name = ?", (segment,))
        return int(found[0][0]) if found else 0

    def pages(
        self, *, host: str = "", status: int | None = None, like: str = "", limit: int = 100
    ) -> Iterator[PageRow]:
        """As the interface. `like` with a ``%`` is a pattern of SQL, otherwise a part of the URL."""
        conditions, values = [], list[str | int]()
        if host:
            conditions.append("host = ?")
            values.append(host)
        if status is not None:
            conditions.append("status = ?")
            values.append(status)
        if like:
            conditions.append("url LIKE ?" if "%" in like else "instr(url, ?) > 0")
            values.append(like)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        query = f"{_SELECT_PAGE}{where} ORDER BY crawled_at DESC LIMIT ?"
        for row in self._rows(query, (*values, limit)):
            yield PageRow(*row)

    def captures(self, segment: SegmentId) -> Iterator[CaptureRow]:
        """As the interface. Read a batch at a time."""
        after = -1
        query = f'{_SELECT_CAPTURE} WHERE s.name = ? AND c."offset" > ? ORDER BY c."offset" LIMIT {READ_BATCH}'
        while batch := [_capture(row) for row in self._rows(query, (segment, after))]:
            yield from batch
            after = batch[-1].offset

    def captures_of(self, fingerprint: bytes) -> list[CaptureRow]:
        """As the interface."""
        query = f'{_SELECT_CAPTURE} WHERE c.url_hash = ? ORDER BY c.at DESC, c.segment DESC, c."offset" DESC'
        return [_capture(row) for row in self._rows(query, (fingerprint,))]

    def capture_count(self) -> int:
        """How many captures there are."""
        return int(self._rows("SELECT count(*) FROM captures", ())[0][0])

    def wire_bytes(self) -> int:
        """Bytes on the wire of all captures."""
        return int(self._rows("SELECT coalesce(sum(wire_bytes), 0) FROM captures", ())[0][0])

    def close(self) -> None:
        """As the interface."""
        with self._lock, self._told():
            self._connection.close()

    # -- parts

    def _prepare(self, *, read_only: bool) -> None:
        connection = self._connection
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if tables == 0 and not read_only:
            self._create()
        elif version != SCHEMA_VERSION:
            raise StorageError(
                f"The catalogue {self._path.name} has schema version {version}; this Nephila reads {SCHEMA_VERSION}.",
                hint="Move it away: the next crawl on this directory builds it anew from the archive.",
            )
        if not read_only:
            connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -32768")

    def _create(self) -> None:
        schema = resources.files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.executescript(
            f"BEGIN IMMEDIATE;\n{schema}\nPRAGMA application_id = {APPLICATION_ID};\n"
            f"PRAGMA user_version = {SCHEMA_VERSION};\nCOMMIT;"
        )

    def _insert(self, captures: Sequence[CaptureRow]) -> None:
        ends: dict[SegmentId, int] = {}
        values: list[list[object]] = []
        for row in captures:
            ends[row.segment] = max(row.end, ends.get(row.segment, 0))
            columns = list(_values_of(row))
            columns[_SEGMENT_INDEX] = self._segments.get(row.segment) or self._segment_id(row.segment)
            values.append(columns)
        self._connection.executemany(_INSERT_CAPTURE, values)
        self._connection.executemany(
            "UPDATE segments SET upto = max(upto, ?) WHERE name = ?", [(end, name) for name, end in ends.items()]
        )

    def _segment_id(self, name: SegmentId) -> int:
        self._connection.execute("INSERT INTO segments (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))
        found = self._connection.execute("SELECT id FROM segments WHERE name = ?", (name,)).fetchone()
        number = int(found[0])
        self._segments[name] = number
        return number

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock, self._told():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._segments.clear()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _rows(self, query: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        with self._lock, self._told():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StorageError(
                f"The catalogue {self._path.name} refused: {error}.",
                hint="It can be moved away: the next crawl on this directory builds it anew from the archive.",
            ) from error


def _capture(row: tuple[Any, ...]) -> CaptureRow:
    values = list(row)
    for index in _BOOLEAN_INDEXES:
        values[index] = bool(values[index])
    return CaptureRow(*values)


def _error_values(error: ErrorRow) -> tuple[object, ...]:
    return error.fingerprint, error.at, error.kind, error.url, error.host, error.detail, error.retries


def _dead_values(error: ErrorRow) -> tuple[object, ...]:
    return error.fingerprint, error.url, error.host, error.kind, error.detail, error.at, error.retries
