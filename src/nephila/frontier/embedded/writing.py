"""Two ways of making a group of verbs durable: a commit of the store each, or a record of the journal each.

`EachCommitted` is for processes that share a store. `Held` is for the one that has it to itself: it keeps the store's
transaction open over many groups, and commits it after a moment (`frontier.commit_ms`), when it has become large, when
somebody else waits to write (`turnstile`), and when somebody wants to look (`Tables.look`). A page of the store is so
copied, changed and written once for many groups.

What must stay true: before the first change of a transaction, whatever the journal has of it is in the store: so says
`_begin`, for everybody who writes. A group that fails is rolled back with the whole transaction; what was acknowledged
before it comes back from the journal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import lmdb

from nephila.engines.disk import Disk
from nephila.model.errors import StorageError

from .journal import Change, Journal
from .noting import NotedTransaction, Written
from .tables import NAMES, Tables, refused
from .turnstile import Turnstile

if TYPE_CHECKING:
    from .tables import Txn

T = TypeVar("T")

HELD_BYTES = 8 << 20
"""Bytes in the journal after which the store is committed: what was changed of it lies in memory until then."""


class Writing(ABC):
    """What both ways share: whoever begins a transaction first brings in what the journal has of it."""

    def __init__(self, tables: Tables, disk: Disk, folder: Path) -> None:
        self._tables = tables
        self._journal = Journal(disk, folder, tables.secret)
        self._turnstile = Turnstile(folder)

    @abstractmethod
    def group(self) -> AbstractContextManager[NotedTransaction]:
        """A transaction for a group of verbs, durable at the end of the block, undone where that raises."""

    def bring_in(self) -> None:
        """Write what the journal has and the store has not: somebody died before they could."""
        self._begin().abort()

    @property
    @abstractmethod
    def is_held(self) -> bool:
        """Whether something is durable that the store does not show yet."""

    @property
    @abstractmethod
    def is_due(self) -> bool:
        """Whether it is time to let go: when that is done between groups, nobody who was answered waits for it."""

    @abstractmethod
    def let_go(self) -> None:
        """Let the store show everything that is durable."""

    def close(self) -> None:
        """Commit what is held, and close."""
        try:
            self.let_go()
        finally:
            self._journal.close()
            self._turnstile.close()

    def abandon(self) -> None:
        """Close, and write nothing more: what the journal has is brought in by the next."""
        self._journal.close()
        self._turnstile.close()

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
            return self._tables.env.begin(db=self._tables.web, write=True)

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

    Processes of one crawl look into the journal once: none of them keeps one. Others (`watchful`) look each time.
    """

    is_held = is_due = False

    def __init__(self, tables: Tables, disk: Disk, folder: Path, *, watchful: bool = True) -> None:
        super().__init__(tables, disk, folder)
        self._watchful, self._looked = watchful, False

    def let_go(self) -> None:
        """Nothing is held."""

    @contextmanager
    def group(self) -> Iterator[NotedTransaction]:
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

    def __init__(self, tables: Tables, disk: Disk, folder: Path, now_ms: Callable[[], float], commit_ms: int) -> None:
        super().__init__(tables, disk, folder)
        self._now_ms, self._commit_ms = now_ms, commit_ms
        self._numbers = {tables.db[name]: number for number, name in enumerate(NAMES)}
        self._txn: Txn | None = None
        self._records = self._bytes = 0
        self._due_ms = 0.0
        self._behind = False
        """Whether the journal may have records that were rolled back with their transaction."""

    def bring_in(self) -> None:
        """As the class says; the journal begins anew."""
        super().bring_in()
        _on_disk(self._journal.begin_anew)

    def close(self) -> None:
        """As the class says. What is in the store need not be looked through by the next."""
        try:
            self.let_go()
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
        return self._txn is not None or self._behind

    @property
    def is_due(self) -> bool:
        """As the class says: it was held for long, holds much, or somebody waits for the store."""
        if self._txn is None:
            return False
        return self._bytes >= HELD_BYTES or self._now_ms() >= self._due_ms or self._turnstile.is_taken()

    @contextmanager
    def group(self) -> Iterator[NotedTransaction]:
        """As the class says."""
        txn = self._open()
        try:
            noted = NotedTransaction(txn, self._tables.web)
            yield noted
            self._keep(txn.id(), noted.written)
        except BaseException:
            self._roll_back()
            raise

    def let_go(self) -> None:
        """Commit the store."""
        if self._behind:
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
        _on_disk(self._journal.committed)

    def _open(self) -> Txn:
        if self._txn is None:
            self._txn = self._begin() if self._behind else self._enter()
            self._behind = False
            self._records = self._bytes = 0
            self._due_ms = self._now_ms() + self._commit_ms
        return self._txn

    def _keep(self, transaction: int, written: Written) -> None:
        changes = [(self._numbers[table], values) for table, values in written.items() if values]
        self._bytes += _on_disk(lambda: self._journal.append(transaction, self._records, changes))
        self._records += 1
        self._tables.recent.note(written)

    def _roll_back(self) -> None:
        txn, self._txn, self._behind = self._txn, None, True
        self._tables.recent.clear()
        if txn is not None:
            txn.abort()


def open_writing(
    tables: Tables,
    disk: Disk,
    folder: Path,
    now_ms: Callable[[], float],
    commit_ms: int,
    *,
    joining: bool,
    watchful: bool,
) -> Writing:
    """A way of writing to a store that was just opened, `Held` where `commit_ms` is more than 0; closes it on failure.

    Unless others have opened the store before (`joining`), what the journal has is brought in.
    """
    try:
        writing = _on_disk(
            lambda: (
                Held(tables, disk, folder, now_ms, commit_ms)
                if commit_ms
                else EachCommitted(tables, disk, folder, watchful=watchful)
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
