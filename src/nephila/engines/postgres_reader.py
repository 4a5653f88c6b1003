"""Statements of people, put to PostgreSQL: each in a transaction that can only read, on a connection of its own.

Unlike what the crawler itself asks (`postgres`), such a statement may take as long as it likes, is never repeated, and
is given up by Ctrl-C, whereupon the server is told. Rows come a batch at a time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]  # it has no types

from nephila.model.errors import DatabaseAwayError, QueryError

from .postgres_address import PostgresAddress

T = TypeVar("T")

BATCH = 500
CLOSE_S = 5.0
_READS = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(?:select|with|values|table|explain|show)\b", re.IGNORECASE | re.DOTALL
)
READING_ONLY = "only what reads can be run here: SELECT, WITH, VALUES, TABLE, EXPLAIN, SHOW"


class PostgresReader:
    """One connection, seen from one schema. For the main thread: it runs a loop of its own while it waits."""

    def __init__(self, address: PostgresAddress, schema: str, connect_s: float) -> None:
        self._address = address
        self._runner = asyncio.Runner()
        self._connection: Any = None
        self._transaction: Any = None
        try:
            self._connection = self._do(self._connect(schema, connect_s))
        except BaseException:
            self._runner.close()
            raise

    def ask(self, statement: str) -> tuple[Sequence[str], Iterator[tuple[object, ...]]]:
        """The columns and rows that a statement brings. Raises `QueryError`."""
        if _READS.match(statement) is None:
            raise QueryError(READING_ONLY)
        columns, cursor = self._do(self._begin(statement))
        return columns, self._rows(cursor)

    def close(self) -> None:
        """Leave; a statement that was given up has been cancelled then."""
        try:
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError, KeyboardInterrupt):
                self._runner.run(self._connection.close(timeout=CLOSE_S))
        finally:
            self._runner.close()

    def _rows(self, cursor: Any) -> Iterator[tuple[object, ...]]:  # noqa: ANN401 - untyped
        while rows := self._do(cursor.fetch(BATCH)):
            for row in rows:
                yield tuple(map(_value, row))

    async def _connect(self, schema: str, connect_s: float) -> Any:  # noqa: ANN401 - untyped
        return await asyncpg.connect(
            **self._address.arguments(),
            direct_tls=False,
            timeout=connect_s,
            server_settings={
                "search_path": f'"{schema}"',
                "application_name": "nephila sql",
                "default_transaction_read_only": "on",
            },
        )

    async def _begin(self, statement: str) -> tuple[list[str], Any]:
        if self._transaction is not None:
            transaction, self._transaction = self._transaction, None
            await transaction.rollback()
        transaction = self._connection.transaction(readonly=True)
        await transaction.start()
        self._transaction = transaction
        prepared = await self._connection.prepare(statement)
        columns = [attribute.name for attribute in prepared.get_attributes()]
        return columns, await prepared.cursor()

    def _do(self, act: Coroutine[Any, Any, T]) -> T:
        try:
            return self._runner.run(act)
        except asyncpg.PostgresError as error:
            told = str(error).rstrip(".")
            if error.sqlstate == "25006":
                raise QueryError(READING_ONLY) from error
            if error.sqlstate == "57014":
                raise KeyboardInterrupt from error
            raise QueryError(f"SQL: {told}", getattr(error, "hint", "") or "") from error
        except (asyncpg.InterfaceError, OSError, TimeoutError) as error:
            told = str(error) or type(error).__name__
            raise DatabaseAwayError(f"the database {self._address} cannot be asked: {told}") from error


def _value(value: object) -> object:
    """Numbers as numbers: sums of large ones come as decimals."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
