"""LMDB environments that several simulated processes have open at once.

The engine may open a store only once in a real process. Within `shared_environments` a second opening of the same store
gets the first one's environment, and the store is closed when the last of them has closed it; whatever the dead left
open is closed at the end. Of processes that share a store no transaction lasts over an await. Nothing is synced: a
power loss is a copy of what was committed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lmdb


class _Shared:
    """One opening of an environment that others may have open, too."""

    def __init__(self, register: dict[str, tuple[Any, list[_Shared]]], key: str) -> None:
        self._register = register
        self._key = key
        self._environment = register[key][0]
        self.begin = self._environment.begin  # the one that is called for every commit
        register[key][1].append(self)

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
    really_open = lmdb.open

    def opened(path: str, *arguments: Any, **options: Any) -> _Shared:  # noqa: ANN401 - as lmdb.open
        key = os.path.realpath(path)
        if key not in register:
            options |= {"sync": False, "metasync": False}
            register[key] = (really_open(path, *arguments, **options), [])
        return _Shared(register, key)

    lmdb.open = opened  # type: ignore[assignment]  # it is put back below
    try:
        yield
    finally:
        lmdb.open = really_open
        for environment, _ in list(register.values()):
            environment.close()
        register.clear()
