"""The journal of a frontier that has its store to itself: what was answered lasts, whatever dies before the commit."""

from __future__ import annotations

import asyncio
import gc
import random
import shutil
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import lmdb
import pytest

from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.embedded import journal as journals
from nephila.frontier.embedded import writing as writings
from nephila.frontier.embedded.book import Book
from nephila.frontier.embedded.journal import FILE_NAME, Change, Journal
from nephila.frontier.embedded.turnstile import Turnstile
from nephila.frontier.embedded.writing import Held
from nephila.frontier.policy import Policy
from nephila.model.errors import StorageError
from nephila.model.settings import FrontierSettings
from nephila.node.clock import SystemClock
from nephila.testing.clock import VirtualClock
from nephila.testing.contracts.frontier import addresses, candidates
from nephila.testing.disk import ForgetfulDisk
from nephila.testing.loop import run_virtual

POLICY = Policy(FrontierSettings(linger_ms=0, commit_ms=60_000), base_delay_ms=1000, robots=False)
SECRET = 7
CHANGES: list[Change] = [(1, {b"key": b"value", b"gone": None}), (2, {b"other": b"x" * 300})]


class Life:
    """A frontier on a disk that can be unplugged; it may be killed and lived again."""

    def __init__(self, folder: Path, disk: ForgetfulDisk | None = None) -> None:
        self.folder, self.disk = folder, disk or ForgetfulDisk()
        self.clock = VirtualClock()
        self.frontier = self.open(folder, alone=True)

    def open(self, folder: Path, *, alone: bool) -> LmdbFrontier:
        return LmdbFrontier(folder, self.clock, POLICY, threaded=False, alone=alone, disk=self.disk)

    def killed(self, left: ForgetfulDisk) -> Life:
        """What another process finds that begins when this one was killed: the store's files as they are."""
        folder = self.folder.with_name(self.folder.name + "-again")
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("lock.mdb"))
        for name in [one.name for one in left.names_of_all()]:
            left.rename(self.folder / name, folder / name)
        return Life(folder, left)

    def known(self) -> set[str]:
        """Which of the URLs below are known."""
        found = {name: addresses(f"https://{name}.example/")[0] for name in "abcdef"}
        return {name for name, one in found.items() if self.frontier.story(one.host, one.fingerprint)}

    async def admit(self, *names: str) -> None:
        for name in names:
            await self.frontier.admit(candidates(f"https://{name}.example/"))


def run(act: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(act())


def test_what_was_answered_is_there_after_a_kill_before_the_commit(tmp_path: Path) -> None:
    """F10, Q4: groups that only the journal has are written into the store by the next one who opens it."""

    async def act() -> None:
        life = Life(tmp_path / "one")
        await life.admit("a", "b")
        again = life.killed(life.disk.hand_over())
        assert again.known() == {"a", "b"}
        assert again.frontier.snapshot().urls == 2
        await again.admit("c")
        assert again.killed(again.disk.hand_over()).known() == {"a", "b", "c"}

    run(act)


@pytest.mark.parametrize("seed", range(12))
def test_what_was_answered_is_there_after_a_power_loss(tmp_path: Path, seed: int) -> None:
    """F10, Q4: a record is synced before anybody is answered; what else a disk may leave behind does no harm."""

    async def act() -> None:
        life = Life(tmp_path / "one")
        await life.admit("a", "b", "c")
        again = life.killed(life.disk.lose_power(random.Random(seed)))
        assert again.known() == {"a", "b", "c"}

    run(act)


def test_who_writes_without_a_journal_brings_in_what_one_has(tmp_path: Path) -> None:
    """F10: a person's order to a crawl that was killed does not bury what its journal holds."""

    async def act() -> None:
        life = Life(tmp_path / "one")
        await life.admit("a", "b")
        left = life.disk.hand_over()
        again = life.killed(left)
        await again.frontier.close()
        ordered = again.open(again.folder, alone=False)
        again.frontier = ordered
        await ordered.admit(candidates("https://c.example/"))
        assert again.known() == {"a", "b", "c"}
        await ordered.close()

    run(act)


def test_what_is_committed_is_not_written_again(tmp_path: Path) -> None:
    """F10: records belong to the transaction that was open; once that is committed they mean nothing."""

    async def act() -> None:
        life = Life(tmp_path / "one")
        await life.admit("a")
        left = life.disk.contents(life.folder / FILE_NAME)
        assert left
        await life.frontier.close()
        assert not life.disk.contents(life.folder / FILE_NAME), "nobody has to look through it again"
        life.frontier = life.open(life.folder, alone=True)
        lease = (await life.frontier.claim(1, 60))[0]
        await life.frontier.close()
        life.disk.overwrite(life.folder / FILE_NAME, left)  # nothing but the old record
        life.frontier = life.open(life.folder, alone=True)
        assert life.frontier.view.leases() == [(lease.token, "a.example")]
        await life.frontier.close()

    run(act)


@pytest.mark.parametrize("fault", ["refuses_sync", "capacity"])
def test_a_disk_that_refuses_fails_the_group_and_nothing_else(tmp_path: Path, fault: str) -> None:
    """Q5, F10: whoever is told of a failure finds nothing of it; what was answered before stays, and work goes on."""

    async def act() -> None:
        life = Life(tmp_path / "one")
        await life.admit("a")
        usual = getattr(life.disk, fault)
        setattr(life.disk, fault, True if fault == "refuses_sync" else life.disk.used() + 40)
        with pytest.raises(StorageError, match="journal could not be written"):
            await life.admit("b")
        setattr(life.disk, fault, usual)
        assert life.known() == {"a"}
        await life.admit("c")
        assert life.killed(life.disk.hand_over()).known() == {"a", "c"}

    run(act)


def test_a_verb_that_raises_leaves_what_was_answered_before(tmp_path: Path) -> None:
    """F10: the transaction is rolled back as a whole; what was acknowledged in it comes back from the journal."""

    async def act() -> None:
        life = Life(tmp_path / "one")
        await life.admit("a")

        def broken(book: Book) -> None:
            book.totals.urls += 100
            book.txn.put(b"rubbish", b"")
            raise KeyError("broken")

        with pytest.raises(KeyError, match="broken"):
            await life.frontier._group.run(broken)
        assert life.known() == {"a"}
        assert life.frontier.snapshot().urls == 1
        await life.frontier.close()

    run(act)


def test_the_store_is_committed_when_nothing_comes_for_a_while(tmp_path: Path) -> None:
    """F10: readers in other processes see what was done, `commit_ms` later at most."""

    async def act() -> None:
        life = Life(tmp_path / "one")
        await life.admit("a")
        await asyncio.sleep(59.9)
        assert life.frontier._group.is_held
        await asyncio.sleep(0.2)
        assert not life.frontier._group.is_held
        await life.frontier.close()

    run_virtual(act())


def test_nobody_waits_for_the_store_who_was_answered_by_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Q2, F10: a commit of a large store takes long; those whose groups are durable go on meanwhile."""
    committing, goes_on = threading.Event(), threading.Event()
    monkeypatch.setattr(writings, "HELD_BYTES", 1)  # each group makes the store due, and no timer does

    async def act() -> None:
        frontier = LmdbFrontier(tmp_path / "one", SystemClock(), POLICY, threaded=True, alone=True)
        writing = frontier._group._writing
        let_go = writing.let_go

        def slowly() -> None:
            committing.set()
            assert goes_on.wait(60)
            let_go()

        writing.let_go = slowly  # type: ignore[method-assign]
        async with asyncio.timeout(30):
            await frontier.admit(candidates("https://a.example/"))
        assert await asyncio.to_thread(committing.wait, 30)
        assert not goes_on.is_set()
        goes_on.set()
        await frontier.close()

    run(act)


def test_a_large_group_does_not_join_what_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Q3: what would be more than is to be held together, by what each verb brought so far, is held apart."""

    async def act() -> None:
        life, held = Life(tmp_path / "one"), []
        writing = life.frontier._group._writing
        assert isinstance(writing, Held)
        let_go = writing.let_go

        def noted() -> None:
            if writing.is_held:
                held.append(writing._verbs)
            let_go()

        monkeypatch.setattr(writing, "let_go", noted)
        await life.admit("a")
        monkeypatch.setattr(writings, "HELD_BYTES", 4 * writing._bytes)
        await asyncio.gather(life.admit("b"), life.admit("c"))
        assert (held, writing._verbs) == ([], 3)
        await asyncio.gather(*map(life.admit, "def"))
        assert (held, writing._verbs) == ([3], 3)
        assert life.known() == set("abcdef")
        await life.frontier.close()

    run(act)


def test_whoever_looks_sees_what_was_answered(tmp_path: Path) -> None:
    """T8: a look at the store lets it show everything first."""

    async def act() -> None:
        life = Life(tmp_path / "one")
        await life.admit("a")
        assert life.frontier._group.is_held
        assert life.known() == {"a"}
        assert not life.frontier._group.is_held
        await life.frontier.close()

    run(act)


def test_somebody_at_the_turnstile_is_let_in(tmp_path: Path) -> None:
    """R4: the store is committed, and its lock free, as soon as a group ends while somebody waits."""

    async def act() -> None:
        life = Life(tmp_path / "one")
        await life.admit("a")
        assert life.frontier._group.is_held
        waiting = Turnstile(life.folder)
        with waiting.passed():
            await life.admit("b")
            assert not life.frontier._group.is_held
        await life.admit("c")
        assert life.frontier._group.is_held
        waiting.close()
        await life.frontier.close()

    run(act)


@pytest.fixture
def kept(tmp_path: Path) -> tuple[ForgetfulDisk, Path]:
    """A journal with two records of transaction 5."""
    disk = ForgetfulDisk()
    journal = Journal(disk, tmp_path, SECRET)
    journal.append(5, 0, CHANGES)
    journal.append(5, 1, CHANGES[:1])
    journal.close()
    return disk, tmp_path


def test_records_come_back_as_they_were(kept: tuple[ForgetfulDisk, Path]) -> None:
    """F10: in their order, of the transaction that is asked for and of no other."""
    journal = Journal(*kept, SECRET)
    assert journal.records(5) == [CHANGES, CHANGES[:1]]
    assert journal.records(4) == journal.records(6) == []
    assert Journal(*kept, SECRET + 1).records(5) == []


def test_a_torn_record_is_not_there_wherever_it_is_torn(kept: tuple[ForgetfulDisk, Path]) -> None:
    """F10, Q4: cut anywhere, or with any byte changed, whole records before the damage count and nothing else."""
    disk, folder = kept
    whole = disk.contents(folder / FILE_NAME)
    first = len(whole) - len(_alone(folder))
    for cut in range(len(whole)):
        disk.overwrite(folder / FILE_NAME, whole[:cut])
        assert Journal(disk, folder, SECRET).records(5) == ([CHANGES] if cut >= first else []), cut
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x40
        disk.overwrite(folder / FILE_NAME, bytes(damaged))
        assert Journal(disk, folder, SECRET).records(5) == ([CHANGES] if place >= first else []), place


def _alone(folder: Path) -> bytes:
    """The second record by itself."""
    disk = ForgetfulDisk()
    journal = Journal(disk, folder, SECRET)
    journal.append(5, 1, CHANGES[:1])
    return disk.contents(folder / FILE_NAME)


def test_what_follows_a_torn_record_can_be_read(kept: tuple[ForgetfulDisk, Path]) -> None:
    """F10: whoever goes on writing cuts the damage off first."""
    disk, folder = kept
    disk.overwrite(folder / FILE_NAME, disk.contents(folder / FILE_NAME)[:-1])
    journal = Journal(disk, folder, SECRET)
    journal.append(6, 0, CHANGES)
    assert Journal(disk, folder, SECRET).records(6) == [CHANGES]
    assert Journal(disk, folder, SECRET).records(5) == [CHANGES]


def test_it_does_not_grow_for_ever(kept: tuple[ForgetfulDisk, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """F8: once all that it holds is in the store, and it has grown, it begins anew."""
    disk, folder = kept
    journal = Journal(disk, folder, SECRET)
    journal.append(6, 0, CHANGES)
    journal.committed()
    size = len(disk.contents(folder / FILE_NAME))
    monkeypatch.setattr(journals, "CUT_ABOVE_BYTES", size - 1)
    journal.committed()
    assert disk.contents(folder / FILE_NAME) == b""
    journal.append(7, 0, CHANGES)
    assert Journal(disk, folder, SECRET).records(7) == [CHANGES]


@pytest.mark.parametrize("threaded", [False, True])
def test_a_store_that_cannot_be_written_when_it_is_opened_is_told_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threaded: bool
) -> None:
    """F10: the disk is full to its last block; the same process may open it again when there is room."""
    gc.collect()  # what other tests have left open is closed by now, and not while this one counts
    before = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    begin = Held._enter

    class Full:
        """A transaction that cannot be committed."""

        def __init__(self, txn: Any) -> None:
            self._txn = txn

        def __getattr__(self, name: str) -> Any:
            return getattr(self._txn, name)

        def commit(self) -> None:
            raise lmdb.DiskError("mdb_txn_commit: Input/output error")

    def opened() -> LmdbFrontier:
        return LmdbFrontier(tmp_path, SystemClock(), POLICY, threaded=threaded, alone=True, disk=ForgetfulDisk())

    with monkeypatch.context() as patch:
        patch.setattr(Held, "_enter", lambda self: Full(begin(self)))
        with pytest.raises(StorageError, match="no space left"):
            opened()
    asyncio.run(opened().close())
    assert (threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))) == before
