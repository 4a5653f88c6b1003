"""Several processes on one virtual loop: each can be frozen for a while, or killed, without the others noticing.

Every callback of asyncio carries a context, and a task hands its own on to all that it begins. So a process is a value
in that context. What belongs to a frozen process is kept back, in order, until it goes on; what belongs to a dead one,
until the simulation is over and everything is unwound. The network lies outside: what was sent arrives, and what
arrives at a frozen process waits for it.

A crash of everything at once is planned by the turn of the loop, and comes between any two callbacks of that turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import ContextVar
from typing import Any, TypeVar, TypeVarTuple, Unpack

from nephila.testing.clock import VirtualClock
from nephila.testing.loop import VirtualLoop, run_aside

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_stop = asyncio.base_events._run_until_complete_cb  # type: ignore[attr-defined]
"""What asyncio calls when that is done which it runs a loop for."""

OWNER: ContextVar[int] = ContextVar("owner", default=0)
"""The process that is running; 0 is the world: servers, name servers, whoever sets clocks and pulls plugs."""


class Crash(SystemExit):
    """Ends the loop at once: no handler of ours catches it."""


class ProcessLoop(VirtualLoop):
    """A virtual loop that knows whose callbacks it runs."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.turns = 0
        self._crash_at = 0
        self._crash_place = 0.0
        self._crash: Callable[[], None] = lambda: None
        self._over = False
        self._frozen: dict[int, list[asyncio.Handle]] = {}
        self._dead: dict[int, list[asyncio.Handle]] = {}
        self.stall: Callable[[Callable[..., Any]], float] = lambda _: 0.0
        """How long a function takes that a thread is to run, in seconds; less than nothing where it is done at last."""

    def plan_crash(self, turn: int, place: float, crash: Callable[[], None]) -> None:
        """Call `crash` in that turn from now, after that part of its callbacks."""
        self._crash_at, self._crash_place, self._crash = self.turns + turn, place, crash

    def freeze(self, owner: int) -> None:
        """Run nothing of that process until it is thawed."""
        if not self._over:
            self._frozen.setdefault(owner, [])

    def thaw(self, owner: int) -> None:
        """Let it go on with all that has come meanwhile."""
        self._ready.extend(self._frozen.pop(owner, ()))

    def is_frozen(self, owner: int) -> bool:
        """Whether it is kept from running."""
        return owner in self._frozen

    def is_dead(self, owner: int) -> bool:
        """Whether it was killed."""
        return owner in self._dead

    def kill(self, owner: int) -> None:
        """Never run anything of that process again."""
        if not self._over:
            self._dead[owner] = self._frozen.pop(owner, [])

    def wake_all(self) -> None:
        """The simulation is over for this loop: let everything be unwound, and hold nothing back any more."""
        self._over = True
        for kept in (*self._frozen.values(), *self._dead.values()):
            self._ready.extend(kept)
        # A crawl that ended in the turn in which it was killed has asked the loop to stop: not the one that unwinds.
        self._ready = deque(one for one in self._ready if one._callback is not _stop)  # type: ignore[attr-defined]
        self._frozen.clear()
        self._dead.clear()
        self._crash_at = 0

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run the function here, at the beginning or at the end of the time that it takes; all else goes on meanwhile.

        As with a thread, it is run whether or not somebody still waits for it.
        """
        wait_s = 0.0 if self._over else self.stall(func)
        if not wait_s:
            return super().run_in_executor(executor, func, *args)
        future: asyncio.Future[T] = self.create_future()
        if wait_s > 0:
            self.call_later(wait_s, run_aside(func, *args), future)
        else:
            self.call_later(-wait_s, lambda: run_aside(func, *args)(future))
        return future

    def _begin_turn(self) -> None:
        self.turns += 1
        if self._frozen or self._dead:
            self._hold_back()
        if self.turns == self._crash_at:
            handle = asyncio.Handle(self._crash, (), self)
            self._ready.insert(int(self._crash_place * (len(self._ready) + 1)), handle)

    def _hold_back(self) -> None:
        """Take what belongs to frozen and dead processes out of what is about to run."""
        self._take_due(self.time() + self._clock_resolution)
        due, self._ready = self._ready, deque()
        for one in due:
            owner = one._context.get(OWNER, 0)  # type: ignore[attr-defined]  # where every handle keeps it
            kept = self._frozen.get(owner, self._dead.get(owner))
            (self._ready if kept is None else kept).append(one)
