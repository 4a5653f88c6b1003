"""A write transaction that notes what it writes.

What verbs write is wanted twice: in the store, and in the journal that makes it durable before the store is (see
`journal`). So they write through these two classes, which hand everything on and keep the last value of each key.
Looking things up costs nothing more: those methods are the engine's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from lmdb import Cursor
    from lmdb import _Database as Database

    from .tables import Txn

Written = dict["Database", dict[bytes, bytes | None]]
"""What lies under each key by now, for each database that was written to; None where it was deleted."""


class NotedTransaction:
    """A transaction whose own database is `web`: a call that names none means that one."""

    __slots__ = ("_delete", "_pop", "_put", "_txn", "_web", "get", "id", "written")

    def __init__(self, txn: Txn, web: Database) -> None:
        self._txn, self._web = txn, web
        self._put, self._delete, self._pop = txn.put, txn.delete, txn.pop
        self.get: Callable[..., bytes | None] = txn.get
        self.id: Callable[[], int] = txn.id
        self.written: Written = defaultdict(dict)

    def put(self, key: bytes, value: bytes, *, overwrite: bool = True, db: Database | None = None) -> bool:
        """Write a value; False where there is one and it is not to be overwritten."""
        table = self._web if db is None else db
        if not self._put(key, value, True, overwrite, False, table):
            return False
        self.written[table][key] = value
        return True

    def delete(self, key: bytes, *, db: Database | None = None) -> bool:
        """Delete a key; False where there is none."""
        table = self._web if db is None else db
        if not self._delete(key, b"", table):
            return False
        self.written[table][key] = None
        return True

    def pop(self, key: bytes, *, db: Database | None = None) -> bytes | None:
        """Delete a key and give what was there."""
        table = self._web if db is None else db
        value = self._pop(key, table)
        if value is not None:
            self.written[table][key] = None
        return value

    def cursor(self, db: Database) -> NotedCursor:
        """A cursor whose writes are noted, too."""
        return NotedCursor(self._txn.cursor(db), self.written[db])


class NotedCursor:
    """A cursor of a noted transaction."""

    __slots__ = (
        *("_cursor", "_delete", "_notes", "_put", "_putmulti"),
        *("close", "first", "get", "getmulti", "iternext", "key", "last", "next", "set_key", "set_range", "value"),
    )

    def __init__(self, cursor: Cursor[bytes], notes: dict[bytes, bytes | None]) -> None:
        self._cursor, self._notes = cursor, notes
        self._put, self._putmulti, self._delete = cursor.put, cursor.putmulti, cursor.delete
        self.close, self.first, self.last, self.next = cursor.close, cursor.first, cursor.last, cursor.next
        self.get, self.getmulti, self.iternext = cursor.get, cursor.getmulti, cursor.iternext
        self.key, self.value, self.set_key, self.set_range = cursor.key, cursor.value, cursor.set_key, cursor.set_range

    def put(self, key: bytes, value: bytes, *, overwrite: bool = True) -> bool:
        """Write a value; False where there is one and it is not to be overwritten."""
        if not self._put(key, value, True, overwrite):
            return False
        self._notes[key] = value
        return True

    def putmulti(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Write many."""
        self._putmulti(items)
        self._notes.update(items)

    def delete(self) -> bool:
        """Delete where it stands; it then stands on what followed."""
        key = self.key()
        if not self._delete():
            return False
        self._notes[key] = None
        return True

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return iter(self._cursor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
