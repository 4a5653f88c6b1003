"""The far ends of long queues, kept in the database beside the catalogue (F8).

A fleet has a database that is durable, shared and backed up; a chunk is some ten kilobytes, is read once and deleted,
which a store of objects is bad at (and workers need no right to delete there).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nephila.engines.postgres import Patience, PostgresDatabase, Row
from nephila.engines.postgres_address import PostgresAddress
from nephila.model.settings import CatalogueSettings

from .migrating import schema_of

CONNECTIONS = 2


class PostgresChunks:
    """Implements `interfaces.chunks.ChunkStore` in the schema of a crawl, which a catalogue has made."""

    def __init__(self, settings: CatalogueSettings, crawl: str, environ: Mapping[str, str]) -> None:
        """Nothing is connected before it is asked for."""
        self._settings = replace(settings, connections=min(CONNECTIONS, settings.connections))
        self.schema = schema_of(crawl)
        self._environ = environ
        self._patience = Patience(settings.open_s)
        self._opening = threading.Lock()
        self._database: PostgresDatabase | None = None

    def put(self, number: int, shard: int, urls: int, body: bytes) -> None:
        """As the interface."""
        self._rows(
            "INSERT INTO spilled (number, shard, urls, body) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            number, shard, urls, body,
        )  # fmt: skip

    def get(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """As the interface."""
        return dict(self._rows("SELECT number, body FROM spilled WHERE number = ANY($1)", list(numbers)))

    def delete(self, numbers: Sequence[int]) -> None:
        """As the interface."""
        self._rows("DELETE FROM spilled WHERE number = ANY($1)", list(numbers))

    def older(self, shard: int, seconds: float, after: int, limit: int) -> list[int]:
        """As the interface."""
        found = self._rows(
            "SELECT number FROM spilled WHERE shard = $1 AND number > $2 AND at < now() - make_interval(secs => $3) "
            "ORDER BY number LIMIT $4",
            shard, after, seconds, limit,
        )  # fmt: skip
        return [int(number) for (number,) in found]

    def close(self) -> None:
        """As the interface."""
        with self._opening:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _rows(self, query: str, *values: object) -> list[Row]:
        with self._opening:
            if self._database is None:
                address = PostgresAddress.of(self._settings, self._environ)
                self._database = PostgresDatabase(address, self.schema, self._settings)
            database = self._database
        return database.do(lambda session: session.rows(query, *values), self._patience)
