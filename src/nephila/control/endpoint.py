"""What an endpoint is: declared once, read by the router and by the description."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from nephila.node.desk import Desk
from nephila.node.noting import Changing

from .access import Caller, Role
from .asked import Asked
from .changes import Changes

Body = TypeVar("Body", bound=Asked | None)
Query = TypeVar("Query", bound=Asked | None)


@dataclass(frozen=True, slots=True)
class Call(Generic[Body, Query]):
    """One request, validated: what handlers are given."""

    desk: Desk
    changes: Changes
    caller: Caller
    body: Body
    query: Query
    path: dict[str, str]

    @asynccontextmanager
    async def changing(
        self, what: str, target: str, before: object = None, wanted: object = None
    ) -> AsyncIterator[Changing]:
        """Write down that something is to be changed, before it is, and what came of it.

        In a thread, because it waits for the disk. What makes no sense is to be found out before.
        """
        begun = await asyncio.to_thread(self.changes.begin, self.caller.name, what, target, before, wanted)
        change = Changing(wanted)
        try:
            yield change
        except BaseException as error:
            await asyncio.shield(asyncio.to_thread(self.changes.end, begun, str(error), failed=True))
            raise
        await asyncio.to_thread(self.changes.end, begun, change.after)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method on a path."""

    method: str
    path: str
    """Below the prefix of the API, with ``{name}`` for parameters."""
    name: str
    """The operation's id in the description."""
    summary: str
    answer: type
    handle: Callable[[Any], Awaitable[object]]
    role: Role = Role.READ
    body: type[Asked] | None = None
    query: type[Asked] | None = None
    status: int = 200
    problems: tuple[int, ...] = ()
    """Answers beside those that every endpoint may give."""
    tag: str = ""
