"""Opening the catalogue of a crawl for people who ask in SQL: `nephila sql` (W6)."""

from __future__ import annotations

import os
from pathlib import Path

from nephila.config import Configured, load, read_stored
from nephila.interfaces.queries import CatalogueQueries
from nephila.store.query import SqliteQueries

from .cataloguing import crawl_name, has_catalogue
from .directory import CrawlDirectory
from .losses import what_is_lacking


def open_queries(crawl: Path | Configured) -> CatalogueQueries:
    """Of a crawl directory, or of a fleet's crawl by its settings; the caller closes it."""
    if not isinstance(crawl, Path):
        from .fleet.access import check_fleet  # noqa: PLC0415 - only where it is asked for
        from .fleet.regions import regional  # noqa: PLC0415 - as above

        settings = regional(crawl.settings)
        name = settings.catalogue.name or check_fleet(settings)
    else:
        directory = CrawlDirectory(crawl)
        directory.check()
        settings = load(stored=read_stored(crawl)).settings
        if not has_catalogue(directory, settings):
            raise what_is_lacking(directory)
        if not settings.catalogue.url:
            return SqliteQueries(directory.catalogue)
        name = crawl_name(directory, settings)
    from nephila.store.postgres.query import PostgresQueries  # noqa: PLC0415 - as above

    return PostgresQueries(settings.catalogue, name, os.environ)
