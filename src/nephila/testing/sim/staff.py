"""A supervisor and its workers as processes of one loop: the real ones, with neither pipes nor pids.

`Workforce`, `Supervisor` and `Worker` are those of `node.processes`; only how a worker comes into the world is another.
A worker that is killed runs nothing any more, its connections are reset, and its end of the channel is closed, which
is all that its supervisor sees of a real death.

Where the supervision is *negligent*, leases are returned when they expire though their holder may be alive, as they are
between machines that cannot kill each other. The connections of a holder that is frozen then are taken for lost.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Generic, TypeVar, cast

from nephila.interfaces.events import EventSink
from nephila.model.errors import NephilaError
from nephila.node.directory import CrawlDirectory
from nephila.node.frontiers import embedded_of
from nephila.node.ground import Ground, Seat
from nephila.node.processes.child import Child, Hear
from nephila.node.processes.share import Rhythm
from nephila.node.processes.supervisor import Supervisor
from nephila.node.processes.worker import work
from nephila.node.processes.workforce import Workforce
from nephila.node.wiring import assemble
from nephila.politeness import mark_resumed, shared_ledger, shared_table
from nephila.testing.clock import VirtualClock

from .happenings import Happening
from .owners import OWNER, ProcessLoop
from .scenario import Scenario
from .trouble import TroubledDisk
from .weather import StormyNetwork

RHYTHM = Rhythm(worker_s=1.0, supervisor_s=1.0, beat_s=4.0)
FIRST_OWNER = 10
KILLED = -9
NOTICE_S = 0.05

M = TypeVar("M")


class Line(Generic[M]):
    """One direction of a channel."""

    def __init__(self) -> None:
        self._messages: deque[M | None] = deque()
        self._news = asyncio.Event()

    def put(self, message: M | None) -> None:
        """Say something; None says that there is nobody any more."""
        self._messages.append(message)
        self._news.set()

    async def take(self) -> M | None:
        """The next message."""
        while not self._messages:
            self._news.clear()
            await self._news.wait()
        return self._messages.popleft()


class LineChannel:
    """Stands where `messages.Channel` is expected."""

    def __init__(self, to: Line[Any], come: Line[Any]) -> None:
        self._to = to
        self._come = come

    def send(self, message: Any) -> None:  # noqa: ANN401 - as the channel's two kinds
        """Hand a message over."""
        self._to.put(message)

    async def receive(self) -> Any:  # noqa: ANN401 - as above
        """The next message; None when the other end is closed."""
        return await self._come.take()

    async def close(self) -> None:
        """Nothing is kept back."""


class SimulatedProcess:
    """Stands where `asyncio.subprocess.Process` is expected."""

    def __init__(self, pid: int, kill: Callable[[int], None]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._kill = kill
        self._ended = asyncio.Event()

    def send_signal(self, _number: int) -> None:
        """There is but one signal that supervisors send."""
        self._kill(self.pid)

    def end(self, code: int) -> None:
        """It is no more."""
        self.returncode = code
        self._ended.set()

    async def wait(self) -> int:
        """Its exit code, when it has ended."""
        await self._ended.wait()
        return self.returncode or 0


class Staff:
    """The workers of one life."""

    def __init__(
        self,
        scenario: Scenario,
        network: StormyNetwork,
        clock: VirtualClock,
        disk: TroubledDisk,
        loop: ProcessLoop,
        forgive: Callable[[float], None],
    ) -> None:
        """`forgive` is told since when (milliseconds) answers may be lost because a worker is."""
        self._scenario = scenario
        self._network = network
        self._ground = Ground(clock, network, network, disk, threaded=False)
        self._trouble = disk.trouble
        self._loop = loop
        self._forgive = forgive
        self._born = 0
        self._processes: dict[int, tuple[SimulatedProcess, Line[Any]]] = {}
        self._supervisor: Supervisor | None = None
        self.frozen_at_ms: dict[int, float] = {}
        """Since when processes are frozen; answers since then may not have been read."""
        self.deaths = 0
        self.descriptors: list[int] = []
        """To be closed when everybody, the dead included, is unwound."""

    @property
    def owners(self) -> list[int]:
        """The processes that live, in the order of their birth."""
        return list(self._processes)

    async def supervised(
        self, directory: CrawlDirectory, ground: Ground, stack: AsyncExitStack, listeners: Sequence[EventSink]
    ) -> Supervisor:
        """As `node.processes.opening`, with workers of our own."""
        settings = self._scenario.settings
        table = shared_table()
        stack.callback(os.close, table)

        def fail(error: NephilaError) -> None:
            supervisor.fail(error)

        workforce = Workforce(
            str(directory.root),
            settings,
            self._scenario.workers,
            (0, table),
            ground.clock,
            hear_all=True,
            start=self._start,
        )
        await workforce.start()
        seat = Seat(supervises=True)
        machinery = assemble(directory, settings, ground, stack, fail, seat=seat, listeners=listeners)
        if machinery.frontier.snapshot().hosts:
            mark_resumed(table, ground.clock.steady_ms())
        workforce.ledger = shared_ledger(settings.politeness, os.dup(table), 0)
        if workforce.ledger is not None:
            stack.callback(workforce.ledger.close)
        self._supervisor = supervisor = Supervisor(machinery, workforce, listeners, RHYTHM)
        if self._scenario.negligent:
            reaper = asyncio.create_task(self._reap(), name="reaper")
            stack.callback(reaper.cancel)
        return supervisor

    async def _start(self, number: int, _lock: int, addresses: int, hear: Hear) -> Child:
        owner = FIRST_OWNER + self._born
        self._born += 1
        to_worker, to_supervisor = Line[Any](), Line[Any]()
        process = SimulatedProcess(owner, self._signalled)
        self._processes[owner] = (process, to_supervisor)
        context = contextvars.copy_context()
        context.run(OWNER.set, owner)
        channel = LineChannel(to_supervisor, to_worker)
        self.descriptors.append(os.dup(addresses))
        task = self._loop.create_task(
            work(cast("Any", channel), self.descriptors[-1], self._ground, RHYTHM),
            name=f"worker-{owner}",
            context=context,
        )
        task.add_done_callback(lambda done: self._ended(owner, done), context=contextvars.Context())
        return Child(number, cast("Any", process), cast("Any", LineChannel(to_worker, to_supervisor)), hear)

    def _ended(self, owner: int, task: asyncio.Task[None]) -> None:
        """A worker has come to its own end."""
        if owner in self._processes:
            process, line = self._processes.pop(owner)
            process.end(1 if task.cancelled() or task.exception() is not None else 0)
            line.put(None)

    def _signalled(self, owner: int) -> None:
        """The supervisor kills a worker; a negligent one cannot, until all are to end."""
        stopping = self._supervisor is None or self._supervisor._stopped_by is not None
        if stopping or not self._scenario.negligent:
            self.kill(owner)

    def kill(self, owner: int) -> None:
        """End a worker at once."""
        if owner in self._processes:
            process, line = self._processes.pop(owner)
            self._loop.kill(owner)
            self._network.hang_up(owner)
            frozen_at_ms = self.frozen_at_ms.pop(owner, self._network.service.now_ms())
            self._lose_answers(min(frozen_at_ms, 1000 * self._trouble.since_s_of.get(owner, math.inf)))
            self.deaths += 1
            process.end(KILLED)
            line.put(None)

    def _lose_answers(self, since_ms: float) -> None:
        """Nobody reads answers that ended since then; one may be sent, or end, in the moment that servers need."""
        self._forgive(since_ms)
        self._loop.call_later(NOTICE_S, self._forgive, since_ms, context=contextvars.Context())

    async def _reap(self) -> None:
        """Return leases that have expired, whoever holds them."""
        frontier = embedded_of(self._supervisor._m.frontier) if self._supervisor is not None else None
        while frontier is not None:
            await asyncio.sleep(self._scenario.settings.frontier.lease_s / 6)
            if frontier.view.overdue():
                for owner in sorted(self.frozen_at_ms):
                    self._network.hang_up(owner)
                    self._lose_answers(self.frozen_at_ms[owner])
                reaped = await frontier.reap()
                self._network.sky.happened[Happening.LEASE_REAPED] += reaped
