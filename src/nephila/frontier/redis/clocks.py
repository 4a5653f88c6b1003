"""The timeline of a fleet: the engine's own clock (DESIGN section 11), or a test's.

The engine adds its clock to delays; workers only need to know what time it is there. An answer says when it was given,
and was given before it came: so each answer bounds the engine's time from below, and the best bound is kept. A worker
is late by a fraction of a round trip then, and never early. The best bound is never let go for a worse one, however
many of those come (all shards at once, seconds after they answered, while one fails over): a timeline that fell back
would leap ahead with the next good answer, and cut a rest short that was reckoned in between. It only fades as fast as
clocks drift.

Shards lie on several servers, and each counts by its own. A worker's time is that of the one furthest ahead; what
another says of a lease is told in it (`behind`), or a host whose server is behind would be asked too early.

A crawl may have been made for a virtual clock: then every call carries the time, and an anchor that lets the timeline
go on after a reboot, as it does on one machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from nephila.frontier.timeline import Anchor, Timeline
from nephila.interfaces.clock import Clock

_DRIFT_PER_MS = 1 / 5_000
"""By so much may two clocks run apart: 200 ppm, twice what a bad quartz does."""

ELSEWHERE = -1
"""In place of a shard: whatever else the engine keeps."""


class EngineTimeline(Protocol):
    """Timeline milliseconds as the engine counts them."""

    def now(self) -> int:
        """The present moment on the timeline."""

    def steady_ms(self) -> int:
        """Milliseconds by our own clock, which does not jump: how long something took, the timeline does not tell."""

    def wall_of(self, moment: int) -> int:
        """The UTC milliseconds that a moment of the timeline corresponds to."""

    def wall_s(self) -> int:
        """UTC seconds, as the engine will note them."""

    def argument(self) -> str:
        """What a call says of the time; empty where the engine's own clock counts."""

    def heard(self, now: int, shard: int = ELSEWHERE) -> None:
        """A shard gave an answer at that moment of its own."""

    def behind(self, shard: int) -> int:
        """By how much a shard that was heard of is behind this timeline."""


class RemoteTimeline:
    """The engine's clock, seen from here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._furthest = _Bound()
        self._shards: dict[int, _Bound] = {}

    def now(self) -> int:
        """The present moment, or a little before it."""
        best = self._furthest.best
        return self._clock.wall_ms() if best is None else self._clock.steady_ms() + best

    def steady_ms(self) -> int:
        """As our own clock tells."""
        return self._clock.steady_ms()

    def wall_of(self, moment: int) -> int:
        """The engine's timeline is UTC."""
        return moment

    def wall_s(self) -> int:
        """UTC seconds by the engine's clock."""
        return self.now() // 1000

    def argument(self) -> str:
        """The engine's own clock counts."""
        return ""

    def heard(self, now: int, shard: int = ELSEWHERE) -> None:
        """One more bound."""
        here = self._clock.steady_ms()
        self._furthest.heard(now, here)
        self._shards.setdefault(shard, _Bound()).heard(now, here)

    def behind(self, shard: int) -> int:
        """What its best answer is less than the best of all."""
        known, best = self._shards.get(shard), self._furthest.best
        return 0 if known is None or known.best is None or best is None else best - known.best


class _Bound:
    """A clock, bounded from below by the best answer."""

    __slots__ = ("_heard_at", "best")

    def __init__(self) -> None:
        self.best: int | None = None
        """Its time less ours."""
        self._heard_at = 0
        """When that answer came, by our own clock."""

    def heard(self, now: int, here: int) -> None:
        faded = None if self.best is None else self.best - int((here - self._heard_at) * _DRIFT_PER_MS)
        if faded is None or now - here >= faded:
            self.best, self._heard_at = now - here, here


class VirtualTimeline:
    """A test's clock: the engine is told the time with every call."""

    def __init__(self, clock: Clock, anchors: Iterable[bytes] = ()) -> None:
        """`anchors` are what the shards were told last; the latest counts."""
        self._clock = clock
        known = [msgspec.json.decode(anchor, type=Anchor) for anchor in anchors if anchor]
        self._timeline = Timeline(clock, max(known, key=lambda anchor: anchor.last_ms, default=None))

    def now(self) -> int:
        """The present moment."""
        return self._timeline.now()

    def steady_ms(self) -> int:
        """As the test's clock tells."""
        return self._clock.steady_ms()

    def wall_of(self, moment: int) -> int:
        """By today's wall clock."""
        return self._timeline.wall_of(moment)

    def wall_s(self) -> int:
        """UTC seconds."""
        return self._clock.wall_ms() // 1000

    def argument(self) -> str:
        """Now, UTC milliseconds, the last reboot, what was slept, and the anchor."""
        one = self._timeline
        anchor = msgspec.json.encode(one.anchor()).decode()
        return f"{one.now()},{self._clock.wall_ms()},{one.rebooted_at},{one.slept_ms},{anchor}"

    def heard(self, now: int, shard: int = ELSEWHERE) -> None:
        """It is known already."""

    def behind(self, shard: int) -> int:  # noqa: ARG002 - all are told the same
        """Not at all."""
        return 0
