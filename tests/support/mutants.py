"""The crawler broken on purpose, in one way each: what a simulation that is worth its time must find.

Each mutant is a function that breaks the code through a `MonkeyPatch`; its docstring says what is then wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nephila.fetch import HttpFetcher
from nephila.fetch.turns import AddressTurns
from nephila.frontier.embedded import LmdbFrontier, settling, upkeep
from nephila.frontier.embedded.book import Book
from nephila.frontier.embedded.journal import Journal
from nephila.frontier.embedded.writing import Held
from nephila.interfaces.frontier import Admission, Settled
from nephila.model.outcome import RulesKind, RulesLearned
from nephila.node.bookkeeper import Bookkeeper
from nephila.pipeline import Pipeline
from nephila.politeness import StandardPoliteness, conduct
from nephila.store import LocalArchive, local, recovery
from nephila.store.segment import SegmentFiles
from nephila.testing.sim.trouble import TroubledFile

Mutant = Callable[[pytest.MonkeyPatch], None]


def no_sync_before_confirm(patch: pytest.MonkeyPatch) -> None:
    """Bytes are called durable that nobody has synced."""
    patch.setattr(LocalArchive, "_sync_file", lambda *_: None)


def settled_before_stored(patch: pytest.MonkeyPatch) -> None:
    """Captures are written when they are synced, long after they were settled."""
    kept: dict[int, list[bytes]] = {}
    write, opened = SegmentFiles.append, LocalArchive._sync_file

    def append(self: SegmentFiles, segment: Any, data: bytes) -> None:
        kept.setdefault(id(segment), []).append(data)
        segment.end += len(data)

    def sync_file(self: LocalArchive, segment: Any) -> None:
        for data in kept.pop(id(segment), []):
            segment.end -= len(data)
            write(self._files, segment, data)
        opened(self, segment)

    patch.setattr(SegmentFiles, "append", append)
    patch.setattr(LocalArchive, "_sync_file", sync_file)


def any_token_settles(patch: pytest.MonkeyPatch) -> None:
    """A result whose lease is lost is taken for accepted."""
    settle = LmdbFrontier.settle

    async def settled(self: LmdbFrontier, *arguments: Any) -> Settled:
        return replace(await settle(self, *arguments), accepted=True)

    patch.setattr(LmdbFrontier, "settle", settled)


def no_rest_after_reaping(patch: pytest.MonkeyPatch) -> None:
    """A host whose lease was returned may be asked at once."""
    reap, delay_of = upkeep.reap, Book.delay_of

    def reaped(book: Book, **options: Any) -> int:
        patch.setattr(Book, "delay_of", lambda *_: 0)
        try:
            return reap(book, **options)
        finally:
            patch.setattr(Book, "delay_of", delay_of)

    patch.setattr(upkeep, "reap", reaped)


def old_rules_kept(patch: pytest.MonkeyPatch) -> None:
    """A robots.txt that was read once is never read again."""
    judge = conduct.judge_robots

    def judged(task: Any, answer: Any, last: Any, *rest: Any) -> Any:
        learned = judge(task, answer, last, *rest)
        if isinstance(learned, RulesLearned) and last is not None and last.kind is RulesKind.RULES:
            return RulesLearned(replace(last, fresh_until=learned.rules.fresh_until))
        return learned

    patch.setattr(conduct, "judge_robots", judged)


def rest_from_the_start(patch: pytest.MonkeyPatch) -> None:
    """A host's rest counts from the request, not from the end of the answer."""
    release = StandardPoliteness.release

    def hurried(self: StandardPoliteness, pace: Any, answer: Any, *rest: Any) -> Any:
        found = release(self, pace, answer, *rest)
        return replace(found, wait_ms=max(0, found.wait_ms - found.elapsed_ms))

    patch.setattr(StandardPoliteness, "release", hurried)


def retry_after_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Nobody reads Retry-After."""
    patch.setattr(conduct, "retry_after_ms", lambda *_: None)


def two_at_once(patch: pytest.MonkeyPatch) -> None:
    """A fetch asks twice, on two connections."""
    fetch = HttpFetcher.fetch

    async def twice(self: HttpFetcher, request: Any) -> Any:
        return (await asyncio.gather(fetch(self, request), fetch(self, request)))[0]

    patch.setattr(HttpFetcher, "fetch", twice)


def links_lost(patch: pytest.MonkeyPatch) -> None:
    """What a page links to is forgotten when it is settled."""
    patch.setattr(settling, "admit", lambda *_: Admission())


def torn_record_kept(patch: pytest.MonkeyPatch) -> None:
    """A file is not cut back to its last whole capture."""
    patch.setattr(recovery, "valid_end", lambda file, _name, _start=0: file.size())


def new_names_not_synced(patch: pytest.MonkeyPatch) -> None:
    """The directory is not synced when a segment was made."""
    create = SegmentFiles.create

    def created(self: SegmentFiles, segment: Any) -> bool:
        made = create(self, segment)
        self.take_unsynced_names()
        return made

    patch.setattr(SegmentFiles, "create", created)


def no_deadline_check(patch: pytest.MonkeyPatch) -> None:
    """A worker sends on a lease that has long expired."""
    has_turn = Pipeline._has_turn

    async def whenever(self: Pipeline, lease: Any, under_way: Any) -> bool:
        await has_turn(self, lease, under_way)
        return not self.stopping

    patch.setattr(Pipeline, "_has_turn", whenever)


def refused_not_disowned(patch: pytest.MonkeyPatch) -> None:
    """Nobody remembers that a capture is nobody's."""

    async def disown(*_: Any) -> None:
        return None

    patch.setattr(LmdbFrontier, "disown", disown)


def rules_not_asked(patch: pytest.MonkeyPatch) -> None:
    """Pages are fetched whatever robots.txt says."""
    patch.setattr(Pipeline, "_forbidden", lambda *_: None)


def contents_known_at_once(patch: pytest.MonkeyPatch) -> None:
    """Captures refer to others that are not durable yet."""

    def first_of_its_kind(self: Bookkeeper, _segment: Any, _offset: int, digest: bytes, original: Any) -> None:
        self._duplicates.remember(digest, original)

    patch.setattr(Bookkeeper, "first_of_its_kind", first_of_its_kind)


def recovered_name_not_synced(patch: pytest.MonkeyPatch) -> None:
    """Recovery makes the bytes of a file durable, and not its name."""
    recover = recovery.recover

    class Deaf:
        def __init__(self, disk: Any) -> None:
            self._disk = disk

        def sync_directory(self, _directory: Any) -> None:
            """Not done."""

        def __getattr__(self, name: str) -> Any:
            return getattr(self._disk, name)

    patch.setattr(local, "recover", lambda disk, *rest: recover(Deaf(disk), *rest))


def addresses_not_counted(patch: pytest.MonkeyPatch) -> None:
    """As many requests as one likes go to one address."""
    patch.setattr(AddressTurns, "ask", lambda *_: None)


def a_counter_drifts(patch: pytest.MonkeyPatch) -> None:
    """Pages that are completed are still counted as pending."""
    confirm = upkeep.confirm

    def confirmed(book: Book, *arguments: Any) -> int:
        count = confirm(book, *arguments)
        book.totals.pending += count > 1
        return count

    patch.setattr(upkeep, "confirm", confirmed)


def confirmed_past_unsettled(patch: pytest.MonkeyPatch) -> None:
    """Segments are confirmed to where they are synced, though captures in them wait for their settle."""

    def appended(self: Bookkeeper, segment: Any, _offset: int) -> None:
        self._outstanding.setdefault(segment, set())
        self._work.set()

    patch.setattr(Bookkeeper, "appended", appended)


def indexed_while_settled(patch: pytest.MonkeyPatch) -> None:
    """What is settled while the index of another file is written keeps no index of its own file from being written."""
    settle = Bookkeeper.settled

    def settled(self: Bookkeeper, *arguments: Any) -> None:
        known, self._unwritten = self._unwritten, set()
        settle(self, *arguments)
        self._unwritten = known

    patch.setattr(Bookkeeper, "settled", settled)


def listed_before_confirmed(patch: pytest.MonkeyPatch) -> None:
    """The catalogue lists captures that are settled, whether their bytes are durable or not."""
    record = Bookkeeper.record

    class Boundless(dict[Any, int]):
        def get(self, _segment: Any, _otherwise: Any = None) -> Any:
            return 1 << 62

    async def recorded(self: Bookkeeper) -> None:
        confirmed = self._confirmed = Boundless(self._confirmed)
        try:
            await record(self)
        finally:
            self._confirmed = dict(confirmed)

    patch.setattr(Bookkeeper, "record", recorded)


def dropped_bytes_believed(patch: pytest.MonkeyPatch) -> None:
    """Recovery syncs what a failed sync had left in the system's memory, and takes it for durable."""
    patch.setattr(TroubledFile, "rewrite", lambda *_: None)


def journal_not_synced(patch: pytest.MonkeyPatch) -> None:
    """Verbs of the frontier are answered before the journal has them for certain."""
    sync = TroubledFile.sync
    append = Journal.append

    def appended(self: Journal, *arguments: Any) -> int:
        patch.setattr(TroubledFile, "sync", lambda _: None)
        try:
            return append(self, *arguments)
        finally:
            patch.setattr(TroubledFile, "sync", sync)

    patch.setattr(Journal, "append", appended)


def journal_not_read(patch: pytest.MonkeyPatch) -> None:
    """What the journal has and the store has not is passed over."""
    patch.setattr(Journal, "records", lambda *_: [])


def turns_begun_blindly(patch: pytest.MonkeyPatch) -> None:
    """A worker begins its turn at the store without asking whether the last one came to the end of its own."""
    begin = Held._begin
    patch.setattr(Held, "_begin", lambda self: begin(self) if self._turns is None else self._enter())


MUTANTS: tuple[Mutant, ...] = (
    no_sync_before_confirm,
    settled_before_stored,
    any_token_settles,
    no_rest_after_reaping,
    old_rules_kept,
    rest_from_the_start,
    retry_after_forgotten,
    two_at_once,
    links_lost,
    torn_record_kept,
    new_names_not_synced,
    no_deadline_check,
    refused_not_disowned,
    rules_not_asked,
    contents_known_at_once,
    recovered_name_not_synced,
    addresses_not_counted,
    a_counter_drifts,
    confirmed_past_unsettled,
    indexed_while_settled,
    listed_before_confirmed,
    dropped_bytes_believed,
    journal_not_synced,
    journal_not_read,
    turns_begun_blindly,
)
