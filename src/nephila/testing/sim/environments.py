"""LMDB environments that several simulated processes have open at once.

The engine may open a store only once in a real process. Within `shared_environments` a second opening of the same store
gets the first one's environment, and the store is closed when the last of them has closed it; whatever the dead left
open is closed at the end. Nothing is synced: a power loss is a copy of what was committed.

A process may keep the store's transaction open for its turn. Nobody can wait for it here, where all run in one thread:
it ends its turn when another wants to write. That of a process that was killed is undone then, as the engine does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import lmdb

from nephila.frontier.embedded.writing import Held, Writing
from nephila.model.errors import StorageError

from .owners import OWNER, ProcessLoop

if TYPE_CHECKING:
    from nephila.frontier.embedded.tables import Txn


class _Turns:
    """Who keeps a transaction open, of all that write to a store."""

    def __init__(self) -> None:
        self._holders: dict[str, tuple[Held, int]] = {}

    def note(self, writing: Writing) -> None:
        """It has begun a transaction."""
        if isinstance(writing, Held):
            self._holders[writing._tables.env.path()] = writing, OWNER.get()

    def end(self, store: str) -> None:
        """Let whoever has one end it, or undo it where that one is dead."""
        holder, owner = self._holders.pop(store, (None, 0))
        if holder is None or holder._txn is None:
            return
        loop = asyncio.get_running_loop()
        if isinstance(loop, ProcessLoop) and loop.is_dead(owner):
            holder._txn.abort()
            holder._txn = None
            return
        with suppress(lmdb.Error, StorageError):  # it finds out by itself
            holder.let_go()


class _Shared:
    """One opening of an environment that others may have open, too."""

    def __init__(self, register: dict[str, tuple[Any, list[_Shared]]], key: str, turns: _Turns) -> None:
        self._register = register
        self._key = key
        self._turns = turns
        self._environment = register[key][0]
        register[key][1].append(self)

    def begin(self, *arguments: Any, write: bool = False, **options: Any) -> Any:  # noqa: ANN401 - as the environment's
        """Begin a transaction; one for writing after whoever has one."""
        if write:
            self._turns.end(self._environment.path())
        return self._environment.begin(*arguments, write=write, **options)

    def close(self) -> None:
        """Close it; the store itself with the last one."""
        environment, openings = self._register.get(self._key, (None, []))
        if self in openings:
            openings.remove(self)
            if not openings:
                del self._register[self._key]
                environment.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever an environment has
        return getattr(self._environment, name)


@contextmanager
def shared_environments() -> Iterator[None]:
    """Let stores be opened more than once."""
    register: dict[str, tuple[Any, list[_Shared]]] = {}
    turns = _Turns()
    really_open, really_enter = lmdb.open, Writing._enter

    def opened(path: str, *arguments: Any, **options: Any) -> _Shared:  # noqa: ANN401 - as lmdb.open
        key = os.path.realpath(path)
        if key not in register:
            options |= {"sync": False, "metasync": False}
            register[key] = (really_open(path, *arguments, **options), [])
        return _Shared(register, key, turns)

    def entered(writing: Writing) -> Txn:
        txn = really_enter(writing)
        turns.note(writing)
        return txn

    lmdb.open = opened  # type: ignore[assignment]  # both are put back below
    Writing._enter = entered  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        lmdb.open, Writing._enter = really_open, really_enter  # type: ignore[method-assign]
        for environment, _ in list(register.values()):
            environment.close()
        register.clear()
