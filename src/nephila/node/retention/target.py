"""Where what goes is moved to: a directory, or a place in a store of objects (`--archive-to`)."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from nephila import VERSION
from nephila.engines.disk import LocalDisk
from nephila.model.errors import UsageError
from nephila.model.settings import Settings
from nephila.node.archiving import object_store
from nephila.node.clock import SystemClock
from nephila.store import MARKER, ArchivePlace, CrawlIdentity
from nephila.store.moving import Elsewhere
from nephila.store.uploading import UploadingDisk

FLAG = "--archive-to"
IN_A_STORE = "s3://"


def check_target(target: str, settings: Settings, out: Path | None = None) -> None:
    """Raise `UsageError` for a place where nothing can be moved to; `out` is the crawl's directory, if it has one."""
    if not target:
        return
    if target.startswith(IN_A_STORE):
        place = ArchivePlace.parse(target, FLAG)
        own = ArchivePlace.parse(settings.archive.url) if settings.archive.url else None
        if own is not None and own.bucket == place.bucket and place.key("").startswith(own.key("")):
            raise UsageError(
                f"{target} lies in the archive of the crawl, where files that no chain knows count as tampering",
                "choose a prefix outside of it",
            )
        return
    path = Path(target)
    if out is not None and path.resolve().is_relative_to(out.resolve()):
        raise UsageError(
            f"{target} lies in the crawl directory, where files that no chain knows count as tampering",
            "choose a directory outside of it",
        )
    if path.exists() and not path.is_dir():
        raise UsageError(f"{target} is no directory", "choose another one")


@asynccontextmanager
async def elsewhere_at(target: str, settings: Settings, secret: int) -> AsyncIterator[Elsewhere | None]:
    """That place, until the end of the block; None without one. `secret` is the crawl's. Raises `UsageError`."""
    identity = CrawlIdentity(secret, f"Nephila/{VERSION}")
    if not target:
        yield None
        return
    if not target.startswith(IN_A_STORE):
        yield Elsewhere(Path(target), LocalDisk(), identity)
        return
    place = ArchivePlace.parse(target, FLAG)
    store = object_store(replace(settings, archive=replace(settings.archive, url=target)), SystemClock(), uploads=1)
    try:
        if await store.look(place.key(MARKER)) is not None:
            raise UsageError(
                f"{target} holds the archive of a crawl, where files that no chain knows count as tampering",
                "choose another prefix",
            )
        with tempfile.TemporaryDirectory(prefix="nephila-retention-") as folder:
            disk = UploadingDisk(store, place, Path(folder))
            yield Elsewhere(Path(folder), disk, identity, target)
    finally:
        await store.close()
