"""An audit from beginning to end: the chains checked, the requests gathered, sorted and judged.

Nothing in the crawl directory, or in the store, is written, made or locked. What must be sorted lies in a folder of its
own, which is removed at the end.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from nephila.engines.disk import Disk, LocalDisk
from nephila.interfaces.objects import ObjectStore
from nephila.model.errors import StorageError
from nephila.model.settings import Settings
from nephila.store.line_sort import LineSort

from .case import Case, case_of_directory, case_of_fleet
from .findings import Audit
from .gathering import Gathering, Witness
from .inquiry import Circumstance, Inquiry, host_of
from .line_of_time import BootLine, CommonLine
from .merging import merged
from .request import Request, sortable_by, unsorted
from .rulebook import RuleBook


def audit(
    root: Path,
    *,
    host: str = "",
    expect: Sequence[str] = (),
    disk: Disk | None = None,
    event_disk: Disk | None = None,
    objects: ObjectStore | None = None,
) -> Audit:
    """Audit a crawl directory, or what of it concerns one host. `expect`: heads of chains that were noted elsewhere.

    Archives that are in a store of objects are read from there. Raises `CrawlDirectoryError` where there is no crawl,
    `StorageError` where it cannot be read, `ObjectStoreError` where the store cannot.
    """
    with case_of_directory(root, disk, event_disk, objects) as case:
        return _inquire(case, host, expect)


def audit_fleet(
    settings: Settings, *, host: str = "", expect: Sequence[str] = (), objects: ObjectStore | None = None
) -> Audit:
    """The same of a fleet's crawl, from what its workers have brought to the store. Raises as `audit` does."""
    with case_of_fleet(settings, objects) as case:
        return _inquire(case, host, expect)


def _inquire(case: Case, host: str, expect: Sequence[str]) -> Audit:
    result = Audit()
    try:
        seen = case.check(tuple(expect))
        result.trail = seen.verdict
        with (
            tempfile.TemporaryDirectory(prefix="nephila-audit-") as folder,
            RuleBook(Path(folder) / "rules") as rules,
            LineSort(LocalDisk(), Path(folder) / "requests") as lines,
            LineSort(LocalDisk(), Path(folder) / "moments") as moments,
        ):
            gathering = Gathering(result, rules, host_of(host))
            witnesses = [Witness(one.root, one.disk, one.owner in seen.waiting) for one in case.trails]
            gathering.gather(lines, witnesses, case.archives)
            requests = merged(_requests(lines), result)
            line: BootLine | CommonLine = BootLine(gathering.begun_ms)
            if gathering.bounds:
                line = CommonLine(gathering.bounds)
                requests = _in_order(requests, line, moments)
            lossy = gathering.was_restarted or not seen.verdict.ended or seen.verdict.under_way > 0
            circumstance = Circumstance(not host, lossy, max(1, gathering.parties), gathering.taken_out)
            Inquiry(result, rules, gathering.terms, line, gathering.stretches, circumstance).hear(requests)
    except OSError as error:
        raise StorageError(f"{error.filename or 'the trail'} cannot be read: {error.strerror or error}") from error
    return result


def _in_order(requests: Iterable[Request], line: CommonLine, moments: LineSort) -> Iterator[Request]:
    """Requests of machines that worked beside each other, in the order of the line."""
    for request in requests:
        moments.add(sortable_by(line.place(request).line_ms, request))
    return _requests(moments)


def _requests(lines: LineSort) -> Iterator[Request]:
    for block in lines.blocks():
        for line in block.splitlines():
            yield unsorted(line)
