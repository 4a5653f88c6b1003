"""Two ways of making a group of verbs durable: a commit of the store each, or a record of the journal each.

`EachCommitted` is for those who write now and then: a supervisor, a person's orders. `Held` is for those who crawl: it
keeps the store's transaction open over many groups, and commits it after a moment (`frontier.commit_ms`), when it has
become large, when somebody else waits to write (`turnstile`), and when somebody in the process wants to look
(`Tables.look`). A page of the store is so copied, changed and written once for many groups. Workers that share a store
take turns at it, each with groups of its own for a while (`Turns`).

There is one journal, and whoever has the store's lock for writing has the journal, too. What must stay true: before the
first change of a transaction, whatever the journal has of it is in the store: so says `_begin`, for everybody who
writes. A group that fails is rolled back with the whole transaction; what was acknowledged before it comes back from
the journal. Where processes take turns it is emptied at the beginning of each, when all that it has is in the store:
so the number of a record is never met twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import lmdb

from nephila.engines.disk import Disk
from nephila.engines.room_ahead import RoomAhead
from nephila.model.errors import StorageError

from .journal import Change, Journal
from .noting import NotedTransaction, Written
from .tables import NAMES, Tables, refused
from .turnstile import Turnstile

if TYPE_CHECKING:
    from .tables import Txn

T = TypeVar("T")

HELD_BYTES = 1 << 20
"""Bytes in the journal after which the store is committed, or before that where the next group would make it more. What
was changed of it lies in memory until then, ten to twenty times as much, and LMDB keeps the room for it. Twice or eight
times as many bytes saved no time (decision 48)."""

ROUND_MS = 200
"""Until the turn of a worker comes again, where all are busy. Measured with two of them (decision 48): turns of 50 ms
save a third of what a commit for each group costs them, turns of 100 ms two thirds, turns of 250 ms a little more."""

LEAST_TURN_MS = 5
"""Before that, nothing is known of how busy a worker is."""

BUSY_SHARE = 0.2
"""A worker of a polite crawl is busy with the frontier for a tenth of its time, and hurries nobody else by waiting; one
that is busy for a third of it, or more, has more to write in a moment."""


@dataclass(frozen=True, slots=True)
class Turns:
    """How workers that share a store take turns at it."""

    among: int

    def is_over(self, lasted_ms: float, busy_ms: float) -> bool:
        """Whether a turn is to end now, if somebody waits: it has lasted, or little of it was made use of."""
        if lasted_ms >= ROUND_MS / self.among:
            return True
        return lasted_ms >= LEAST_TURN_MS and busy_ms < BUSY_SHARE * lasted_ms


class Writing(ABC):
    """What both ways share: whoever begins a transaction first brings in what the journal has of it."""

    def __init__(self, tables: Tables, disk: Disk, folder: Path, *, in_line: bool = False) -> None:
        self._tables = tables
        self._journal = Journal(disk, folder, tables.secret)
        self._turnstile = Turnstile(folder, in_line=in_line)
        self._room = RoomAhead(folder / "data.mdb")

    @abstractmethod
    def group(self, verbs: int) -> AbstractContextManager[NotedTransaction]:
        """A transaction for a group of so many verbs, durable at the end of the block, undone where that raises."""

    def is_waited_at(self) -> bool:
        """Whether a worker waits for its turn."""
        return self._turnstile.is_waited_at()

    def bring_in(self) -> None:
        """Write what the journal has and the store has not: somebody died before they could."""
        self._begin().abort()

    is_behind: bool
    """Whether the journal may have records that were rolled back with their transaction."""

    @property
    @abstractmethod
    def is_held(self) -> bool:
        """Whether something is durable that the store does not show yet."""

    @property
    @abstractmethod
    def is_due(self) -> bool:
        """Whether it is time to let go: when that is done between groups, nobody who was answered waits for it."""

    @abstractmethod
    def is_full_with(self, verbs: int) -> bool:
        """Whether so many more are too much for what is held: then it is better let go before them."""

    @property
    @abstractmethod
    def look_again_ms(self) -> float:
        """After how long it may be time although no group came."""

    @abstractmethod
    def let_go(self) -> None:
        """Let the store show everything that is durable."""

    def close(self) -> None:
        """Commit what is held, and close."""
        try:
            self.let_go()
        finally:
            self._close_files()

    def abandon(self) -> None:
        """Close, and write nothing more: what the journal has is brought in by the next."""
        self._close_files()

    def _close_files(self) -> None:
        self._journal.close()
        self._turnstile.close()
        self._room.close()

    def _begin(self) -> Txn:
        txn = self._enter()
        try:
            lost = _on_disk(lambda: self._journal.records(txn.id()))
            if not lost:
                return txn
            for changes in lost:
                self._write(txn, changes)
            txn.commit()
        except BaseException:
            txn.abort()
            raise
        return self._enter()

    def _enter(self) -> Txn:
        with self._turnstile.passed():
            txn = self._tables.env.begin(db=self._tables.web, write=True)
        self._room.used(self._tables.used_bytes())
        return txn

    def _write(self, txn: Txn, changes: list[Change]) -> None:
        for number, values in changes:
            table = self._tables.db[NAMES[number]]
            for key, value in values.items():
                if value is None:
                    txn.delete(key, db=table)
                else:
                    txn.put(key, value, db=table)


class EachCommitted(Writing):
    """Every group is a commit of the store.

    Workers of a crawl without a journal look for one once: none of them keeps it. Others (`watchful`) look each time.
    """

    is_held = is_behind = is_due = False
    look_again_ms = 0.0

    def __init__(self, tables: Tables, disk: Disk, folder: Path, *, watchful: bool = True) -> None:
        super().__init__(tables, disk, folder)
        self._watchful, self._looked = watchful, False

    def let_go(self) -> None:
        """Nothing is held."""

    def is_full_with(self, verbs: int) -> bool:  # noqa: ARG002 - nothing is held, however many come
        """Nothing is held."""
        return False

    @contextmanager
    def group(self, verbs: int) -> Iterator[NotedTransaction]:  # noqa: ARG002 - as above
        """As the class says."""
        txn = self._begin() if self._watchful or not self._looked else self._enter()
        self._looked = True
        try:
            yield NotedTransaction(txn, self._tables.web)
            txn.commit()
        except BaseException:
            txn.abort()
            raise


class Held(Writing):
    """Every group is a record of the journal; the store follows."""

    def __init__(
        self,
        tables: Tables,
        disk: Disk,
        folder: Path,
        now_ms: Callable[[], float],
        commit_ms: int,
        turns: Turns | None = None,
    ) -> None:
        """`turns`: others do the same, on the same store."""
        super().__init__(tables, disk, folder, in_line=turns is not None)
        self._now_ms, self._commit_ms, self._turns = now_ms, commit_ms, turns
        self._numbers = {tables.db[name]: number for number, name in enumerate(NAMES)}
        self._txn: Txn | None = None
        self._records = self._bytes = self._verbs = 0
        self._begun_ms = self._busy_ms = 0.0
        self.is_behind = False

    def bring_in(self) -> None:
        """As the class says; the journal begins anew."""
        super().bring_in()
        _on_disk(self._journal.begin_anew)

    def close(self) -> None:
        """As the class says. What is in the store need not be looked through by the next."""
        try:
            self.let_go()
            if self._turns is None:
                _on_disk(self._journal.begin_anew)
        finally:
            super().close()

    def abandon(self) -> None:
        """As the class says."""
        self._roll_back()
        super().abandon()

    @property
    def is_held(self) -> bool:
        """As the class says."""
        return self._txn is not None or self.is_behind

    @property
    def look_again_ms(self) -> float:
        """As the class says: others have no turn while this one has nothing to do."""
        return self._commit_ms if self._turns is None or self._txn is None else LEAST_TURN_MS

    @property
    def is_due(self) -> bool:
        """As the class says: it was held for long, holds much, or somebody waits for the store."""
        if self._txn is None:
            return False
        lasted_ms = self._now_ms() - self._begun_ms
        if self._bytes >= HELD_BYTES or lasted_ms >= self._commit_ms or self._turnstile.is_taken():
            return True
        if self._turns is None or not self._turns.is_over(lasted_ms, self._busy_ms):
            return False
        return self.is_waited_at()

    def is_full_with(self, verbs: int) -> bool:
        """As the class says: if they bring as much as those before them did."""
        return self._txn is not None and self._bytes * (self._verbs + verbs) > HELD_BYTES * self._verbs > 0

    @contextmanager
    def group(self, verbs: int) -> Iterator[NotedTransaction]:
        """As the class says."""
        txn = self._open()
        began_ms = self._now_ms()
        try:
            noted = NotedTransaction(txn, self._tables.web)
            yield noted
            self._keep(txn.id(), noted.written)
        except BaseException:
            self._roll_back()
            raise
        self._verbs += verbs
        self._busy_ms += self._now_ms() - began_ms

    def let_go(self) -> None:
        """Commit the store."""
        if self.is_behind:
            self._open()  # writes what the journal has
        if self._txn is None:
            return
        try:
            self._txn.commit()
        except BaseException:
            self._roll_back()
            raise
        self._txn = None
        self._tables.recent.clear()
        if self._turns is None:  # else it is another's by now
            _on_disk(self._journal.committed)

    def _open(self) -> Txn:
        if self._txn is None:
            self._txn = self._begin() if self.is_behind or self._turns is not None else self._enter()
            self.is_behind = False
            self._records = self._bytes = self._verbs = 0
            self._begun_ms, self._busy_ms = self._now_ms(), 0.0
            if self._turns is not None:
                try:
                    _on_disk(self._journal.take_over)
                except BaseException:
                    self._roll_back()
                    raise
        return self._txn

    def _keep(self, transaction: int, written: Written) -> None:
        changes = [(self._numbers[table], values) for table, values in written.items() if values]
        self._bytes += _on_disk(lambda: self._journal.append(transaction, self._records, changes))
        self._records += 1
        self._room.take(2 * self._bytes)
        self._tables.recent.note(written)

    def _roll_back(self) -> None:
        txn, self._txn, self.is_behind = self._txn, None, True
        self._tables.recent.clear()
        if txn is not None:
            txn.abort()


def open_writing(
    tables: Tables,
    disk: Disk,
    folder: Path,
    now_ms: Callable[[], float],
    commit_ms: int,
    turns: Turns | None,
    *,
    joining: bool,
) -> Writing:
    """A way of writing to a store that was just opened, `Held` where `commit_ms` is more than 0; closes it on failure.

    Unless others have opened the store before (`joining`), what the journal has is brought in.
    """
    try:
        writing = _on_disk(
            lambda: (
                Held(tables, disk, folder, now_ms, commit_ms, turns)
                if commit_ms
                else EachCommitted(tables, disk, folder, watchful=turns is None)
            )
        )
        if not joining:
            writing.bring_in()
    except lmdb.Error as error:
        tables.close()
        raise refused(error) from error
    except StorageError:
        tables.close()
        raise
    return writing


def _on_disk(act: Callable[[], T]) -> T:
    """Do something with the journal; what the disk refuses is told in one sentence."""
    try:
        return act()
    except OSError as error:
        raise StorageError(
            f"the frontier's journal could not be written: {error.strerror or error}",
            hint="make room and start the same command again: it goes on where it was",
        ) from error
