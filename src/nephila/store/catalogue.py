"""The catalogue in SQLite: what was captured, for people and for SQL (W3).

Written in batches after the archive is durable, one transaction a batch. Pages, domains and counts follow from captures
that are *new*, so that recording a batch again after a crash changes nothing; what lies behind the mark of its segment
is new without asking. The write-ahead log lets others read while a crawl writes.

`synchronous=NORMAL`: a power loss may take the last batches, never the file; they are recorded again from the archive,
because `upto` went back with them.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from nephila.interfaces.catalogue import CaptureFigures, CaptureRow, DomainFigures, ErrorFigures, ErrorRow, PageRow
from nephila.model.errors import StorageError
from nephila.model.record import SegmentId

from . import statements as sql
from .removal import Removal
from .retention import SqliteRetention

SCHEMA_VERSION = 5
APPLICATION_ID = 0x4E455048
"""`NEPH` in the file's header: tells a catalogue from any other SQLite file."""

BUSY_S = 30.0
"""How long a writer waits for another process of the same crawl."""

REBUILD_BATCH = 5_000
READ_BATCH = 1_000
"""Rows in one transaction, and in memory: some two megabytes. Reading longer would hold the write-ahead log open."""
FIGURES_BATCH = 10_000
"""The same for rows of a few numbers."""
CACHE_KB = 4096
"""Pages of the file that SQLite keeps. The rows of a batch lie all over its indexes, so that more of them are not found
again either: 32 MB saved no time in measurements of up to 300,000 rows. What is let go is still in the system's cache.
"""
READER_CACHE_KB = 512
"""Of those who only look: they read in rows. A crawl opens its catalogue for that every few seconds, in one of several
threads, and what a thread gives back stays with it (glibc has an arena for each): four megabytes in every one of them.
"""

SHARED_BYTES = 64 << 10
"""Less room than this is none: a reader makes a file of 32 KB beside the log, which others share."""

_SEGMENT_INDEX = sql.CAPTURE_FIELDS.index("segment")
_BOOLEAN_INDEXES = tuple(sql.CAPTURE_FIELDS.index(name) for name in ("robots", "noindex", "noarchive", "changed"))
_ROBOTS_INDEX = len(sql.CAPTURE_FIELDS)
_capture_values = attrgetter(*sql.CAPTURE_FIELDS)
_wire_bytes = attrgetter("wire_bytes")
_NOT_MODIFIED = 304
_DISK_TROUBLE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})


class SqliteCatalogue:
    """Implements `interfaces.catalogue.WholeCatalogue`. Safe for threads: one statement at a time."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._segments: dict[SegmentId, int] = {}
        with self._told():
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?{read_only_mode(path) if read_only else 'mode=rwc'}",
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
                self._connection.executemany(sql.INSERT_ERROR, map(_error_values, errors))
                self._connection.executemany(sql.UPSERT_DEAD, [_dead_values(error) for error in errors if error.dead])

    def rebuild(self, rows: Iterable[CaptureRow]) -> int:
        """Forget all captures and what follows from them, and record these; how many. Errors and dead letters stay."""
        with self._writing():
            for table in ("captures", "page_states", "domains", "segments"):
                self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
            self._connection.execute("UPDATE totals SET captures = 0, wire_bytes = 0")
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
        query = f"{sql.SELECT_PAGES}{where} ORDER BY crawled_at DESC LIMIT ?"
        for row in self._rows(query, (*values, limit)):
            yield PageRow(*row)

    def captures(self, segment: SegmentId) -> Iterator[CaptureRow]:
        """As the interface. Read a batch at a time."""
        return self._captures(sql.SELECT_CAPTURES, segment)

    def whole_captures(self, segment: SegmentId) -> Iterator[CaptureRow]:
        """Captures with what is kept elsewhere than with them: who records these has the same pages and domains."""
        return self._captures(sql.SELECT_WHOLE_CAPTURES, segment)

    def _captures(self, select: str, segment: SegmentId) -> Iterator[CaptureRow]:
        after = -1
        query = f'{select} WHERE s.name = ? AND c."offset" > ? ORDER BY c."offset" LIMIT {READ_BATCH}'
        while batch := [_capture(row) for row in self._rows(query, (segment, after))]:
            yield from batch
            after = batch[-1].offset

    def captures_of(self, fingerprint: bytes) -> list[CaptureRow]:
        """As the interface."""
        query = f'{sql.SELECT_CAPTURES} WHERE c.url_hash = ? ORDER BY c.at DESC, c.segment DESC, c."offset" DESC'
        return [_capture(row) for row in self._rows(query, (fingerprint,))]

    def capture_count(self) -> int:
        """How many captures there are: kept with every change, never counted."""
        return int(self._rows("SELECT captures FROM totals", ())[0][0])

    def wire_bytes(self) -> int:
        """Bytes on the wire of all captures: kept likewise."""
        return int(self._rows("SELECT wire_bytes FROM totals", ())[0][0])

    # -- for reports

    def capture_figures(self) -> Iterator[CaptureFigures]:
        """Every capture, read a batch at a time, so that a running crawl is not held up."""
        segment, offset = -1, -1
        while batch := self._rows(sql.SELECT_FIGURES, (segment, offset, FIGURES_BATCH)):
            for row in batch:
                yield CaptureFigures(*row[2:])
            segment, offset = batch[-1][:2]

    def error_figures(self) -> Iterator[ErrorFigures]:
        """Every error, oldest first."""
        after: tuple[int, bytes, str] = (-1, b"", "")
        while batch := self._rows(sql.SELECT_ERRORS, (*after, FIGURES_BATCH)):
            for at, _, kind, host in batch:
                yield ErrorFigures(at, kind, host)
            after = batch[-1][:3]

    def leading_domains(self, limit: int) -> list[DomainFigures]:
        """The domains with most pages."""
        rows = self._rows(sql.SELECT_LEADING, (limit,))
        return [DomainFigures(name, pages, all_, ms, at, bool(blocked)) for name, pages, all_, ms, at, blocked in rows]

    def domains_by_pages(self) -> dict[int, int]:
        """How many domains have pages of so many digits; 0 is none."""
        return dict(self._rows(sql.COUNT_DOMAINS, ()))

    # -- for exports

    def extent(self) -> dict[SegmentId, int]:
        """As the interface."""
        return {
            SegmentId(name): int(upto) for name, upto in self._rows("SELECT name, upto FROM segments ORDER BY id", ())
        }

    def histories(self, fingerprints: Sequence[bytes]) -> list[CaptureRow]:
        """As the interface."""
        query = f"{sql.SELECT_CAPTURES} WHERE c.url_hash IN ({', '.join('?' * len(fingerprints))})"
        return [_capture(row) for row in self._rows(query, tuple(fingerprints))]

    # For those who watch a crawl: each costs what it returns, whatever the size of the catalogue

    def marks(self) -> dict[int, int]:
        """Where the recorded part of each segment ends, by the number of the segment."""
        return {int(number): int(upto) for number, upto in self._rows("SELECT id, upto FROM segments", ())}

    def exchanges(self, segment: int, after: int, limit: int) -> list[tuple[int, str, int, int, bool]]:
        """As the interface."""
        return self._rows(sql.SELECT_EXCHANGES, (segment, after, limit))

    def pages_since(self, at: int, limit: int) -> int:
        """Pages that were last visited since an instant, counted up to a limit."""
        query = "SELECT count(*) FROM (SELECT 1 FROM page_states WHERE crawled_at >= ? LIMIT ?)"
        return int(self._rows(query, (at, limit))[0][0])

    def errors_since(self, at: int, limit: int) -> dict[str, int]:
        """Errors since an instant by kind, the first so many counted."""
        query = "SELECT kind, count(*) FROM (SELECT kind FROM errors WHERE at >= ? LIMIT ?) GROUP BY kind"
        return {str(kind): int(count) for kind, count in self._rows(query, (at, limit))}

    def domain(self, name: str) -> tuple[int, int, int, float, str] | None:
        """Last visit, pages, requests, mean milliseconds and robots.txt of a registrable domain."""
        query = (
            "SELECT coalesce(last_crawled_at, 0), total_pages, total_requests, avg_response_ms,"
            " coalesce(robots_txt, '') FROM domains WHERE domain = ?"
        )
        found = self._rows(query, (name,))
        return found[0] if found else None

    def show_blocked(self, names: Collection[str], suffixes: Collection[str] = ()) -> None:
        """As the interface."""
        with self._writing():
            run = self._connection.execute
            shown = {name for (name,) in run(sql.SELECT_BLOCKED)}
            below = tuple(f".{one}" for one in suffixes)
            over = [name for name in shown if name not in names and not name.endswith(below)]
            self._connection.executemany(sql.UNBLOCK, [(name,) for name in over])
            self._connection.executemany(sql.BLOCK, [(name,) for name in names if name not in shown])
            self._connection.executemany(sql.BLOCK_BELOW, [(one, one) for one in below])

    def removal(self) -> Removal:
        """What takes captures out of it."""
        return Removal(self._connection, self._writing, self._rows)

    def retention(self, marks: Path) -> SqliteRetention:
        """What finds captures that need not be kept."""
        return SqliteRetention(self._connection, self._writing, self._rows, marks)

    def hurry(self, patience_s: float) -> None:
        """As the interface: a file is never away."""

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
            connection.execute(sql.INDEX_BLOCKED)
        connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KB if read_only else CACHE_KB}")

    def _create(self) -> None:
        schema = resources.files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.executescript(
            f"BEGIN IMMEDIATE;\n{schema}\nPRAGMA application_id = {APPLICATION_ID};\n"
            f"PRAGMA user_version = {SCHEMA_VERSION};\nCOMMIT;"
        )

    def _insert(self, captures: Sequence[CaptureRow]) -> None:
        """Captures that are new, and all that follows from them."""
        self._segments.clear()  # of this batch only: a layout by domain and hour makes segments without end
        new = self._new(captures)
        values: list[list[object]] = []
        for row in new:
            columns = list(_capture_values(row))
            columns[_SEGMENT_INDEX] = self._segments[row.segment]
            values.append(columns)
        self._connection.executemany(sql.INSERT_CAPTURE, values)
        self._connection.execute(sql.COUNT_CAPTURES, (len(new), sum(map(_wire_bytes, new))))
        pages = [row for row in new if row.fingerprint and not row.robots]  # nor part of a visit
        self._upsert_states(sql.UPSERT_STATE, [row for row in pages if row.status != _NOT_MODIFIED])
        self._upsert_states(sql.UPSERT_UNCHANGED_STATE, [row for row in pages if row.status == _NOT_MODIFIED])
        if self._connection.execute("SELECT EXISTS (SELECT 1 FROM dead_letters)").fetchone()[0]:
            self._connection.executemany(sql.FORGET_DEAD, [(row.fingerprint, row.at) for row in pages])
        self._connection.executemany(sql.UPSERT_DOMAIN, _domain_figures(new))
        self._connection.executemany(
            sql.UPSERT_ROBOTS,
            [(row.domain, row.robots_txt or None, row.at, row.crawl_delay_ms) for row in new if row.robots],
        )
        self._connection.executemany(
            "UPDATE segments SET upto = max(upto, ?) WHERE name = ?", [(row.end, row.segment) for row in _last(new)]
        )

    def _new(self, captures: Sequence[CaptureRow]) -> list[CaptureRow]:
        """Those that were never recorded. Behind the mark nothing was; up to it, each is looked up."""
        marks: dict[SegmentId, int] = {}
        new: dict[tuple[SegmentId, int], CaptureRow] = {}
        for row in captures:
            segment = row.segment
            if segment not in marks:
                marks[segment] = self._mark(segment)
            if row.offset > marks[segment] or not self._is_recorded(row):
                new.setdefault((segment, row.offset), row)
        return list(new.values())

    def _is_recorded(self, row: CaptureRow) -> bool:
        query = 'SELECT 1 FROM captures WHERE segment = ? AND "offset" = ?'
        return self._connection.execute(query, (self._segments[row.segment], row.offset)).fetchone() is not None

    def _upsert_states(self, statement: str, rows: list[CaptureRow]) -> None:
        numbers = self._segments
        values = [
            (row.fingerprint, row.host, numbers[row.segment], row.offset, row.at, row.next_crawl_at, row.change_rate)
            for row in rows
        ]
        self._connection.executemany(statement, values)

    def _mark(self, name: SegmentId) -> int:
        """Where the recorded part of a segment ends; makes the segment known."""
        query = "SELECT id, upto FROM segments WHERE name = ?"
        found = self._connection.execute(query, (name,)).fetchone()
        if found is None:
            self._connection.execute("INSERT INTO segments (name) VALUES (?)", (name,))
            found = self._connection.execute(query, (name,)).fetchone()
        self._segments[name] = int(found[0])
        return int(found[1])

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock, self._told():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
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
            if getattr(error, "sqlite_errorcode", None) in _DISK_TROUBLE:
                hint = "Make room and start the same command again: it goes on where it was."
            else:
                hint = "It can be moved away: the next crawl on this directory builds it anew from the archive."
            raise StorageError(f"The catalogue {self._path.name} refused: {error}.", hint) from error


def read_only_mode(path: Path) -> str:
    """How to open a catalogue for reading.

    On a disk that is full or read-only no log can be made beside it, and none is needed where nobody has one.
    """
    frozen = not os.access(path.parent, os.W_OK) or _is_full(path.parent)
    return "mode=ro&immutable=1" if frozen and not path.with_name(path.name + "-wal").exists() else "mode=ro"


def _is_full(folder: Path) -> bool:
    try:
        disk = os.statvfs(folder)
    except OSError:  # whoever opens the catalogue is told
        return False
    return disk.f_bavail * disk.f_frsize < SHARED_BYTES


def _capture(row: tuple[Any, ...]) -> CaptureRow:
    values = list(row)
    for index in _BOOLEAN_INDEXES:
        values[index] = bool(values[index])
    if len(values) > _ROBOTS_INDEX:
        values[_ROBOTS_INDEX] = values[_ROBOTS_INDEX] or ""
    return CaptureRow(*values)


def _last(rows: Iterable[CaptureRow]) -> Iterable[CaptureRow]:
    """Of each segment the row that ends last."""
    last: dict[SegmentId, CaptureRow] = {}
    for row in rows:
        known = last.get(row.segment)
        if known is None or row.end > known.end:
            last[row.segment] = row
    return last.values()


def _domain_figures(rows: Iterable[CaptureRow]) -> list[tuple[str, int, int, int, int]]:
    """Domain, last answer, pages, requests, milliseconds: one line a domain, whatever the size of the batch."""
    figures: dict[str, tuple[int, int, int, int]] = {}
    for row in rows:
        at, pages, requests, elapsed_ms = figures.get(row.domain, (0, 0, 0, 0))
        whole = 200 <= row.status < 300 and bool(row.content_hash)  # neither cut off nor of a type that was not read
        is_page = not row.robots and (whole or row.status == _NOT_MODIFIED)
        figures[row.domain] = (max(at, row.at), pages + is_page, requests + 1, elapsed_ms + row.elapsed_ms)
    return [(domain, *counted) for domain, counted in figures.items()]


def _error_values(error: ErrorRow) -> tuple[object, ...]:
    return error.fingerprint, error.at, error.kind, error.url, error.host, error.detail, error.retries


def _dead_values(error: ErrorRow) -> tuple[object, ...]:
    return error.fingerprint, error.url, error.host, error.kind, error.detail, error.at, error.retries
