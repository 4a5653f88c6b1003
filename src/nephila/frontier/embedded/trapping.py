"""Traps in the frontier (T2, T5): every first fetch is counted by the patterns of its URL; what holds them is obeyed.

`frontier.traps` decides; this keeps its tallies and does what they say. A URL that is held back goes onto the shelf of
the pattern that holds it. From there one comes back at a time: each `slow_s` of a slowed pattern, each `probe_s` of a
quarantined one, marked so that it is not caught again; and all of them, some with every claim, once nothing holds them.
"""

from __future__ import annotations

from nephila.frontier import traps
from nephila.frontier.traps import SkeletonTally
from nephila.model.outcome import DeferReason, Done, Settlement
from nephila.model.task import Candidate, PageTask

from .book import Book
from .bundle import pack_entry, read_head, tail_of
from .endings import take_out
from .queueing import PROBE_MARK, Work
from .records import HostState
from .shelving import RELEASED_AT_ONCE, first_bundle, groups_on_shelf, shelve, take_bundle, unshelve
from .tables import HOST_KEY_BYTES, SKELETON, URL, lengthen
from .tallies import find_tally, hold_on, put_tally, tallies_of
from .waking import look_further


def observe(
    book: Book, key: bytes, host: HostState, settlement: Settlement, new: list[Candidate], *, first: bool
) -> bool:
    """Count what a fetch brought; whether it was new content."""
    task, outcome = settlement.task, settlement.outcome
    if not isinstance(outcome, Done) or not isinstance(task, PageTask):
        return False
    missing = 400 <= outcome.status < 500
    if not first or host.fetched < traps.TALLIED_FROM or not (outcome.page or missing):
        return first and outcome.page and not outcome.duplicate
    own = traps.patterns(task.url)
    tallies = tallies_of(book, key, own)
    seen = traps.Observation(
        url=task.url,
        found_on=_patterns_of_via(task.url, task.via),
        error=missing,
        duplicate=outcome.duplicate,
        text=outcome.text,
        shape=outcome.shape,
        near=outcome.near,
        outlinks=outcome.outlinks,
        inside=_inside(task.url, new),
    )
    if new and traps.needs_links(tallies, seen):
        links = [traps.patterns(one.address.url) for one in new if one.address.host == host.name]
        outside = traps.count_outside(own, links, lambda pattern: find_tally(book, key, pattern))
        seen = seen._replace(outside=outside + len(new) - len(links))
    before = [tally.state for tally in tallies]
    result = traps.judge(tallies, seen, book.policy.traps, book.wall_s)
    for tally, state in zip(tallies, before, strict=True):
        put_tally(book, key, host, tally, state)
    return result is traps.Yield.FRESH


def _patterns_of_via(url: str, via: str) -> tuple[str, ...]:
    """The patterns of the page that led to a URL, if that is on the same host."""
    host_end = url.find("/", 8) + 1
    return traps.patterns(via) if via[:host_end] == url[:host_end] else ()


def _inside(url: str, new: list[Candidate]) -> int:
    prefix = traps.pour_prefix(url)
    return [one[0][0].startswith(prefix) for one in new].count(True) if prefix and new else 0


def catch(book: Book, key: bytes, host: HostState, one: Work, url: str) -> bool:
    """Whether a queued URL is held back: it is put onto the shelf of what holds it then."""
    if one.record is not None or one.place[0] == 0 or one.place[-4:].startswith(PROBE_MARK):
        return False  # it was asked for before, somebody wants it now, or it is the one that may go
    hold = hold_on(book, key, url)
    if hold is None:
        return False
    _, record = take_out(book, key, host, one.place, one.fingerprint)
    head = read_head(one.bundle, key, URL)._replace(rank=record.rank)
    entry = pack_entry(one.tail.encode(), one.fingerprint)
    shelve(book, key, host, DeferReason.TRAP, hold.group, one.place, head, [entry])
    look_further(book, key)
    return True


def take_probe(book: Book, key: bytes, host: HostState) -> None:
    """Let come back what may: one URL of each pattern whose time has come, and all that nothing holds any more."""
    if not host.trap_at or host.trap_at > book.now:
        return
    for group in groups_on_shelf(book, key, DeferReason.TRAP):
        tally = _tally_at(book, key, group)
        if tally is None:
            unshelve(book, key, host, DeferReason.TRAP, RELEASED_AT_ONCE, group)
        elif tally.not_before_s <= book.wall_s and not _held_by_another(book, key, host, group):
            unshelve(book, key, host, DeferReason.TRAP, 1, group, tie=PROBE_MARK + bytes(1))
            before = tally.state
            traps.take_turn([tally], book.policy.traps, book.wall_s)
            put_tally(book, key, host, tally, before)
    host.trap_at = _next_probe(book, key)


def _tally_at(book: Book, key: bytes, group: bytes) -> SkeletonTally | None:
    """The tally of a pattern that holds URLs back; None when it does no more."""
    tally = book.tally(key + SKELETON + group)
    return None if tally is None or tally.state is traps.TrapState.NORMAL else tally


def _held_by_another(book: Book, key: bytes, host: HostState, group: bytes) -> bool:
    """Whether the first URLs on a shelf are held by a stricter pattern by now: they are put onto its shelf then."""
    found = first_bundle(book, key, DeferReason.TRAP, group)
    if found is None:
        return False
    place, head, entries = found
    hold = hold_on(book, key, lengthen(tail_of(entries[0]).decode(), host.name))
    if hold is None or hold.group == group:
        return False
    take_bundle(book, key, host, DeferReason.TRAP, group, place, len(entries))
    shelve(book, key, host, DeferReason.TRAP, hold.group, place, head, entries)
    return True


def _next_probe(book: Book, key: bytes) -> int:
    """When one of the URLs that traps hold back may be tried next, on the timeline; 0 when there is none."""
    moments: list[int] = []
    for group in groups_on_shelf(book, key, DeferReason.TRAP):
        tally = _tally_at(book, key, group)
        moments.append(book.now + (1 if tally is None else max(1, tally.not_before_s - book.wall_s) * 1000))
    return min(moments, default=0)


def release(book: Book, key: bytes, group: bytes) -> int:
    """Let a pattern start anew, by a person's word; how many URLs come back at once."""
    tally = book.tally(key + SKELETON + group)
    if tally is None:
        return 0
    host = book.known_host(key)
    before = tally.state
    traps.release(tally, book.wall_s)
    put_tally(book, key, host, tally, before)
    waiting = host.shelved
    host.trap_at = max(1, book.now)
    if not book.token_of(key):
        take_probe(book, key, host)
        book.rest(key, host)
    return waiting - host.shelved


def held(book: Book) -> list[bytes]:
    """The keys of all patterns that hold URLs back: host key and group."""
    with book.txn.cursor(db=book.db["trapped"]) as cursor:
        return [key for key, _ in cursor if len(key) > HOST_KEY_BYTES]
