"""Group commits: verbs that arrive together share one sync.

A verb is a plain function on a `Book`. It is handed in, waits a moment for company, runs with the others as one group
and answers when that is durable (`writing` has the two ways to that). On a real loop groups run in a thread of their
own (LMDB wants a transaction to stay in one thread, and a sync must not stop the loop); under virtual time they run in
place, so that nothing depends on threads.

What must stay true: a verb that raises takes nothing of itself into the store and harms no other verb of its group. The
group is then rolled back and each verb run as a group of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, TypeVarTuple

import lmdb

from nephila.engines.threads import started_pool
from nephila.frontier.policy import Policy
from nephila.frontier.timeline import Timeline
from nephila.interfaces.clock import Clock
from nephila.model.errors import StorageError

from .book import Book
from .desk import Desk
from .tables import Tables, refused
from .writing import Writing

T = TypeVar("T")
Given = TypeVarTuple("Given")
Act = tuple[Callable[..., Any], tuple[Any, ...]]
"""A verb, and what it is called with after the book."""

MAX_GROUP = 512


class GroupCommitter:
    """Runs verbs in group commits."""

    def __init__(
        self, tables: Tables, writing: Writing, timeline: Timeline, clock: Clock, policy: Policy, *, threaded: bool
    ) -> None:
        self._tables = tables
        self._writing = writing
        self._timeline = timeline
        self._clock = clock
        self.policy = policy
        self._waiting: list[tuple[Act, asyncio.Future[Any]]] = []
        self._served: list[tuple[Act, asyncio.Future[Any]]] = []
        """The group at work."""
        self._runner: asyncio.Task[None] | None = None
        self._thread = started_pool(1, "nephila-frontier") if threaded else None
        self._timer: asyncio.TimerHandle | None = None
        self._desk = Desk()
        self.observe: Callable[[Book], Any] = lambda _: None
        """Called inside every transaction, last: reads what the snapshot shows."""
        self.after_commit: Callable[[Any], None] = lambda _: None
        """Called with what `observe` read, once it is true."""

    @property
    def is_idle(self) -> bool:
        """Whether no verb waits or runs: what the store says now is what a verb that comes now would find."""
        return not self._waiting and (self._runner is None or self._runner.done())

    @property
    def is_held(self) -> bool:
        """Whether verbs have answered whose changes the store does not show yet."""
        return self._writing.is_held

    def is_waited_at(self) -> bool:
        """Whether a worker waits for its turn at the store."""
        return self._writing.is_waited_at()

    def show(self) -> None:
        """Let the store show all that was answered: for those who look at more than one key of it."""
        if not self._writing.is_held:
            return
        try:
            if self._thread is None:
                self._writing.let_go()
            else:
                self._thread.submit(self._writing.let_go).result()
        except lmdb.Error as error:
            raise _told(error) from error

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
        """Run one verb in a transaction of its own, in place. For opening and closing, when no loop runs.

        The store is committed at once: a transaction belongs to the thread that began it, and groups have their own.
        """
        answer: T | Exception = self._attempt([(verb, ())])[0]
        try:
            self._writing.let_go()
        except lmdb.Error as error:
            raise _told(error) from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def abandon(self) -> None:
        """End the thread and let go of everything, where it could not be opened."""
        if self._thread is not None:
            self._thread.shutdown(wait=True)
        self._writing.abandon()

    async def close(self) -> None:
        """Wait for what was handed in, then end the thread."""
        while self._runner is not None and not self._runner.done():
            await asyncio.wait([self._runner])
        self._rest_timer()
        try:
            self.show()
        finally:
            if self._thread is not None:
                self._thread.shutdown(wait=True)
            self._writing.close()

    async def _drain(self) -> None:
        """Serve all who come; whatever breaks, nobody waits for an answer that will not come."""
        try:
            await self._serve()
        except asyncio.CancelledError:
            for _, future in self._served:
                future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - memory may run out between two groups: every caller is told
            refused, self._waiting = [*self._served, *self._waiting], []
            for _, future in refused:
                _tell(future, _told(error))
        finally:
            self._served = []

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        self._rest_timer()
        while self._waiting:
            if self.policy.settings.linger_ms:
                await asyncio.sleep(self.policy.settings.linger_ms / 1000)
            self._served, self._waiting = self._waiting[:MAX_GROUP], self._waiting[MAX_GROUP:]
            if self._writing.is_full_with(len(self._served)):
                await self._let_go()
            acts = [act for act, _ in self._served]
            if self._thread is None:
                answers = self._attempt(acts)
            else:
                answers = await loop.run_in_executor(self._thread, self._attempt, acts)
            for (_, future), answer in zip(self._served, answers, strict=True):
                _tell(future, answer)
            if self._writing.is_due:
                await self._let_go()
        self._set_timer()

    def _rest_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _let_go(self) -> None:
        """Let the store follow, after the answers: who has one goes on meanwhile."""
        if self._thread is None:
            self._follow()
        else:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._follow)

    def _set_timer(self) -> None:
        """Nobody comes; under virtual time nobody waits either."""
        self._rest_timer()
        if self._writing.is_held:
            settings = self.policy.settings
            wait_ms = settings.commit_ms if self._thread is None else self._writing.look_again_ms
            self._timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self._look_again)

    def _look_again(self) -> None:
        """Nothing came for a while: let the store follow, if it is time."""
        if self._thread is None:
            self._follow()
        elif self._writing.is_due or self._writing.is_behind:
            self._thread.submit(self._follow)
        else:
            self._set_timer()

    def _follow(self) -> None:
        """Commit what is held. What fails is told to the next who comes, or at the end: the journal has it."""
        with suppress(lmdb.Error, StorageError):
            self._writing.let_go()

    def _abandon(self, runner: asyncio.Task[None]) -> None:
        """The loop ends and took the runner with it: nobody may wait for an answer that will not come."""
        if runner.cancelled() and runner is self._runner:
            abandoned, self._waiting = self._waiting, []
            for _, future in abandoned:
                future.cancel()

    def _attempt(self, acts: list[Act]) -> list[Any]:
        """Commit the group; where that fails, each verb alone, its exception as its answer. A disk fails for all."""
        try:
            return self._commit(acts)
        except StorageError as error:
            return [error] * len(acts)
        except Exception as error:  # noqa: BLE001 - every exception is handed to the caller whose verb it was
            if len(acts) == 1:
                return [_told(error)]
        return [self._attempt([act])[0] for act in acts]

    def _commit(self, acts: list[Act]) -> list[Any]:
        wall_s = self._clock.wall_ms() // 1000
        try:
            with self._writing.group(len(acts)) as txn:
                book = Book(txn, self._tables, self._timeline, self.policy, wall_s, self._desk)
                answers = [verb(book, *given) for verb, given in acts]
                book.write_back()
                observed = self.observe(book)
        except BaseException:
            self._desk.clear()
            raise
        self.after_commit(observed)
        return answers


def _tell(future: asyncio.Future[Any], answer: Any) -> None:  # noqa: ANN401 - whatever the verb answers
    """Answer whoever still waits."""
    if future.done():
        return
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _told(error: Exception) -> Exception:
    """An engine's error as one of ours; any other as it is."""
    if not isinstance(error, lmdb.Error):
        return error
    told = refused(error)
    told.__cause__ = error
    return told
