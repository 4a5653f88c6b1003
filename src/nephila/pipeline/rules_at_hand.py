"""The robots rules of the origins that were asked last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from nephila.interfaces.frontier import FrontierView
from nephila.model.errors import EngineAwayError
from nephila.model.outcome import OriginRules
from nephila.model.task import Lease
from nephila.urls import origin_of

RULES_REMEMBERED = 16_384
RULES_BYTES = 8_000_000
"""Origins whose rules are kept at hand, and bytes of them all: reading half a megabyte from the store for every page
would be felt. A polite crawl goes round its hosts, so that fewer than there are hosts would be none."""
AGAIN_S = 1.0

T = TypeVar("T")


async def until_answered(read: Callable[[], T]) -> T:
    """Read what an engine has that may be away: it is waited for, as it is where something is settled (N4)."""
    while True:
        try:
            return read()
        except EngineAwayError:
            await asyncio.sleep(AGAIN_S)


class RulesAtHand:
    """Remembers rules by origin, for as long as they are in force."""

    def __init__(self, view: FrontierView) -> None:
        self._view = view
        self._rules: dict[str, OriginRules] = {}
        self._bytes = 0

    def of(self, lease: Lease) -> OriginRules | None:
        """The rules in force for a lease on pages, None where none are obeyed; the last few are remembered."""
        if not lease.rules_at:
            return None
        origin = origin_of(lease.tasks[0].url)
        rules = self._rules.get(origin)
        if rules is None or rules.stored_at != lease.rules_at:
            rules = self._view.rules(origin)
            if rules is not None:
                if len(self._rules) >= RULES_REMEMBERED or self._bytes >= RULES_BYTES:
                    self._rules.clear()
                    self._bytes = 0
                self._rules[origin] = rules
                self._bytes += len(rules.body)
        return rules
