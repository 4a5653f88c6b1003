"""The catalogue in PostgreSQL: the same tables and the same promises as in SQLite, for many workers (W3, N7).

It is written in batches after the archive is durable. A batch is copied into a table of the connection's and merged
from there (`staging`), and may be written again, by anybody, without counting twice. A database that is away is waited
for: `record` returns when the rows are there. What waits behind it is its callers' affair, who bound it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from nephila.engines.postgres import Act, Patience, PostgresDatabase, Row, Session
from nephila.engines.postgres_address import PostgresAddress
from nephila.interfaces.catalogue import CaptureFigures, CaptureRow, DomainFigures, ErrorFigures, ErrorRow, PageRow
from nephila.model.errors import DatabaseAwayError
from nephila.model.record import SegmentId
from nephila.model.settings import CatalogueSettings

from . import staging
from . import statements as sql
from .migrating import check, known_migrations, migrate, schema_of
from .removal import PostgresRemoval
from .retention import PostgresMarks, PostgresRetention

T = TypeVar("T")

READ_BATCH = 1_000
FIGURES_BATCH = 10_000
"""Rows that are read at once, and held."""
AT_LENGTH_S = 6 * 3600.0
"""For finding out what need not be kept: a sort of all captures."""
BEGINNING = -(1 << 63)
"""Before every number that a column can hold."""


class PostgresCatalogue:
    """Implements `interfaces.catalogue.WholeCatalogue`. Safe for threads; one batch at a time is written."""

    def __init__(
        self,
        settings: CatalogueSettings,
        crawl: str,
        environ: Mapping[str, str],
        *,
        identity: str = "",
        read_only: bool = False,
        tell: Callable[[str, str], None] | None = None,
    ) -> None:
        """Connect, and make or update the tables of the crawl with this name, unless it is only to be read.

        `identity` tells crawls of the same name apart. `tell` hears, in a thread of the catalogue's own, when the
        database goes away and when it is back. Raises `DatabaseAwayError`, `DatabaseRefusedError` or `UsageError`.
        """
        self._settings = settings
        self._schema = schema_of(crawl)
        self._writing = threading.Lock()
        self._partitions: set[str] = set()
        self._steady = Patience(tell=tell)
        self._brief = Patience(settings.open_s, tell)
        self._database = PostgresDatabase(PostgresAddress.of(settings, environ), self._schema, settings)
        try:
            self._open(identity, read_only=read_only)
        except BaseException:
            self._database.close()
            raise

    def record(self, captures: Sequence[CaptureRow], errors: Sequence[ErrorRow]) -> None:
        """As the interface. In transactions of a bounded size, in the order of offsets."""
        with self._writing:
            for batch in staging.batches(captures, errors, self._settings.batch_rows):
                try:
                    self._write(staging.cleaned(batch))
                except DatabaseAwayError as error:
                    raise DatabaseAwayError(
                        str(error), hint="nothing is lost: what the catalogue lacks is read from the archive next time"
                    ) from error

    def upto(self, segment: SegmentId) -> int:
        """As the interface; 0 for a segment that was never recorded."""
        found = self._rows("SELECT upto FROM segments WHERE name = $1", segment, patience=self._steady)
        return int(found[0][0]) if found else 0

    def pages(
        self, *, host: str = "", status: int | None = None, like: str = "", limit: int = 100
    ) -> Iterator[PageRow]:
        """As the interface. `like` with a ``%`` is a pattern of SQL, otherwise a part of the URL."""
        conditions, values = [], list[str | int]()

        def where(condition: str, value: str | int) -> None:
            values.append(value)
            conditions.append(condition.format(f"${len(values)}"))

        if host:
            where("p.host = {}", host)
        if status is not None:
            where("c.status = {}", status)
        if like:
            where("c.url ILIKE {} ESCAPE ''" if "%" in like else "strpos(c.url, {}) > 0", like)
        conditions = conditions or ["true"]
        query = (
            f"{sql.SELECT_PAGES} WHERE {' AND '.join(conditions)} ORDER BY p.crawled_at DESC LIMIT ${len(values) + 1}"
        )
        for row in self._rows(query, *values, limit):
            yield PageRow(*row)

    def captures(self, segment: SegmentId) -> Iterator[CaptureRow]:
        """As the interface. Read a batch at a time."""
        known = self._rows(sql.SELECT_SEGMENT, segment, patience=self._steady)
        if not known:
            return
        number, first_at, last_at = known[0]
        after = BEGINNING
        while rows := self._rows(sql.OF_SEGMENT, number, after, first_at, last_at, READ_BATCH, patience=self._steady):
            batch = [CaptureRow(*row) for row in rows]
            yield from batch
            after = batch[-1].offset

    def captures_of(self, fingerprint: bytes) -> list[CaptureRow]:
        """As the interface."""
        return [CaptureRow(*row) for row in self._rows(sql.OF_URL, fingerprint)]

    def hurry(self, patience_s: float) -> None:
        """As the interface."""
        self._database.hurry(patience_s)

    def close(self) -> None:
        """As the interface."""
        self._database.close()

    # For reports

    def capture_count(self) -> int:
        """As the interface."""
        return int(self._rows(sql.SELECT_TOTALS)[0][0])

    def wire_bytes(self) -> int:
        """As the interface."""
        return int(self._rows(sql.SELECT_TOTALS)[0][1])

    def capture_figures(self) -> Iterator[CaptureFigures]:
        """As the interface."""
        segment, offset = BEGINNING, BEGINNING
        while batch := self._rows(sql.SELECT_FIGURES, segment, offset, FIGURES_BATCH):
            for row in batch:
                yield CaptureFigures(*row[2:])
            segment, offset = batch[-1][:2]

    def error_figures(self) -> Iterator[ErrorFigures]:
        """As the interface."""
        after: tuple[int, bytes, str] = (BEGINNING, b"", "")
        while batch := self._rows(sql.SELECT_ERRORS, *after, FIGURES_BATCH):
            for at, _, kind, host in batch:
                yield ErrorFigures(at, kind, host)
            after = batch[-1][:3]

    def leading_domains(self, limit: int) -> list[DomainFigures]:
        """As the interface."""
        return [DomainFigures(*row) for row in self._rows(sql.SELECT_LEADING, limit)]

    def domains_by_pages(self) -> dict[int, int]:
        """As the interface."""
        return {int(digits): int(count) for digits, count in self._rows(sql.COUNT_DOMAINS)}

    # For exports

    def extent(self) -> dict[SegmentId, int]:
        """As the interface."""
        return {SegmentId(name): int(upto) for name, upto in self._rows("SELECT name, upto FROM segments ORDER BY id")}

    def histories(self, fingerprints: Sequence[bytes]) -> list[CaptureRow]:
        """As the interface."""
        return [CaptureRow(*row) for row in self._rows(sql.OF_URLS, list(fingerprints))]

    # For those who watch a crawl

    def marks(self) -> dict[int, int]:
        """As the interface."""
        return {int(number): int(upto) for number, upto in self._rows("SELECT id, upto FROM segments")}

    def exchanges(self, segment: int, after: int, limit: int) -> list[tuple[int, str, int, int, bool]]:
        """As the interface."""
        return self._rows(sql.SELECT_EXCHANGES, segment, after, limit)

    def pages_since(self, at: int, limit: int) -> int:
        """As the interface."""
        return int(self._rows(sql.COUNT_PAGES_SINCE, at, limit)[0][0])

    def errors_since(self, at: int, limit: int) -> dict[str, int]:
        """As the interface."""
        return {str(kind): int(count) for kind, count in self._rows(sql.COUNT_ERRORS_SINCE, at, limit)}

    def domain(self, name: str) -> tuple[int, int, int, float, str] | None:
        """As the interface."""
        found: list[Any] = self._rows(sql.SELECT_DOMAIN, name)
        return found[0] if found else None

    def show_blocked(self, names: Collection[str], suffixes: Collection[str] = ()) -> None:
        """As the interface."""
        wanted, below = sorted(names), sorted(suffixes)

        async def act(session: Session) -> None:
            if below:
                await session.rows(sql.SHOW_BLOCKED_BELOW, wanted, below)
            else:
                await session.rows(sql.SHOW_BLOCKED, wanted)

        with self._writing:
            self._atomically(act)

    def removal(self) -> PostgresRemoval:
        """What takes captures out (K2)."""
        return PostgresRemoval(self._atomically, self._rows)

    # For retention

    def retention(self, marks: Path) -> PostgresRetention:
        """What finds captures that need not be kept (W5); marks are here, and in no file."""
        del marks
        return PostgresRetention(self._at_length, self._atomically, self._rows)

    def indexed(self) -> PostgresMarks:
        """The marks of what was indexed (W5)."""
        return PostgresMarks(self._at_length)

    def identity(self) -> str:
        """Whose catalogue this is, as it was written down."""
        return str(self._rows("SELECT identity FROM crawl")[0][0])

    def retentions(self) -> int:
        """How many retentions were begun."""
        return int(self._rows("SELECT retentions FROM crawl")[0][0])

    def begin_retention(self) -> None:
        """One more is begun: workers that start from now on forget what contents they knew."""

        async def act(session: Session) -> None:
            await session.run("SET LOCAL synchronous_commit = on; UPDATE crawl SET retentions = retentions + 1")

        self._atomically(act)

    # Parts

    def _open(self, identity: str, *, read_only: bool) -> None:
        migrations = known_migrations()

        async def prepare(session: Session) -> None:
            if read_only:
                await check(session, self._schema, migrations)
            else:
                await session.atomically(lambda inside: migrate(inside, self._schema, identity, migrations))

        self._database.do(prepare, self._brief)

    def _write(self, batch: staging.Batch) -> None:
        needed = {name: bounds for name, bounds in staging.partitions_of(batch).items() if name not in self._partitions}
        if needed:
            self._atomically(lambda session: staging.make_partitions(session, self._schema, needed))
            self._partitions |= needed.keys()
        self._atomically(lambda session: staging.write(session, batch))

    def _atomically(self, act: Act[None]) -> None:
        self._database.do(lambda session: session.atomically(act), self._steady)

    def _at_length(self, act: Act[T]) -> T:
        """In a transaction, on a connection of its own that is given hours: for what goes over everything."""
        patient = replace(self._settings, timeout_s=max(AT_LENGTH_S, self._settings.timeout_s), connections=1)
        database = PostgresDatabase(self._database.address, self._schema, patient)
        try:
            return database.do(lambda session: session.atomically(act), self._brief)
        finally:
            database.close()

    def _rows(self, query: str, *values: object, patience: Patience | None = None) -> list[Row]:
        return self._database.do(lambda session: session.rows(query, *values), patience or self._brief)


def set_aside(settings: CatalogueSettings, crawl: str, environ: Mapping[str, str], suffix: str, identity: str) -> None:
    """Keep the tables of a crawl under another name, and make others in their place, for a crawl of that identity.

    One transaction. What cannot be built anew goes along: marks of what was indexed.
    """
    schema = schema_of(crawl)
    aside = f"{schema[: 62 - len(suffix)]}_{suffix}"
    database = PostgresDatabase(PostgresAddress.of(settings, environ), schema, settings)

    async def act(session: Session) -> None:
        await session.run(f'ALTER SCHEMA "{schema}" RENAME TO "{aside}"')
        await migrate(session, schema, identity, known_migrations())
        await session.run(
            f'INSERT INTO indexed SELECT * FROM "{aside}".indexed;'  # noqa: S608 - our own names
            f'UPDATE crawl SET retentions = (SELECT retentions FROM "{aside}".crawl)'
        )

    try:
        database.do(lambda session: session.atomically(act), Patience(settings.open_s))
    finally:
        database.close()
