"""Workers that share a store take turns at it, each with groups of its own, and nothing that was answered is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import turn_taker
from leashed import leashed

from nephila.frontier.embedded import LmdbFrontier
from nephila.frontier.embedded.turnstile import Turnstile
from nephila.frontier.embedded.writing import BUSY_SHARE, LEAST_TURN_MS, ROUND_MS, Turns
from nephila.node.clock import SystemClock
from nephila.testing.contracts.frontier import addresses, candidates


class Worker:
    """A process that has the store open."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.hears("ready")

    def tell(self, order: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def hears(self, expected: str) -> None:
        assert self.answer() == expected

    def admit(self, *names: str) -> None:
        self.tell(" ".join(("admit", *names)))
        self.hears("admitted")


@contextmanager
def workers(folder: Path, among: int) -> Iterator[list[Worker]]:
    """So many of them, who end with the block."""
    processes: list[subprocess.Popen[str]] = []
    try:
        for number in range(1, among + 1):
            command = [sys.executable, turn_taker.__file__, str(folder), str(number), str(among)]
            processes.append(
                subprocess.Popen(leashed(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
        yield [Worker(process) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()


def supervisor(folder: Path) -> LmdbFrontier:
    """Whoever opens the store first, and writes now and then."""
    return LmdbFrontier(folder, SystemClock(), turn_taker.policy_of(0, 2))


def knows(frontier: LmdbFrontier, name: str) -> bool:
    (one,) = addresses(f"https://{name}.example/")
    return frontier.story(one.host, one.fingerprint) is not None


def commits(frontier: LmdbFrontier) -> int:
    """How many the store has had."""
    return int(frontier._tables.env.info()["last_txnid"])


def test_a_turn_ends_when_it_has_lasted_or_is_made_no_use_of() -> None:
    """F1, Q2: a worker that is busy keeps the store for its part of a round; one that waits for the web does not."""
    turns = Turns(2)
    whole_ms = ROUND_MS / 2
    assert not turns.is_over(whole_ms - 1, whole_ms - 1)
    assert turns.is_over(whole_ms, whole_ms)
    assert not turns.is_over(LEAST_TURN_MS - 1, 0)
    assert turns.is_over(LEAST_TURN_MS, 0)
    assert not turns.is_over(50, 50 * BUSY_SHARE)
    assert turns.is_over(50, 49 * BUSY_SHARE)
    assert Turns(8).is_over(ROUND_MS / 8, ROUND_MS / 8)


def test_workers_stand_in_a_line_of_their_own(tmp_path: Path) -> None:
    """R4: whoever has the store can tell those who wait for their turn from those who are let in at once."""
    holder, other, person = Turnstile(tmp_path, in_line=True), Turnstile(tmp_path, in_line=True), Turnstile(tmp_path)
    with holder.passed():
        pass
    assert not holder.is_taken()
    assert not holder.is_waited_at()
    with other.passed():
        assert holder.is_waited_at()
        assert not holder.is_taken()
        assert person.is_waited_at()
    with person.passed():
        assert holder.is_taken()
        assert not holder.is_waited_at()
    for one in (holder, other, person):
        one.close()


def test_what_a_killed_worker_has_answered_is_brought_in(tmp_path: Path) -> None:
    """F10, Q4: its transaction is gone, its journal is not; who puts in order what it left sees it."""
    frontier = supervisor(tmp_path)
    with workers(tmp_path, 2) as (first, second):
        first.admit("a", "b")
        assert not knows(frontier, "a")
        first.process.kill()
        first.process.wait()
        asyncio.run(frontier.catch_up())
        assert knows(frontier, "a")
        second.admit("c")
        second.process.kill()
        second.process.wait()
    asyncio.run(frontier.admit(candidates("https://d.example/")))
    assert all(knows(frontier, name) for name in "abcd")
    asyncio.run(frontier.close())


def test_a_worker_brings_in_what_another_has_left(tmp_path: Path) -> None:
    """F10, Q4: before it writes anything, and the journal of its turn begins empty."""
    frontier = supervisor(tmp_path)
    with workers(tmp_path, 2) as (first, second):
        for name in "abc":
            first.admit(name)
        first.process.kill()
        first.process.wait()
        second.admit("d")
        second.process.kill()
        second.process.wait()
    asyncio.run(frontier.close())
    again = supervisor(tmp_path)
    assert all(knows(again, name) for name in "abcd")
    asyncio.run(again.close())


@pytest.mark.parametrize("idle", ["worker", "person"])
def test_whoever_does_nothing_with_the_store_keeps_nobody_waiting(tmp_path: Path, idle: str) -> None:
    """F1, R4: a worker lets go of the store when another, or a person, waits; it would keep it for a minute alone."""
    frontier = supervisor(tmp_path)
    with workers(tmp_path, 2) as (first, second):
        first.admit("a")
        if idle == "worker":
            second.admit("b")
        else:
            asyncio.run(frontier.admit(candidates("https://b.example/")))
        assert knows(frontier, "a")
    asyncio.run(frontier.close())


def test_workers_that_are_busy_commit_once_a_turn(tmp_path: Path, say: Callable[[str], None]) -> None:
    """Q1, F1: and not once a group; all of it is in the store in the end, a person's word in the middle as well."""
    frontier = supervisor(tmp_path)
    before = commits(frontier)
    with workers(tmp_path, 2) as both:
        for worker in both:
            worker.tell("toil 2")
        asyncio.run(frontier.admit(candidates("https://person.example/")))
        groups = [int(worker.answer()) for worker in both]
        for worker in both:
            assert worker.process.stdin is not None
            worker.process.stdin.close()
            assert worker.process.wait() == 0
    made = commits(frontier) - before
    say(f"{groups[0]} and {groups[1]} groups, {made} commits")
    assert min(groups) > 0
    assert made * 3 < sum(groups)
    assert frontier.refresh().urls == sum(groups) + 1
    asyncio.run(frontier.close())
