"""Scripts at hand: what one page was given, the next one need not ask for again (J3).

Bounded by bytes; what was used longest ago goes first. How long an answer may stand for a new one follows from what it
is and what its server says of it, kept simple: a script stands for an hour unless the server names another time (up to
a day); data stands only where the server says for how long; what it forbids to store is not kept.
"""

from __future__ import annotations

import re
from collections import OrderedDict

from nephila.model.rendering import PartKind, Supplied

SCRIPT_MS = 3_600_000
LONGEST_MS = 86_400_000
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,9})")


def lasts_ms(kind: PartKind, answer: Supplied) -> int:
    """How long an answer may stand for a new one; 0 for not at all."""
    if answer.status != 200:
        return 0
    said = ",".join(value for name, value in answer.headers if name == "cache-control").lower()
    if "no-store" in said or "private" in said:
        return 0
    if "no-cache" in said:
        return 0
    named = _MAX_AGE.search(said)
    if named is not None:
        return min(int(named[1]) * 1000, LONGEST_MS)
    return SCRIPT_MS if kind is PartKind.SCRIPT else 0


class PartCache:
    """Answers by URL."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[str, tuple[int, Supplied]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, url: str, now_ms: int) -> Supplied | None:
        """What is at hand for a URL, if it still holds."""
        found = self._kept.get(url)
        if found is None:
            return None
        if found[0] <= now_ms:
            self._drop(url)
            return None
        self._kept.move_to_end(url)
        return found[1]

    def keep(self, url: str, kind: PartKind, answer: Supplied, now_ms: int) -> None:
        """Keep an answer for as long as it holds."""
        lasts, size = lasts_ms(kind, answer), _size(url, answer)
        if not lasts or size > self._max_bytes // 4:
            return
        self._drop(url)
        self._kept[url] = (now_ms + lasts, answer)
        self._bytes += size
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, url: str) -> None:
        found = self._kept.pop(url, None)
        if found is not None:
            self._bytes -= _size(url, found[1])


def _size(url: str, answer: Supplied) -> int:
    return len(url) + len(answer.body) + sum(len(name) + len(value) for name, value in answer.headers) + 500
