"""Valkey or Redis as `interfaces.shared.SharedState`, over the client that the frontier uses, too.

That client waits for a server that is away for as long as it takes; here nobody waits so long: what is not answered in
time is an `EngineAwayError`, and what waiting does not mend an `EngineRefusedError`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any

from nephila.interfaces.shared import Argument
from nephila.model.errors import EngineAwayError, EngineRefusedError

from .valkey import Valkey
from .valkey_servers import ValkeyServers
from .valkey_wire import EngineError, advice_on

ANSWER_S = 20.0
"""Longer than a fail-over takes that goes well."""
START_S = 60.0


class ValkeyState:
    """Implements `SharedState`. Made by `open`."""

    def __init__(self, valkey: Valkey, places: str) -> None:
        self._valkey = valkey
        self._places = places

    @classmethod
    async def open(
        cls,
        servers: ValkeyServers,
        patience_s: float = START_S,
        *,
        refused_s: float = math.inf,
        tell: Callable[[str], None] | None = None,
    ) -> ValkeyState:
        """Connect, and find out whether the servers are a cluster; those that are away are waited for.

        `refused_s` and `tell` as `Valkey.start` has them.
        """
        places = ", ".join(map(str, servers.addresses))
        valkey = Valkey(servers)
        try:
            await valkey.start(patience_s, refused_s=refused_s, tell=tell)
        except EngineError as error:
            await valkey.close()
            if "does not answer" in str(error):
                raise EngineAwayError(str(error), error.hint) from error
            raise _refused(error) from error
        return cls(valkey, places)

    async def call(self, command: str, key: str, *arguments: Argument) -> Any:  # noqa: ANN401 - as the interface
        """As the interface."""
        return await self._do(key, command, key, *arguments)

    async def run(self, script: str, keys: Sequence[str], arguments: Sequence[Argument] = ()) -> Any:  # noqa: ANN401 - as the interface
        """As the interface."""
        return await self._do(keys[0], "EVAL", script, len(keys), *keys, *arguments)

    def hurry(self, seconds: float) -> None:
        """Somebody wants an end: nobody is waited for longer than that."""
        self._valkey.hurry(seconds)

    async def close(self) -> None:
        """Close the connections."""
        await self._valkey.close()

    async def _do(self, key: str, *command: Argument) -> Any:  # noqa: ANN401 - as above
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._valkey.do(key, *command)
        except TimeoutError as error:
            why = self._valkey.why_away(ANSWER_S)
            raise EngineAwayError(
                f"{self._places} does not answer{': ' if why else ''}{why}",
                advice_on(why) or "see that the servers run and can be reached",
            ) from error
        except EngineError as error:
            raise _refused(error) from error


def _refused(error: EngineError) -> EngineRefusedError:
    return EngineRefusedError(str(error), error.hint or "`nephila check --config FILE` tells what to change")
