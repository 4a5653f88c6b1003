"""What a crawl directory lacks: its frontier, its catalogue, or all of it because nothing was fetched yet (F10, N8).

A crawl makes its frontier before anything else, so an archive without one has lost it. To begin another over it would
fetch every stored page once more, and `nephila frontier rebuild` would find a frontier there.
"""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path

from nephila.engines.disk import LookingDisk
from nephila.model.errors import CrawlDirectoryError
from nephila.store import SqliteCatalogue
from nephila.store.rotation import WARC_SUFFIXES
from nephila.store.trail import ARCHIVES, SUFFIX, lines_of

from .directory import CrawlDirectory


def check_frontier(directory: CrawlDirectory) -> None:
    """Raise `CrawlDirectoryError` where there is an archive and no frontier."""
    if not directory.has_frontier and has_archive(directory):
        raise _frontier_lost(directory)


def what_is_lacking(directory: CrawlDirectory) -> CrawlDirectoryError:
    """What to say where frontier or catalogue are not there; a frontier that was imported needs no seeds."""
    if not has_archive(directory):
        seeds = "" if directory.has_frontier else "SEEDS "
        return CrawlDirectoryError(
            f"the crawl in {directory.root} has not begun yet",
            hint=f"start it: nephila crawl {seeds}--out {_named(directory)}",
        )
    if not directory.has_frontier:
        return _frontier_lost(directory)
    return CrawlDirectoryError(
        f"the crawl in {directory.root} has no catalogue any more",
        hint=f"going on with it writes one anew from the archive: nephila crawl --out {_named(directory)}",
    )


def has_archive(directory: CrawlDirectory) -> bool:
    """Whether anything was captured, wherever it lies: no byte leaves this machine before a chain has sealed it."""
    return (
        any(_has_captures(folder) for folder in (directory.warc, directory.spool))
        or any(_seals_archives(path) for path in sorted(directory.chain.glob(f"*{SUFFIX}")))
        or _lists_captures(directory.catalogue)
    )


def _frontier_lost(directory: CrawlDirectory) -> CrawlDirectoryError:
    return CrawlDirectoryError(
        f"the crawl in {directory.root} has an archive, but no frontier any more",
        hint=f"build it anew from the archive: nephila frontier rebuild {_named(directory)}",
    )


def _has_captures(folder: Path) -> bool:
    names = LookingDisk().names(folder)
    return any(name.endswith(WARC_SUFFIXES) and (folder / name).stat().st_size for name in names)


def _seals_archives(chain: Path) -> bool:
    return any(seal[0].startswith(f"{ARCHIVES}/") for line in lines_of(LookingDisk(), chain) for seal in line.seals)


def _lists_captures(catalogue: Path) -> bool:
    if not catalogue.exists():
        return False
    with closing(SqliteCatalogue(catalogue, read_only=True)) as listed:
        return listed.capture_count() > 0


def _named(directory: CrawlDirectory) -> str:
    return shlex.quote(str(directory.root))
