"""What a fleet has stored, as an export reads it: the catalogue in PostgreSQL, the archive in its store (W6)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from nephila.config import Configured
from nephila.node.archiving import object_store
from nephila.node.audit.case import case_of_fleet
from nephila.node.clock import SystemClock
from nephila.node.exporting.source import Source, taken_down_by
from nephila.store import ArchivePlace
from nephila.store.postgres import PostgresCatalogue
from nephila.store.trail import ARCHIVES

from .access import check_fleet
from .regions import regional
from .takedown_records import TakedownObjects


@contextmanager
def source_of_fleet(configured: Configured) -> Iterator[Source]:
    """The crawl that settings name, of regions the one that they name; what workers have in spools is not in it yet."""
    settings = regional(configured.settings)
    crawl = check_fleet(settings)
    name = settings.catalogue.name or crawl
    objects = object_store(settings, SystemClock(), uploads=1)
    try:
        pending = TakedownObjects(objects, ArchivePlace.parse(settings.archive.url)).pending()
        with (
            closing(PostgresCatalogue(settings.catalogue, name, os.environ, read_only=True)) as catalogue,
            case_of_fleet(settings, objects) as case,
        ):
            root, disk = case.archives
            yield Source(crawl, catalogue, root / ARCHIVES, disk, settings, taken_down_by(pending, settings))
    finally:
        asyncio.run(objects.close())
