"""The line of time that requests are laid on, and how well two moments on it can be compared (P2, N1).

On one machine it is laid over the boots: within a boot it is the clock that does not jump; from one boot to the next
nothing is added, because nobody can say how long the machine was down. So a distance on this line is the least that has
really passed.

The workers of a fleet run beside each other on different machines. Each notes, with every event file, what the clock of
the register said, as a bound from below (an answer was given before it came). The best bound counts, faded by what
clocks may drift apart; by it every machine's own clock is laid on one line. Between two requests of one machine its
own clock is the measure all the same; between two machines a tenth of a second is allowed for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from .request import Request

OWN_MS = 1
"""Clocks count whole milliseconds."""
BETWEEN_MS = 100
"""How far the clocks of two machines may seem apart on the common line: round trips, and drift between two looks."""
DRIFT = 1 / 5_000
"""200 ppm, as the crawler itself allows for."""


class Moment(NamedTuple):
    """A point in time, by the machine's own clock and on the line."""

    boot: int
    own_ms: int
    line_ms: int

    def later(self, ms: int) -> Moment:
        """So much later."""
        return Moment(self.boot, self.own_ms + ms, self.line_ms + ms)

    def since(self, other: Moment) -> int:
        """How long after another one."""
        return self.own_ms - other.own_ms if self.boot == other.boot else self.line_ms - other.line_ms


class Line(Protocol):
    """Lays requests on a line."""

    @property
    def slack_ms(self) -> int:
        """What is allowed for where many are counted together."""

    def place(self, request: Request) -> Moment:
        """When it was sent."""

    def tolerance_ms(self, boot: int, other: int) -> int | None:
        """How far distances between moments of two boots may be off; None where they cannot be compared."""


class BootLine:
    """Boots one after the other. Requests must come in their order."""

    slack_ms = 0

    def __init__(self, begun_ms: Mapping[int, int]) -> None:
        """`begun_ms` is the earliest time that each boot is known to have been up, on its own clock."""
        self._begun_ms = begun_ms
        self._boot = -1
        self._offset = 0
        self._latest_ms = 0

    def place(self, request: Request) -> Moment:
        """As the protocol."""
        if request.boot != self._boot:
            begun = min(self._begun_ms.get(request.boot, request.sent_ms), request.sent_ms)
            self._offset = self._latest_ms - begun
            self._boot = request.boot
        sent_ms = request.sent_ms + self._offset
        self._latest_ms = max(self._latest_ms, sent_ms + request.elapsed_ms)
        return Moment(request.boot, request.sent_ms, sent_ms)

    def tolerance_ms(self, boot: int, other: int) -> int | None:
        """As the protocol."""
        return OWN_MS if boot == other else None


class CommonLine:
    """Boots beside each other, by the clock that all workers have asked. Requests may come in any order."""

    def __init__(self, bounds: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        """`bounds` of each boot: its own time, and by how much the common clock was ahead of it at least."""
        self._bounds = {boot: _envelope(pairs) for boot, pairs in bounds.items() if pairs}
        self.slack_ms = OWN_MS if len(self._bounds) <= 1 else BETWEEN_MS

    def place(self, request: Request) -> Moment:
        """As the protocol. Of a boot that noted nothing, the wall clock tells where it stands."""
        pairs = self._bounds.get(request.boot)
        ahead = request.wall_at - request.sent_ms if pairs is None else _ahead(pairs, request.sent_ms)
        return Moment(request.boot, request.sent_ms, request.sent_ms + ahead)

    def tolerance_ms(self, boot: int, other: int) -> int | None:
        """As the protocol."""
        if boot == other:
            return OWN_MS
        return BETWEEN_MS if boot in self._bounds and other in self._bounds else None


def _envelope(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, float]]:
    """By how much the common clock was ahead at each of these times, by the best bound of all, faded."""
    found: list[tuple[int, float]] = []
    for at, ahead in sorted(pairs):
        before = found[-1][1] - (at - found[-1][0]) * DRIFT if found else float("-inf")
        found.append((at, max(float(ahead), before)))
    for index in range(len(found) - 2, -1, -1):
        at, best = found[index]
        after = found[index + 1][1] - (found[index + 1][0] - at) * DRIFT
        found[index] = (at, max(best, after))
    return found


def _ahead(pairs: Sequence[tuple[int, float]], at: int) -> int:
    index = bisect_right(pairs, (at, float("inf")))
    near = pairs[max(0, index - 1) : index + 1]
    return round(max(ahead - abs(at - when) * DRIFT for when, ahead in near))
