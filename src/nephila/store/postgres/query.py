"""Questions in SQL to the catalogue in PostgreSQL, which change nothing (W6)."""

from __future__ import annotations

from collections.abc import Mapping

from nephila.engines.postgres_address import PostgresAddress
from nephila.engines.postgres_reader import PostgresReader
from nephila.interfaces.queries import Answered, Table
from nephila.model.settings import CatalogueSettings

from .catalogue import PostgresCatalogue
from .migrating import schema_of

_TABLES = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
ORDER BY c.relname, a.attnum
"""


class PostgresQueries:
    """Implements `interfaces.queries.CatalogueQueries`."""

    def __init__(self, settings: CatalogueSettings, crawl: str, environ: Mapping[str, str]) -> None:
        PostgresCatalogue(settings, crawl, environ, read_only=True).close()  # tells in a sentence what is wrong with it
        address = PostgresAddress.of(settings, environ)
        self._reader = PostgresReader(address, schema_of(crawl), settings.connect_timeout_s)

    def ask(self, statement: str) -> Answered:
        """As the interface."""
        return Answered(*self._reader.ask(statement))

    def tables(self) -> list[Table]:
        """As the interface."""
        columns: dict[str, list[tuple[str, str]]] = {}
        for table, name, kind in self._reader.ask(_TABLES)[1]:
            columns.setdefault(str(table), []).append((str(name), str(kind)))
        return [Table(name, known) for name, known in columns.items()]

    def close(self) -> None:
        """As the interface."""
        self._reader.close()
