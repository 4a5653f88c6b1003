"""What an endpoint is: declared once, read by the router and by the description."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from nephila.node.desk import Desk

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

    async def note(self, what: str, target: str, before: object = None, after: object = None) -> None:
        """Write a change down; in a thread, because it waits for the disk."""
        await asyncio.to_thread(self.changes.note, self.caller, what, target, before, after)


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
