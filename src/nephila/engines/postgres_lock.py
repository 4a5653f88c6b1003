"""A lock that a database keeps, for what only one process of a fleet may do at a time.

It is held by a connection of its own, and ends with it: whoever dies, or is cut off from the server, holds it no more.
So whoever does something that must not be done by two asks before each step whether it is still held.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it has no types

from nephila.model.errors import DatabaseAwayError, StorageError

from .postgres_address import PostgresAddress

ANSWER_S = 10.0
_LINE = {"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "4"}
"""Of a machine that is gone the server learns within a minute."""


class PostgresLock:
    """An advisory lock by its name, for one loop."""

    def __init__(self, address: PostgresAddress, name: str) -> None:
        self._address = address
        self._name = name
        self._connection: Any = None

    async def acquire(self) -> bool:
        """Take it, if nobody holds it. Raises `DatabaseAwayError` where the server cannot be asked."""
        address = self._address
        try:
            async with asyncio.timeout(ANSWER_S):
                self._connection = await asyncpg.connect(
                    **address.arguments(),
                    server_settings={"application_name": "nephila", **_LINE},
                )
                taken = await self._connection.fetchval(
                    "SELECT pg_try_advisory_lock(hashtextextended($1, 0))", self._name
                )
        except (asyncpg.PostgresError, asyncpg.InterfaceError, ssl.SSLError, OSError) as error:
            await self.release()
            raise DatabaseAwayError(f"the database {address} does not give the lock: {error}") from error
        if not taken:
            await self.release()
        return bool(taken)

    async def check(self) -> None:
        """Raise `StorageError` where it is not held any more."""
        try:
            async with asyncio.timeout(ANSWER_S):
                held = self._connection is not None and await self._connection.fetchval("SELECT true")
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            held = False
        if not held:
            raise StorageError("the lock in the database was lost, and somebody else may go on", hint="repeat it")

    async def release(self) -> None:
        """Let it go."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()
