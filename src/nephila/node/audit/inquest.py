"""An audit from beginning to end: the chains checked, the requests gathered, sorted and judged.

Nothing in the crawl directory is written, made or locked. What must be sorted lies in a folder of its own, which is
removed at the end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from nephila.config import load, read_stored
from nephila.model.errors import StorageError, UsageError
from nephila.node.directory import CrawlDirectory
from nephila.store.disk import Disk, LocalDisk, LookingDisk
from nephila.store.line_sort import LineSort
from nephila.store.trail_check import TrailCheck

from .findings import Audit
from .gathering import Gathering
from .inquiry import Inquiry, host_of
from .request import Request, unsorted
from .rulebook import RuleBook


def audit(
    root: Path,
    *,
    host: str = "",
    expect: Sequence[str] = (),
    disk: Disk | None = None,
    event_disk: Disk | None = None,
) -> Audit:
    """Audit a crawl directory, or what of it concerns one host. `expect`: heads of chains that were noted elsewhere.

    Raises `CrawlDirectoryError` where there is no crawl, `StorageError` where it cannot be read, `UsageError` where its
    archives are elsewhere: without them nothing can be said of what robots.txt allowed.
    """
    CrawlDirectory(root).check()
    looking = LookingDisk()
    disk, event_disk = disk or looking, event_disk or looking
    _check_archives(root)
    result = Audit()
    try:
        result.trail = TrailCheck(root, disk, event_disk).run(tuple(expect))
        with (
            tempfile.TemporaryDirectory(prefix="nephila-audit-") as folder,
            RuleBook(Path(folder) / "rules") as rules,
            LineSort(LocalDisk(), Path(folder) / "requests") as lines,
        ):
            gathering = Gathering(root, disk, event_disk, result, rules, host_of(host))
            gathering.gather(lines)
            lossy = len(gathering.boots) > 1 or not result.trail.ended
            terms, begun, ends = gathering.terms, gathering.begun_ms, gathering.stretch_ends
            gone = gathering.taken_out
            inquiry = Inquiry(result, rules, terms, begun, ends, whole=not host, lossy=lossy, taken_out=gone)
            inquiry.hear(_requests(lines))
    except OSError as error:
        raise StorageError(f"{error.filename or root} cannot be read: {error.strerror or error}") from error
    return result


def _check_archives(root: Path) -> None:
    stored = read_stored(root)
    place = load(stored=stored).settings.archive.url if stored is not None else ""
    if place:
        raise UsageError(
            f"the archives of this crawl are in {place}, where no audit reaches",
            hint="an audit reads archives that lie in the crawl directory, sealed by its chain",
        )


def _requests(lines: LineSort) -> Iterator[Request]:
    for block in lines.blocks():
        for line in block.splitlines():
            yield unsorted(line)
