"""The node's own accounts: limits, heartbeats, and the order in which captures become durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation import Recorder

from nephila.interfaces.catalogue import CaptureRow, ErrorRow
from nephila.model.errors import StorageError
from nephila.model.events import Event, EventKind
from nephila.model.record import Original, SegmentId
from nephila.model.settings import LimitSettings
from nephila.model.summary import StoppedBy
from nephila.node.allowance import PageAllowance
from nephila.node.bookkeeper import Bookkeeper
from nephila.node.crew import keep_books
from nephila.node.heartbeat import Heartbeat
from nephila.observe.limit import Used
from nephila.testing.clock import VirtualClock
from nephila.testing.loop import run_virtual

A, B = SegmentId("a.warc.gz"), SegmentId("b.warc.gz")

# The allowance


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 20), st.lists(st.sampled_from(["take", "page", "other"]), max_size=80))
def test_never_more_requests_than_pages_left(limit: int, steps: list[str]) -> None:
    """S3: however requests and answers follow each other, the limit is never passed, and is reached."""
    allowance = PageAllowance(LimitSettings(max_pages=limit))
    on_their_way = 0
    for step in steps:
        if step == "take":
            left = allowance.left
            assert allowance.take() == (left is not None and left > 0)
            on_their_way += bool(left)
        elif on_their_way:
            allowance.pages += step == "page"
            allowance.give()
            on_their_way -= 1
        assert allowance.pages + on_their_way <= limit
        assert allowance.left == limit - allowance.pages - on_their_way


def test_without_a_limit_everything_may_go() -> None:
    """S3: 0 means no limit."""
    allowance = PageAllowance(LimitSettings())
    assert allowance.left is None
    assert all(allowance.take() for _ in range(1000))
    assert allowance.reached(Used(10**9, 10**9, 10**15, 10.0**9)) is None


@pytest.mark.parametrize(
    ("limits", "used", "reached"),
    [
        ({"max_pages": 5}, Used(5, 0, 0, 0), StoppedBy.MAX_PAGES),
        ({"max_pages": 5}, Used(4, 9, 9, 9), None),
        ({"max_domains": 5}, Used(0, 5, 0, 0), StoppedBy.MAX_DOMAINS),
        ({"max_total_bytes": 5}, Used(0, 0, 5, 0), StoppedBy.MAX_BYTES),
        ({"max_time_s": 5.0}, Used(0, 0, 0, 5.0), StoppedBy.MAX_TIME),
        ({"max_time_s": 5.0}, Used(0, 0, 0, 4.999), None),
        ({"max_pages": 5, "max_time_s": 5.0}, Used(5, 0, 0, 5.0), StoppedBy.MAX_PAGES),
    ],
)
def test_the_limit_that_is_reached_is_named(limits: dict[str, Any], used: Used, reached: StoppedBy | None) -> None:
    """S3: and says which."""
    assert PageAllowance(LimitSettings(**limits)).reached(used) is reached


# The heartbeat


def test_a_heartbeat_after_every_so_many_pages() -> None:
    """O1, S3: pages count, nothing else does."""
    allowance, told = PageAllowance(LimitSettings()), Recorder()
    beat = Heartbeat(3, allowance, lambda: (("fetched", allowance.pages),), told, VirtualClock())
    page = Event(EventKind.FETCH_OK, 1, status=200)
    others = [
        Event(EventKind.FETCH_OK, 1, status=404),
        Event(EventKind.FETCH_OK, 1, status=200, reason="unwanted_type"),
        Event(EventKind.ROBOTS_FETCHED, 1, status=200),
        Event(EventKind.HEARTBEAT, 1),
    ]
    for event in [page, *others, page, *others, page, Event(EventKind.FETCH_OK, 1, status=304), page]:
        beat.emit(event)
    beat.flush()
    beat.close()
    assert allowance.pages == 5
    assert [event.counts for event in told.events] == [(("fetched", 3),)]


# The bookkeeper


@dataclass
class Desk:
    """An archive, frontier, catalogue and index that write down what is done to them, in order."""

    done: list[tuple[Any, ...]] = field(default_factory=list)
    synced: list[tuple[SegmentId, int]] = field(default_factory=list)
    listeners: list[Callable[[SegmentId], None]] = field(default_factory=list)
    recorded: list[CaptureRow] = field(default_factory=list)
    refuses: str = ""

    def on_roll(self, listener: Callable[[SegmentId], None]) -> None:
        self.listeners.append(listener)

    def roll(self, segment: SegmentId) -> None:
        for listener in self.listeners:
            listener(segment)

    def sync(self) -> list[tuple[SegmentId, int]]:
        self._refuse("sync")
        synced, self.synced = self.synced, []
        return synced

    def close(self) -> None:
        self.done.append(("close",))

    async def confirm(self, segment: SegmentId, upto: int) -> int:
        self.done.append(("confirm", segment, upto))
        return 0

    async def disown(self, segment: SegmentId, offset: int) -> None:
        self.done.append(("disown", segment, offset))

    def record(self, captures: Sequence[CaptureRow], errors: Sequence[ErrorRow]) -> None:
        self._refuse("record")
        self.recorded += captures
        self.done.append(("record", [row.offset for row in captures], len(errors)))

    def flush(self) -> None:
        """The index of contents."""

    def remember(self, digest: bytes, original: Original) -> None:
        self.done.append(("remember", digest, original.record_id))

    def write_index(self, segment: SegmentId) -> None:
        self.done.append(("index", segment))

    def _refuse(self, what: str) -> None:
        if self.refuses == what:
            raise StorageError(f"{what} refused")


def row(segment: SegmentId, offset: int, end: int) -> CaptureRow:
    texts = {"url": "u", "host": "h", "domain": "d", "via": "", "content_type": "", "kind": "response"}
    numbers = dict.fromkeys(("depth", "level", "retries", "at", "length", "wire_bytes", "elapsed_ms"), 0)
    return CaptureRow(
        **texts,
        **numbers,
        fingerprint=b"",
        content_hash=b"",
        status=200,
        segment=segment,
        offset=offset,
        record_length=1,
        end=end,
        payload_digest="",
    )


def books(desk: Desk) -> Bookkeeper:
    return Bookkeeper(desk, desk, desk, desk, desk.write_index)  # type: ignore[arg-type]  # a desk for all of them


def run(main: Callable[[Desk, Bookkeeper], Any]) -> Desk:
    async def begun() -> Desk:
        desk = Desk()
        await main(desk, books(desk))
        return desk

    return asyncio.run(begun())


def test_nothing_is_confirmed_past_an_outstanding_capture() -> None:
    """F10, W2: its settle may never come; whatever lies past it is looked at again after a crash."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        for offset in (0, 100, 200):
            keeper.appended(A, offset)
        keeper.settled(A, 0, row(A, 0, 100))
        keeper.settled(A, 200, row(A, 200, 300))
        desk.synced = [(A, 300)]
        await keeper.tick()
        await keeper.record()
        assert desk.done == [("confirm", A, 100), ("record", [0], 0)]
        desk.done.clear()
        keeper.settled(A, 100, row(A, 100, 200))
        await keeper.tick()
        await keeper.record()
        assert desk.done == [("confirm", A, 300), ("record", [200, 100], 0)]

    run(main)


def test_what_is_not_durable_is_nobodys_original() -> None:
    """D2, W2: a revisit may become durable before what it refers to, and a power loss come in between."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        for offset in (0, 100):
            keeper.appended(A, offset)
            keeper.first_of_its_kind(A, offset, b"%d" % offset, Original("u", f"record {offset}", 0, "", ""))
        assert desk.done == []
        keeper.settled(A, 0, row(A, 0, 100))
        keeper.settled(A, 100, None)
        desk.refuses = "sync"
        with pytest.raises(StorageError):
            await keeper.tick()
        assert ("remember", b"0", "record 0") not in desk.done
        desk.refuses, desk.synced = "", [(A, 200)]
        await keeper.tick()
        remembered = [one for one in desk.done if one[0] == "remember"]
        assert remembered == [("remember", b"0", "record 0")], "what was refused is nobody's"

    run(main)


def test_what_is_not_settled_is_nobodys_original() -> None:
    """D2, F3: it may be refused, or be nobody's after a kill; what refers to it then would refer to nothing listed."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        for offset in (0, 100):
            keeper.appended(A, offset)
            keeper.first_of_its_kind(A, offset, b"%d" % offset, Original("u", f"record {offset}", 0, "", ""))
        keeper.settled(A, 100, row(A, 100, 200))
        desk.synced = [(A, 200)]
        await keeper.tick()
        assert [one for one in desk.done if one[0] == "remember"] == [("remember", b"100", "record 100")]
        keeper.settled(A, 0, row(A, 0, 100))
        await keeper.tick()
        assert ("remember", b"0", "record 0") in desk.done

    run(main)


def test_a_capture_of_an_earlier_run_that_is_refused_breaks_nothing() -> None:
    """F10: recovery has handed the segment over by the time it is disowned."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        keeper.appended(A, 0)
        keeper.settled(A, 0, None)
        assert keeper.take(A) == []
        await keeper.adopt(A, 100, [])
        await keeper.tick()
        assert ("disown", A, 0) in desk.done

    run(main)


def test_near_duplicates_are_written_before_the_catalogue() -> None:
    """D3, F10: what the catalogue has is not looked at again after a kill, so the index must have it by then."""

    class Near:
        def __init__(self, desk: Desk) -> None:
            self._desk = desk

        def flush(self) -> None:
            self._desk.done.append(("near",))

    async def main() -> Desk:
        desk = Desk()
        near: Any = Near(desk)
        keeper = Bookkeeper(desk, desk, desk, desk, desk.write_index, near)  # type: ignore[arg-type]  # as above
        keeper.appended(A, 0)
        keeper.settled(A, 0, row(A, 0, 100))
        desk.synced = [(A, 100)]
        await keeper.tick()
        await keeper.record()
        return desk

    assert asyncio.run(main()).done == [("confirm", A, 100), ("near",), ("record", [0], 0)]


def test_nothing_is_confirmed_past_what_is_synced() -> None:
    """F10, W2: a capture that came after the sync waits for the next one."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        desk.synced = [(A, 100)]
        for offset in (0, 100):
            keeper.appended(A, offset)
            keeper.settled(A, offset, row(A, offset, offset + 100))
        keeper.appended(A, 200)
        await keeper.tick()
        await keeper.record()
        assert desk.done == [("confirm", A, 100), ("record", [0], 0)]

    run(main)


def test_a_refused_capture_is_disowned_before_anything_past_it_is_confirmed() -> None:
    """F3, F10: otherwise a crash between the two would list it."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        keeper.appended(A, 0)
        keeper.settled(A, 0, None)
        desk.synced = [(A, 100)]
        await keeper.tick()
        await keeper.record()
        assert desk.done == [("disown", A, 0), ("confirm", A, 100)]

    run(main)


def test_what_is_settled_while_an_index_is_written_is_recorded_before_its_own() -> None:
    """W3, F10, K2: else a segment would be taken for finished, and its capture stay in no catalogue for ever."""

    async def main() -> Desk:
        desk, loop = Desk(), asyncio.get_running_loop()

        async def meanwhile() -> None:
            keeper.settled(B, 0, row(B, 0, 100))
            await keeper.tick()

        def write_index(segment: SegmentId) -> None:
            desk.write_index(segment)
            if segment == A:
                asyncio.run_coroutine_threadsafe(meanwhile(), loop).result(30)

        keeper = Bookkeeper(desk, desk, desk, desk, write_index)  # type: ignore[arg-type]  # a desk for all of them
        for segment in (A, B):
            keeper.appended(segment, 0)
            desk.roll(segment)
        keeper.settled(A, 0, row(A, 0, 100))
        desk.synced = [(A, 100), (B, 100)]
        await keeper.tick()
        await keeper.record()
        assert ("index", B) not in desk.done
        await keeper.record()
        return desk

    done = asyncio.run(main()).done
    assert done[-2:] == [("record", [0], 0), ("index", B)]


def test_an_index_is_written_when_its_segment_is_closed_and_all_of_it_is_recorded() -> None:
    """W1, W3: a segment with an index is taken for finished."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        keeper.appended(A, 0)
        keeper.appended(A, 100)
        keeper.settled(A, 0, row(A, 0, 100))
        desk.roll(A)
        desk.synced = [(A, 200)]
        await keeper.tick()
        await keeper.record()
        assert ("index", A) not in desk.done, "one is outstanding"
        keeper.settled(A, 100, row(A, 100, 200))
        await keeper.record()
        assert ("index", A) not in desk.done, "it is settled, not recorded"
        await keeper.tick()
        await keeper.record()
        assert desk.done[-2:] == [("record", [100], 0), ("index", A)]
        await keeper.record()
        assert desk.done.count(("index", A)) == 1

    run(main)


def test_a_segment_that_nobody_owns_anything_of_is_synced_before_it_counts_as_finished() -> None:
    """W1, F10: one that has its index is not looked at again; a power loss must not find it with less than it had."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        keeper.appended(A, 0)
        desk.roll(A)
        keeper.settled(A, 0, None)
        await keeper.tick()
        await keeper.record()
        assert ("index", A) not in desk.done, "the sync did not tell of it yet"
        desk.synced = [(A, 100)]
        await keeper.tick()
        await keeper.record()
        assert desk.done[-2:] == [("confirm", A, 100), ("index", A)]

    run(main)


@pytest.mark.parametrize("stalls_s", [0.0, 0.07, 0.5, 60.0])
def test_a_slow_catalogue_does_not_keep_the_archive_from_being_synced(stalls_s: float) -> None:
    """W2, N4: what was appended is durable `sync_ms` later, and not twice as late."""
    synced: list[float] = []

    class Books:
        async def wait_for_work(self) -> None:
            """There is always some."""

        async def tick(self) -> None:
            synced.append(asyncio.get_running_loop().time())

        async def record(self) -> None:
            await asyncio.sleep(stalls_s)

    archive = SimpleNamespace(sync_ms=100.0)
    machinery: Any = SimpleNamespace(
        settings=SimpleNamespace(archive=archive),
        bookkeeper=Books(),
        events=Recorder(),
        look_at_directory=lambda: None,
    )
    run_virtual(lambda: keep_books(machinery, lambda _: None, lambda: len(synced) >= 100))
    gaps = [later - sooner for sooner, later in pairwise(synced)]
    assert max(gaps) == pytest.approx(0.1)


def test_segments_do_not_wait_for_each_other() -> None:
    """W1: several are open where each domain has its own."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        for segment in (A, B):
            keeper.appended(segment, 0)
        keeper.settled(B, 0, row(B, 0, 50))
        desk.roll(A)
        desk.roll(B)
        desk.synced = [(A, 70), (B, 50)]
        await keeper.tick()
        await keeper.record()
        assert desk.done == [("confirm", B, 50), ("record", [0], 0), ("index", B)]

    run(main)


def test_what_the_catalogue_refused_is_kept_for_the_next_time() -> None:
    """W3: and its segment gets no index meanwhile."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        keeper.appended(A, 0)
        keeper.settled(A, 0, row(A, 0, 100))
        keeper.failed(ErrorRow("u", b"", "h", "dns", "", 0, 0, False))
        desk.roll(A)
        desk.synced = [(A, 100)]
        await keeper.tick()
        desk.refuses = "record"
        with pytest.raises(StorageError):
            await keeper.record()
        assert ("index", A) not in desk.done
        desk.refuses = ""
        await keeper.record()
        assert desk.done[-2:] == [("record", [0], 1), ("index", A)]

    run(main)


def test_what_waits_for_the_catalogue_is_bounded() -> None:
    """N4, W3: too much of it and nothing new is fetched; whoever was told so is woken when there is room."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        woken: list[bool] = []
        keeper.on_room(lambda: woken.append(True))
        keeper.most_waiting = 2
        desk.synced = [(A, 300)]
        for number in range(2):
            assert keeper.has_room()
            keeper.appended(A, 100 * number)
            keeper.settled(A, 100 * number, row(A, 100 * number, 100 * number + 100))
        assert not keeper.has_room()
        await keeper.tick()
        desk.refuses = "record"
        with pytest.raises(StorageError):
            await keeper.record()
        assert not keeper.has_room()
        assert woken == []
        desk.refuses = ""
        await keeper.record()
        assert woken == [True]
        assert keeper.has_room()
        await keeper.record()
        assert woken == [True], "nobody waits any more"

    run(main)


def test_finishing_closes_the_archive_and_leaves_nothing_unwritten() -> None:
    """F10, W2: even when the disk has refused before."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        keeper.appended(A, 0)
        keeper.settled(A, 0, row(A, 0, 100))
        desk.synced = [(A, 100)]
        await keeper.finish()
        assert [one[0] for one in desk.done] == ["confirm", "close", "record"]

    async def broken(desk: Desk, keeper: Bookkeeper) -> None:
        desk.refuses = "sync"
        with pytest.raises(StorageError):
            await keeper.finish()
        assert desk.done == [("close",)]

    run(main)
    run(broken)


def test_whoever_waits_for_work_is_woken_by_it() -> None:
    """F10: a capture, an error, or what is left over from the last time."""

    async def main(desk: Desk, keeper: Bookkeeper) -> None:
        waiting = asyncio.create_task(keeper.wait_for_work())
        await asyncio.sleep(0)
        assert not waiting.done()
        keeper.appended(A, 0)
        await waiting
        keeper.settled(A, 0, row(A, 0, 100))
        await keeper.wait_for_work()
        await keeper.wait_for_work()  # the row is still not recorded
        assert keeper.take(A)[0].offset == 0
        assert keeper.take(A) == []

    run(main)
