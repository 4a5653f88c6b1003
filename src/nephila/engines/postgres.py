"""PostgreSQL for callers that are synchronous: a few connections on an event loop of their own, in a thread.

The client library is asynchronous, and its callers, the catalogue's, run in threads where SQLite blocks, too. So the
loop of the crawl never waits for a database, whoever asks, and an interface that serves both needs no second form. A
call costs a hop to the other thread, some 60 us for a batch of hundreds of rows.

A server that is away (it does not answer, restarts, fails over, has no room, has chosen us as the victim of a deadlock)
is waited for: what was asked is asked again, whole, after pauses that double and are drawn at random. So it must be
such that doing it twice does no harm. One that refuses (a wrong password, no such database, no permission) is told.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]  # it has no types

from nephila.model.errors import DatabaseAwayError, DatabaseRefusedError, StorageError
from nephila.model.settings import CatalogueSettings

from .attempts import Attempts
from .own_loop import OwnLoop
from .postgres_address import PostgresAddress

T = TypeVar("T")
Row = tuple[Any, ...]

TELL_AFTER = 2
"""Failures in a row: a single one, a connection that had been cut, is nobody's concern."""
CLOSE_S = 5.0
LEAST_VERSION = 14
WAIT_FOR_DISK = """
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""
"""What is answered is let go elsewhere: a server that may forget its last moments is not taken at its word."""
REACH = "see that it runs and can be reached where catalogue.url says"

_AWAY_CLASSES = ("08", "40", "53", "57", "58")
"""Of SQLSTATE: connection, rolled back, no resources, shut down or starting, trouble of its system."""
_AWAY_STATES = frozenset({"25006", "55P03"})
"""Read-only (a standby, for the moment), and a lock that could not be had in time."""


class Session:
    """One connection, as far as it is used."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - untyped
        self._connection = connection

    async def rows(self, query: str, *values: object) -> list[Row]:
        """What a query answers."""
        return [tuple(row) for row in await self._connection.fetch(query, *values)]

    async def value(self, query: str, *values: object) -> Any:  # noqa: ANN401 - whatever the query says
        """The first field of the first row; None without one."""
        return await self._connection.fetchval(query, *values)

    async def run(self, script: str) -> None:
        """Run statements that need no values, one after the other."""
        await self._connection.execute(script)

    async def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Bring rows into a table, all at once."""
        try:
            await self._connection.copy_records_to_table(table, records=rows, columns=columns)
        except (TypeError, OverflowError) as error:
            raise DatabaseRefusedError(f"a value does not fit its column of {table}: {error}") from error

    async def atomically(self, act: Callable[[Session], Awaitable[T]]) -> T:
        """Do something in one transaction."""
        async with self._connection.transaction():
            return await act(self)


Act = Callable[[Session], Awaitable[T]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server that is away is waited for, and who is told."""

    seconds: float = float("inf")
    tell: Callable[[str, str], None] | None = None
    """Called, from the loop's thread, with a word and a sentence when the server goes away and when it is back."""


class PostgresDatabase:
    """One database, seen from one schema. Safe for threads."""

    def __init__(
        self,
        address: PostgresAddress,
        schema: str,
        settings: CatalogueSettings,
        *,
        draw: random.Random | None = None,
    ) -> None:
        """Nothing is connected before it is asked for."""
        self.address = address
        self.schema = schema
        self._settings = settings
        self._draw = draw or random.Random()  # noqa: S311 - jitter
        self._hurried: asyncio.Event | None = None
        self._told = False
        self._pool: Any = None
        self._own = OwnLoop("postgres")
        self._loop = self._own.loop
        self._attempts = Attempts(self._loop, settings.timeout_s)

    # For any thread

    def do(self, act: Act[T], patience: Patience) -> T:
        """Do something, again and again while the server is away.

        Raises `DatabaseAwayError` when patience ends, `DatabaseRefusedError` where waiting would not help.
        """
        if self._own.is_closed:
            raise StorageError(f"the connection to {self.address} is closed")
        return self._own.run(self._persist(act, patience))

    def hurry(self, seconds: float) -> None:
        """From now on nothing waits longer than so many seconds."""
        if not self._own.is_closed:
            self._loop.call_soon_threadsafe(self._give_up_in, seconds)

    def close(self) -> None:
        """Close the connections and end the thread."""
        if not self._own.is_closed:
            self._own.close(self._disconnect())

    # On the loop

    def _give_up_in(self, seconds: float) -> None:
        self._attempts.give_up_in(seconds)
        if self._hurried is not None:
            self._hurried.set()

    async def _persist(self, act: Act[T], patience: Patience) -> T:
        give_up_at, failures = self._loop.time() + patience.seconds, 0
        while True:
            try:
                result = await self._attempt(act)
            except DatabaseAwayError as error:
                failures += 1
                left_s = min(give_up_at, self._attempts.give_up_at) - self._loop.time()
                if left_s <= 0:
                    raise
                if failures >= TELL_AFTER and not self._told and patience.tell is not None:
                    self._told = True
                    patience.tell("database_away", f"{error}; what is to be written waits meanwhile")
                await self._pause(min(self._pause_s(failures), left_s))
            else:
                if self._told and patience.tell is not None:
                    self._told = False
                    patience.tell("database_back", f"the database {self.address} answers again")
                return result

    def _pause_s(self, failures: int) -> float:
        longest: float = min(self._settings.retry_max_s, self._settings.retry_s * 2 ** min(failures - 1, 30))
        return longest * self._draw.uniform(0.5, 1.0)

    async def _pause(self, seconds: float) -> None:
        """Sleep; a hurry cuts it short, and only once: whoever waits tries again at the end of what is left."""
        hurried = self._hurried = self._hurried or asyncio.Event()
        already = hurried.is_set()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await (asyncio.sleep(seconds) if already else hurried.wait())

    async def _attempt(self, act: Act[T]) -> T:
        try:
            async with self._attempts.one():
                return await self._on_a_connection(act)
        except asyncpg.PostgresError as error:
            raise self._judged(error) from error
        except asyncpg.InterfaceError as error:  # the library's own
            if isinstance(error, ValueError):  # a value that does not fit its column, or an address that makes no sense
                raise DatabaseRefusedError(f"the database {self.address} cannot be given that: {error}") from error
            raise DatabaseAwayError(f"the connection to {self.address} broke: {error}") from error
        except ssl.SSLCertVerificationError as error:
            raise DatabaseRefusedError(
                f"the certificate of the database {self.address} is not trusted: {error.verify_message}",
                hint="catalogue.authorities names the authority that signed it",
            ) from error
        except TimeoutError as error:
            raise DatabaseAwayError(f"the database {self.address} does not answer in time", REACH) from error
        except OSError as error:
            told = error.strerror or str(error) or type(error).__name__
            if "rejected SSL upgrade" in told:  # the library has no type for it
                raise DatabaseRefusedError(
                    f"the database {self.address} does not speak TLS",
                    hint='switch ssl on there, or, on a private network, set catalogue.tls = "off"',
                ) from error
            raise DatabaseAwayError(f"the database {self.address} cannot be reached: {told}", REACH) from error

    async def _on_a_connection(self, act: Act[T]) -> T:
        pool = await self._connected()
        connection = await pool.acquire()
        try:
            return await act(Session(connection))
        except asyncpg.PostgresError:
            raise  # it has answered
        except BaseException:
            connection.terminate()  # its library would wait for a server that may never answer again
            raise
        finally:
            await pool.release(connection)

    async def _connected(self) -> Any:  # noqa: ANN401 - untyped
        if self._pool is None:
            self._pool = await asyncpg.create_pool(
                **self.address.arguments(),
                direct_tls=False,
                timeout=self._settings.connect_timeout_s,
                command_timeout=self._settings.timeout_s,
                min_size=0,
                max_size=self._settings.connections,
                init=self._begin,
                reset=_leave,
                server_settings={"search_path": f'"{self.schema}"', "application_name": "nephila"},
            )
        return self._pool

    async def _begin(self, connection: Any) -> None:  # noqa: ANN401 - untyped
        version = connection.get_server_version().major
        if version < LEAST_VERSION:
            raise DatabaseRefusedError(
                f"the database {self.address} is PostgreSQL {version}", hint=f"{LEAST_VERSION} or newer is needed"
            )
        await connection.fetch(WAIT_FOR_DISK)

    def _judged(self, error: Any) -> StorageError:  # noqa: ANN401 - untyped
        state, told = error.sqlstate or "", str(error).rstrip(".")
        if state.startswith(_AWAY_CLASSES) or state in _AWAY_STATES:
            return DatabaseAwayError(f"the database {self.address} is away: {told}")
        hint = {
            "28": "look at user, password (catalogue.password_file, PGPASSWORD) and pg_hba.conf",
            "3D": "make it first: CREATE DATABASE",
            "42": "grant what is missing: the user needs CREATE and TEMPORARY on the database"
            if state == "42501"
            else "",
        }.get(state[:2], "")
        return DatabaseRefusedError(f"the database {self.address} refused: {told}", hint)

    async def _disconnect(self) -> None:
        if self._pool is not None:
            try:
                async with asyncio.timeout(CLOSE_S):
                    await self._pool.close()
            except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                self._pool.terminate()


async def _leave(_connection: object) -> None:
    """Nothing is undone when a connection goes back: nobody here changes what holds for a session."""
