"""Questions in SQL to the catalogue in SQLite, which change nothing, whoever asks them (W6).

The file is opened for reading, and what a statement may do is asked of us when it is compiled: reading and calling
functions, nothing else. So nothing is attached, no file is made, no setting changed. A statement that takes long gives
way to Ctrl-C every few thousand steps.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from nephila.interfaces.queries import Answered, Table
from nephila.model.errors import QueryError

from .catalogue import BUSY_S, SqliteCatalogue, read_only_mode

STEPS = 20_000
"""Of SQLite's machine between two looks at signals: a millisecond."""
_ALLOWED = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, getattr(sqlite3, "SQLITE_RECURSIVE", 33)}
)
_FORBIDDEN_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"})
_TABLES = """
SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name
"""
READING_ONLY = "only what reads can be run here: SELECT, WITH, VALUES, EXPLAIN"


class SqliteQueries:
    """Implements `interfaces.queries.CatalogueQueries`. For the thread that made it."""

    def __init__(self, path: Path) -> None:
        SqliteCatalogue(path, read_only=True).close()  # tells in a sentence what is wrong with it
        self._connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{read_only_mode(path)}", uri=True, timeout=BUSY_S, isolation_level=None
        )
        self._connection.set_authorizer(_judge)
        # Between two lines of Python signals are heard; an exception there ends the statement.
        self._connection.set_progress_handler(lambda: 0, STEPS)

    def ask(self, statement: str) -> Answered:
        """As the interface."""
        try:
            cursor = self._connection.execute(statement)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise _told(error) from error
        if cursor.description is None:
            raise QueryError(READING_ONLY)
        return Answered([column[0] for column in cursor.description], self._rows(cursor))

    def tables(self) -> list[Table]:
        """As the interface."""
        self._connection.set_authorizer(None)
        try:
            names = self._connection.execute(_TABLES).fetchall()
            return [Table(name, self._columns(name)) for (name,) in names]
        finally:
            self._connection.set_authorizer(_judge)

    def close(self) -> None:
        """As the interface."""
        self._connection.close()

    def _columns(self, table: str) -> list[tuple[str, str]]:
        found = self._connection.execute("SELECT name, lower(type) FROM pragma_table_xinfo(?)", (table,))
        return [(str(name), str(kind)) for name, kind in found]

    def _rows(self, cursor: sqlite3.Cursor) -> Iterator[tuple[object, ...]]:
        try:
            yield from cursor
        except sqlite3.Error as error:
            raise _told(error) from error


def _told(error: Exception) -> BaseException:
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_INTERRUPT:
        return KeyboardInterrupt()
    if code in {sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY} or "prohibited" in str(error):
        return QueryError(READING_ONLY)
    if isinstance(error, sqlite3.Warning | sqlite3.ProgrammingError) and "one statement" in str(error):
        return QueryError("one statement at a time can be run")
    return QueryError(f"SQL: {error}")


def _judge(action: int, first: str | None, second: str | None, _database: str | None, _source: str | None) -> int:
    if action not in _ALLOWED:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or first or "").lower() in _FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK
