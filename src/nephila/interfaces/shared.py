"""State that the workers of a fleet share beside the frontier: who is there, contents seen, names looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Argument = str | bytes | int | float


class SharedState(Protocol):
    """Commands to a server of keys and values. Raises `EngineAwayError` where it does not answer, after some tries.

    What is asked may have been done all the same, so it must do no harm to ask it twice.
    """

    async def call(self, command: str, key: str, *arguments: Argument) -> Any:  # noqa: ANN401 - what the command says
        """One command on one key."""

    async def run(self, script: str, keys: Sequence[str], arguments: Sequence[Argument] = ()) -> Any:  # noqa: ANN401 - what it returns
        """A script on keys that lie together, atomically."""
