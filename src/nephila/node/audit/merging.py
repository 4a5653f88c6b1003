"""Each request once: what both archive and event log tell of is the archive's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .findings import Audit
from .request import Came, Request


def merged(requests: Iterable[Request], audit: Audit) -> Iterator[Request]:
    """Requests that come in the order of boot, time and host."""
    group: list[Request] = []
    for request in requests:
        if group and (group[0].boot, group[0].sent_ms, group[0].host) != (request.boot, request.sent_ms, request.host):
            yield from _merged_group(group, audit)
            group = []
        group.append(request)
    yield from _merged_group(group, audit)


def _merged_group(group: list[Request], audit: Audit) -> Iterator[Request]:
    """Of requests that left for one host in the same millisecond: the archive's, and what it lacks of the events'."""
    by_length: dict[int, list[Request]] = {}
    for request in group:
        by_length.setdefault(request.elapsed_ms, []).append(request)
    for same in by_length.values():
        archived = [request for request in same if request.archived]
        told = [request for request in same if not request.archived]
        for request in archived:
            request.late = any(one.late for one in told)
            audit.untold += not told
        if archived:
            yield from archived
        elif told:
            yield max(told, key=lambda one: (one.came is not Came.NOTHING, one.answered))
