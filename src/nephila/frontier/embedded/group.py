"""Group commits: verbs that arrive together share one transaction and one sync.

A verb is a plain function on a `Book`. It is handed in, waits a moment for company, runs with the others in one write
transaction and answers when that is durable. On a real loop the transaction runs in a thread of its own (LMDB wants a
transaction to stay in one thread, and a sync must not stop the loop); under virtual time it runs in place, so that
nothing depends on threads.

What must stay true: a verb that raises takes nothing of itself into the store and harms no other verb of its group. The
group is then rolled back and each verb run in a transaction of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, TypeVarTuple

import lmdb

from nephila.frontier.timeline import Timeline
from nephila.interfaces.clock import Clock
from nephila.model.errors import MemoryShortageError

from .book import Book, Policy
from .tables import Tables, refused

T = TypeVar("T")
Given = TypeVarTuple("Given")
Act = tuple[Callable[..., Any], tuple[Any, ...]]
"""A verb, and what it is called with after the book."""

MAX_GROUP = 512


class GroupCommitter:
    """Runs verbs in group commits."""

    def __init__(self, tables: Tables, timeline: Timeline, clock: Clock, policy: Policy, *, threaded: bool) -> None:
        self._tables = tables
        self._timeline = timeline
        self._clock = clock
        self.policy = policy
        self._waiting: list[tuple[Act, asyncio.Future[Any]]] = []
        self._runner: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "nephila-frontier") if threaded else None
        self.observe: Callable[[Book], Any] = lambda _: None
        """Called inside every transaction, last: reads what the snapshot shows."""
        self.after_commit: Callable[[Any], None] = lambda _: None
        """Called with what `observe` read, once it is true."""

    @property
    def is_idle(self) -> bool:
        """Whether no verb waits or runs: what the store says now is what a verb that comes now would find."""
        return not self._waiting and (self._runner is None or self._runner.done())

    def run(self, verb: Callable[[Book, *Given], T], *given: *Given) -> asyncio.Future[T]:
        """Run one verb durably, with what it takes besides the book.

        Whoever waits for the answer and is cancelled cancels its own future; the verb runs all the same.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append(((verb, given), future))
        if self._runner is None or self._runner.done():
            self._runner = loop.create_task(self._drain(), name="frontier-commit")
            self._runner.add_done_callback(self._abandon)
        return future

    def run_now(self, verb: Callable[[Book], T]) -> T:
        """Run one verb in a transaction of its own, in place. For opening and closing, when no loop runs."""
        answer: T | Exception = self._attempt([(verb, ())])[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        """Wait for what was handed in, then end the thread."""
        while self._runner is not None and not self._runner.done():
            await asyncio.wait([self._runner])
        if self._thread is not None:
            self._thread.shutdown(wait=True)

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        group: list[tuple[Act, asyncio.Future[Any]]] = []
        try:
            while self._waiting:
                if self.policy.settings.linger_ms:
                    await asyncio.sleep(self.policy.settings.linger_ms / 1000)
                group, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
                acts = [act for act, _ in group]
                if self._thread is None:
                    answers = self._attempt(acts)
                else:
                    answers = await loop.run_in_executor(self._thread, self._attempt, acts)
                for (_, future), answer in zip(group, answers, strict=True):
                    if future.done():
                        continue
                    if isinstance(answer, BaseException):
                        future.set_exception(answer)
                    else:
                        future.set_result(answer)
        except asyncio.CancelledError:
            for _, future in group:
                future.cancel()
            raise

    def _abandon(self, runner: asyncio.Task[None]) -> None:
        """The loop ends and took the runner with it: nobody may wait for an answer that will not come."""
        if runner.cancelled() and runner is self._runner:
            abandoned, self._waiting = self._waiting, []
            for _, future in abandoned:
                future.cancel()

    def _attempt(self, acts: list[Act]) -> list[Any]:
        """Commit the group; where that fails, each verb alone, its exception as its answer."""
        try:
            return self._commit(acts)
        except Exception as error:  # noqa: BLE001 - every exception is handed to the caller whose verb it was
            if len(acts) == 1:
                return [_told(error)]
        return [self._attempt([act])[0] for act in acts]

    def _commit(self, acts: list[Act]) -> list[Any]:
        with self._tables.env.begin(db=self._tables.web, write=True) as txn:
            book = Book(txn, self._tables, self._timeline, self.policy, self._clock.wall_ms() // 1000)
            answers = [verb(book, *given) for verb, given in acts]
            book.write_back()
            observed = self.observe(book)
        self.after_commit(observed)
        return answers


def _told(error: Exception) -> Exception:
    """An engine's error as one of ours; any other as it is."""
    if not isinstance(error, lmdb.Error):
        return error
    told = MemoryShortageError() if isinstance(error, lmdb.MemoryError) else refused(error)
    told.__cause__ = error
    return told
